"""What a run of `label` reports."""

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence

from spacy.tokens import Doc

from ...errors import Errors, WeaknerError
from ..runtime.pipelines import load_pipeline
from ..runtime.shards import WHOLE, Part, ShardReport
from .importing import count_lines
from .labellers import Tally
from .sources import Source


class SourceReport(NamedTuple):
    """What a source did.

    name (str): Its name.
    spans (Dict[str, int]): Its spans per label.
    left_out (Dict[str, int]): Spans left out since `labels` does not name their label, per label.
    low_scores (int): Spans left out since their score is lower than `min_score`.
    misaligned (int): Imported spans left out since they do not fit the tokens.
    not_found (int): Imported phrases that are not in their Docs.
    docs_without_row (int): Docs about which the file says nothing; they have no group of this source.
    other_text (int): Docs that share their identifier with a row of another text, which was passed over.
    rows_without_doc (Optional[int]): Rows of the file that belong to no Doc; None if only a part was labelled.
    repeated_rows (int): Rows of the file with the identifier (or, without one, the text) of an earlier row. The first
        counts.
    rows (int): Rows of the file, without repeated ones.
    """

    name: str
    spans: Dict[str, int]
    left_out: Dict[str, int]
    low_scores: int
    misaligned: int
    not_found: int
    docs_without_row: int
    other_text: int
    rows_without_doc: Optional[int]
    repeated_rows: int
    rows: int

    @property
    def met_no_doc(self) -> bool:
        """RETURNS (bool): Whether the file has rows, and none of them belongs to any Doc; False if only a part was
        labelled.
        """
        return self.docs_without_row > 0 and self.rows > 0 and self.rows_without_doc == self.rows


class LabelReport(NamedTuple):
    """What was labelled.

    docs (int): Docs written.
    excluded (int): Docs left out because an excluded corpus holds the same sentence.
    unmatched (int): Docs without a match; they are written too, unless `only_matched` is set.
    spans (Dict[str, int]): Spans per label, of all sources.
    skipped (int): Shards that were finished already.
    source (str): Name of the source; of several, their names.
    sources (List[SourceReport]): What each source did.
    replaced (int): Shards of an earlier run, made from another input or with other settings, that were made anew or
        removed.
    """

    docs: int
    excluded: int
    unmatched: int
    spans: Dict[str, int]
    skipped: int
    source: str
    sources: List[SourceReport]
    replaced: int


def make_report(sources: Sequence[Source], report: ShardReport, part: Part) -> LabelReport:
    """Sum up a run.

    sources (Sequence[Source]): The sources.
    report (ShardReport): What was counted.
    part (Part): What was labelled.
    RETURNS (LabelReport): The report.
    RAISES (WeaknerError): If a pipeline has written span groups all over, but nothing of what was to be taken; or never
        writes the group that was to be taken.
    """
    reports = [_source_report(Tally(report.counts, source.name), part == WHOLE) for source in sources]
    for source, source_report in zip(sources, reports, strict=True):
        if part == WHOLE and not (source_report.spans or source_report.left_out or source_report.low_scores):
            _check_groups(source, list(Tally(report.counts, source.name).get("group")))
    spans: Counter[str] = Counter()
    for source_report in reports:
        spans.update(source_report.spans)
    return LabelReport(
        docs=report.docs_out,
        excluded=report.counts["excluded"],
        unmatched=report.counts["unmatched"],
        spans=dict(sorted(spans.items())),
        skipped=report.skipped,
        source=", ".join(source.name for source in sources),
        sources=reports,
        replaced=report.replaced,
    )


def _check_groups(source: Source, groups: Sequence[str]) -> None:
    """Refuse a choice that cannot be meant, of a source that has found nothing.

    source (Source): The source.
    groups (Sequence[str]): Other span groups that had spans.
    RAISES (WeaknerError): If there are any, or if the source is a pipeline that never writes the group to take.
    """
    if groups:
        what = "entities" if source.spans_key is None else f"spans in the group '{source.spans_key}'"
        raise WeaknerError(Errors.WK306.format(pipeline=source.path, what=what, groups=", ".join(groups)))
    if source.spans_key is not None:
        # No group had a span. Whether there is an empty one, any Doc can tell.
        nlp = load_pipeline(source.path)
        written = sorted(nlp(Doc(nlp.vocab, words=["x"])).spans)
        if source.spans_key not in written:
            names = ", ".join(written) or "none"
            raise WeaknerError(Errors.WK315.format(pipeline=source.path, group=source.spans_key, groups=names))


def _source_report(tally: Tally, whole: bool) -> SourceReport:
    def total(what: str) -> int:
        return sum(tally.get(what).values())

    rows, repeated = (max(map(int, tally.get(what)), default=0) for what in ("rows", "repeated"))
    return SourceReport(
        name=tally.source,
        spans=tally.get("label"),
        left_out=tally.get("left_out"),
        low_scores=total("low_scores"),
        misaligned=total("misaligned"),
        not_found=total("not_found"),
        docs_without_row=total("docs_without_row"),
        other_text=total("other_text"),
        # Not below 0: a repeated row can still be found by its text.
        rows_without_doc=max(0, rows - count_lines(list(tally.get("lines")))) if whole else None,
        repeated_rows=repeated,
        rows=rows,
    )

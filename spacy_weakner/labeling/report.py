"""Counts and reports of `label`."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from typing import Annotated, DefaultDict, List, Sequence

from pydantic import Field
from spacy.tokens import Doc

from ..corpus.counts import RowCounts
from ..errors import Errors, WeaknerError
from ..runtime.shards import WHOLE, ShardShare
from ..runtime.stage import Report, Statistics
from .sources import PipelineSource, Source


@dataclass
class SourceCounts(Statistics):
    """Counts of a source. Rows are those of its file."""

    spans: "Counter[str]" = field(default_factory=Counter)  # by label
    left_out: "Counter[str]" = field(default_factory=Counter)  # spans whose label is not in `labels`, by label
    low_scores: int = 0  # spans left out because their score is lower than `min_score`
    misaligned: int = 0  # imported spans left out because they do not fit the tokens
    not_found: int = 0  # imported phrases that do not occur in their Docs
    docs_with_row: int = 0  # Docs with a row in the file of the source
    docs_without_row: int = 0  # Docs without one; they have no group of this source
    other_text: int = 0  # Docs that share their identifier with a row of another text, which was skipped
    # Docs with spans in groups other than the requested one, per group; for corpus labels, groups of other sources.
    groups: "Counter[str]" = field(default_factory=Counter)
    repeated_rows: int = 0  # with the identifier (or, without one, the text) of an earlier row, which is used
    rows: int = 0  # without repeated ones

    def add(self, other: "SourceCounts") -> None:
        # All shards count the same rows of the file.
        rows, repeated = max(self.rows, other.rows), max(self.repeated_rows, other.repeated_rows)
        super().add(other)
        self.rows, self.repeated_rows = rows, repeated


@dataclass
class LabelCounts(RowCounts, Report):
    """What is counted, beside the fields of `RowCounts` and `Report`."""

    excluded: int = 0  # Docs left out because an excluded corpus holds the same sentence
    unmatched: int = 0  # Docs without a match; they are also written, unless `only_matched` is set
    by_source: DefaultDict[str, Annotated[SourceCounts, Field(default_factory=SourceCounts)]] = field(
        default_factory=lambda: defaultdict(SourceCounts)
    )


@dataclass
class SourceReport(SourceCounts):
    """`SourceCounts` with the name and the kind of the source, and the part that was labeled."""

    name: str = ""
    part: ShardShare = WHOLE
    kind: str = ""

    @property
    def met_no_doc(self) -> bool:
        """True if no row of the source's file belongs to any Doc; always False if only a part was labeled."""
        has_file = self.kind in ("file", "answers")
        return has_file and self.part == WHOLE and self.docs_without_row > 0 and not self.docs_with_row

    def details(self) -> str:
        """Return all counts except the spans, as text."""
        counts = {
            "labels left out": sum(self.left_out.values()),
            "scores too low": self.low_scores,
            "misaligned": self.misaligned,
            "phrases not found": self.not_found,
            "rows of the file": self.rows,
            "documents with a row": self.docs_with_row,
            "documents without a row": self.docs_without_row,
            "rows of the same id with another text": self.other_text,
            "repeated rows": self.repeated_rows,
        }
        named = {"labels left out": f" ({', '.join(f'{label} {n}' for label, n in self.left_out.items())})"}
        return "; ".join(f"{what}: {n}{named.get(what, '')}" for what, n in counts.items() if n)


@dataclass
class LabelReport(LabelCounts):
    """`LabelCounts` with a report on each source, in the order of the declarations."""

    sources: List[SourceReport] = field(default_factory=list)

    @property
    def spans(self) -> "Counter[str]":
        """Spans per label, of all sources."""
        return sum((source.spans for source in self.sources), Counter())


def make_report(sources: Sequence[Source], counts: LabelCounts, part: ShardShare) -> LabelReport:
    """Sum up a run. Raise an error for a pipeline that wrote span groups but not the requested labels, or that never
    writes the requested group."""
    reports = []
    for source in sources:
        report = SourceReport(**vars(counts.by_source[source.name]), name=source.name, part=part, kind=source.kind)
        has_found = report.spans or report.left_out or report.low_scores
        if part == WHOLE and isinstance(source, PipelineSource) and not has_found:
            _check_groups(source, list(report.groups))
        reports.append(report)
    counted = {count.name: getattr(counts, count.name) for count in fields(counts)}
    return LabelReport(**counted, sources=reports)


def _check_groups(source: PipelineSource, groups: Sequence[str]) -> None:
    """Check a pipeline that found nothing; `groups` are other span groups that had spans."""
    if groups:
        what = "entities" if source.spans_key is None else f"spans in the group '{source.spans_key}'"
        raise WeaknerError(Errors.WK306.format(pipeline=source.path, what=what, groups=", ".join(groups)))
    if source.spans_key is not None:
        # No group had a span. Any Doc shows whether the pipeline writes an empty one.
        nlp = source.load()
        written = sorted(nlp(Doc(nlp.vocab, words=["x"])).spans)
        if source.spans_key not in written:
            names = ", ".join(written) or "none"
            place = f"from the pipeline '{source.path}'"
            raise WeaknerError(Errors.WK372.format(place=place, key=source.spans_key, groups=names))

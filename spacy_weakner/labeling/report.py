"""What `label` counts and reports."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, DefaultDict, Iterable, List, Optional, Sequence, Set, Tuple

from pydantic import Field, PlainSerializer, PlainValidator
from spacy.tokens import Doc

from ..corpus.counts import RowCounts
from ..errors import Errors, WeaknerError
from ..pipelines import load_pipeline
from ..runtime.shards import WHOLE, Part
from ..runtime.stage import Report, Statistics
from .sources import PipelineSource, Source

Range = Tuple[int, int]


class Lines:
    """Line numbers, kept as ranges of a first and a last line, as which receipts have them: "1-5000,7001". Those of
    thousands of shards are summed up."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._ranges = [*ranges]
        self._new: Set[int] = set()

    def update(self, lines: Iterable[int]) -> None:
        self._new.update(lines)

    @property
    def ranges(self) -> List[Range]:
        """In ascending order, none next to another."""
        ranges, self._ranges = sorted([*self._ranges, *((line, line) for line in self._new)]), []
        self._new.clear()
        for first, last in ranges:
            if self._ranges and first <= self._ranges[-1][1] + 1:
                first, before = self._ranges.pop()
                last = max(last, before)
            self._ranges.append((first, last))
        return self._ranges

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lines) and self.ranges == other.ranges

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __iadd__(self, other: "Lines") -> "Lines":
        # They are sorted when they are read: those of thousands of shards once.
        self._ranges += other._ranges
        self._new |= other._new
        return self

    def to_json(self) -> str:
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)

    @classmethod
    def from_json(cls, given: Any) -> "Lines":
        if isinstance(given, Lines):
            return given
        if not isinstance(given, str):
            raise ValueError("rows are ranges in a string")
        pairs = (part.partition("-") for part in given.split(",") if part)
        return cls((int(first), int(last or first)) for first, _, last in pairs)


_Lines = Annotated[Lines, PlainValidator(Lines.from_json), PlainSerializer(Lines.to_json)]


@dataclass
class SourceCounts(Statistics):
    """Counts of a source; rows are those of its file."""

    spans: "Counter[str]" = field(default_factory=Counter)  # by label
    left_out: "Counter[str]" = field(default_factory=Counter)  # spans whose label `labels` does not name, by label
    low_scores: int = 0  # spans left out since their score is lower than `min_score`
    misaligned: int = 0  # imported spans left out since they do not fit the tokens
    not_found: int = 0  # imported phrases that are not in their Docs
    docs_without_row: int = 0  # they have no group of this source
    other_text: int = 0  # Docs that share their identifier with a row of another text, which was passed over
    # Docs with spans in another group than the one to take, per group; for labels of the corpus those of other sources.
    groups: "Counter[str]" = field(default_factory=Counter)
    used_rows: _Lines = field(default_factory=Lines)  # lines that belong to a Doc
    repeated_rows: int = 0  # with the identifier (or, without one, the text) of an earlier row, which counts
    rows: int = 0  # without repeated ones

    def add(self, other: "SourceCounts") -> None:
        # All shards count the same rows of the file itself.
        rows, repeated = max(self.rows, other.rows), max(self.repeated_rows, other.repeated_rows)
        super().add(other)
        self.rows, self.repeated_rows = rows, repeated


@dataclass
class LabelCounts(RowCounts, Report):
    """What is counted beside the fields of `RowCounts` and `Report`."""

    excluded: int = 0  # Docs left out because an excluded corpus holds the same sentence
    unmatched: int = 0  # Docs without a match; they are written too, unless `only_matched` is set
    by_source: DefaultDict[str, Annotated[SourceCounts, Field(default_factory=SourceCounts)]] = field(
        default_factory=lambda: defaultdict(SourceCounts)
    )


@dataclass
class SourceReport(SourceCounts):
    """`SourceCounts` with the name and the kind of the source, and what was labeled."""

    name: str = ""
    part: Part = WHOLE
    kind: str = ""

    @property
    def rows_without_doc(self) -> Optional[int]:
        """Rows of the file that belong to no Doc; None if only a part was labeled."""
        # Not below 0: a repeated row can still be found by its text.
        return max(0, self.rows - len(self.used_rows)) if self.part == WHOLE else None

    @property
    def met_no_doc(self) -> bool:
        """True if the file has rows, none of which belongs to any Doc; False if only a part was labeled."""
        return self.docs_without_row > 0 and self.rows > 0 and self.rows_without_doc == self.rows


@dataclass
class LabelReport(LabelCounts):
    """`LabelCounts` with a report of each source, in the order of their declarations."""

    sources: List[SourceReport] = field(default_factory=list)

    @property
    def spans(self) -> "Counter[str]":
        """Spans per label, of all sources."""
        return sum((source.spans for source in self.sources), Counter())


def make_report(sources: Sequence[Source], counts: LabelCounts, part: Part) -> LabelReport:
    """Sum up a run; refuse a pipeline that has written span groups all over, but nothing of what was to be taken, or
    never writes the group that was to be taken."""
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
    """Of a pipeline that has found nothing: `groups` are other span groups that had spans."""
    if groups:
        what = "entities" if source.spans_key is None else f"spans in the group '{source.spans_key}'"
        raise WeaknerError(Errors.WK306.format(pipeline=source.path, what=what, groups=", ".join(groups)))
    if source.spans_key is not None:
        # No group had a span. Any Doc shows whether there is an empty one.
        nlp = load_pipeline(source.path)
        written = sorted(nlp(Doc(nlp.vocab, words=["x"])).spans)
        if source.spans_key not in written:
            names = ", ".join(written) or "none"
            place = f"from the pipeline '{source.path}'"
            raise WeaknerError(Errors.WK372.format(place=place, key=source.spans_key, groups=names))

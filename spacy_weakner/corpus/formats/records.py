"""What the reader of a format has to offer, and bringing its records to code points without overlaps."""

from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import AbstractSet, Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc, Span

from ...ty import Entity
from .. import weak
from ..counts import Place, RowCounts, RowError, show
from ..overlaps import drop_overlaps
from ..records import BLANK, Mark, Range, Record, ids_of, make_mark
from .offsets import CODE_POINTS, Offsets, plain_text

EMPTY = "texts without any span, read as complete gold (the file does not record if they were annotated)"
BEYOND = "spans beyond their text, or within a character; their tokens are missing"
OTHER_TEXT = "spans that cover another text than their row gives; their tokens are missing"
# A row of a file, or several about one text, and where it stands.
Item = Tuple[Place, Any]


@dataclass
class Context:
    """What readers of records may use: counts of what they drop, and the names of tags that are numbers."""

    counts: RowCounts = field(default_factory=RowCounts)
    labels: Tuple[str, ...] = ()

    def note_unknown(self, row: Dict[str, Any], known: AbstractSet[Any]) -> List[str]:
        """Count the unknown keys that may hold annotations (lists and objects), and return them."""
        unknown = [key for key, value in row.items() if value and isinstance(value, (list, dict)) and key not in known]
        self.counts.ignored.update(unknown)
        self.counts.lists.update(unknown)
        return unknown


class Tool(NamedTuple):
    """How files of an annotation tool are read and written.

    read (Callable[[Any, Context], Optional[Record]]): Makes a record of an item; None if there is nothing to keep.
        Raises a `RowError` for what is malformed.
    gather (Optional[Callable[[Iterable[Item]], Iterator[Item]]]): Brings rows about one text together: its items are
        lists of rows.
    unit (str): What offsets count unless the file shows otherwise.
    sure (bool): True if the tool always counts so.
    write (Optional[Callable[[Doc, Counter[str]], Iterable[Any]]]): Makes rows of a Doc, and counts what is lost.
    """

    read: Callable[[Any, Context], Optional[Record]]
    gather: Optional[Callable[[Iterable[Item]], Iterator[Item]]] = None
    unit: str = CODE_POINTS
    sure: bool = True
    write: Optional[Callable[..., Iterable[Any]]] = None


def triple_mark(item: Any, *, last: bool = False) -> Mark:
    """Make a span of `[start, end, label]`; see `make_mark`."""
    if not isinstance(item, list) or len(item) != 3:
        raise RowError(f"expected [start, {'last' if last else 'end'}, label], got {show(item)}")
    start, end, label = item
    return make_mark(start, end, label, item, last=last)


def an_object(value: Any, what: str) -> Dict[str, Any]:
    """An object, where one is expected."""
    if not isinstance(value, dict):
        raise RowError(f"{what} must be an object, got {show(value)}")
    return value


def a_text(row: Dict[str, Any], *keys: str) -> str:
    """The text of a row, under the first of some keys that holds one."""
    text = next((row[key] for key in keys if isinstance(row.get(key), str)), None)
    if text is None:
        raise RowError(f"no text: expected a string under '{keys[0]}', got {show(row)}")
    return str(text)


def a_probability(value: Any) -> Optional[float]:
    """A score; None if it is no probability."""
    return float(value) if type(value) in (int, float) and 0.0 <= value <= 1.0 else None


def agreed(answers: Sequence[List[Mark]]) -> Tuple[List[Mark], List[Mark]]:
    """The spans that all annotators of a text have found, with all their ids, and those that only some have."""
    marks: Dict[Entity, Mark] = {}
    for mark in chain(*answers):
        before = marks.get(_visible(mark), mark).id
        marks[_visible(mark)] = mark._replace(id="|".join(dict.fromkeys(filter(None, [before, mark.id]))))
    shared = set.intersection(*({_visible(mark) for mark in answer} for answer in answers))
    return [marks[key] for key in marks if key in shared], [marks[key] for key in marks if key not in shared]


def _visible(mark: Mark) -> Entity:
    """Span and label, without white space at the ends where the row has the text of the span."""
    text = mark.text or ""
    start, end = mark.start + len(text) - len(text.lstrip()), mark.end - len(text) + len(text.rstrip())
    return (start, end, mark.label) if start < end else mark[:3]


def in_code_points(record: Record, unit: str, counts: RowCounts) -> Record:
    """A record of a tool with offsets in code points, and entities without overlaps; where they cannot be told, the
    tokens are missing."""
    ents, wrong, groups, missing = record.ents, record.wrong, record.weak, list(record.missing)
    text = record.text
    if text is not None:
        offsets = Offsets(text, unit)
        missing = [place for place in (offsets.around(*borders) for borders in missing) if place[0] < place[1]]
        if ents is not None:
            ents, doubtful = _fitting(ents, text, offsets, counts)
            missing += doubtful
        wrong, _ = _fitting(wrong, text, offsets, counts)
        groups = {name: _fitting(marks, text, offsets, counts)[0] for name, marks in groups.items()}
    if ents is not None:
        ids = ids_of(ents)
        kept, overlapping = drop_overlaps([mark[:3] for mark in ents], counts)
        ents = [Mark(*entity, id="|".join(ids.get(entity, ()))) for entity in kept]
        missing += overlapping
    counts.annotated += ents is not None or bool(groups or wrong)
    return _with_tokens(replace(record, ents=ents, missing=missing, wrong=wrong, weak=groups))


def _fitting(marks: Iterable[Mark], text: str, offsets: Offsets, counts: RowCounts) -> Tuple[List[Mark], List[Range]]:
    """The spans that cover what they should, without white space at their ends, and where the others are."""
    fitting: List[Mark] = []
    doubtful: List[Range] = []
    for mark in marks:
        start, end = offsets.around(mark.start, mark.end)
        covered = text[start:end]
        if None in (offsets.code_point(mark.start), offsets.code_point(mark.end)):
            counts.note(BEYOND)
            doubtful += [(start, end)] if start < end else []
        elif not covered.strip():
            counts.note(BLANK)
        elif mark.text is not None and plain_text(covered) != plain_text(mark.text):
            counts.note(OTHER_TEXT)
            doubtful.append((start, end))
        else:
            start += len(covered) - len(covered.lstrip())
            fitting.append(mark._replace(start=start, end=start + len(covered.strip())))
    return fitting, doubtful


def _with_tokens(record: Record) -> Record:
    """The same record with the tokens of the tool, if all is well with them: they are visible, spell the text with
    single blanks between them, and all spans end at their borders."""
    text, borders = record.text or "", record.borders
    if not borders or borders[0][0] != 0:
        return record
    gaps = [text[end:start] if end <= start else None for (_, end), (start, _) in pairwise([*borders, (len(text), 0)])]
    words = [text[start:end] for start, end in borders]
    if not all(map(str.strip, words)) or any(gap not in ("", " ") for gap in gaps):
        return record
    starts = {start: i for i, (start, _) in enumerate(borders)}
    ends = {end: i for i, (_, end) in enumerate(borders, start=1)}

    def moved(marks: Iterable[Mark]) -> List[Mark]:
        return [mark._replace(start=starts[mark.start], end=ends[mark.end]) for mark in marks]

    try:
        return replace(
            record,
            text=None,
            tokens=words,
            spaces=[gap == " " for gap in gaps],
            ents=None if record.ents is None else moved(record.ents),
            missing=[(starts[start], ends[end]) for start, end in record.missing],
            wrong=moved(record.wrong),
            weak={name: moved(marks) for name, marks in record.weak.items()},
        )
    except KeyError:
        return record


def record_of(doc: Doc) -> Record:
    """Make a record of a Doc, in code points of its text."""

    def marks(name: str) -> List[Mark]:
        ids, spans = weak.group_ids(doc, name), doc.spans.get(name, [])
        listed = ["|".join(ids.get((span.start, span.end, span.label_), ())) for span in spans]
        scores = weak.group_scores(doc, name)
        return [_span_mark(*found) for found in zip(spans, listed, scores, strict=True)]

    places = {token.i: (token.idx, token.idx + len(token)) for token in doc}
    visible = [token for token in doc if not token.is_space]
    known = bool(doc.ents) or any(token.ent_iob != 0 for token in visible)
    return Record(
        text=doc.text,
        borders=list(places.values()),
        ents=[_span_mark(ent, ent.kb_id_) for ent in doc.ents] if known else None,
        missing=[places[token.i] for token in visible if token.ent_iob == 0],
        wrong=marks(weak.WRONG_GROUP),
        weak={source: marks(weak.weak_group(source)) for source in weak.weak_sources(doc)},
        cats=dict(doc.cats) or None,
        id=weak.get_id(doc),
    )


def _span_mark(span: Span, id: str, score: Optional[float] = None) -> Mark:
    return Mark(span.start_char, span.end_char, span.label_, score, id=id)

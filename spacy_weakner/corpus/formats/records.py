"""What every format gives: records, which become rows of ours, and what the reader of a format has to offer."""

from dataclasses import dataclass, field
from itertools import chain
from typing import AbstractSet, Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc, Span

from .. import weak
from ..counts import Place, RowCounts, RowError, show
from ..overlaps import drop_overlaps
from ..rows import BLANK, Row
from .offsets import CODE_POINTS, Offsets, plain_text

EMPTY = "texts without any span, read as complete gold (the file does not record if they were annotated)"
BEYOND = "spans beyond their text, or within a character; their tokens are missing"
OTHER_TEXT = "spans that cover another text than their row gives; their tokens are missing"
# A row of a file, or several about one text, and where it stands.
Item = Tuple[Place, Any]


class Mark(NamedTuple):
    """A span of a record: [start, end), perhaps with a score, the text that it covers, and the id of a concept."""

    start: int
    end: int
    label: str
    score: Optional[float] = None
    text: Optional[str] = None
    id: str = ""

    @property
    def own_id(self) -> List[str]:
        """Its id, as the last part of a span of our rows."""
        return [self.id] if self.id else []


@dataclass
class Record:
    """A text, or tokens, with its annotation. Offsets count characters of the text in the unit of the tool, or tokens.

    text (Optional[str]): The text.
    tokens (Optional[List[str]]): Its tokens, instead.
    borders (List[Tuple[int, int]]): Start and end of the tokens of a text, if the tool has them.
    ents (Optional[List[Mark]]): The entities; None: nothing is known.
    complete (bool): True if all else is "O", False if it is missing.
    missing (List[Tuple[int, int]]): Ranges about which nothing is known.
    wrong (List[Mark]): Spans that are known to be wrong.
    weak (Dict[str, List[Mark]]): Spans of each weak source.
    cats (Optional[Dict[str, Any]]): Categories.
    id (Any): Its identifier.
    """

    text: Optional[str] = None
    tokens: Optional[List[str]] = None
    borders: List[Tuple[int, int]] = field(default_factory=list)
    ents: Optional[List[Mark]] = None
    complete: bool = True
    missing: List[Tuple[int, int]] = field(default_factory=list)
    wrong: List[Mark] = field(default_factory=list)
    weak: Dict[str, List[Mark]] = field(default_factory=dict)
    cats: Optional[Dict[str, Any]] = None
    id: Any = None

    def marks(self) -> Iterator[Mark]:
        """All spans."""
        return chain(self.ents or [], self.wrong, *self.weak.values())


@dataclass
class Context:
    """What readers of records may use.

    counts (RowCounts): Where to count what they drop.
    labels (Tuple[str, ...]): Names of tags that are numbers.
    """

    counts: RowCounts = field(default_factory=RowCounts)
    labels: Tuple[str, ...] = ()

    def note_unknown(self, row: Dict[str, Any], known: AbstractSet[Any]) -> List[str]:
        """Count the unknown keys that may hold annotations (lists and objects).

        row (Dict[str, Any]): The row.
        known (AbstractSet[Any]): The keys that are read, or never hold annotations.
        RETURNS (List[str]): The unknown ones.
        """
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


def make_mark(
    start: Any,
    end: Any,
    label: Any,
    item: Any,
    *,
    score: Any = None,
    text: Any = None,
    last: bool = False,
    id: Any = None,
) -> Mark:
    """Make a span of what stands in a row."""
    if type(start) is not int or type(end) is not int:
        raise RowError(f"the offsets of a span must be whole numbers, got {show(item)}")
    if not isinstance(label, str) or not label.strip():
        raise RowError(f"the label of a span must be a string that is not empty, got {show(item)}")
    if not 0 <= start < end + last:
        raise RowError(f"a span is empty, or begins before the text: {show(item)}")
    if isinstance(id, bool) or not isinstance(id, (str, int, type(None))):
        raise RowError(f"the id of a span must be a string, got {show(item)}")
    number = float(score) if type(score) in (int, float) and 0.0 <= score <= 1.0 else None
    covered = text if isinstance(text, str) else None
    return Mark(start, end + last, label.strip(), number, covered, "" if id is None else str(id))


def triple_mark(item: Any, *, last: bool = False) -> Mark:
    """Make a span of `[start, end, label]`; see `make_mark`."""
    if not isinstance(item, list) or len(item) != 3:
        raise RowError(f"expected [start, {'last' if last else 'end'}, label], got {show(item)}")
    start, end, label = item
    return make_mark(start, end, label, item, last=last)


def a_list(value: Any, what: str) -> List[Any]:
    """A list, where one is expected; null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowError(f"'{what}' must be a list, got {show(value)}")
    return value


def an_object(value: Any, what: str) -> Dict[str, Any]:
    """An object, where one is expected; see `a_list`."""
    if not isinstance(value, dict):
        raise RowError(f"{what} must be an object, got {show(value)}")
    return value


def agreed(answers: Sequence[List[Mark]]) -> Tuple[List[Mark], List[Mark]]:
    """Compare what several annotators say about one text. Different ids of a span they share stand with "|" between
    them."""
    marks: Dict[Tuple[int, int, str], Mark] = {}
    for mark in chain(*answers):
        ids = [marks[_visible(mark)].id, mark.id] if _visible(mark) in marks else [mark.id]
        marks[_visible(mark)] = mark._replace(id="|".join(dict.fromkeys(filter(None, ids))))
    shared = set.intersection(*({_visible(mark) for mark in answer} for answer in answers))
    return [marks[key] for key in marks if key in shared], [marks[key] for key in marks if key not in shared]


def as_row(record: Record, unit: str, counts: RowCounts) -> Row:
    """Make a row of our layout."""
    row: Row = {"id": record.id} if record.id is not None else {}
    ents, wrong, groups = record.ents, record.wrong, record.weak
    missing = list(record.missing)
    if record.text is not None:
        row["text"] = record.text
        reader = _Characters(record.text, Offsets(record.text, unit), counts)
        missing = [place for place in (reader.around(*borders) for borders in missing) if place[0] < place[1]]
        ents = None if ents is None else reader.marks(ents)
        missing += reader.take_doubtful()
        wrong = reader.marks(wrong)
        groups = {name: reader.marks(marks) for name, marks in groups.items()}
    else:
        row["tokens"] = record.tokens
    if ents is not None:
        kept, doubtful = drop_overlaps([mark[:3] for mark in ents], counts)
        ids: Dict[Any, Dict[str, None]] = {}
        for mark in ents:
            ids.setdefault(mark[:3], {}).update(dict.fromkeys(mark.own_id))
        row["ents"] = [[*entity, *(["|".join(ids[entity])] if ids[entity] else [])] for entity in kept]
        if missing or doubtful:
            row["missing"] = [*missing, *doubtful]
        if not record.complete:
            row["complete"] = False
    if wrong:
        row["wrong"] = [mark[:3] for mark in wrong]
    if groups:
        row["weak_ents"] = {name: [[*mark[:4], *mark.own_id] for mark in marks] for name, marks in groups.items()}
    if record.cats:
        row["cats"] = record.cats
    _listed(row)
    return _with_tokens(row, record) if record.borders else row


def record_of(doc: Doc) -> Record:
    """Make a record of a Doc, in code points of its text."""

    def marks(name: str) -> List[Mark]:
        spans, ids = doc.spans.get(name, []), weak.group_ids(doc, name)
        scores = weak.group_scores(doc, name)
        found = [_span_mark(span, score) for span, score in zip(spans, scores, strict=True)]
        every = [ids.get((span.start, span.end, span.label_), ()) for span in spans]
        return [mark._replace(id="|".join(listed)) for mark, listed in zip(found, every, strict=True)]

    missing = [token for token in doc if token.ent_iob == 0 and not token.is_space]
    known = bool(doc.ents) or any(token.ent_iob != 0 for token in doc if not token.is_space)
    return Record(
        text=doc.text,
        borders=[(token.idx, token.idx + len(token)) for token in doc],
        ents=[_span_mark(ent) for ent in doc.ents] if known else None,
        missing=[(token.idx, token.idx + len(token)) for token in missing],
        wrong=marks(weak.WRONG_GROUP),
        weak={source: marks(weak.weak_group(source)) for source in weak.weak_sources(doc)},
        cats=dict(doc.cats) or None,
        id=weak.get_id(doc),
    )


def _span_mark(span: Span, score: Optional[float] = None) -> Mark:
    return Mark(span.start_char, span.end_char, span.label_, score, id=span.kb_id_)


class _Characters:
    """Brings spans of a text to code points."""

    def __init__(self, text: str, places: Offsets, counts: RowCounts) -> None:
        self.text = text
        self.places = places
        self.counts = counts
        self._doubtful: List[Tuple[int, int]] = []

    def take_doubtful(self) -> List[Tuple[int, int]]:
        """Where spans were taken out since this was asked last."""
        doubtful, self._doubtful = self._doubtful, []
        return doubtful

    def around(self, start: int, end: int) -> Tuple[int, int]:
        """The characters of a span, those that it cuts too; none that are not there."""
        return self.places.nearest(start, -1), self.places.nearest(end, 1)

    def marks(self, marks: List[Mark]) -> List[Mark]:
        found = []
        for mark in marks:
            start, end = self.around(mark.start, mark.end)
            covered = self.text[start:end]
            if None in (self.places.code_point(mark.start), self.places.code_point(mark.end)):
                self.counts.note(BEYOND)
                if start < end:
                    self._doubtful.append((start, end))
            elif not covered.strip():
                self.counts.notes[BLANK] += 1
            elif mark.text is not None and plain_text(covered) != plain_text(mark.text):
                self.counts.notes[OTHER_TEXT] += 1
                self._doubtful.append((start, end))
            else:
                # White space at the ends is no part of it.
                start += len(covered) - len(covered.lstrip())
                found.append(mark._replace(start=start, end=start + len(covered.strip())))
        return found


def _visible(mark: Mark) -> Tuple[int, int, str]:
    """Span and label, without white space at the ends where the row has the text of the span."""
    text = mark.text or ""
    start, end = mark.start + len(text) - len(text.lstrip()), mark.end - len(text) + len(text.rstrip())
    return (start, end, mark.label) if start < end else mark[:3]


def _listed(row: Row) -> None:
    for key in ("ents", "missing", "wrong"):
        if key in row:
            row[key] = [list(item) for item in row[key]]


def _with_tokens(row: Row, record: Record) -> Row:
    """The same row with the tokens of the tool, if all is well with them: they are visible, spell the text with single
    blanks between them, and all spans end at their borders."""
    text = row["text"]
    starts, ends = {}, {}
    words, spaces = [], []
    last = 0
    for i, (start, end) in enumerate(record.borders):
        if not (last <= start <= end <= len(text)) or not text[start:end].strip() or text[last:start] not in ("", " "):
            return row
        if i:
            spaces.append(start > last)
        elif start:
            return row
        words.append(text[start:end])
        starts[start], ends[end] = i, i + 1
        last = end
    if text[last:] not in ("", " "):
        return row
    result: Row = {**row, "tokens": words, "spaces": [*spaces, text[last:] == " "]}
    del result["text"]

    def moved(items: List[List[Any]]) -> List[List[Any]]:
        return [[starts[item[0]], ends[item[1]], *item[2:]] for item in items]

    try:
        for key in {"ents", "missing", "wrong"} & row.keys():
            result[key] = moved(row[key])
        if "weak_ents" in row:
            result["weak_ents"] = {name: moved(items) for name, items in row["weak_ents"].items()}
    except KeyError:
        return row
    return result

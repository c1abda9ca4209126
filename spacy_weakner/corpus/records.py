"""Records: the step between file rows and Docs. A record is a text or tokens, with annotation."""

import math
from dataclasses import dataclass, field
from itertools import accumulate, chain, compress, repeat
from typing import Any, Container, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..ty import Entity
from . import weak
from .counts import Place, RowCounts, RowError, show_value
from .entities import set_entities
from .gold import find_gold, set_gold

# Maximum length of a concept id, in characters.
MAX_ID_LENGTH = 200
BLANK = "spans of white space, dropped"
BLANK_TOKENS = "tokens of white space, dropped"
EMPTY = "texts without any span, read as complete gold (the file does not record whether they were annotated)"
ANSWERED = "suggested spans of texts that are annotated, ignored"
Range = Tuple[int, int]
# A row of a file, or several rows about one text, and its place.
Item = Tuple[Place, Any]


class Mark(NamedTuple):
    """A span of a record: [start, end), optionally with a score, the text that it covers, and a concept id."""

    start: int
    end: int
    label: str
    score: Optional[float] = None
    text: Optional[str] = None
    id: str = ""


@dataclass
class Record:
    """A text, or tokens, with its annotation. Offsets count characters of the text, or tokens.

    borders (List[Range]): Start and end of the tokens of a text, if the tool stores them.
    ents (Optional[List[Mark]]): The entities; None: no annotation.
    complete (bool): True if all other tokens are "O", False if they are missing.
    missing (List[Range]): Ranges without annotation.
    wrong (List[Mark]): Spans known to be wrong.
    weak (Dict[str, List[Mark]]): Spans of each weak source.
    suggested (List[Mark]): Spans that annotators are shown; dropped if the text is annotated.
    gold (Optional[List[Mark]]): Gold kept beside entities that are weak labels, with `gold_missing` ranges.
    """

    text: Optional[str] = None
    tokens: Optional[List[str]] = None
    spaces: Optional[List[bool]] = None
    borders: List[Range] = field(default_factory=list)
    ents: Optional[List[Mark]] = None
    complete: bool = True
    missing: List[Range] = field(default_factory=list)
    wrong: List[Mark] = field(default_factory=list)
    weak: Dict[str, List[Mark]] = field(default_factory=dict)
    suggested: List[Mark] = field(default_factory=list)
    gold: Optional[List[Mark]] = None
    gold_missing: List[Range] = field(default_factory=list)
    is_weak: bool = False
    confidence: Optional[float] = None
    cats: Any = None
    meta: Optional[Dict[str, Any]] = None
    id: Any = None

    def marks(self) -> Iterator[Mark]:
        return chain(self.ents or [], self.wrong, self.suggested, *self.weak.values())

    @property
    def is_bare(self) -> bool:
        """True if there is no annotation."""
        return self.ents is None and self.gold is None and not (self.weak or self.wrong or self.suggested or self.cats)


# Values of rows


def make_mark(
    start: Any,
    end: Any,
    label: Any,
    item: Any,
    *,
    score: Optional[float] = None,
    text: Any = None,
    last: bool = False,
    id: Any = None,
    unlabeled: bool = False,
) -> Mark:
    """Make a span from values of a row.

    item (Any): The value of the row that holds the span, for messages.
    last (bool): True if the end is the last token or character of the span.
    unlabeled (bool): True if the label may be empty.
    RAISES (RowError): If it is malformed.
    """
    if type(start) is not int or type(end) is not int:
        raise RowError(f"the offsets of a span must be whole numbers, got {show_value(item)}")
    if not isinstance(label, str) or not (label.strip() or (unlabeled and not label)):
        raise RowError(f"the label of a span must be a string that is not empty, got {show_value(item)}")
    if not 0 <= start < end + last:
        raise RowError(f"a span is empty, or begins before the text: {show_value(item)}")
    identifier = "" if id is None else str(id)
    if isinstance(id, bool) or not isinstance(id, (str, int, type(None))) or len(identifier) > MAX_ID_LENGTH:
        raise RowError(
            f"the id of a span must be a string of at most {MAX_ID_LENGTH} characters, got {show_value(item)}"
        )
    return Mark(start, end + last, label.strip(), score, text if isinstance(text, str) else None, identifier)


def triple_mark(item: Any, *, last: bool = False) -> Mark:
    """Make a span from `[start, end, label]`; see `make_mark`."""
    if not isinstance(item, list) or len(item) != 3:
        raise RowError(f"expected [start, {'last' if last else 'end'}, label], got {show_value(item)}")
    start, end, label = item
    return make_mark(start, end, label, item, last=last)


def object_mark(span: Any) -> Mark:
    """Make a span from `[start, end, label]`, or from an object with these keys."""
    if isinstance(span, list):
        return triple_mark(span)
    span = an_object(span, "a span")
    about = {"score": a_probability(span.get("score")), "text": span.get("text"), "id": span.get("kb_id")}
    return make_mark(span.get("start"), span.get("end"), span.get("label"), span, **about)


def an_object(value: Any, what: str) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise RowError(f"{what} must be an object, got {show_value(value)}")
    return value


def a_text(row: Dict[str, Any], *keys: str) -> str:
    """Return the text of a row: the first string among the values of some keys."""
    text = next((row[key] for key in keys if isinstance(row.get(key), str)), None)
    if text is None:
        raise RowError(f"no text: expected a string under '{keys[0]}', got {show_value(row)}")
    return str(text)


def a_phrase(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise RowError(f"'text' must be a string that is not empty, got {show_value(text)}")
    return text


def a_probability(value: Any) -> Optional[float]:
    """Return a score as a float, or None if it is not a probability."""
    return float(value) if type(value) in (int, float) and 0.0 <= value <= 1.0 else None


def a_list(value: Any, what: str) -> List[Any]:
    """Return a value that must be a list; null becomes an empty list."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowError(f"'{what}' must be a list, got {show_value(value)}")
    return value


def a_number(value: Any, what: str) -> float:
    """Return a number that must fit into a float. Categories are often given as true and false."""
    if not isinstance(value, (int, float)):
        raise RowError(f"{what} must be a number, got {show_value(value)}")
    number = float(value)  # `parse_json` refuses integers that do not fit
    if not math.isfinite(number):  # JSON can represent numbers that are too large, like 1e999
        raise RowError(f"{what} is too large, got {show_value(value)}")
    return number


def read_identifier(value: Any) -> Optional[str]:
    """Return the identifier of a row, which may be a number."""
    if value is None or isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    raise RowError(f"'id' must be a string, got {show_value(value)}")


def read_meta(row: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Return what a row has for annotators under "meta", if it can be shown; other tools put anything there."""
    meta = row.get("meta")
    is_flat = isinstance(meta, dict) and all(isinstance(item, (str, int, float, type(None))) for item in meta.values())
    return meta or None if is_flat else None


def ids_of(marks: Iterable[Mark]) -> Dict[Entity, List[str]]:
    """Return the concept ids of each entity, in the order of the row. A mark may have several ids, joined by "|"."""
    ids: Dict[Entity, Dict[str, None]] = {}
    for mark in marks:
        if mark.id:
            ids.setdefault(mark[:3], {})[mark.id] = None
    return {entity: list(found) for entity, found in ids.items()}


# Docs


def make_doc(record: Record, nlp: Language, misaligned: str, counts: RowCounts) -> Doc:
    """Make a Doc from a record in code points.

    misaligned (str): What to do with spans of text that do not end at token boundaries; see `formats.reading.Reading`.
    counts (RowCounts): Where to count these spans.
    RAISES (RowError): If the record is not valid.
    """
    if record.tokens is None:
        # Not nlp.make_doc, which refuses long texts because of the parser.
        doc, borders = nlp.tokenizer(a_phrase(record.text)), None
    else:
        doc, borders = _tokens_doc(record, nlp, counts)
    weak.set_id(doc, read_identifier(record.id))
    if record.ents is not None:
        counts.note(ANSWERED, len(record.suggested))
        record.suggested = []
    if not record.is_bare:
        if record.tokens is None:
            weak.set_text(doc)
        _annotate(doc, record, _Aligner(doc, borders, misaligned, counts))
    if record.cats is not None:
        if not isinstance(record.cats, dict):
            raise RowError(f"'cats' must be an object of numbers, got {show_value(record.cats)}")
        doc.cats = {name: a_number(value, f"cats: {name}") for name, value in record.cats.items()}
    set_notes(doc, record)
    return doc


def set_notes(doc: Doc, record: Record) -> None:
    """Store what a record says about its sentences as a whole."""
    weak.set_weak(doc, record.is_weak)
    if record.confidence is not None:
        weak.set_confidence(doc, record.confidence)
    weak.set_meta(doc, record.meta)


def _annotate(doc: Doc, record: Record, spans: "_Aligner") -> None:
    entities = spans.entities(record.ents or [], "ents")
    known = [record.ents is not None and record.complete] * len(doc)
    set_entities(doc, [mark[:3] for mark in entities], known, spans.unknown(record.missing))
    weak.give_ids(doc, ids_of(entities))
    groups = {weak.weak_group(name): marks for name, marks in record.weak.items()}
    for name, marks in {**groups, **({weak.SUGGESTED_GROUP: record.suggested} if record.suggested else {})}.items():
        found = [mark for mark, _ in spans.align(marks)]
        scores = [mark.score for mark in found] if any(mark.score is not None for mark in found) else None
        ids = {entity: list(filter(None, "|".join(listed).split("|"))) for entity, listed in ids_of(found).items()}
        weak.set_group(doc, name, [mark[:3] for mark in found], scores, ids)
    if record.wrong:
        weak.set_group(doc, weak.WRONG_GROUP, [mark[:3] for mark, _ in spans.align(record.wrong)])
    spans.unknown(())
    if record.gold is not None:
        gold = spans.entities(record.gold, "gold")
        unknown = sorted({i for start, end in spans.unknown(record.gold_missing) for i in range(start, end)})
        set_gold(doc, [mark[:3] for mark in gold], unknown, ids_of(gold))


def _tokens_doc(record: Record, nlp: Language, counts: RowCounts) -> Tuple[Doc, Sequence[int]]:
    """Return the Doc of some tokens without white-space tokens, and the position in the Doc of each token boundary."""
    words, spaces = a_list(record.tokens, "tokens"), record.spaces
    if not words:
        raise RowError("'tokens' is empty")
    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise RowError(f"token {i} must be a string, got {show_value(word)}")
    if spaces is not None and ([type(space) for space in a_list(spaces, "spaces")] != [bool] * len(words)):
        raise RowError("'spaces' must contain true or false for every token")
    borders = [0, *accumulate(int(not is_blank(word)) for word in words)]
    if borders[-1] < len(words):
        if not borders[-1]:
            raise RowError("'tokens' contains only white space: remove the row")
        counts.notes[BLANK_TOKENS] += len(words) - borders[-1]
        words, spaces = _visible(words, spaces)
    return Doc(nlp.vocab, words=words, spaces=spaces), borders


def is_blank(word: Any) -> bool:
    """Return True if a token has no visible character."""
    return isinstance(word, str) and not word.strip()


def _visible(words: Sequence[str], spaces: Optional[Sequence[bool]]) -> Tuple[List[str], Optional[List[bool]]]:
    """Return the words without white-space ones, and whether white space follows each of them."""
    kept: List[str] = []
    behind: List[bool] = []
    for word, space in zip(words, spaces or [True] * len(words), strict=True):
        if not is_blank(word):
            kept.append(word)
            behind.append(space)
        elif behind:
            behind[-1] = behind[-1] or space or bool(word)
    return kept, None if spaces is None else behind


class _Aligner:
    """An aligner of a record's spans with the tokens of its Doc. `borders` are the positions in the Doc of the borders
    between the record's tokens; None: offsets count characters."""

    def __init__(self, doc: Doc, borders: Optional[Sequence[int]], misaligned: str, counts: RowCounts) -> None:
        self.doc = doc
        self.borders = borders
        self.misaligned = misaligned
        self.counts = counts
        self.text = doc.text if borders is None else ""
        self.length = len(self.text) if borders is None else len(borders) - 1
        # Offsets in other units are wrong after the first such character.
        self._units = "" if self.text.isascii() else ". (Offsets count code points here, not bytes or UTF-16 units.)"
        self._dropped: List[Range] = []

    def unknown(self, ranges: Iterable[Range]) -> List[Range]:
        """Return the token ranges without annotation, and those of the spans dropped since the last call. A token
        counts as missing if any part of it is."""
        found = [self._tokens(start, end, [start, end], expand=True) for start, end in ranges]
        dropped, self._dropped = self._dropped, []
        return [*dropped, *(place for place in found if place is not None)]

    def align(self, marks: Iterable[Mark]) -> List[Tuple[Mark, bool]]:
        """Return spans in tokens, each with True if it was moved to token boundaries."""
        found = []
        for mark in marks:
            moved = self.counts.moved
            place = self._tokens(mark.start, mark.end, mark[:3], mark.label)
            if place is not None:
                found.append((mark._replace(start=place[0], end=place[1]), self.counts.moved > moved))
        return found

    def entities(self, marks: Iterable[Mark], what: str) -> List[Mark]:
        """Return spans without overlaps. An expanded span is dropped if it now overlaps another one."""
        kept: Dict[int, Mark] = {}  # by token
        for mark, moved in sorted(self.align(marks), key=lambda found: (found[1], () if found[1] else found[0][:3])):
            tokens = range(mark.start, mark.end)
            other = next((kept[i] for i in tokens if i in kept), None)
            if other is None:
                kept.update(dict.fromkeys(tokens, mark))
            elif moved:
                self.counts.misaligned += 1
                self.counts.moved -= 1
                self._dropped.extend((i, i + 1) for i in tokens if i not in kept)
            else:
                raise RowError(
                    f"{what} overlap (in tokens): {show_value(other[:3])} and {show_value(mark[:3])}; keep one of them"
                )
        return [mark for i, mark in sorted(kept.items()) if i == mark.start]

    def _tokens(self, start: int, end: int, item: Any, label: str = "", expand: bool = False) -> Optional[Range]:
        if not 0 <= start < end <= self.length:
            unit = "characters" if self.borders is None else "tokens"
            raise RowError(f"{show_value(item)} is empty or not within the {self.length} {unit}{self._units}")
        if self.borders is not None:
            first, last = self.borders[start], self.borders[end]
            self.counts.note(BLANK, first == last and not expand)
            return (first, last) if first < last else None
        if expand:
            touched = self.doc.char_span(start, end, alignment_mode="expand")
            return None if touched is None else (touched.start, touched.end)
        covered = self.text[start:end]
        if not covered.strip():
            raise RowError(f"{show_value(item)} covers only white space")
        start += len(covered) - len(covered.lstrip())
        end -= len(covered) - len(covered.rstrip())
        span = self.doc.char_span(start, end, alignment_mode="strict")
        if span is not None:
            return span.start, span.end
        covered = self.text[start:end]
        if self.misaligned == "error":
            raise RowError(
                f"{show_value(item)} ('{covered}') does not begin and end at token boundaries of the language "
                f"'{self.doc.vocab.lang}'. Give the language of the texts (--lang) or another tokenizer (--tokenizer), "
                "or drop such spans first (or expand or contract them): "
                f"spacy weakner convert ... --misaligned drop{self._units}"
            )
        touched = self.doc.char_span(start, end, alignment_mode="expand")
        self.counts.note_misaligned(covered, label, [token.text for token in touched or ()])
        if self.misaligned != "drop":
            span = touched if self.misaligned == "expand" else self.doc.char_span(start, end, alignment_mode="contract")
            if span:
                self.counts.moved += 1
                return span.start, span.end
        self.counts.misaligned += 1
        if touched is not None:
            self._dropped.append((touched.start, touched.end))
        return None


def record_of(doc: Doc, in_tokens: bool = False) -> Record:
    """Make a record from a Doc, with offsets in code points of its text, or in its tokens without white space."""
    visible = [not token.is_space for token in doc]
    starts, ends = [token.idx for token in doc], [token.idx + len(token) for token in doc]
    if in_tokens:
        starts, ends = list(accumulate(visible[:-1], initial=0)), list(accumulate(map(int, visible)))

    def marks(
        entities: Iterable[Entity], ids: weak.EntityIds, scores: Iterable[Optional[float]] = repeat(None)
    ) -> List[Mark]:
        found = (
            Mark(starts[start], ends[end - 1], label, score, id="|".join(ids.get((start, end, label), ())))
            for (start, end, label), score in zip(entities, scores, strict=False)
        )
        return [mark for mark in found if mark.start < mark.end]

    def group(name: str) -> List[Mark]:
        return marks(weak.group_entities(doc, name), weak.group_ids(doc, name), weak.group_scores(doc, name))

    def ranges(tokens: Container[int]) -> List[Range]:
        return [(starts[i], ends[i]) for i in range(len(doc)) if visible[i] and i in tokens]

    missing = ranges({token.i for token in doc if token.ent_iob == 0})
    gold = find_gold(doc) if weak.GOLD_GROUP in doc.spans else None
    record = Record(
        ents=marks(weak.doc_entities(doc), weak.doc_ids(doc)) if len(missing) < sum(visible) else None,
        missing=missing,
        wrong=marks(weak.group_entities(doc, weak.WRONG_GROUP), {}),
        weak={source: group(weak.weak_group(source)) for source in weak.weak_sources(doc)},
        suggested=group(weak.SUGGESTED_GROUP),
        gold=None if gold is None else marks(sorted(gold.entities), weak.group_ids(doc, weak.GOLD_GROUP)),
        gold_missing=[] if gold is None else ranges(gold.missing),
        is_weak=weak.is_weak(doc),
        confidence=weak.get_confidence(doc),
        cats=dict(doc.cats),
        meta=weak.get_meta(doc),
        id=weak.get_id(doc),
    )
    if in_tokens:
        record.tokens = [token.text for token in compress(doc, visible)]
        followed = [bool(t.whitespace_) or not after for t, after in zip(doc, [*visible[1:], True], strict=False)]
        record.spaces = list(compress(followed, visible))
    else:
        record.text, record.borders = doc.text, list(zip(starts, ends, strict=True))
    return record

"""Rows of JSONL files as Docs, and back. One row:

    {"id": "s1", "tokens": ["New", "York", "rocks"], "ents": [[0, 2, "CITY"]],
     "weak_ents": {"terms": [[0, 1, "CITY", 0.7]]}, "cats": {"TRAVEL": 1.0}}

- "tokens": words; offsets count tokens, the end is exclusive. "spaces" says which tokens a blank follows;
  without it every token is followed by one. Tokens of white space, and empty ones, are dropped when all is read.
- "text" instead: raw text for the tokenizer; offsets count characters.
- "ents" (or "spans"): gold, as [start, end, label] or {"start", "end", "label"}, perhaps with the id of a concept
  ([start, end, label, "ID"], or "kb_id"). A list is complete: all other tokens are outside. Null or no key: nothing is
  known, every token is missing.
- "missing": [start, end] ranges about which nothing is known, beside a list of "ents". "complete": false says that
  nothing is known about any token that belongs to no entity.
- "wrong": spans that are known to be wrong: not of their label, or no entities at all if it is "".
- "weak_ents": what weak sources say: a list, or one list per source; overlaps are allowed, a further number (or
  "score") is the score, null means that the source has not looked.
- "cats": sentence categories with numbers.
- "weak": true says that "ents" are themselves weak labels, with their "confidence"; "gold" are gold entities
  kept beside them, and "gold_missing" the ranges without annotation.
- "meta": an object that annotators are shown, such as why the sentence was suggested.

Other keys are ignored, and counted; rows in which other tools keep labels are refused (see `foreign`).
"""

import math
from itertools import accumulate, pairwise
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import check_choice, shorten
from ..ty import Entity
from . import weak
from .counts import RowCounts, RowError, show
from .entities import set_entities
from .foreign import BARE, tool_of
from .gold import set_gold

Row = Dict[str, Any]
# Characters of the id of a concept.
MAX_ID_LENGTH = 200
MISALIGNED = ("drop", "error", "expand", "contract")
DEFAULT_SOURCE = "imported"
BLANK = "spans of white space, dropped"
BLANK_TOKENS = "tokens of white space, dropped"
KEYS = frozenset(
    ["id", "tokens", "spaces", "text", "ents", "spans", "missing", "weak_ents", "cats", "weak", "confidence"]
    + ["gold", "gold_missing", "complete", "wrong", "meta"]
)
_ANNOTATIONS = ("ents", "spans", "weak_ents", "wrong")


class _Marked(NamedTuple):
    start: int
    end: int
    label: str
    score: Optional[float]
    moved: bool = False
    id: str = ""


def doc_from_row(
    row: Row,
    nlp: Language,
    *,
    source: str = DEFAULT_SOURCE,
    misaligned: str = "error",
    counts: Optional[RowCounts] = None,
) -> Doc:
    """Make a Doc of one row."""
    check_choice("misaligned", misaligned, MISALIGNED)
    refuse_foreign(row)
    counts = RowCounts() if counts is None else counts
    doc, borders = (_text_doc(row, nlp), None) if "text" in row else _tokens_doc(row, nlp, counts)
    if row.keys() <= BARE:  # most rows, where there is much text
        weak.set_id(doc, read_identifier(row.get("id")))
        return doc
    spans = _SpanReader(doc, borders, misaligned, counts)
    if "ents" in row and "spans" in row:
        raise RowError("both 'ents' and 'spans' are given")
    key = "spans" if "spans" in row else "ents"
    entities = None if row.get(key) is None else spans.read(row[key], key)
    known = [entities is not None and not _is_false(row.get("complete"))] * len(doc)
    for start, end in [*spans.take_dropped(), *spans.read_ranges(row.get("missing") or [], "missing")]:
        known[start:end] = [False] * (end - start)
    if entities or any(known):  # of a new Doc nothing is known
        set_entities(doc, entities or [], known)
        weak.give_ids(doc, spans.ids)
    for name, group in weak_lists(row.get("weak_ents"), source):
        marked = spans.read_marked(group, f"weak_ents of {name}", scored=True)
        scores = [m.score for m in marked] if any(m.score is not None for m in marked) else None
        # A source may give several, with "|" between them; the first one is the span's.
        ids = {entity: list(filter(None, "|".join(listed).split("|"))) for entity, listed in _ids(marked).items()}
        weak.set_group(doc, weak.weak_group(name), [(m.start, m.end, m.label) for m in marked], scores, ids)
    if row.get("wrong"):
        wrong = spans.read_marked(row["wrong"], "wrong", unlabeled=True)
        weak.set_group(doc, weak.WRONG_GROUP, [(m.start, m.end, m.label) for m in wrong])
    spans.take_dropped()
    if row.get("gold") is not None:
        gold = spans.read(row["gold"], "gold")
        ids = spans.ids
        unknown = [*spans.take_dropped(), *spans.read_ranges(row.get("gold_missing") or [], "gold_missing")]
        set_gold(doc, gold, sorted({i for start, end in unknown for i in range(start, end)}), ids)
    doc.cats = _cats(row.get("cats"))
    weak.set_id(doc, read_identifier(row.get("id")))
    weak.set_weak(doc, _flag(row.get("weak"), "weak"))
    if row.get("confidence") is not None:
        weak.set_confidence(doc, _probability(row["confidence"], "confidence"))
    weak.set_meta(doc, _meta(row.get("meta")))
    _count_keys(row, counts)
    return doc


def refuse_foreign(row: Row) -> None:
    """Refuse a row of another tool, whose labels stand under other keys."""
    tool = tool_of(row)
    if tool is not None:
        raise RowError(
            f"this looks like a row of the format '{tool}', whose labels mean something else, or would be ignored. "
            f"Convert the file first: spacy weakner convert FILE NEW --format {tool}. (Or remove such keys.)"
        )


def check_overlaps(entities: Sequence[Entity], what: str) -> None:
    """Refuse overlapping entities."""
    ordered = sorted(entities)
    for a, b in pairwise(ordered):
        if b[0] < a[1]:
            raise RowError(f"{what} overlap (in tokens): {show(a)} and {show(b)}; keep one of them")


# Parts of rows


class _SpanReader:
    """Reads the spans of one row.

    doc (Doc): The Doc of the row.
    borders (Optional[Sequence[int]]): Where in the Doc each border between tokens of the row is; None: offsets count
        characters.
    misaligned (str): What to do with spans that do not end at token borders.
    counts (RowCounts): Where to count those.
    """

    def __init__(self, doc: Doc, borders: Optional[Sequence[int]], misaligned: str, counts: RowCounts) -> None:
        self.doc = doc
        self.borders = borders
        self.misaligned = misaligned
        self.counts = counts
        self.text = doc.text if borders is None else ""
        self.length = len(self.text) if borders is None else len(borders) - 1
        # Ids of concepts of what was read as entities.
        self.ids: Dict[Entity, List[str]] = {}
        self._dropped: List[Tuple[int, int]] = []

    def take_dropped(self) -> List[Tuple[int, int]]:
        """The tokens that were touched by what was dropped since this was asked last."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def read(self, items: Any, what: str) -> List[Entity]:
        marked = self.read_marked(items, what)
        self.ids = _ids(marked)
        exact = [(m.start, m.end, m.label) for m in marked if not m.moved]
        check_overlaps(exact, what)
        # What was expanded gives way to what it meets now.
        taken = {i for start, end, _ in exact for i in range(start, end)}
        for start, end, label in [(m.start, m.end, m.label) for m in marked if m.moved]:
            if taken.isdisjoint(range(start, end)):
                exact.append((start, end, label))
                taken.update(range(start, end))
            else:
                self.counts.misaligned += 1
                self.counts.moved -= 1
                self._dropped.extend((i, i + 1) for i in range(start, end) if i not in taken)
        return sorted(exact, key=lambda entity: entity[0])

    def read_marked(self, items: Any, what: str, scored: bool = False, unlabeled: bool = False) -> List[_Marked]:
        result = []
        for item in _a_list(items, what):
            start, end, label, score, identifier = _parts(item, what, scored, unlabeled)
            moved = self.counts.moved
            borders = self._tokens(start, end, item, what, label=label)
            if borders is not None:
                result.append(_Marked(*borders, label, score, self.counts.moved > moved, identifier))
        return result

    def read_ranges(self, items: Any, what: str) -> List[Tuple[int, int]]:
        result = []
        for item in _a_list(items, what):
            if not isinstance(item, list) or len(item) != 2:
                raise RowError(f"{what}: expected [start, end], got {show(item)}")
            # To know nothing about a token of which a part is missing is right in any case.
            borders = self._tokens(item[0], item[1], item, what, expand=True)
            result += [] if borders is None else [borders]
        return result

    def _tokens(
        self, start: Any, end: Any, item: Any, what: str, *, expand: bool = False, label: str = ""
    ) -> Optional[Tuple[int, int]]:
        if type(start) is not int or type(end) is not int:
            raise RowError(f"{what}: offsets must be whole numbers, got {show(item)}")
        if not 0 <= start < end <= self.length:
            unit = "characters" if self.borders is None else "tokens"
            raise RowError(f"{what}: {show(item)} is empty or not within the {self.length} {unit}")
        if self.borders is not None:
            first, last = self.borders[start], self.borders[end]
            self.counts.notes.update({BLANK: 1} if first == last and not expand else {})
            return (first, last) if first < last else None
        covered = self.text[start:end]
        if expand:
            touched = self.doc.char_span(start, end, alignment_mode="expand")
            return None if touched is None else (touched.start, touched.end)
        if not covered.strip():
            raise RowError(f"{what}: {show(item)} covers only white space")
        start += len(covered) - len(covered.lstrip())
        end -= len(covered) - len(covered.rstrip())
        span = self.doc.char_span(start, end, alignment_mode="strict")
        if span is not None:
            return span.start, span.end
        if self.misaligned == "error":
            raise RowError(
                f"{what}: {show(item)} ('{self.text[start:end]}') does not begin and end at token borders. "
                "Choose another tokenizer, or drop such spans first (or expand or contract them): "
                "spacy weakner convert ... --misaligned drop"
            )
        touched = self.doc.char_span(start, end, alignment_mode="expand")
        self.counts.note_misaligned(self.text[start:end], label, [token.text for token in touched or ()])
        if self.misaligned != "drop":
            span = touched if self.misaligned == "expand" else self.doc.char_span(start, end, alignment_mode="contract")
            if span:
                self.counts.moved += 1
                return span.start, span.end
        self.counts.misaligned += 1
        if touched is not None:
            self._dropped.append((touched.start, touched.end))
        return None


def _text_doc(row: Row, nlp: Language) -> Doc:
    if "tokens" in row:
        raise RowError("both 'tokens' and 'text' are given, so the unit of the offsets is not clear")
    text = row["text"]
    if not isinstance(text, str) or not text.strip():
        raise RowError(f"'text' must be a string that is not empty, got {show(text)}")
    # Not nlp.make_doc, which refuses long texts for the parser's sake.
    return nlp.tokenizer(text)


def _tokens_doc(row: Row, nlp: Language, counts: RowCounts) -> Tuple[Doc, Sequence[int]]:
    """The Doc of a row, and where in it each border between tokens of the row is."""
    if "tokens" not in row:
        raise RowError(f"neither 'tokens' nor 'text', only: {shorten(', '.join(row) or 'nothing', 80)}")
    words = _a_list(row["tokens"], "tokens")
    if not words:
        raise RowError("'tokens' is empty")
    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise RowError(f"token {i} must be a string, got {show(word)}")
    spaces = row.get("spaces")
    if spaces is not None and ([type(space) for space in _a_list(spaces, "spaces")] != [bool] * len(words)):
        raise RowError("'spaces' must hold true or false for every token")
    borders = [0, *accumulate(int(not is_blank(word)) for word in words)]
    if borders[-1] < len(words):
        if not borders[-1]:
            raise RowError("'tokens' holds only white space: leave the row out")
        counts.notes[BLANK_TOKENS] += len(words) - borders[-1]
        words, spaces = _visible(words, spaces)
    return Doc(nlp.vocab, words=words, spaces=spaces), borders


def is_blank(word: Any) -> bool:
    """True if a token has no visible character."""
    return isinstance(word, str) and not word.strip()


def _visible(words: Sequence[str], spaces: Optional[Sequence[bool]]) -> Tuple[List[str], Optional[List[bool]]]:
    """Words without white space, and whether there is some behind each of them."""
    kept: List[str] = []
    behind: List[bool] = []
    for word, space in zip(words, spaces or [True] * len(words), strict=True):
        if not is_blank(word):
            kept.append(word)
            behind.append(space)
        elif behind:
            behind[-1] = behind[-1] or space or bool(word)
    return kept, None if spaces is None else behind


def _parts(item: Any, what: str, scored: bool, unlabeled: bool) -> Tuple[Any, Any, str, Optional[float], str]:
    score: Any = None
    identifier: Any = None
    if isinstance(item, dict) and {"start", "end", "label"} <= set(item):
        start, end, label = item["start"], item["end"], item["label"]
        score, identifier = item.get("score") if scored else None, item.get("kb_id")
    elif isinstance(item, list) and 3 <= len(item) <= (5 if scored else 4):
        start, end, label, *rest = item
        # A text is an id, and stands last.
        identifier = rest.pop() if rest and isinstance(rest[-1], str) else None
        score = rest.pop() if rest else None
        if rest or (score is not None and not scored):
            raise RowError(f"{what}: expected [start, end, label] and perhaps an id, got {show(item)}")
    else:
        form = "[start, end, label, score]" if scored else "[start, end, label]"
        raise RowError(f"{what}: expected {form}, got {show(item)}")
    if not isinstance(label, str) or not (label.strip() or (unlabeled and not label)):
        raise RowError(f"{what}: the label must be a string that is not empty, got {show(item)}")
    score = None if score is None else _number(score, f"{what}: the score")
    return start, end, label, score, _concept(identifier, what)


def _ids(marked: Sequence[_Marked]) -> Dict[Entity, List[str]]:
    """Ids of concepts by entity, in the order of the row."""
    ids: Dict[Entity, List[str]] = {}
    for m in marked:
        listed = ids.setdefault((m.start, m.end, m.label), [])
        listed += [m.id] if m.id and m.id not in listed else []
    return {entity: listed for entity, listed in ids.items() if listed}


def _concept(value: Any, what: str) -> str:
    """The id of a concept, which may be a number; empty if there is none."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or len(str(value)) > MAX_ID_LENGTH:
        raise RowError(f"{what}: an id must be a string of at most {MAX_ID_LENGTH} characters, got {show(value)}")
    return str(value)


def weak_lists(value: Any, source: str) -> List[Tuple[str, Any]]:
    """What weak sources say, by their names."""
    if value is None:
        return []
    if not isinstance(value, dict):
        return [(source, value)]
    if any(not name for name in value):
        raise RowError("weak_ents: the name of a source is empty")
    return [(name, items) for name, items in value.items() if items is not None]


def _cats(value: Any) -> Dict[str, float]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RowError(f"'cats' must be an object of numbers, got {show(value)}")
    return {name: _number(v, f"cats: {name}") for name, v in value.items()}


def read_identifier(value: Any) -> Optional[str]:
    """The identifier of a row, which may be a number."""
    if value is None or isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    raise RowError(f"'id' must be a string, got {show(value)}")


def _number(value: Any, what: str) -> float:
    # Categories are often given as true and false.
    if not isinstance(value, (int, float)):
        raise RowError(f"{what} must be a number, got {show(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):  # JSON can spell numbers that are too large, like 1e999
        raise RowError(f"{what} is too large, got {show(value)}")
    return number


def _probability(value: Any, what: str) -> float:
    number = _number(value, what)
    if not 0.0 <= number <= 1.0:
        raise RowError(f"{what} must be between 0 and 1, got {show(value)}")
    return number


def _is_false(value: Any) -> bool:
    return value is not None and not _flag(value, "complete")


def _flag(value: Any, what: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise RowError(f"'{what}' must be true or false, got {show(value)}")
    return bool(value)


def _count_keys(row: Row, counts: RowCounts) -> None:
    unknown = row.keys() - KEYS
    if row.get("meta") and _meta(row["meta"]) is None:
        unknown |= {"meta"}
    counts.ignored.update(unknown)
    counts.lists.update(key for key in unknown - KEYS if row[key] and isinstance(row[key], (list, dict)))
    counts.annotated += any(key in row for key in _ANNOTATIONS)


def _meta(value: Any) -> Optional[Dict[str, Any]]:
    # Other tools keep anything there: what is no object, or cannot be shown, is none of ours.
    shown = isinstance(value, dict) and all(isinstance(item, (str, int, float, type(None))) for item in value.values())
    return value if shown and value else None


def _a_list(value: Any, what: str) -> List[Any]:
    if not isinstance(value, list):
        raise RowError(f"'{what}' must be a list, got {show(value)}")
    return value

"""Alignment of the mentions in a row of imported labels with the tokens of a Doc.

Row and Doc hold the same text, but may differ in tokens, case and white space. Positions are therefore counted in
letters: characters of the text without case and white space.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from spacy.tokens import Doc, Span

from ..corpus.counts import RowError, show_value
from ..corpus.jsonl import Row
from ..corpus.records import a_list, a_number, make_mark
from ..corpus.sentences import sentence_key
from ..ty import Entity

_LISTS = ("ents", "spans", "entities")
_WEAK = "weak_ents"
_LABELS = ("label", "type", "entity_group")
_PHRASES = ("text", "phrase", "word")


class Mention(NamedTuple):
    """A label of a position, in letters, or of every occurrence of a phrase (`start` and `end` are then 0)."""

    label: str
    score: Optional[float]
    phrase: Optional[str]
    start: int
    end: int
    id: str  # of the concept; "": none
    item: Any  # the item of the row, for messages


class Alignment(NamedTuple):
    """Spans of a Doc, with a score for each, and concept ids where there are any. `misaligned` counts the mentions left
    out because they do not end at token boundaries, `not_found` the phrases that do not occur in the Doc. `is_lossy` is
    True if an entity may be missing because of that."""

    entities: List[Entity]
    scores: List[Optional[float]]
    misaligned: int = 0
    not_found: int = 0
    is_lossy: bool = False
    ids: Mapping[Entity, Sequence[str]] = {}


def row_text(row: Row) -> Optional[str]:
    """Return the letters of a row's text or tokens, or None without either. Raise a `RowError` if malformed."""
    text, tokens = row.get("text"), row.get("tokens")
    if text is None and tokens is not None:
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise RowError(f"'tokens' must be a list of strings, got {show_value(tokens)}")
        text = "".join(tokens)
    if not isinstance(text, (str, type(None))):
        raise RowError(f"'text' must be a string, got {show_value(text)}")
    return None if text is None else sentence_key(text)


def find_weak_name(rows: Iterable[Row], source: str) -> Optional[str]:
    """Return the name under "weak_ents" that the labels of a source have in the rows of a file: its own or, if there is
    only one, that one. (Plain lists have no name.) Return None if no row has "weak_ents". Raise a `RowError` if there
    are only several others."""
    names: Set[str] = set()
    is_weak = False
    for row in rows:
        is_weak = is_weak or _WEAK in row
        names.update(row[_WEAK] if isinstance(row.get(_WEAK), dict) else ())
    if source in names or not names:
        return source if is_weak else None
    if len(names) > 1:
        raise RowError(f"expected labels of '{source}', got labels of {', '.join(sorted(names))}. Rename the source")
    return names.pop()


def read_mentions(row: Row, weak_name: Optional[str] = None) -> Optional[List[Mention]]:
    """Read the mentions of a row: those of `weak_name` (see `find_weak_name`) or, if it is None, from one of "ents",
    "spans" and "entities". Return None if there is no list: the source did not label the text. An item is
    `[start, end, label]`, optionally with a score; an object with "start", "end", "label" (or "type", "entity_group")
    and optionally "score" and "kb_id"; or a phrase: an object with "text" (or "phrase", "word") and "label", or
    `[phrase, label]`. Offsets count characters of "text", or "tokens", of which the row must have exactly one."""
    items, what = _find_list(row, weak_name)
    if items is None:
        return None
    borders: List[int] = []
    mentions = []
    for item in a_list(items, what):
        start, end, phrase, label, score, identifier = _parts(item, what)
        if isinstance(score, bool):
            raise RowError(f"{what}: the score must be a number, got {show_value(item)}")
        score = None if score is None else a_number(score, f"{what}: the score")
        mark = make_mark(start, end, label, item, id=identifier)
        first = last = 0
        if phrase is None:
            borders = borders or _row_borders(row, what)
            if mark.end >= len(borders):
                there = f"the {len(borders) - 1} characters or tokens"
                raise RowError(f"{what}: {show_value(item)} is not within {there}")
            first, last = borders[mark.start], borders[mark.end]
            if first == last:
                raise RowError(f"{what}: {show_value(item)} covers only white space")
        elif not isinstance(phrase, str) or not sentence_key(phrase):
            raise RowError(f"{what}: the phrase must be a string that is not empty, got {show_value(item)}")
        mentions.append(Mention(mark.label, score, phrase, first, last, mark.id, item))
    return mentions


def align_mentions(doc: Union[Doc, Span], mentions: Sequence[Mention], misaligned: str) -> Alignment:
    """Align mentions with a Doc, in their order. A phrase matches wherever it begins and ends at token boundaries: in
    its own case or, without such a match, in any case. A position that does not end at token boundaries is handled as
    in `align`, or raises a `RowError` if `misaligned` is "error"."""
    found = Alignment([], [])
    words = [token.text for token in doc] if mentions else []
    letters = letter_borders(words)
    # Case folding can change the number of letters, so each form of the text has its own borders.
    cased = [0, *accumulate(len("".join(word.split())) for word in words)]
    exact, folded = "".join("".join(words).split()), sentence_key("".join(words))
    ids: Dict[Entity, List[str]] = {}
    lost = absent = 0
    for mention in mentions:
        if mention.phrase is not None:
            places = _occurrences(exact, cased, "".join(mention.phrase.split()))
            places = places or _occurrences(folded, letters, sentence_key(mention.phrase))
            absent += not places
        else:
            place = align(letters, mention.start, mention.end, misaligned)
            if place is None and misaligned == "error":
                raise RowError(
                    f"{show_value(mention.item)} does not begin and end at token boundaries of the document. Choose "
                    "another tokenizer for the corpus, or drop, expand or contract such spans (misaligned)"
                )
            places = [] if place is None else [place]
            lost += place is None
        entities = [(start, end, mention.label) for start, end in places]
        found.entities.extend(entities)
        for entity in entities if mention.id else ():
            ids[entity] = list(dict.fromkeys([*ids.get(entity, ()), mention.id]))
        found.scores.extend([mention.score] * len(places))
    return found._replace(misaligned=lost, not_found=absent, is_lossy=bool(lost or absent), ids=ids)


def join_alignments(parts: Sequence[Alignment], starts: Sequence[int]) -> Alignment:
    """Join the alignments of the parts of a Doc, which begin at some tokens."""
    places = list(zip(parts, starts, strict=True))
    return Alignment(
        [(start + a, start + b, label) for part, start in places for a, b, label in part.entities],
        [score for part in parts for score in part.scores],
        misaligned=sum(part.misaligned for part in parts),
        not_found=sum(part.not_found for part in parts),
        is_lossy=any(part.is_lossy for part in parts),
        ids={(start + a, start + b, label): ids for part, start in places for (a, b, label), ids in part.ids.items()},
    )


def letter_borders(pieces: Iterable[str]) -> List[int]:
    """Return the number of letters before each border between the pieces of a text: one more than there are pieces."""
    return [0, *accumulate(len(sentence_key(piece)) for piece in pieces)]


def align(borders: Sequence[int], start: int, end: int, misaligned: str) -> Optional[Tuple[int, int]]:
    """Return the tokens of a position, given by its first letter and the letter after its last, without white-space
    tokens at the edges. If it does not end at token boundaries (the `letter_borders` of the tokens), return None,
    unless `misaligned` is "expand" (to the tokens that it touches) or "contract" (to the tokens that it covers)."""
    first = bisect_right(borders, start) - 1
    last = bisect_left(borders, end)
    if (borders[first] == start and borders[last] == end) or misaligned == "expand":
        return first, last
    if misaligned != "contract":
        return None
    if borders[first] < start:
        first = bisect_right(borders, borders[first + 1]) - 1
    if borders[last] > end:
        last = bisect_left(borders, borders[last - 1])
    return (first, last) if first < last else None


def _occurrences(text: str, borders: Sequence[int], phrase: str) -> List[Tuple[int, int]]:
    places = []
    position = text.find(phrase)
    while position >= 0:
        place = align(borders, position, position + len(phrase), "drop")
        if place is not None:
            places.append(place)
        position = text.find(phrase, position + 1)
    return places


def _find_list(row: Row, weak_name: Optional[str]) -> Tuple[Any, str]:
    if weak_name is not None:
        items = row.get(_WEAK)
        return items.get(weak_name) if isinstance(items, dict) else items, _WEAK
    given = [key for key in _LISTS if row.get(key) is not None]
    if len(given) > 1:
        raise RowError(f"labels under both '{given[0]}' and '{given[1]}'. Keep those of the source under 'weak_ents'")
    if not given and not any(key in row for key in _LISTS):
        raise RowError(f"no labels: the row has none of the keys {', '.join([_WEAK, *_LISTS])}")
    return (row[given[0]], given[0]) if given else (None, "")


def _parts(item: Any, what: str) -> Tuple[Any, Any, Any, Any, Any, Any]:
    """Return start, end, phrase, label, score and concept id of an item, unchecked; a phrase has any start and end."""
    if isinstance(item, list) and item and isinstance(item[0], str) and 2 <= len(item) <= 3:
        return 0, 1, *item[:2], *(item[2:] or [None]), None
    if isinstance(item, list) and 3 <= len(item) <= 4:
        return *item[:2], None, item[2], *(item[3:] or [None]), None
    if isinstance(item, dict):
        label = next((item[key] for key in _LABELS if key in item), None)
        more = item.get("score"), item.get("kb_id")
        if item.get("start") is not None and item.get("end") is not None:
            return item["start"], item["end"], None, label, *more
        phrase = next((item[key] for key in _PHRASES if key in item), None)
        if phrase is not None:
            return 0, 1, phrase, label, *more
    raise RowError(f"{what}: expected [start, end, label, score] or {{'text', 'label'}}, got {show_value(item)}")


def _row_borders(row: Row, what: str) -> List[int]:
    text, tokens = row.get("text"), row.get("tokens")
    if (text is None) == (tokens is None):
        given = "neither 'text' nor 'tokens'" if text is None else "both 'text' and 'tokens'"
        raise RowError(f"{what}: {given} in the row, so the unit of the offsets is not clear")
    row_text(row)
    return letter_borders(text or tokens or ())

"""What an answer says: mentions as quoted phrases in JSON, or marked in the text. Offsets that a model gives are not
read, since models cannot count."""

import json
import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...annotations.sentences import sentence_key

_LISTS = ("entities", "ents", "spans", "mentions")
_PHRASES = ("text", "phrase", "mention", "word", "span", "name", "entity")
_LABELS = ("label", "type", "entity_type", "entity_group", "category", "tag", "entity")
_THOUGHT, _END_OF_THOUGHT = "<think>", "</think>"
_FENCE = "```"
_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"[\[{]")
# Prose can hold many brackets, and each may be read to the end.
_ATTEMPTS = 200

Pair = Tuple[Optional[str], Optional[str]]


class Answer(NamedTuple):
    """What an answer says.

    mentions (List[Any]): `{"text", "label"}` of phrases, and [start, end, label] in characters of what is marked in the
        text itself: items as imported rows hold them.
    others (List[List[str]]): [phrase, label] of what is no label that was asked for, or has no phrase.
    """

    mentions: List[Any]
    others: List[List[str]]


def parse_answer(answer: str, text: str, labels: Sequence[str]) -> Optional[Answer]:
    """Read an answer: JSON (alone, fenced, or within prose), or the text with marked mentions, `[Anna](PER)` or
    `<PER>Anna</PER>`. Of several lists within prose the last counts.

    answer (str): The answer.
    text (str): The text that it is about.
    labels (Sequence[str]): The labels that were asked for; case does not count.
    RETURNS (Optional[Answer]): What it says; None if it says nothing that can be read, as a refusal does.
    """
    answer = answer.rpartition(_END_OF_THOUGHT)[2].strip()
    if answer.startswith(_THOUGHT):  # and nothing else
        return None
    known = {label.casefold(): label for label in labels}
    pairs = _whole_json(answer, known)
    if pairs is None:
        marked = _marked(answer, text, known)
        if marked:
            return Answer(marked, [])
        pairs = _json_in_prose(answer, known)
        if pairs is None:
            # The text came back, and nothing is marked in it.
            return Answer([], []) if sentence_key(answer) == sentence_key(text) else None
    found = Answer([], [])
    for phrase, label in pairs:
        name = known.get((label or "").strip().casefold())
        if name is None or not phrase or not sentence_key(phrase):
            found.others.append([phrase or "", label or ""])
        else:
            found.mentions.append({"text": phrase, "label": name})
    return found


# JSON


def _whole_json(answer: str, known: Dict[str, str]) -> Optional[List[Pair]]:
    if answer.startswith(_FENCE) and answer.endswith(_FENCE):
        # Its first line may name a language.
        answer = answer[len(_FENCE) : -len(_FENCE)].partition("\n")[2]
    try:
        return _pairs(json.loads(answer), known)
    except (ValueError, RecursionError):
        return None


def _json_in_prose(answer: str, known: Dict[str, str]) -> Optional[List[Pair]]:
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    if lines and all(line[0] == "{" and line[-1] == "}" for line in lines):  # an object a line
        try:
            pairs = [_pair(json.loads(line)) for line in lines]
        except (ValueError, RecursionError):
            pairs = [None]
        if all(pairs):
            return [pair for pair in pairs if pair is not None]
    # No single objects: they could be all that can be read of a list that breaks off.
    lists = [_pairs(value, known) for value in _json_values(answer) if isinstance(value, list) or _pair(value) is None]
    return next((found for found in reversed(lists) if found is not None), None)


def _json_values(text: str) -> List[Any]:
    """All objects and lists, the outermost of each; none if the last one breaks off."""
    text = text.rstrip()
    values: List[Any] = []
    position = 0
    for _ in range(_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
            values.append(value)
        except json.JSONDecodeError as error:
            if error.pos >= len(text) or error.msg.startswith("Unterminated"):
                return []
            position = opening.end()
        except (ValueError, RecursionError):  # numbers with thousands of digits
            position = opening.end()
    return values


def _pairs(value: Any, known: Dict[str, str]) -> Optional[List[Pair]]:
    """Phrases with labels; None if the value is no answer."""
    if isinstance(value, dict):
        for key in _LISTS:
            if isinstance(value.get(key), list):
                return _pairs(value[key], known)
        pair = _pair(value)
        return _by_label(value, known) if pair is None else [pair]
    if not isinstance(value, list):
        return None
    pairs = [_pair(item) for item in value]
    if value and not any(pairs):
        return None
    return [(None, None) if pair is None else pair for pair in pairs]


def _pair(item: Any) -> Optional[Pair]:
    if isinstance(item, list):
        return (item[0], item[1]) if len(item) == 2 and all(isinstance(part, str) for part in item) else None
    if not isinstance(item, dict):
        return None
    key = next((key for key in _PHRASES if key in item), None)
    label = next((item[other] for other in _LABELS if other in item and other != key), None)
    if key is None or not isinstance(label, str):
        return None
    return item[key] if isinstance(item[key], str) else None, label


def _by_label(value: Dict[str, Any], known: Dict[str, str]) -> Optional[List[Pair]]:
    """{"PER": ["Anna", "Bob"], "LOC": []}"""
    lists = {label: [] if own is None else own if isinstance(own, list) else [own] for label, own in value.items()}
    right = all(isinstance(phrase, str) for phrases in lists.values() for phrase in phrases)
    if not lists or not right or not any(label.strip().casefold() in known for label in lists):
        return None
    return [(phrase, label) for label, phrases in lists.items() for phrase in phrases]


# Marks in the text


def _marked(answer: str, text: str, known: Dict[str, str]) -> List[Any]:
    """Mentions by their places, if the answer holds the text as it was; otherwise their phrases."""
    pieces, places = _unmark(answer, known)
    borders = [0, *accumulate(len(sentence_key(piece)) for piece in pieces)]
    whole, wanted = sentence_key("".join(pieces)), sentence_key(text)
    offset = whole.find(wanted)
    if offset < 0:
        phrases = (("".join(pieces[first:last]), label) for first, last, label in places)
        return [{"text": phrase, "label": label} for phrase, label in phrases if sentence_key(phrase)]
    letters = [0, *accumulate(len(sentence_key(character)) for character in text)]
    found = []
    for first, last, label in places:
        start, end = borders[first] - offset, borders[last] - offset
        if 0 <= start < end <= len(wanted):
            found.append([bisect_right(letters, start) - 1, bisect_left(letters, end), label])
    return found


def _unmark(answer: str, known: Dict[str, str]) -> Tuple[List[str], List[Tuple[int, int, str]]]:
    """Pieces of the answer without its marks, and which of them are marked: first, behind the last, label. None are if
    a tag is left open: what it marks is not known."""
    names = "|".join(re.escape(label) for label in known.values())
    mark = re.compile(rf"\[|\](?:\(\s*(?P<link>{names})\s*\))?|<(?P<end>/?)(?P<tag>{names})>", re.I)
    pieces: List[str] = []
    places: List[Tuple[int, int, str]] = []
    brackets: List[int] = []
    tags: List[Tuple[int, str]] = []
    position = 0
    for found in mark.finditer(answer):
        pieces.append(answer[position : found.start()])
        position = found.end()
        link, tag = (known.get((found[group] or "").casefold()) for group in ("link", "tag"))
        if tag is not None and not found["end"]:
            tags.append((len(pieces), tag))
        elif tag is not None and tags and tags[-1][1] == tag:
            places.append((tags.pop()[0], len(pieces), tag))
        elif link is not None and brackets:
            first = brackets.pop()
            pieces[first] = ""  # its bracket
            places.append((first, len(pieces), link))
        else:  # brackets of the text
            if found[0] == "[":
                brackets.append(len(pieces))
            elif brackets:
                brackets.pop()
            pieces.append(found[0])
    return [*pieces, answer[position:]], [] if tags else sorted(places)

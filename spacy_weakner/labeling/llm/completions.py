"""Parsing of completions: mentions as quoted phrases in JSON. Offsets are ignored, since models cannot count."""

import json
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...corpus.sentences import sentence_key

_LISTS = ("entities", "ents", "spans", "mentions")
_PHRASES = ("text", "phrase", "mention", "word", "span", "name", "entity")
_LABELS = ("label", "type", "entity_type", "entity_group", "category", "tag", "entity")
_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"[\[{]")
_FENCED = re.compile(r"```.*\n([\s\S]*)```")
# Prose may contain many brackets, and each may be parsed up to the end.
_MAX_ATTEMPTS = 200

Pair = Tuple[str, str]  # phrase and label; "" if one is absent


class Parsed(NamedTuple):
    """The contents of a completion."""

    mentions: List[Dict[str, str]]  # {"text", "label"}
    # [phrase, label] of mentions without a phrase, or with a label that was not requested.
    others: List[List[str]]


def parse_completion(content: str, labels: Sequence[str]) -> Optional[Parsed]:
    """Parse a completion: JSON alone, in a code fence, or within prose. Several lists are joined, but within prose, the
    last one is used, unless each list has phrases and labels of its own. Return None if it cannot be parsed, as with a
    refusal, or if only the last of several lists is empty, which may be the answer or an example."""
    content = content.rpartition("</think>")[2].strip()
    if content.startswith("<think>"):
        return None
    known = {label.casefold(): label for label in labels}
    fenced = _FENCED.fullmatch(content)
    try:
        pairs = _pairs(json.loads(fenced[1] if fenced else content), known)
    except (ValueError, RecursionError):
        pairs = None
    pairs = _pairs_in_prose(content, known) if pairs is None else pairs
    if pairs is None:
        return None
    parsed = Parsed([], [])
    for phrase, label in pairs:
        name = known.get(label.strip().casefold())
        if name is None or not sentence_key(phrase):
            parsed.others.append([phrase, label])
        else:
            parsed.mentions.append({"text": phrase, "label": name})
    return parsed


def _pairs_in_prose(content: str, known: Dict[str, str]) -> Optional[List[Pair]]:
    values, prose = _json_values(content)
    pairs = [_pair(value) for value in values]
    if not prose and values and all(pairs):  # one object per line
        return [pair for pair in pairs if pair is not None]
    # Single objects are ignored: they may be the start of a truncated list.
    lists = [_pairs(v, known) for v, pair in zip(values, pairs, strict=True) if isinstance(v, list) or pair is None]
    found = [pairs for pairs in lists if pairs is not None]
    if not found:
        return None
    if prose:
        *drafts, last = found
        if any(drafts) and not last:
            return None
        if _have_common(found, 0) or _have_common(found, 1):  # a draft and the answer
            found = [last]
    return list(dict.fromkeys(pair for pairs in found for pair in pairs))


def _have_common(lists: List[List[Pair]], column: int) -> bool:
    """Return True if several lists have the same phrase (column 0) or label (1)."""
    values = [{pair[column].strip().casefold() for pair in pairs} - {""} for pairs in lists]
    return sum(map(len, values)) > len(set().union(*values))


def _json_values(text: str) -> Tuple[List[Any], str]:
    """Return all outermost objects and lists, and the text between them; no values if the last one is truncated."""
    values: List[Any] = []
    prose, position = "", 0
    for _ in range(_MAX_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        prose += text[position : opening.start()]
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
            values.append(value)
        except (ValueError, RecursionError) as error:  # also for numbers with thousands of digits
            if isinstance(error, json.JSONDecodeError) and (
                error.pos >= len(text) or error.msg.startswith("Unterminated")
            ):
                return [], text
            position = opening.end()
            prose += opening[0]
    return values, (prose + text[position:]).strip()


def _pairs(value: Any, known: Dict[str, str]) -> Optional[List[Pair]]:
    """Return phrases with labels; None if the value holds no list of mentions."""
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
    return [pair or ("", "") for pair in pairs]


def _pair(item: Any) -> Optional[Pair]:
    if isinstance(item, list):
        return (item[0], item[1]) if len(item) == 2 and all(isinstance(part, str) for part in item) else None
    if not isinstance(item, dict):
        return None
    key = next((key for key in _PHRASES if key in item), None)
    label = next((item[other] for other in _LABELS if other in item and other != key), None)
    if key is None or not isinstance(label, str):
        return None
    return item[key] if isinstance(item[key], str) else "", label


def _by_label(value: Dict[str, Any], known: Dict[str, str]) -> Optional[List[Pair]]:
    """Return the pairs of an object like {"PER": ["Anna", "Bob"], "LOC": []}."""
    lists = {
        label: [] if phrases is None else phrases if isinstance(phrases, list) else [phrases]
        for label, phrases in value.items()
    }
    are_phrases = all(isinstance(phrase, str) for phrases in lists.values() for phrase in phrases)
    if not are_phrases or not any(label.strip().casefold() in known for label in lists):
        return None
    return [(phrase, label) for label, phrases in lists.items() for phrase in phrases]

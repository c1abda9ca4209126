"""Conversion between rows of JSONL files and Docs. One row:

    {"id": "s1", "tokens": ["New", "York", "rocks"], "ents": [[0, 2, "CITY"]],
     "weak_ents": {"terms": [[0, 1, "CITY", 0.7]]}, "cats": {"TRAVEL": 1.0}}

- "tokens": words. Offsets count tokens, and the end is exclusive. "spaces" marks the tokens that are followed by a
  blank; by default all are. White-space tokens and empty tokens are dropped after the row is read.
- "text", instead of "tokens": raw text for the tokenizer. Offsets count characters.
- "ents" (or "spans"): gold, as [start, end, label] or {"start", "end", "label"}, optionally with a concept id ([start,
  end, label, "ID"], or "kb_id"). A list is complete: all other tokens are outside. If it is null or absent, every token
  is missing.
- "missing": [start, end] ranges without annotation, beside a list of "ents". "complete": false makes all tokens outside
  entities missing.
- "wrong": spans known to be wrong: not of their label, or no entities at all if the label is "".
- "weak_ents": spans of weak sources: one list, or one list per source. Overlaps are allowed; an additional number (or
  "score") is the score; null means that the source did not label the text.
- "suggested": spans that annotators are shown, as in "weak_ents"; dropped if there are "ents".
- "cats": sentence categories with numbers.
- "weak": if true, "ents" are themselves weak labels, with a "confidence"; "gold" are gold entities kept beside them,
  and "gold_missing" the ranges without annotation.
- "meta": an object shown to annotators, such as why the sentence was suggested.

Other keys are ignored and counted. Rows whose labels belong to another tool are refused (see `foreign`).
"""

import json
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple
from unicodedata import normalize

from spacy.tokens import Doc

from ..errors import shorten
from ..files import parse_json, read_lines
from . import weak
from .counts import Place, RowCounts, RowError, at_line, show_value
from .foreign import BARE, tool_of
from .records import Mark, Range, Record, a_list, a_number, an_object, make_mark, read_meta, record_of

Row = Dict[str, Any]
MISALIGNED = ("drop", "error", "expand", "contract")
DEFAULT_SOURCE = "imported"
KEYS = frozenset(
    ["id", "tokens", "spaces", "text", "ents", "spans", "missing", "weak_ents", "cats", "weak", "confidence"]
    + ["gold", "gold_missing", "complete", "wrong", "suggested", "meta"]
)
BIOC = "write it as brat or CoNLL first, for example with the package bconv"
# Keys of other files than corpora of rows, and what to do with them.
_OTHERS = {
    "documents": f" (BioC? Then {BIOC})",
    "paragraphs": " (training data of spaCy 2? Then: python -m spacy convert --converter json)",
}
_ANNOTATIONS = ("ents", "spans", "weak_ents", "wrong")


def read_rows(
    path: Path, lines: Optional[Iterable[Tuple[Place, str]]] = None, counts: Optional[RowCounts] = None
) -> Iterator[Tuple[Place, Row]]:
    """Stream the rows of a JSONL file with their line numbers; blank lines are skipped."""
    for number, line in enumerate(read_lines(path), start=1) if lines is None else lines:
        if line.strip():
            with at_line(path, number, counts):
                yield number, parse_row(line)


def parse_row(line: str) -> Row:
    row = parse_line(line)
    if not isinstance(row, dict):
        raise RowError(f"expected a JSON object, got {show_value(row)}")
    return row


def parse_line(text: str) -> Any:
    try:
        return parse_json(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        place = f" ({line}column {error.colno})" if error.doc else ""
        cure = ". Write each value on a line of its own (jq -c .)" if error.msg == "Extra data" else ""
        raise RowError(f"not JSON: {error.msg}{place}{cure}") from error


def _refuse_constant(name: str) -> float:
    """Refuse NaN and infinities, which are not valid JSON."""
    raise RowError(f"not JSON: {name} is not a number")


def read_row(row: Row, counts: RowCounts, source: str = DEFAULT_SOURCE) -> Record:
    """Make a record of a row. `source` is the name of weak labels given as a plain list."""
    row = an_object(row, "a row")
    tool = tool_of(row)
    if tool is not None:
        raise RowError(
            f"this looks like a row of the format '{tool}', whose labels have another meaning, or would be ignored. "
            f"Convert the file first: spacy weakner convert FILE NEW --format {tool}. (Or remove the foreign keys.)"
        )
    if "text" in row and "tokens" in row:
        raise RowError("both 'tokens' and 'text' are given, so the unit of the offsets is not clear")
    if "text" not in row and "tokens" not in row:
        hint = next((hint for key, hint in _OTHERS.items() if key in row), "")
        raise RowError(
            f"the row has neither 'tokens' nor 'text', only: {shorten(', '.join(row) or 'nothing', 80)}{hint}"
        )
    tokens = a_list(row["tokens"], "tokens") if "tokens" in row else None
    record = Record(text=row.get("text"), tokens=tokens, spaces=row.get("spaces"), id=row.get("id"))
    if row.keys() <= BARE:  # most rows of large corpora
        return record
    if "ents" in row and "spans" in row:
        raise RowError("both 'ents' and 'spans' are given")
    key = "spans" if "spans" in row else "ents"
    record.ents = None if row.get(key) is None else _marks(row[key], key)
    record.complete = _flag(row, "complete", default=True)
    record.missing = _row_ranges(row, "missing")
    record.wrong = _marks(row.get("wrong"), "wrong", unlabeled=True)
    lists = weak_lists(row.get("weak_ents"), source)
    record.weak = {name: _marks(items, f"weak_ents of {name}", scored=True) for name, items in lists}
    record.suggested = _marks(row.get("suggested"), "suggested", scored=True)
    record.gold = None if row.get("gold") is None else _marks(row["gold"], "gold")
    record.gold_missing = _row_ranges(row, "gold_missing")
    _check_texts(record)
    record.is_weak = _flag(row, "weak")
    if row.get("confidence") is not None:
        record.confidence = a_number(row["confidence"], "confidence")
        if not 0.0 <= record.confidence <= 1.0:
            raise RowError(f"confidence must be between 0 and 1, got {show_value(row['confidence'])}")
    record.cats, meta = row.get("cats"), row.get("meta")
    unknown = row.keys() - KEYS
    record.meta = read_meta(row)
    if meta and record.meta is None:
        counts.ignored["meta"] += 1
    counts.ignored.update(unknown)
    counts.lists.update(key for key in unknown if row[key] and isinstance(row[key], (list, dict)))
    counts.annotated += any(key in row for key in _ANNOTATIONS)
    return record


def _check_texts(record: Record) -> None:
    """Refuse spans that cover another text than the one in their row. Tokens are often spelled in their own way."""
    for mark in record.marks():
        if mark.text is not None and isinstance(record.text, str):
            covered = record.text[mark.start : mark.end]
            if _folded(covered) != _folded(mark.text):
                raise RowError(
                    f"{show_value(mark[:3])} covers {show_value(covered)}, not {show_value(mark.text)}: correct the "
                    "offsets"
                )


def _folded(text: str) -> str:
    return "".join(normalize("NFKC", text).casefold().split())


def weak_lists(value: Any, source: str) -> List[Tuple[str, Any]]:
    """Return the spans of weak sources by source name, unparsed."""
    if value is None:
        return []
    if not isinstance(value, dict):
        return [(source, value)]
    if any(not name for name in value):
        raise RowError("weak_ents: the name of a source is empty")
    return [(name, items) for name, items in value.items() if items is not None]


def _marks(items: Any, what: str, scored: bool = False, unlabeled: bool = False) -> List[Mark]:
    return [_mark(item, scored, unlabeled) for item in a_list(items, what)]


def _mark(item: Any, scored: bool, unlabeled: bool) -> Mark:
    text: Any = None
    if isinstance(item, dict) and {"start", "end", "label"} <= item.keys():
        start, end, label = item["start"], item["end"], item["label"]
        score, identifier, text = item.get("score") if scored else None, item.get("kb_id"), item.get("text")
    elif isinstance(item, list) and 3 <= len(item) <= (5 if scored else 4):
        start, end, label, *rest = item
        # A string is an id, and comes last.
        identifier = rest.pop() if rest and isinstance(rest[-1], str) else None
        score = rest.pop() if rest else None
        if rest or (score is not None and not scored):
            raise RowError(f"expected [start, end, label], optionally with an id, got {show_value(item)}")
    else:
        raise RowError(f"expected [start, end, label{', score' if scored else ''}], got {show_value(item)}")
    score = None if score is None else a_number(score, "the score")
    return make_mark(start, end, label, item, score=score, text=text, id=identifier, unlabeled=unlabeled)


def _row_ranges(row: Row, key: str) -> List[Range]:
    items = a_list(row.get(key), key)
    for item in items:
        if not isinstance(item, list) or [type(offset) for offset in item] != [int, int]:
            raise RowError(f"{key}: expected [start, end], got {show_value(item)}")
    return [(start, end) for start, end in items]


def _flag(row: Row, key: str, default: bool = False) -> bool:
    value = default if row.get(key) is None else row[key]
    if not isinstance(value, bool):
        raise RowError(f"'{key}' must be true or false, got {show_value(value)}")
    return value


def row_from_doc(doc: Doc) -> Row:
    """Make a row of a Doc: with its text if it was read from an annotated text, else with its tokens, without those of
    white space, so that rows and CoNLL files hold the same tokens.

    Completed tags, soft labels, augmented words and `pred:` groups are not part of the layout."""
    record = record_of(doc, in_tokens=not weak.is_annotated_text(doc))
    row: Row = {
        "id": record.id,
        **({"tokens": record.tokens} if record.text is None else {"text": record.text}),
        "spaces": None if all(record.spaces or ()) else record.spaces,
        "ents": None if record.ents is None else _items(record.ents),
        "missing": None if record.ents is None else _joined(record.missing) or None,
        "wrong": _items(record.wrong) if weak.WRONG_GROUP in doc.spans else None,
        "weak_ents": {source: _items(marks) for source, marks in record.weak.items()} or None,
        "suggested": _items(record.suggested) or None,
        "cats": record.cats or None,
        "gold": None if record.gold is None else _items(record.gold),
        "gold_missing": _joined(record.gold_missing) or None,
        "weak": record.is_weak or None,
        "confidence": record.confidence if record.is_weak else None,
        "meta": record.meta,
    }
    return {key: value for key, value in row.items() if value is not None or key == "ents"}


def _items(marks: Iterable[Mark]) -> List[List[Any]]:
    return [[*mark[:3], *(value for value in (mark.score, mark.id or None) if value is not None)] for mark in marks]


def _joined(ranges: Iterable[Range]) -> List[List[int]]:
    """Return ranges with adjacent ones merged."""
    joined: List[List[int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1][1] = end
        else:
            joined.append([start, end])
    return joined

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

import json
from contextlib import contextmanager
from itertools import accumulate, compress, zip_longest
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import WeaknerError, check_choice, shorten
from ..files import parse_json, read_lines
from ..ty import Entity
from . import weak
from .counts import Place, RowCounts, RowError, at_line, show
from .foreign import BARE, tool_of
from .gold import find_gold
from .records import Mark, Range, Record, a_list, a_number, an_object, make_doc, make_mark

Row = Dict[str, Any]
MISALIGNED = ("drop", "error", "expand", "contract")
DEFAULT_SOURCE = "imported"
KEYS = frozenset(
    ["id", "tokens", "spaces", "text", "ents", "spans", "missing", "weak_ents", "cats", "weak", "confidence"]
    + ["gold", "gold_missing", "complete", "wrong", "meta"]
)
_ANNOTATIONS = ("ents", "spans", "weak_ents", "wrong")


def read_rows(
    path: Path, lines: Optional[Iterable[Tuple[Place, str]]] = None, counts: Optional[RowCounts] = None
) -> Iterator[Tuple[Place, Row]]:
    """Stream the rows of a JSONL file with the numbers of their lines; blank lines are skipped."""
    for number, line in enumerate(read_lines(path), start=1) if lines is None else lines:
        if line.strip():
            row = None
            with at_line(path, number, counts):
                row = parse_row(line)
            if row is not None:
                yield number, row


def parse_row(line: str) -> Row:
    row = parse_value(line)
    if not isinstance(row, dict):
        raise RowError(f"expected a JSON object, got {show(row)}")
    return row


def parse_value(line: str) -> Any:
    with json_errors():
        return parse_json(line, parse_constant=refuse_constant)


@contextmanager
def json_errors() -> Iterator[None]:
    """Turn errors of JSON parsers into a `RowError`."""
    try:
        yield
    except RecursionError as error:
        raise RowError("nested too deeply") from error
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        place = f" ({line}column {error.colno})" if error.doc else ""
        raise RowError(f"not JSON: {error.msg}{place}") from error
    except WeaknerError:
        raise
    except ValueError as error:  # Python refuses to read integers of thousands of digits
        raise RowError("a number has too many digits") from error


def refuse_constant(name: str) -> float:
    """Refuse NaN and the like, which are no JSON."""
    raise RowError(f"not JSON: {name} is not a number")


def doc_from_row(
    row: Row,
    nlp: Language,
    *,
    source: str = DEFAULT_SOURCE,
    misaligned: str = "error",
    counts: Optional[RowCounts] = None,
) -> Doc:
    check_choice("misaligned", misaligned, MISALIGNED)
    counts = RowCounts() if counts is None else counts
    return make_doc(read_row(row, counts, source), nlp, misaligned, counts)


def read_row(row: Row, counts: RowCounts, source: str = DEFAULT_SOURCE) -> Record:
    """Make a record of one row; `source` is the name of weak labels that are a plain list."""
    row = an_object(row, "a row")
    tool = tool_of(row)
    if tool is not None:
        raise RowError(
            f"this looks like a row of the format '{tool}', whose labels mean something else, or would be ignored. "
            f"Convert the file first: spacy weakner convert FILE NEW --format {tool}. (Or remove such keys.)"
        )
    if "text" in row and "tokens" in row:
        raise RowError("both 'tokens' and 'text' are given, so the unit of the offsets is not clear")
    if "text" not in row and "tokens" not in row:
        raise RowError(f"neither 'tokens' nor 'text', only: {shorten(', '.join(row) or 'nothing', 80)}")
    tokens = a_list(row["tokens"], "tokens") if "tokens" in row else None
    record = Record(text=row.get("text"), tokens=tokens, spaces=row.get("spaces"), id=row.get("id"))
    if row.keys() <= BARE:  # most rows, where there is much text
        return record
    if "ents" in row and "spans" in row:
        raise RowError("both 'ents' and 'spans' are given")
    key = "spans" if "spans" in row else "ents"
    record.ents = None if row.get(key) is None else _marks(row[key], key)
    record.complete = row.get("complete") is None or _flag(row["complete"], "complete")
    record.missing = _row_ranges(row, "missing")
    record.wrong = _marks(row.get("wrong"), "wrong", unlabeled=True)
    lists = weak_lists(row.get("weak_ents"), source)
    record.weak = {name: _marks(items, f"weak_ents of {name}", scored=True) for name, items in lists}
    record.gold = None if row.get("gold") is None else _marks(row["gold"], "gold")
    record.gold_missing = _row_ranges(row, "gold_missing")
    record.is_weak = _flag(row.get("weak"), "weak")
    if row.get("confidence") is not None:
        record.confidence = a_number(row["confidence"], "confidence")
        if not 0.0 <= record.confidence <= 1.0:
            raise RowError(f"confidence must be between 0 and 1, got {show(row['confidence'])}")
    record.cats, record.meta = row.get("cats"), _meta(row.get("meta"))
    unknown = {*(row.keys() - KEYS), *(["meta"] if row.get("meta") and record.meta is None else [])}
    counts.ignored.update(unknown)
    counts.lists.update(key for key in unknown - KEYS if row[key] and isinstance(row[key], (list, dict)))
    counts.annotated += any(key in row for key in _ANNOTATIONS)
    return record


def weak_lists(value: Any, source: str) -> List[Tuple[str, Any]]:
    """What weak sources say, by their names."""
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
    score: Any = None
    identifier: Any = None
    if isinstance(item, dict) and {"start", "end", "label"} <= item.keys():
        start, end, label = item["start"], item["end"], item["label"]
        score, identifier = item.get("score") if scored else None, item.get("kb_id")
    elif isinstance(item, list) and 3 <= len(item) <= (5 if scored else 4):
        start, end, label, *rest = item
        # A text is an id, and stands last.
        identifier = rest.pop() if rest and isinstance(rest[-1], str) else None
        score = rest.pop() if rest else None
        if rest or (score is not None and not scored):
            raise RowError(f"expected [start, end, label] and perhaps an id, got {show(item)}")
    else:
        raise RowError(f"expected [start, end, label{', score' if scored else ''}], got {show(item)}")
    score = None if score is None else a_number(score, "the score")
    return make_mark(start, end, label, item, score=score, id=identifier, unlabeled=unlabeled)


def _row_ranges(row: Row, key: str) -> List[Range]:
    items = a_list(row.get(key), key)
    for item in items:
        if not isinstance(item, list) or [type(offset) for offset in item] != [int, int]:
            raise RowError(f"{key}: expected [start, end], got {show(item)}")
    return [(start, end) for start, end in items]


def _flag(value: Any, what: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise RowError(f"'{what}' must be true or false, got {show(value)}")
    return bool(value)


def _meta(value: Any) -> Optional[Dict[str, Any]]:
    # Other tools keep anything there: what is no object, or cannot be shown, is none of ours.
    shown = isinstance(value, dict) and all(isinstance(item, (str, int, float, type(None))) for item in value.values())
    return value if shown and value else None


def row_from_doc(doc: Doc) -> Row:
    """Make a row of a Doc. White-space tokens are left out, so that rows and CoNLL files hold the same tokens.

    Completed tags, soft labels, augmented words and `pred:` groups are not part of the layout."""
    visible = [not token.text.isspace() for token in doc]
    place = list(accumulate(map(int, visible), initial=0))  # new position of each border between tokens

    def spans(entities: Iterable[Entity], ids: weak.Ids, scores: Sequence[Optional[float]] = ()) -> List[List[Any]]:
        found = []
        for (start, end, label), score in zip_longest(entities, scores):
            listed = ids.get((start, end, label))
            rest = [*([] if score is None else [score]), *(["|".join(listed)] if listed else [])]
            found += [[place[start], place[end], label, *rest]] if place[start] < place[end] else []
        return found

    row: Row = {}
    if weak.get_id(doc) is not None:
        row["id"] = weak.get_id(doc)
    tokens = list(compress(doc, visible))
    row["tokens"] = [token.text for token in tokens]
    row["spaces"] = [bool(t.whitespace_) or (t.i + 1 < len(doc) and not visible[t.i + 1]) for t in tokens]
    if all(row["spaces"]):
        del row["spaces"]
    missing = [token.ent_iob == 0 for token in tokens]
    row["ents"] = None if all(missing) else spans(weak.doc_entities(doc), weak.doc_ids(doc))
    if row["ents"] is not None and any(missing):
        row["missing"] = _ranges(missing)
    if weak.WRONG_GROUP in doc.spans:
        row["wrong"] = spans(weak.group_entities(doc, weak.WRONG_GROUP), {})
    for source in weak.weak_sources(doc):
        name = weak.weak_group(source)
        found = spans(weak.group_entities(doc, name), weak.group_ids(doc, name), weak.group_scores(doc, name))
        row.setdefault("weak_ents", {})[source] = found
    if doc.cats:
        row["cats"] = dict(doc.cats)
    gold = find_gold(doc) if weak.GOLD_GROUP in doc.spans else None
    if gold is not None:
        row["gold"] = spans(sorted(gold.entities), weak.group_ids(doc, weak.GOLD_GROUP))
        if gold.missing:
            row["gold_missing"] = _ranges([token.i in gold.missing for token in tokens])
    if weak.is_weak(doc):
        row["weak"] = True
        if weak.get_confidence(doc) is not None:
            row["confidence"] = weak.get_confidence(doc)
    if weak.get_meta(doc) is not None:
        row["meta"] = weak.get_meta(doc)
    return row


def _ranges(flags: Sequence[bool]) -> List[List[int]]:
    ranges: List[List[int]] = []
    for i, flag in enumerate(flags):
        if flag and ranges and ranges[-1][1] == i:
            ranges[-1][1] = i + 1
        elif flag:
            ranges.append([i, i + 1])
    return ranges

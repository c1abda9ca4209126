"""Reading and writing JSONL files, one Doc per row. The layout of a row is described in `rows`."""

import json
from contextlib import contextmanager
from itertools import accumulate, compress, zip_longest
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ..errors import WeaknerError
from ..files import parse_json, read_lines
from ..ty import Entity
from . import weak
from .counts import Place, RowCounts, RowError, at_line, show
from .gold import find_gold
from .rows import Row


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

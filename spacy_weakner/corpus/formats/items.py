"""The records of JSON files (rows, an array, or objects around them) and Parquet files, with their places. Rows are
streamed; other JSON is parsed as a whole."""

import codecs
import json
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional

from ...files import LONGEST_LINE, open_packed, read_lines
from ..counts import RowCounts, at_line
from ..foreign import tool_of, wrapped
from ..jsonl import parse_line
from ..records import Item
from .huggingface import PARQUET, read_rows

_BLOCK = 1 << 20  # bytes that are read to detect the layout


def read_items(path: Path, counts: Optional[RowCounts] = None) -> Iterator[Item]:
    """Stream the records of a file, also of one that wraps them in an object (`{"data": [...]}`). `counts` is as in
    `read_corpus`."""
    for place, value in _values(path, counts):
        inside = wrapped(value)
        what = f"line {place}, item" if isinstance(place, int) else "item"
        yield from [(place, value)] if inside is None else _numbered(what, inside)


def _values(path: Path, counts: Optional[RowCounts]) -> Iterator[Item]:
    if path.suffix.lower() == PARQUET:
        yield from _numbered("row", read_rows(path))
    elif not in_lines(path):
        yield from _numbered("item", _parse(path, counts))
    else:
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                with at_line(path, number, counts):
                    yield number, parse_line(line)


def _numbered(what: str, values: Iterable[Any]) -> Iterator[Item]:
    return ((f"{what} {number}", value) for number, value in enumerate(values, start=1))


def in_lines(path: Path) -> bool:
    """Return True if every line of a JSON file is one of its records, or an object around some."""
    with open_packed(path) as file_:
        start = file_.read(_BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
        if start.startswith(b"{") and b"\n" not in start:
            start += file_.readline(LONGEST_LINE)
    first, *others = start.splitlines() or [b""]
    try:
        row = json.loads(first)
    except json.JSONDecodeError as error:
        # The only error of the first line is that it ends too early.
        ends = error.pos >= len(error.doc.rstrip()) and bool(others)
        return not (start.startswith(b"[") or (start.startswith(b"{") and ends))
    except (ValueError, RecursionError):
        return not start.startswith(b"[")
    # spaCy's [text, annotations] may be written one per line.
    if isinstance(row, list):
        return tool_of(row) is not None
    return wrapped(row) is None or any(map(_is_json, others[:1]))


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(path: Path, counts: Optional[RowCounts]) -> List[Any]:
    """Return the records of a JSON file with values over several lines."""
    value: Any = []
    with at_line(path, "its JSON", counts):
        value = parse_line("\n".join(read_lines(path)))
    return value if isinstance(value, list) else [value]

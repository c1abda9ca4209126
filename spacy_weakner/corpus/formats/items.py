"""The records of JSON files (rows, an array, or an object around them) and Parquet, with their places. Rows are
streamed; an array is parsed as a whole."""

import codecs
import json
import shlex
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Tuple

from ...errors import Errors, WeaknerError
from ...files import open_packed, parse_integer, read_lines
from ..counts import Place, RowError, at_line
from ..foreign import wrapped
from ..jsonl import json_errors, parse_value, refuse_constant
from .records import Item

PARQUET = ".parquet"
LINES, ARRAY = "a value per line", "a JSON array"
WRAPPED, SPREAD = "a JSON object around all rows", "JSON objects over several lines"
_BLOCK = 1 << 20  # bytes that are read to tell the layout
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_int=parse_integer)


class Items:
    """The records of a file, also of one that wraps them in an object (`{"data": [...]}`). They can be iterated over
    several times. `lines` are JSON lines that have been read already."""

    def __init__(self, path: Path, lines: Optional[Iterable[Tuple[Place, str]]] = None) -> None:
        self.path = path
        self.lines = lines
        self._parsed: Optional[List[Any]] = None

    def __iter__(self) -> Iterator[Item]:
        for place, item in self._values():
            inside = wrapped(item)
            if inside is None:
                yield place, item
            else:
                yield from ((f"item {number}", record) for number, record in enumerate(inside[1], start=1))

    def _values(self) -> Iterator[Item]:
        if self.lines is None and self.path.suffix.lower() == PARQUET:
            from .huggingface import read_table

            return ((f"row {number}", row) for number, row in read_table(self.path))
        layout = LINES if self.lines is not None else find_layout(self.path)
        if layout in (ARRAY, SPREAD):
            self._parsed = _parse(self.path, layout) if self._parsed is None else self._parsed
            return ((f"item {number}", item) for number, item in enumerate(self._parsed, start=1))
        return self._rows(enumerate(read_lines(self.path), start=1) if self.lines is None else self.lines)

    def _rows(self, lines: Iterable[Tuple[Place, str]]) -> Iterator[Item]:
        for number, line in lines:
            if line.strip():
                with at_line(self.path, number):
                    row = parse_value(line)
                yield number, row


def find_layout(path: Path) -> str:
    """How JSON stands in a file."""
    with open_packed(path) as file_:
        start = file_.read(_BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
    array, (first, *others) = start.startswith(b"["), start.splitlines() or [b""]
    try:
        row = json.loads(first)
    except json.JSONDecodeError as error:
        # What is wrong with the first line is that it ends.
        ends = error.pos >= len(error.doc.rstrip()) and bool(others)
        return ARRAY if array else SPREAD if start.startswith(b"{") and ends else LINES
    except (ValueError, RecursionError):
        return ARRAY if array else LINES
    if array:
        # spaCy's [text, annotations], one a line.
        return LINES if len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict) else ARRAY
    return LINES if wrapped(row) is None else WRAPPED


def check_rows(path: Path) -> None:
    """Check that a file of JSON holds a row per line."""
    layout, key = find_layout(path), ""
    if layout == LINES:
        return
    next(iter(Items(path)), None)  # may be no JSON at all
    if layout != ARRAY:
        _, first = next(Items(path)._values())
        inside = wrapped(first)
        key = "" if inside is None else json.dumps(inside[0], ensure_ascii=False)
    rows = "." if layout == SPREAD and not key else f".{key}[]"
    reader = {".gz": "gzip -dc", ".bz2": "bzip2 -dc"}.get(path.suffix.lower(), "cat")
    command = f"{reader} {shlex.quote(str(path))} | jq -c {shlex.quote(rows)} > NEW.jsonl"
    raise WeaknerError(Errors.WK370.format(path=path, layout=layout, command=command))


def _parse(path: Path, layout: str) -> List[Any]:
    """The records of a file of JSON over several lines."""
    text, end = "\n".join(read_lines(path)).strip(), 0
    values: List[Any] = []
    with at_line(path, "its JSON"), json_errors():
        while end < len(text):
            value, end = _DECODER.raw_decode(text, end)
            values.append(value)
            while text[end : end + 1].isspace():
                end += 1
            if layout == ARRAY and end < len(text):
                raise RowError("something follows the array")
    return values if layout == SPREAD else values[0]

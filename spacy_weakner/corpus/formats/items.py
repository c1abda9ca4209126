"""Files of JSON (rows, an array, or an object around them) and Parquet: one record after the other, with its place."""

import codecs
import json
import shlex
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Tuple

from ...encodings import NULS, SAMPLE, wrong_encoding
from ...errors import Errors, WeaknerError
from ...files import open_packed, parse_integer, read_lines
from ..foreign import wrapped
from ..jsonl import json_errors, parse_value, refuse_constant
from ..rows import RowError
from .location import ITEM, LINE, ROW, Item, Place, at

PARQUET = ".parquet"
LINES, ARRAY = "a value per line", "a JSON array"
WRAPPED, SPREAD = "a JSON object around all rows", "JSON objects over several lines"
_BLOCK = 1 << 20
# A string that is cut off is reported where it begins, everything else where it ends.
_CUT_OFF = "Unterminated string"
_NEAR = 16
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_int=parse_integer)


class Items:
    """The records of a file; can be gone through several times. Those in a wrapper (`{"data": [...]}`) are taken out.

    path (Path): A file of JSON lines, a JSON array, or Parquet.
    lines (Optional[Iterable[Tuple[int, str]]]): JSON lines with their numbers, if they have been read already.
    named (bool): Whether numbers of tags become the names that a Parquet file has for them.
    """

    def __init__(self, path: Path, lines: Optional[Iterable[Tuple[int, str]]] = None, *, named: bool = True) -> None:
        self.path = path
        self.lines = lines
        self.named = named

    def __iter__(self) -> Iterator[Item]:
        """YIELDS (Item): The records.
        RAISES (WeaknerError): For what is no JSON, with its place.
        """
        for place, item in self._values():
            inside = wrapped(item)
            if inside is None:
                yield place, item
            else:
                yield from ((Place(ITEM, number), each) for number, each in enumerate(inside[1], start=1))

    def _values(self) -> Iterator[Item]:
        if self.lines is None and self.path.suffix.lower() == PARQUET:
            from .parquet import read_table

            return ((Place(ROW, number), row) for number, row in read_table(self.path, self.named))
        layout = LINES if self.lines is not None else find_layout(self.path)
        if layout == ARRAY:
            return _array(self.path)
        if layout == SPREAD:
            return _spread(self.path)
        return self._rows(enumerate(read_lines(self.path), start=1) if self.lines is None else self.lines)

    def _rows(self, lines: Iterable[Tuple[int, str]]) -> Iterator[Item]:
        for number, line in lines:
            if line.strip():
                place = Place(LINE, number)
                with at(self.path, place):
                    row = parse_value(line)
                yield place, row


def find_layout(path: Path) -> str:
    """How JSON stands in a file.

    path (Path): The file.
    RETURNS (str): `LINES`: a value a line; `ARRAY`: one array; `WRAPPED`: all records in an object; `SPREAD`: objects
        over several lines.
    """
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
    """Check that a file of JSON holds a row per line.

    path (Path): The file.
    RAISES (WeaknerError): If it holds something else, with the command that makes rows of it.
    """
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


def _spread(path: Path) -> Iterator[Item]:
    """Values that stand one after the other, of any number of lines."""
    window, number = _Window(_blocks(path)), 0
    while window.peek():
        number += 1
        place = Place(ITEM, number)
        with at(path, place), json_errors():
            item = window.value()
        yield place, item


def _array(path: Path) -> Iterator[Item]:
    """The members of an array, of which one at a time is in memory."""
    window, number = _Window(_blocks(path)), 0
    window.peek()
    window.place += 1
    while (sign := window.peek()) != "]":
        number += 1
        place = Place(ITEM, number)
        with at(path, place), json_errors():
            if number > 1:
                if sign != ",":
                    raise RowError(f"a comma, or the end of the array, should stand before it, not '{sign}'")
                window.place += 1
                window.peek()
            item = window.value()
        yield place, item
    window.place += 1
    with at(path, Place(ITEM, number)):
        if window.peek():
            raise RowError("something follows the array that it belongs to")


class _Window:
    """A part of a text that comes in blocks."""

    def __init__(self, blocks: Iterator[str]) -> None:
        self.blocks = blocks
        self.text = ""
        self.place = 0
        self.ended = False

    def peek(self) -> str:
        """The next sign that is no white space; empty at the end."""
        while True:
            while self.place < len(self.text):
                sign = self.text[self.place]
                if sign not in " \t\r\n":
                    return sign
                self.place += 1
            if self.ended:
                return ""
            self._read(1)

    def value(self) -> Any:
        """The next value."""
        while True:
            try:
                value, self.place = _DECODER.raw_decode(self.text, self.place)
                return value
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith(_CUT_OFF) or error.pos > len(self.text) - _NEAR
                if self.ended or not cut_off:
                    raise RowError(f"not JSON: {error.msg}") from error
                # As much again, so that long values are not begun too often.
                self._read(len(self.text) - self.place)

    def _read(self, n: int) -> None:
        parts = [self.text[self.place :]]
        while n > 0 and not self.ended:
            block = next(self.blocks, None)
            self.ended = block is None
            parts.append(block or "")
            n -= len(parts[-1])
        self.text, self.place = "".join(parts), 0


def _blocks(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    position, line = 0, 1
    with open_packed(path) as file_:
        while True:
            block = file_.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise wrong_encoding(path, block[:SAMPLE], line, position + error.start, error.reason) from error
            if "\0" in text:
                raise wrong_encoding(path, block[:SAMPLE], line, position, NULS)
            if text:
                yield text
            if not block:
                return
            position += len(block)
            line += text.count("\n")

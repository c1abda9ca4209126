"""Files of JSON, rows or one array, and Parquet: one record after the other, with its place."""

import codecs
import json
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Tuple

from ..annotations.jsonl import json_errors, parse_value, refuse_constant
from ..annotations.rows import RowError
from ..encodings import NULS, SAMPLE, wrong_encoding
from ..files import open_packed, parse_integer, read_lines
from .location import ITEM, LINE, ROW, Item, Place, at

PARQUET = ".parquet"
_BLOCK = 1 << 20
# A string that is cut off is reported where it begins, everything else where it ends.
_CUT_OFF = "Unterminated string"
_NEAR = 16
_DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_int=parse_integer)


class Items:
    """The records of a file; can be gone through several times.

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
        if self.lines is not None:
            return self._rows(self.lines)
        if self.path.suffix.lower() == PARQUET:
            from .parquet import read_table

            return ((Place(ROW, number), row) for number, row in read_table(self.path, self.named))
        if is_array(self.path):
            return _array(self.path)
        return self._rows(enumerate(read_lines(self.path), start=1))

    def _rows(self, lines: Iterable[Tuple[int, str]]) -> Iterator[Item]:
        for number, line in lines:
            if line.strip():
                place = Place(LINE, number)
                with at(self.path, place):
                    row = parse_value(line)
                yield place, row


def is_array(path: Path) -> bool:
    """Whether a file holds one JSON array, and no row per line."""
    with open_packed(path) as file_:
        start = file_.read(_BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
    if not start.startswith(b"["):
        return False
    try:
        row = json.loads(start.splitlines()[0])
    except (ValueError, RecursionError):
        return True
    # spaCy's [text, annotations], one a line.
    return not (len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict))


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

"""What offsets into a text count. Python counts code points; browsers and Java count UTF-16 units, so that an emoji is
two; some tools count what readers take for a character (grapheme clusters): an emoji with a skin tone is one.
"""

import shlex
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from ...errors import Errors, WeaknerError
from ..counts import RowCounts, show

if TYPE_CHECKING:
    from .records import Mark, Record, Tool

CODE_POINTS, UTF16, GRAPHEMES = "codepoints", "utf16", "graphemes"
UNITS = (CODE_POINTS, UTF16, GRAPHEMES)
AUTO = "auto"
UNCHECKED = "texts with emoji or the like, where nothing tells what the offsets count (set it with convert --offsets)"
_FIRST_OF_TWO = 0x10000  # code points from here on are two units of UTF-16


class Offsets:
    """Offsets into a text in one of `UNITS`, in code points and back."""

    def __init__(self, text: str, unit: str) -> None:
        self.same = unit == CODE_POINTS or (text.isascii() and "\r" not in text)
        self._length = len(text)
        self._starts = [] if self.same else _starts(text, unit)
        self._place: Dict[int, int] = {start: i for i, start in enumerate(self._starts)}

    def code_point(self, offset: int) -> Optional[int]:
        """The offset in code points; None if it is not in the text, or within a character."""
        if self.same:
            return offset if 0 <= offset <= self._length else None
        return self._place.get(offset) if offset >= 0 else None

    def nearest(self, offset: int, step: int) -> int:
        """The nearest place within the text, in code points: within a character before it (-1) or behind it (1)."""
        offset = min(max(offset, 0), self._length if self.same else self._starts[-1])
        while (place := self.code_point(offset)) is None:
            offset += step
        return place

    def offset(self, code_point: int) -> int:
        """The offset of a code point in the unit."""
        return code_point if self.same else self._starts[code_point]


def _starts(text: str, unit: str) -> List[int]:
    """Offset of each code point, and of the end of the text. Within a grapheme cluster it is -1."""
    if unit == UTF16:
        return [0, *accumulate(2 if ord(character) >= _FIRST_OF_TWO else 1 for character in text)]
    import regex

    starts = [-1] * (len(text) + 1)
    for i, match in enumerate(regex.finditer(r"\X", text)):
        starts[match.start()] = i
        starts[-1] = i + 1
    return starts


def fits(record: "Record", unit: str) -> bool:
    """True if all spans of a record lie within its text, and cover the text that they should."""
    return record.text is None or not list(_misfits(record, unit))


def _misfits(record: "Record", unit: str) -> Iterator["Mark"]:
    text = record.text or ""
    offsets = Offsets(text, unit)
    for mark in record.marks():
        start, end = offsets.code_point(mark.start), offsets.code_point(mark.end)
        if None in (start, end) or (mark.text is not None and plain_text(text[start:end]) != plain_text(mark.text)):
            yield mark


def plain_text(text: str) -> str:
    """A text to be compared."""
    # Label Studio writes a line end within a span as these two characters.
    return " ".join(text.replace("\\n", " ").split())


def find_unit(
    path: Path, records: Callable[[], Iterable[Tuple[Any, "Record"]]], tool: "Tool", counts: RowCounts
) -> str:
    """Find the unit in which all spans of a file cover the text that they should."""
    usual, matters, unchecked, misfit = tool.unit, False, 0, False
    for _, record in records():
        if not fits(record, usual):
            misfit = True
            break
        if _depends(record):
            matters = usual != CODE_POINTS
            unchecked += not tool.sure and any(mark.text is None for mark in record.marks())
    unit = usual
    if misfit:
        matters, unchecked, unit = True, 0, _choose(path, records, usual)
    if matters:
        counts.offsets[unit] += 1
    if unchecked:
        counts.notes[UNCHECKED] += unchecked
    return unit


def _choose(path: Path, records: Callable[[], Iterable[Tuple[Any, "Record"]]], usual: str) -> str:
    units = [usual, *(unit for unit in UNITS if unit != usual)]
    bad: Dict[str, int] = dict.fromkeys(units, 0)
    first, n = None, 0
    for place, record in records():
        n += 1
        misfits = [unit for unit in units if not fits(record, unit)]
        for unit in misfits:
            bad[unit] += 1
        if usual in misfits and first is None:
            first = (place, record)
    for unit in units:
        if not bad[unit]:
            return unit
    assert first is not None
    place, record = first
    shares = ", ".join(f"{unit} {bad[unit]}" for unit in units)
    text = record.text or ""
    mark = next(_misfits(record, usual))
    raise WeaknerError(
        Errors.WK742.format(
            path=path,
            place=place if isinstance(place, str) else f"line {place}",
            span=show([mark.start, mark.end, mark.label]),
            said="a part of the text" if mark.text is None else show(mark.text),
            found=show(text[mark.start : mark.end]),
            n=n,
            misfits=shares,
            file=shlex.quote(str(path)),
            unit=min(units, key=bad.__getitem__),
        )
    )


def _depends(record: "Record") -> bool:
    """True if the units differ at some span."""
    text = record.text
    if text is None or text.isascii():
        return False
    units = [Offsets(text, unit) for unit in UNITS]
    borders = {offset for mark in record.marks() for offset in mark[:2]}
    return any(len({offsets.code_point(offset) for offsets in units}) > 1 for offset in borders)

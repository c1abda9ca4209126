"""What offsets into a text count. Python counts code points; browsers and Java count UTF-16 units, so that an emoji is
two; some tools count what readers take for a character (grapheme clusters): an emoji with a skin tone is one.
"""

import shlex
from itertools import accumulate
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Tuple

from ...errors import Errors, WeaknerError
from ..counts import Place, RowCounts, show
from ..records import Mark, Record

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

    def around(self, start: int, end: int) -> Tuple[int, int]:
        """A span in code points within the text, with the characters that it cuts."""
        return self._nearest(start, -1), self._nearest(end, 1)

    def offset(self, code_point: int) -> int:
        return code_point if self.same else self._starts[code_point]

    def _nearest(self, offset: int, step: int) -> int:
        offset = min(max(offset, 0), self._length if self.same else self._starts[-1])
        while (place := self.code_point(offset)) is None:
            offset += step
        return place


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


def plain_text(text: str) -> str:
    """A text to be compared."""
    # Label Studio writes a line end within a span as these two characters.
    return " ".join(text.replace("\\n", " ").split())


def find_unit(path: Path, records: Iterable[Tuple[Place, Record]], usual: str, sure: bool, counts: RowCounts) -> str:
    """Find the unit in which all spans of a file cover the text that they should: the usual one, if it fits. Not `sure`
    are tools that do not always use that."""
    units = [usual, *(unit for unit in UNITS if unit != usual)]
    bad: Dict[str, int] = dict.fromkeys(units, 0)
    first: Optional[Tuple[Place, str, Mark]] = None
    n = unchecked = 0
    differ = False
    for place, record in records:
        n += 1
        text = record.text or ""
        places = {unit: Offsets(text, unit) for unit in units}
        for unit in units:
            misfit = next((mark for mark in record.marks() if not _fits(mark, text, places[unit])), None)
            bad[unit] += record.text is not None and misfit is not None
            if unit == usual and misfit is not None and first is None:
                first = (place, text, misfit)
        borders = {offset for mark in record.marks() for offset in mark[:2]}
        if not text.isascii() and any(len({p.code_point(offset) for p in places.values()}) > 1 for offset in borders):
            differ = True
            unchecked += not sure and any(mark.text is None for mark in record.marks())
    unit = min(units, key=bad.__getitem__)  # of equal ones the first
    if bad[unit]:
        assert first is not None
        place, text, mark = first
        raise WeaknerError(
            Errors.WK742.format(
                path=path,
                place=place if isinstance(place, str) else f"line {place}",
                span=show([mark.start, mark.end, mark.label]),
                expected="a part of the text" if mark.text is None else show(mark.text),
                found=show(text[mark.start : mark.end]),
                n=n,
                misfits=", ".join(f"{unit} {bad[unit]}" for unit in units),
                file=shlex.quote(str(path)),
                unit=unit,
            )
        )
    counts.offsets.update([unit] if unit != usual or (differ and unit != CODE_POINTS) else [])
    counts.note(UNCHECKED, unchecked if unit == usual else 0)
    return unit


def _fits(mark: Mark, text: str, offsets: Offsets) -> bool:
    """True if a span lies within its text, and covers what it should."""
    start, end = offsets.code_point(mark.start), offsets.code_point(mark.end)
    return None not in (start, end) and (mark.text is None or plain_text(text[start:end]) == plain_text(mark.text))

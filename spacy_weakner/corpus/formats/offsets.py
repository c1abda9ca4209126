"""What offsets into a text count. Python counts code points; browsers and Java count UTF-16 units, so that an emoji is
two; some tools count what readers take for a character (grapheme clusters): an emoji with a skin tone is one.
"""

from itertools import accumulate
from typing import Dict, List, Optional

CODE_POINTS, UTF16, GRAPHEMES = "codepoints", "utf16", "graphemes"
UNITS = (CODE_POINTS, UTF16, GRAPHEMES)
AUTO = "auto"
_FIRST_OF_TWO = 0x10000  # code points from here on are two units of UTF-16


class Places:
    """Where the offsets of a unit lie in a text.

    text (str): The text.
    unit (str): One of `UNITS`.
    """

    def __init__(self, text: str, unit: str) -> None:
        self.same = unit == CODE_POINTS or (text.isascii() and "\r" not in text)
        self._length = len(text)
        self._starts = [] if self.same else _starts(text, unit)
        self._place: Dict[int, int] = {start: i for i, start in enumerate(self._starts)}

    def code_point(self, offset: int) -> Optional[int]:
        """RETURNS (Optional[int]): The offset in code points; None if it is not in the text, or within a character."""
        if self.same:
            return offset if 0 <= offset <= self._length else None
        return self._place.get(offset) if offset >= 0 else None

    def nearest(self, offset: int, step: int) -> int:
        """The nearest place within the text.

        offset (int): An offset.
        step (int): Where to look within a character: -1 before it, 1 behind it.
        RETURNS (int): The offset in code points.
        """
        offset = min(max(offset, 0), self._length if self.same else self._starts[-1])
        while (place := self.code_point(offset)) is None:
            offset += step
        return place

    def offset(self, code_point: int) -> int:
        """RETURNS (int): The offset of a code point in the unit."""
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

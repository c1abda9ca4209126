"""Lines of files of any size: the first ones, then some that are spread evenly over the rest."""

from pathlib import Path
from typing import Iterator, NamedTuple, Optional

from ..files import decode_line, open_packed

LIMIT = 20_000  # lines of a file that are looked at
_BLOCK = 1 << 20


class Line(NamedTuple):
    """A line.

    place (str): Where it is: "line 7", or "byte 1234567" where lines before it were not counted.
    text (str): The line without its end.
    """

    place: str
    text: str


class SampledLines:
    """Streams lines of a file: all of them if there are not many more than `limit`, otherwise the first half of so
    many, and as many that are spread evenly by their place in the file. Of a packed file, which cannot be read from its
    middle, the first ones.

    path (Path): The file.
    limit (int): How many lines.
    """

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = Path(path)
        self.limit = limit
        self.looked_at = 0
        self.total: Optional[int] = None
        self.all_seen = False

    def __iter__(self) -> Iterator[Line]:
        """YIELDS (Line): The lines."""
        self.looked_at = position = 0
        packed = self.path.suffix.lower() in (".gz", ".bz2")
        with open_packed(self.path) as file_:
            size = self.path.stat().st_size
            half = self.limit if packed else self.limit // 2
            for raw in file_:
                if self.looked_at == half and (packed or self._is_large(size, position)):
                    break
                self.looked_at += 1
                yield Line(f"line {self.looked_at}", decode_line(raw, self.path, self.looked_at, position))
                position += len(raw)
            else:
                self.all_seen, self.total = True, self.looked_at
                return
            if packed:
                return
            n, rest = self.limit - half, size - position
            for k in range(n):
                file_.seek(position + k * rest // n)
                file_.readline()  # the rest of a line
                start = file_.tell()
                raw = file_.readline()
                if raw:
                    self.looked_at += 1
                    yield Line(f"byte {start}", self._decode(raw, start))

    @property
    def note(self) -> str:
        """How much was looked at; empty if it was everything."""
        if self.all_seen:
            return ""
        if self.total is None:
            return f"looked at the first {self.looked_at:,} lines"
        return f"looked at {self.looked_at:,} of about {self.total:,} lines"

    def _is_large(self, size: int, position: int) -> bool:
        self.total = round(self.looked_at * size / max(position, 1))
        return self.total > 1.2 * self.limit

    def _decode(self, raw: bytes, start: int) -> str:
        try:
            return decode_line(raw, self.path, 2, start)
        except ValueError:  # rare, so only now it is worth while to count the lines
            return decode_line(raw, self.path, self._line_number(start), start)

    def _line_number(self, start: int) -> int:
        number, left = 1, start
        with self.path.open("rb") as file_:
            while left > 0 and (block := file_.read(min(_BLOCK, left))):
                number += block.count(b"\n")
                left -= len(block)
        return number

"""Lines of files of any size: the first, then some from all over the rest."""

from collections import deque
from pathlib import Path
from typing import Iterator, Optional, Tuple

from ..files import decode_line, open_packed, read_lines
from .counts import Place

LIMIT = 20_000  # lines of a file that are looked at


class SampledLines:
    """Streams the lines of a file with their places: all of them if there are not many more than `limit`, else half of
    so many from the beginning and half spread evenly over the rest. Packed files cannot be read from their middle: the
    first lines."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = Path(path)
        self.limit = limit
        self.looked_at = 0
        self.total: Optional[int] = None
        self.note = ""  # how much was looked at; empty if it was everything

    def __iter__(self) -> Iterator[Tuple[Place, str]]:
        self.looked_at = position = 0
        packed = self.path.suffix.lower() in (".gz", ".bz2")
        with open_packed(self.path) as file_:
            size = self.path.stat().st_size
            half = self.limit if packed else self.limit // 2
            for raw in file_:
                if self.looked_at == half and (packed or self._is_large(size, position)):
                    break
                self.looked_at += 1
                yield self.looked_at, decode_line(raw, self.path, self.looked_at, position)
                position += len(raw)
            else:
                self.total = self.looked_at
                return
            if packed:
                self.note = f"looked at the first {self.looked_at:,} lines"
                return
            n, rest = self.limit - half, size - position
            for k in range(n):
                file_.seek(position + k * rest // n)
                file_.readline()  # the rest of a line
                start = file_.tell()
                raw = file_.readline()
                if raw:
                    self.looked_at += 1
                    yield f"byte {start}", self._decode(raw, start)
            self.note = f"looked at {self.looked_at:,} of about {self.total:,} lines"

    def estimate(self, n: int) -> int:
        """How many Docs the whole file has, if the lines looked at had n."""
        return round(n * (self.total or self.looked_at) / max(1, self.looked_at))

    def _is_large(self, size: int, position: int) -> bool:
        self.total = round(self.looked_at * size / max(position, 1))
        return self.total > 1.2 * self.limit

    def _decode(self, raw: bytes, start: int) -> str:
        try:
            return decode_line(raw, self.path, 2, start)
        except ValueError:
            deque(read_lines(self.path), maxlen=0)  # rare, so the line is found only now
            raise

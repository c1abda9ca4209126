"""Reading the first lines of large files."""

from pathlib import Path
from typing import Iterator, Tuple

from ..files import decode_line, open_packed
from .counts import Place

LIMIT = 20_000  # lines of a file that are read


class SampledLines:
    """A stream of the first `limit` lines of a file, with line numbers. `note` describes how much was read; empty:
    everything."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = Path(path)
        self.limit = limit
        self.note = ""
        self._share = 1.0  # share of the file that was read

    def __iter__(self) -> Iterator[Tuple[Place, str]]:
        size, position = self.path.stat().st_size, 0
        with open_packed(self.path) as file_:
            for number, raw in enumerate(file_):
                if number == self.limit:
                    self.note = f"the first {number:,} lines"
                    # Of a packed file, the position in the packed data.
                    self._share = getattr(file_, "fileobj", file_).tell() / size
                    return
                yield number + 1, decode_line(raw, self.path, number + 1, position)
                position += len(raw)

    def estimate(self, n: int) -> int:
        """Return the number of Docs in the whole file, given the number n of Docs in the lines read."""
        return round(n / self._share)

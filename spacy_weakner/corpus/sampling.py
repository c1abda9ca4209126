"""Reading the first lines of large files."""

from pathlib import Path
from typing import Iterator, Tuple

from ..files import decoded_lines, existing, open_packed
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
        size = existing(self.path).stat().st_size
        with open_packed(self.path) as file_:
            for number, line in decoded_lines(file_, self.path):
                if number > self.limit:
                    self.note = f"the first {self.limit:,} lines"
                    # Of a packed file, the position in the packed data.
                    self._share = getattr(file_, "fileobj", file_).tell() / size
                    return
                yield number, line

    def estimate(self, n: int) -> int:
        """Return the number of Docs in the whole file, given the number n of Docs in the lines read."""
        return round(n / self._share)

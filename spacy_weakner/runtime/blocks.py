"""Raw text, JSONL and CoNLL files in blocks of lines, each the input of one shard. (Not beside `inputs`: what reads
formats would become part of the code of every stage.)"""

import shlex
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.conll import find_width
from ..corpus.counts import RowCounts
from ..corpus.docbin import SUFFIX
from ..corpus.formats.reading import FileReader, Reading, in_blocks, input_files
from ..errors import Errors, WeaknerError
from ..files import read_lines
from .hashes import hash_text
from .inputs import ShardInput, spacy_inputs

_NAME = "part-{:05d}" + SUFFIX


def corpus_inputs(path: Path, nlp: Language, reading: Reading, *, shard_size: int = 5000) -> List[ShardInput]:
    """What the shards of a corpus in any format are made from, in its order. If there are `.spacy` files, each is one
    shard, and other files are passed over; all others are cut into blocks of `shard_size` lines (a sentence of a CoNLL
    file is not cut)."""
    files = input_files(path)
    if any(format_ == "spacy" for _, format_ in files):
        return spacy_inputs(path)
    blocks: List[ShardInput] = []
    for file_, format_ in files:
        if not in_blocks(file_, format_):
            raise _as_a_whole(file_, format_)
        lines = BlockLines(file_)
        width = find_width(file_, read_lines(file_)) if format_ == "conll" else None
        for first, n in _cut(file_, format_, shard_size):
            name = _NAME.format(len(blocks))
            blocks.append(Block(name, file_, lines, first, n, format_, nlp, reading, width))
    return blocks


class BlockLines:
    """The lines of a file, for blocks that are read one after the other: only one of them is in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: Iterator[str] = iter(())
        self._next = 0  # number of the line that comes next; 0: nothing is open
        self._block: Tuple[int, List[str]] = (0, [])

    def read(self, first: int, n: int) -> List[str]:
        """Read so many lines from one on, counted from 1. Going back means to read the file from its beginning."""
        if self._block[0] != first or len(self._block[1]) != n:
            if not 1 <= self._next <= first:
                self._lines, self._next = read_lines(self.path), 1
            next(islice(self._lines, first - self._next, first - self._next), None)
            self._block = (first, list(islice(self._lines, n)))
            self._next = first + n
        return self._block[1]


@dataclass
class Block(ShardInput):
    """`n` lines of a file, from number `first` on, as the input of one shard. `width` is how many columns the file has,
    if it has columns."""

    lines: BlockLines
    first: int
    n: int
    format: str
    nlp: Language
    reading: Reading
    width: Optional[int] = None

    def key(self) -> str:
        kind = self.format if self.width is None else f"{self.format} {self.width}"
        return hash_text("\n".join([kind, *self.lines.read(self.first, self.n)]))

    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        numbered = zip(count(self.first), self.lines.read(self.first, self.n), strict=False)
        reader = FileReader(self.path, self.format, self.nlp, self.reading, counts or RowCounts(), counts is None)
        return reader.of_lines(numbered, self.width), None


def _as_a_whole(path: Path, format: str) -> WeaknerError:
    return WeaknerError(Errors.WK740.format(path=path, name=format, file=shlex.quote(str(path))))


def _cut(path: Path, format: str, size: int) -> Iterator[Tuple[int, int]]:
    """First line and number of lines of each block."""
    first, last = 1, 0
    for last, line in enumerate(read_lines(path), start=1):
        if last - first + 1 >= size and (format != "conll" or not line.strip()):
            yield first, last - first + 1
            first = last + 1
    if last >= first:
        yield first, last - first + 1

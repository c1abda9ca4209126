"""Inputs of the shards of a corpus in any format: blocks of lines of raw text and rows, or the whole of any other
corpus."""

from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.counts import RowCounts
from ..corpus.docbin import SUFFIX
from ..corpus.formats import brat
from ..corpus.formats.reading import FileReader, Reading, by_lines, input_files, read_corpus
from ..errors import Errors, WeaknerError
from ..files import read_lines
from .hashes import hash_path, hash_text
from .inputs import ShardInput, spacy_inputs
from .output import SHARD_SIZE

_NAME = "part-{:05d}" + SUFFIX


def corpus_inputs(path: Path, nlp: Language, reading: Reading, *, shard_size: int = SHARD_SIZE) -> List[ShardInput]:
    """Return the inputs of the shards of a corpus, in order. Each `.spacy` file is one shard. Raw text and rows are
    cut into blocks of `shard_size` lines. A corpus with any other format is one shard, since many of these formats have
    to be read as a whole.

    RAISES (WeaknerError): For a folder that contains `.spacy` files and others.
    """
    files = input_files(path)
    others = [file_ for file_, _ in files if file_.suffix != SUFFIX]
    if len(others) < len(files):
        if others:
            reason = f"it contains .spacy files and files of other formats, such as {others[0]}"
            cure = "Convert these to .spacy, or move them to another folder"
            raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure=cure))
        return spacy_inputs(path)
    if not all(by_lines(file_, format_) for file_, format_ in files):
        return [WholeCorpus(_NAME.format(0), path, nlp, reading)]
    blocks: List[ShardInput] = []
    for file_, format_ in files:
        lines = BlockLines(file_)
        total = sum(1 for _ in read_lines(file_))
        for done in range(0, total, shard_size):
            n = min(shard_size, total - done)
            blocks.append(Block(_NAME.format(len(blocks)), file_, lines, done + 1, n, format_, nlp, reading))
    return blocks


class BlockLines:
    """The lines of a file, for blocks that are read in order: only one block is in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: Iterator[str] = iter(())
        self._next = 0  # number of the next line; 0: nothing is open
        self._block: Tuple[int, List[str]] = (0, [])

    def read(self, first: int, n: int) -> List[str]:
        """Read `n` lines from line `first` on, counted from 1. Going back rereads the file from its beginning."""
        if self._block[0] != first or len(self._block[1]) != n:
            if not 1 <= self._next <= first:
                self._lines, self._next = read_lines(self.path), 1
            next(islice(self._lines, first - self._next, first - self._next), None)
            self._block = (first, list(islice(self._lines, n)))
            self._next = first + n
        return self._block[1]


@dataclass
class Block(ShardInput):
    """The input of one shard: `n` lines of a file, starting with line number `first`."""

    lines: BlockLines
    first: int
    n: int
    format: str
    nlp: Language
    reading: Reading

    def key(self) -> str:
        return hash_text("\n".join([self.format, *self.lines.read(self.first, self.n)]))

    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        numbered = zip(count(self.first), self.lines.read(self.first, self.n), strict=False)
        reader = FileReader(self.path, self.format, self.nlp, self.reading, counts or RowCounts(), counts is None)
        return reader.of_lines(numbered), None


@dataclass
class WholeCorpus(ShardInput):
    """The input of one shard: a file or folder of any format."""

    nlp: Language
    reading: Reading

    def key(self) -> str:
        text = self.path.with_suffix(brat.TEXT_SUFFIX)
        beside = [text] if self.path.suffix == brat.SUFFIX and text.is_file() else []
        return hash_text("\n".join(map(hash_path, [self.path, *beside])))

    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        return read_corpus(self.path, self.nlp, self.reading, counts=counts), None

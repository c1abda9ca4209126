"""Inputs of shards."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, List, Optional, Tuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.counts import RowCounts
from ..corpus.docbin import bin_docs, corpus_files, read_bin
from .hashes import hash_file


@dataclass
class ShardInput(ABC):
    """The input of one shard.

    name (str): Name of the shard within the output folder, ending in `.spacy`.
    path (Path): The file or folder to read.
    """

    name: str
    path: Path

    @abstractmethod
    def key(self) -> str:
        """Return a hash of the contents."""

    @abstractmethod
    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        """Return a stream of the Docs, and their number if it is known. `counts` is as in `read_corpus`."""


@dataclass
class SpacyFile(ShardInput):
    """The input of one shard: a `.spacy` file."""

    def key(self) -> str:
        return hash_file(self.path)

    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        bin_ = read_bin(self.path)
        return bin_docs(bin_, vocab, self.path), len(bin_)


def spacy_inputs(path: Path) -> List[ShardInput]:
    """Return the `.spacy` files of a corpus, each as the input of a shard with the same name."""
    root = path if path.is_dir() else path.parent
    return [SpacyFile(file_.relative_to(root).as_posix(), file_) for file_ in corpus_files(path)]

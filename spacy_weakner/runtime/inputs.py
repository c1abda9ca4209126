"""What shards are made from."""

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
    """What one shard is made from.

    name (str): Name of the shard within the output folder, which ends in `.spacy`.
    path (Path): The file or folder that is read.
    """

    name: str
    path: Path

    @abstractmethod
    def key(self) -> str:
        """Hash of the contents."""

    @abstractmethod
    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        """Stream the Docs; and how many there are, if that is known. `counts` is as in `read_corpus`."""


@dataclass
class SpacyFile(ShardInput):
    """A `.spacy` file as the input of one shard."""

    def key(self) -> str:
        return hash_file(self.path)

    def read(self, vocab: Vocab, counts: Optional[RowCounts] = None) -> Tuple[Iterable[Doc], Optional[int]]:
        bin_ = read_bin(self.path)
        return bin_docs(bin_, vocab, self.path), len(bin_)


def spacy_inputs(path: Path) -> List[ShardInput]:
    """The `.spacy` files of a corpus, each as the input of one shard of the same name."""
    root = path if path.is_dir() else path.parent
    return [SpacyFile(file_.relative_to(root).as_posix(), file_) for file_ in corpus_files(path)]

"""What shards are made from."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Callable, Iterable, List, Optional, Tuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import bin_docs, corpus_files, read_bin
from .hashes import hash_file


class ShardInput(ABC):
    """What one shard is made from.

    name (str): Name of the shard within the output folder, which ends in `.spacy`.
    path (Path): The file that is read.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path

    @abstractmethod
    def key(self) -> str:
        """Hash of the contents."""

    @abstractmethod
    def read(self, vocab: Vocab) -> Tuple[Iterable[Doc], Optional[int]]:
        """Stream the Docs; and how many there are, if that is known."""


class SpacyFile(ShardInput):
    """A `.spacy` file as the input of one shard.

    name, path: See `ShardInput`.
    change (Optional[Callable[[Iterable[Doc]], Iterable[Doc]]]): What is done to its Docs when they are read.
    """

    def __init__(
        self, name: str, path: Path, change: Optional[Callable[[Iterable[Doc]], Iterable[Doc]]] = None
    ) -> None:
        super().__init__(name, path)
        self._change = change

    def key(self) -> str:
        return hash_file(self.path)

    def read(self, vocab: Vocab) -> Tuple[Iterable[Doc], Optional[int]]:
        bin_ = read_bin(self.path)
        docs = bin_docs(bin_, vocab, self.path)
        return docs if self._change is None else self._change(docs), len(bin_)


def spacy_inputs(path: Path, change: Optional[Callable[[Iterable[Doc]], Iterable[Doc]]] = None) -> List[ShardInput]:
    """The `.spacy` files of a corpus, each as the input of one shard of the same name.

    path (Path): A `.spacy` file or a folder of them.
    change: See `SpacyFile`.
    RETURNS (List[ShardInput]): The inputs.
    RAISES (WeaknerError): If there are none.
    """
    root = path if path.is_dir() else path.parent
    return [SpacyFile(file_.relative_to(root).as_posix(), file_, change) for file_ in corpus_files(path)]

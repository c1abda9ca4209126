"""Vectors of the sentences of a project, which are encoded once and read by all of its trainings."""

import os
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import Errors, WeaknerError
from ..files import existing
from ..linear.indicators import no_gradient
from ..progress import Progress
from ..remembering import read_once

VECTORS, KEYS, ENDS = "vectors.npy", "keys.npy", "ends.npy"
# Number of sentences that are encoded at a time.
_BATCH = 256
_KEY_SIZE = 16


class VectorStore:
    """The stored vectors of sentences: a memory-mapped array of float16, in which each sentence is found by its tokens.

    folder (Path): Folder that `write_vectors` has written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._vectors = numpy.load(folder / VECTORS, mmap_mode="r")
        keys, ends = numpy.load(folder / KEYS), numpy.load(folder / ENDS)
        starts = numpy.concatenate([[0], ends])[:-1]
        self._places: Dict[bytes, Tuple[int, int]] = {
            key.tobytes(): (int(a), int(b)) for key, a, b in zip(keys, starts, ends, strict=True)
        }
        self.width = int(self._vectors.shape[1])

    def __getitem__(self, doc: Doc) -> NDArray[numpy.float32]:
        """RETURNS (NDArray): Vectors of a sentence, (n_tokens, width). Raises an error if they are not stored."""
        place = self._places.get(_key(doc))
        if place is None and len(doc):
            raise WeaknerError(Errors.WK738.format(path=self.folder, text=doc.text[:60]))
        low, high = place or (0, 0)
        return numpy.asarray(self._vectors[low:high], dtype="float32")


def write_vectors(
    folder: Path, encoder: Model[List[Doc], List[Floats2d]], docs: Iterable[Doc], *, progress: bool = False
) -> None:
    """Encode sentences, each once, and store their vectors.

    folder (Path): An existing folder.
    encoder (Model[List[Doc], List[Floats2d]]): The encoder.
    docs (Iterable[Doc]): The sentences; they may repeat. Memory does not grow with their vectors.
    progress (bool): Show progress.
    """
    unique: Dict[bytes, Doc] = {}
    for doc in docs:
        if len(doc):
            unique.setdefault(_key(doc), doc)
    # Batches of similar length need little padding.
    keys = sorted(unique, key=lambda key: (len(unique[key]), key))
    ends = numpy.cumsum([len(unique[key]) for key in keys], dtype="int64")
    # At least one row, since an empty file cannot be mapped.
    shape = (max(1, sum(len(unique[key]) for key in keys)), encoder.get_dim("nO"))
    vectors = open_memmap(folder / VECTORS, mode="w+", dtype="float16", shape=shape)
    place, bar = 0, Progress[Any](total=len(keys), desc="encode", unit="sentence", enabled=progress)
    with bar:
        for some in _batches(keys):
            for rows in encoder.predict([unique[key] for key in some]):
                vectors[place : place + len(rows)] = encoder.ops.to_numpy(rows)
                place += len(rows)
            bar.update(len(some))
    vectors.flush()
    numpy.save(folder / KEYS, numpy.frombuffer(b"".join(keys), dtype="uint8").reshape(-1, _KEY_SIZE))
    numpy.save(folder / ENDS, ends)


def _batches(keys: List[bytes]) -> Iterator[List[bytes]]:
    rest = iter(keys)
    while some := list(islice(rest, _BATCH)):
        yield some


def _key(doc: Doc) -> bytes:
    """Return a hash of the tokens of a sentence and of the white space between them, but not after the last."""
    words = "\0".join(f"{token.text}{token.whitespace_}" for token in doc)
    return blake2b(words.rstrip().encode("utf-8", "surrogatepass"), digest_size=_KEY_SIZE).digest()


def build_stored_vectors(path: Union[str, Path], width: Optional[int] = None) -> Model[List[Doc], List[Floats2d]]:
    """Represent every token by a stored vector of a frozen encoder, for trainings that read the same sentences. A
    pipeline for other texts needs the encoder itself: `spacy weakner fit` replaces this layer by a listener to it.
    Registered as `spacy_weakner.StoredVectors.v1`.

    path (Union[str, Path]): Folder of the vectors.
    width (Optional[int]): Width of the vectors. None: that of the stored ones.
    RETURNS (Model[List[Doc], List[Floats2d]]): Vectors of each Doc, (n_tokens, width).
    RAISES (WeaknerError): In prediction, if there are no such vectors, or a sentence has none.
    """

    def init(model: Model, X: Any = None, Y: Any = None) -> None:
        model.set_dim("nO", _open(path).width)

    def forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable[[Any], List[Doc]]]:
        ops: Any = model.ops
        store = _open(path)
        return read_once(model, docs, lambda: [ops.asarray2f(store[doc]) for doc in docs]), no_gradient

    return Model("stored_vectors", forward, init=init, dims={"nO": width})


def _open(path: Union[str, Path]) -> VectorStore:
    folder = existing(Path(path))
    return _read(folder, os.path.getmtime(existing(folder / ENDS)))


@lru_cache(maxsize=2)
def _read(folder: Path, changed: float) -> VectorStore:
    return VectorStore(folder)

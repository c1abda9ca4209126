"""Vectors of the sentences of a project, which are encoded once and read by all of its trainings."""

import os
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import Model
from thinc.types import Floats2d

from ..caching import read_once
from ..errors import Errors, WeaknerError
from ..files import existing
from ..linear.indicators import no_gradient
from ..progress import Progress

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

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, doc: Doc) -> NDArray[numpy.float32]:
        """RETURNS (NDArray): Vectors of a sentence, (n_tokens, width). Raises an error if they are not stored."""
        rows = self.get(_key(doc))
        if rows is None:
            if len(doc):
                raise WeaknerError(Errors.WK738.format(path=self.folder, text=doc.text[:60]))
            rows = self._vectors[:0]
        return numpy.asarray(rows, dtype="float32")

    def get(self, key: bytes) -> Optional[NDArray[numpy.float16]]:
        """RETURNS (Optional[NDArray]): The stored vectors of the sentence with a key; None if there are none."""
        place = self._places.get(key)
        return None if place is None else self._vectors[slice(*place)]


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
    bar = Progress[Any](total=len(keys), desc="encode", unit="sentence", enabled=progress)

    def encoded() -> Iterator[Any]:
        for some in minibatch(keys, _BATCH):
            yield from map(encoder.ops.to_numpy, encoder.predict([unique[key] for key in some]))
            bar.update(len(some))

    with bar:
        _write(folder, {key: len(unique[key]) for key in keys}, encoder.get_dim("nO"), encoded())


@contextmanager
def reusing_vectors(encoder: Model[List[Doc], List[Floats2d]], known: Path, new: Path) -> Iterator[None]:
    """Let a frozen encoder take vectors of sentences from an earlier run, and store those of all sentences that it is
    given. They are stored as the encoder's own layer computes them, before `freeze` standardizes them.

    encoder (Model[List[Doc], List[Floats2d]]): What `freeze` has returned.
    known (Path): The folder that an earlier run has written; it need not exist.
    new (Path): An empty folder, written at the end. Until then, its vectors are in memory.
    """
    stored = VectorStore(known) if (known / ENDS).exists() else None
    (layer,) = encoder.layers
    found: Dict[bytes, NDArray[numpy.float16]] = {}

    def forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[List[Floats2d], Callable[[Any], List[Doc]]]:
        ops: Any = model.ops
        keys = [_key(doc) for doc in docs]
        new = {key: doc for key, doc in zip(keys, docs, strict=True) if key not in found}
        known = {} if stored is None else {key: stored.get(key) for key in new}
        found.update((key, numpy.array(rows)) for key, rows in known.items() if rows is not None)
        unknown = {key: doc for key, doc in new.items() if key not in found}
        computed = layer.predict([*unknown.values()]) if unknown else []
        found.update((key, _half(ops.to_numpy(rows))) for key, rows in zip(unknown, computed, strict=True))
        return [ops.asarray2f(found[key].astype("float32")) for key in keys], no_gradient

    encoder.layers[0] = Model("reused_vectors", forward, dims={"nO": layer.get_dim("nO")})
    try:
        yield
    finally:
        encoder.layers[0] = layer
    _write(new, {key: len(rows) for key, rows in found.items()}, layer.get_dim("nO"), found.values())


def _half(rows: NDArray[numpy.float32]) -> NDArray[numpy.float16]:
    """Round to half precision, whose numbers are smaller."""
    limits = numpy.finfo("float16")
    return numpy.clip(rows, limits.min, limits.max).astype("float16")


def _write(folder: Path, lengths: Dict[bytes, int], width: int, vectors: Iterable[Any]) -> None:
    """Write the vectors of sentences, by their keys, given their numbers of tokens."""
    ends = numpy.cumsum([*lengths.values()], dtype="int64")
    # At least one row, since an empty file cannot be mapped.
    shape = (max(1, sum(lengths.values())), width)
    array = open_memmap(folder / VECTORS, mode="w+", dtype="float16", shape=shape)
    for end, rows in zip(ends, vectors, strict=True):
        array[end - len(rows) : end] = rows
    array.flush()
    numpy.save(folder / KEYS, numpy.frombuffer(b"".join(lengths), dtype="uint8").reshape(-1, _KEY_SIZE))
    numpy.save(folder / ENDS, ends)


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

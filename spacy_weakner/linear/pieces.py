"""Vectors of word pieces in a table: what a Transformer knows of words, without the Transformer."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.strings import StringStore

from ..errors import Errors, WeaknerError
from ..files import existing, write_text
from .words import Hashes

Vectors = NDArray[numpy.float32]
# Tables are kept in half precision: a pipeline has one for each of its heads.
Table = NDArray[numpy.float16]
TOKENIZER, TABLE = "tokenizer.json", "model.safetensors"
_NAME = "embeddings"
# model2vec has them where it makes tables smaller: the row of each piece, and what a piece weighs.
_MAPPING, _WEIGHTS = "mapping", "weights"
# Of no script: nobody's vocabulary has it.
_UNKNOWN = "\U0010fffd"
# Words that are remembered, so that a stream of text needs no more and more memory.
_CAPACITY = 20_000


class PieceTable(NamedTuple):
    """A tokenizer, and a vector for each of its pieces.

    tokenizer (str): JSON of Hugging Face's `tokenizers`.
    vectors (Table): Shape (n_pieces, width).
    """

    tokenizer: str
    vectors: Table

    def save(self, folder: Path) -> None:
        """Write it in the form of model2vec: `tokenizer.json` and `model.safetensors`.

        folder (Path): A folder that exists.
        """
        from safetensors.numpy import save

        write_text(folder / TOKENIZER, self.tokenizer)
        # Not `save_file`, whose files nobody else may read, whatever the umask.
        (folder / TABLE).write_bytes(save({_NAME: self.vectors}))


def read_pieces(path: Union[str, Path]) -> PieceTable:
    """Read a table that `spacy weakner encoder distill` has written, or a model of model2vec.

    path (Union[str, Path]): The folder.
    RETURNS (PieceTable): The table.
    RAISES (WeaknerError): If it is not there, or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = existing(Path(path), "'spacy weakner encoder distill' makes it")
    try:
        tokenizer = (folder / TOKENIZER).read_text(encoding="utf-8")
        vectors = half(_by_piece(load_file(folder / TABLE)))
        cutter = load_tokenizer(tokenizer)
        n_pieces = count_pieces(cutter)
        if vectors.ndim != 2 or len(vectors) != n_pieces or not vectors.size or not numpy.isfinite(vectors).all():
            raise ValueError(f"there must be a vector for each of the {n_pieces} pieces, got {vectors.shape}")
        _check_unknown(cutter)
    # The library has no words for numbers that numpy does not know: a TypeError or an AttributeError.
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        cure = f"Give a folder with a static model ({TOKENIZER}, {TABLE}), as 'spacy weakner encoder distill' makes it"
        raise WeaknerError(Errors.WK206.format(path=folder, reason=reason, cure=cure)) from error
    return PieceTable(tokenizer, vectors)


def _by_piece(tensors: Dict[str, Any]) -> Any:
    # A row per piece, as it counts in a mean.
    vectors = tensors[_NAME]
    if vectors.dtype.kind not in "fiu":  # bfloat16, where another package has taught it to numpy
        raise ValueError(f"numbers of the type {vectors.dtype} are not read")
    if _MAPPING in tensors:
        vectors = vectors[tensors[_MAPPING]]
    if _WEIGHTS in tensors:
        vectors = vectors * tensors[_WEIGHTS][:, None]
    return vectors


def _check_unknown(tokenizer: Any) -> None:
    try:
        cut(tokenizer, _UNKNOWN)
    except Exception as error:  # the library raises nothing more precise
        raise ValueError(f"its tokenizer has no piece for what it does not know: {error}") from error


def half(vectors: Any) -> Table:
    """RETURNS (Table): Vectors in half precision; infinite where that is too small for them."""
    with numpy.errstate(over="ignore"):
        return numpy.asarray(vectors, dtype="float16")


def load_tokenizer(text: str) -> Any:
    """Load a tokenizer that cuts words whole.

    text (str): Its JSON.
    RETURNS (Any): A `Tokenizer` of Hugging Face's `tokenizers`.
    RAISES (ValueError): If it is none.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more precise
        raise ValueError(f"no tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def special_pieces(tokenizer: Any, text: str) -> Tuple[List[int], List[int]]:
    """What a tokenizer (of `load_tokenizer`, or another without padding) puts before a text, and after it."""
    encoding = tokenizer.encode(text)
    inner = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: inner[0]], encoding.ids[inner[-1] + 1 :]


def count_pieces(tokenizer: Any) -> int:
    """How many rows a table needs.

    tokenizer (Any): See `load_tokenizer`.
    RETURNS (int): One more than the largest id; there may be gaps below it.
    """
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)


def cut(tokenizer: Any, word: str) -> List[int]:
    """The pieces of a word that stands after a blank.

    tokenizer (Any): See `load_tokenizer`.
    word (str): The word.
    RETURNS (List[int]): Their ids; none of white space.
    """
    ids: List[int] = tokenizer.encode(f" {word.strip()}", add_special_tokens=False).ids if word.strip() else []
    return ids


class WordVectors:
    """Looks up words, and remembers them. The vector of a word is the mean of those of its pieces, stretched so that
    the mean square of its numbers is 1, as behind a layer normalization.

    table (PieceTable): The vectors of pieces.
    """

    def __init__(self, table: PieceTable) -> None:
        self._tokenizer = load_tokenizer(table.tokenizer)
        self._vectors = table.vectors
        self._known: Dict[int, Vectors] = {}

    def __call__(self, orths: Hashes, strings: StringStore) -> Vectors:
        """Look up words.

        orths (Hashes): Shape (n_words,): their ids.
        strings (StringStore): Their strings.
        RETURNS (Vectors): Shape (n_words, width); 0 for white space.
        """
        known = self._known if len(self._known) < _CAPACITY else {}
        found = numpy.zeros((len(orths), self._vectors.shape[1]), dtype="float32")
        for row, orth in zip(found, orths.tolist(), strict=True):
            vector = known.get(orth)
            if vector is None:
                vector = known[orth] = self.vector(strings[orth])
            row[:] = vector
        self._known = known
        return found

    def vector(self, word: str) -> Vectors:
        """RETURNS (Vectors): Shape (width,): the vector of a word."""
        ids = cut(self._tokenizer, word)
        if not ids:
            return numpy.zeros(self._vectors.shape[1], dtype="float32")
        mean = self._vectors[ids].mean(axis=0, dtype="float32")
        size = float(numpy.sqrt((mean**2).mean()))
        stretched: Vectors = mean / size if size else mean
        return stretched

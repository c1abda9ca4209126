"""A table of static word piece vectors, distilled from a Transformer."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.strings import StringStore

from ..errors import Errors, WeaknerError
from ..files import existing, write_text
from ..ty import Hashes

Float32s = NDArray[numpy.float32]
# Tables are stored in half precision: a pipeline has one for each of its heads.
HalfRows = NDArray[numpy.float16]
TOKENIZER, TABLE = "tokenizer.json", "model.safetensors"
_NAME = "embeddings"
# Tensors of model2vec's compressed tables: the row of each piece, and the weight of each piece.
_MAPPING, _WEIGHTS = "mapping", "weights"
# A character of no script, which is in no vocabulary.
_UNKNOWN = "\U0010fffd"
# Maximum number of cached words, so that the memory is bounded on a stream of text.
_CAPACITY = 20_000


class PieceTable(NamedTuple):
    """A tokenizer, and a vector for each of its pieces.

    tokenizer (str): JSON of Hugging Face's `tokenizers`.
    vectors (HalfRows): Shape (n_pieces, width).
    """

    tokenizer: str
    vectors: HalfRows

    def save(self, folder: Path) -> None:
        """Write the table in the format of model2vec: `tokenizer.json` and `model.safetensors`.

        folder (Path): An existing folder.
        """
        from safetensors.numpy import save

        write_text(folder / TOKENIZER, self.tokenizer)
        # Not `save_file`, which ignores the umask and makes files that other users cannot read.
        (folder / TABLE).write_bytes(save({_NAME: self.vectors}))


def read_pieces(path: Union[str, Path]) -> PieceTable:
    """Read a table that `spacy weakner encoder distill` has written, or a model of model2vec.

    path (Union[str, Path]): The folder.
    RETURNS (PieceTable): The table.
    RAISES (WeaknerError): If it is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = existing(Path(path), "or create it with 'spacy weakner encoder distill'")
    try:
        tokenizer = (folder / TOKENIZER).read_text(encoding="utf-8")
        vectors = half(_by_piece(load_file(folder / TABLE)))
        cutter = load_tokenizer(tokenizer)
        n_pieces = count_pieces(cutter)
        if vectors.ndim != 2 or len(vectors) != n_pieces or not vectors.size or not numpy.isfinite(vectors).all():
            raise ValueError(f"there must be a vector for each of the {n_pieces} pieces, got the shape {vectors.shape}")
        _check_unknown(cutter)
    # For number types that numpy does not have, the library raises a TypeError or an AttributeError.
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        cure = f"Give a folder with a static model ({TOKENIZER}, {TABLE}), as 'spacy weakner encoder distill' writes it"
        raise WeaknerError(Errors.WK206.format(path=folder, reason=reason, cure=cure)) from error
    return PieceTable(tokenizer, vectors)


def _by_piece(tensors: Dict[str, Any]) -> Any:
    # A row per piece, multiplied by its weight.
    vectors = tensors[_NAME]
    if vectors.dtype.kind not in "fiu":  # bfloat16, if another package has registered it with numpy
        raise ValueError(f"numbers of the type {vectors.dtype} are not supported")
    if _MAPPING in tensors:
        vectors = vectors[tensors[_MAPPING]]
    if _WEIGHTS in tensors:
        vectors = vectors * tensors[_WEIGHTS][:, None]
    return vectors


def _check_unknown(tokenizer: Any) -> None:
    try:
        cut(tokenizer, _UNKNOWN)
    except Exception as error:  # the library raises nothing more precise
        raise ValueError(f"its tokenizer has no piece for unknown characters: {error}") from error


def half(vectors: Any) -> HalfRows:
    """RETURNS (Table): The vectors in half precision; infinite if they are out of its range."""
    with numpy.errstate(over="ignore"):
        return numpy.asarray(vectors, dtype="float16")


def load_tokenizer(text: str) -> Any:
    """Load a tokenizer, without truncation and padding.

    text (str): The tokenizer as JSON.
    RETURNS (Any): A `Tokenizer` of Hugging Face's `tokenizers`.
    RAISES (ValueError): If it is not a tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more precise
        raise ValueError(f"not a tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def special_pieces(tokenizer: Any, text: str) -> Tuple[List[int], List[int]]:
    """Return the special pieces that a tokenizer (of `load_tokenizer`, or without padding) adds around a text."""
    encoding = tokenizer.encode(text)
    inner = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: inner[0]], encoding.ids[inner[-1] + 1 :]


def count_pieces(tokenizer: Any) -> int:
    """Return the number of rows that a table needs.

    tokenizer (Any): See `load_tokenizer`.
    RETURNS (int): The largest id plus one; there may be gaps below it.
    """
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)


def cut(tokenizer: Any, word: str) -> List[int]:
    """Split a word, preceded by a blank, into pieces.

    tokenizer (Any): See `load_tokenizer`.
    word (str): The word.
    RETURNS (List[int]): Ids of the pieces; empty for white space.
    """
    ids: List[int] = tokenizer.encode(f" {word.strip()}", add_special_tokens=False).ids if word.strip() else []
    return ids


class WordVectors:
    """A cached look-up of word vectors. The vector of a word is the mean of the vectors of its pieces, scaled so that
    the mean square of its numbers is 1, as after a layer normalization.

    table (PieceTable): The vectors of pieces.
    """

    def __init__(self, table: PieceTable) -> None:
        self._tokenizer = load_tokenizer(table.tokenizer)
        self._vectors = table.vectors
        self._known: Dict[int, Float32s] = {}

    def __call__(self, orths: Hashes, strings: StringStore) -> Float32s:
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

    def vector(self, word: str) -> Float32s:
        """RETURNS (Vectors): Shape (width,): the vector of a word."""
        ids = cut(self._tokenizer, word)
        if not ids:
            return numpy.zeros(self._vectors.shape[1], dtype="float32")
        mean = self._vectors[ids].mean(axis=0, dtype="float32")
        size = float(numpy.sqrt((mean**2).mean()))
        stretched: Float32s = mean / size if size else mean
        return stretched

"""The embeddings of a Transformer's subwords (pieces) as static vectors: nothing is encoded."""

from pathlib import Path
from typing import Any, Iterable, Union

import numpy
from spacy.tokens import Doc

from ..encoders.transformer import load_encoder
from ..errors import Errors, WeaknerError
from ..files import atomic_path
from ..linear.pieces import Float32s, PieceTable, count_pieces, cut, half, load_tokenizer
from .subword_vectors import means, principal, products


def piece_table(name: Union[str, Path], cutter: Any, vectors: Float32s) -> PieceTable:
    """Return the table of a Transformer's tokenizer with vectors, shape (n_pieces, width), in half precision.

    name (Union[str, Path]): The Transformer, for the error message.
    cutter (Any): The tokenizer, see `load_tokenizer`.
    vectors (Float32s): The vectors.
    RETURNS (PieceTable): The table.
    RAISES (WeaknerError): If the vectors do not fit into half precision.
    """
    table = half(numpy.ascontiguousarray(vectors))
    if not numpy.isfinite(table).all():
        raise WeaknerError(Errors.WK353.format(name=name, reason="its vectors do not fit into half precision"))
    return PieceTable(cutter.to_str(), table)


def write_embeddings(name: Union[str, Path], docs: Iterable[Doc], output: Path, width: int) -> None:
    """Write a table of the embeddings of a Transformer's pieces, for `spacy_weakner.PieceVectors.v1`, in the directions
    in which the words of some Docs differ most.

    name (Union[str, Path]): The Transformer: a Hugging Face folder or name, with weights as safetensors.
    docs (Iterable[Doc]): The Docs, with at least one word.
    output (Path): Folder for the table; written whole or not at all.
    width (int): Maximum width of the vectors.
    RAISES (WeaknerError): If there is no such Transformer, or its vectors do not fit into half precision.
    """
    model, tokenizer = load_encoder(name)
    cutter = load_tokenizer(tokenizer.backend_tokenizer.to_str())
    texts = {token.text for doc in docs for token in doc}
    words = [pieces for pieces in (cut(cutter, text) for text in sorted(texts)) if pieces]
    vectors = model.get_input_embeddings().weight.detach().numpy()[: count_pieces(cutter)]
    vectors = vectors - means(vectors, words).mean(axis=0)
    vectors = vectors @ principal(products(vectors, words), width)
    with atomic_path(output) as folder:
        folder.mkdir()
        piece_table(name, cutter, vectors).save(folder)

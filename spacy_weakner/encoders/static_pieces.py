"""Token embeddings with static vectors of word pieces beside them."""

from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple, Union

import numpy
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Linear, Maxout, Model, chain, concatenate, to_numpy, with_array
from thinc.types import Floats2d

from ..errors import Errors, WeaknerError, check_range
from .pieces import PieceTable, WordVectors, read_pieces

# A model and its copies use one table; a teacher may have another.
_TABLES = 4


def build_static_pieces(
    embed: Model[List[Doc], List[Floats2d]], width: int = 96, path: Optional[Union[str, Path]] = None
) -> Model[List[Doc], List[Floats2d]]:
    """Embed tokens by what a Transformer knows of their word pieces, beside other embeddings:

        e_t = maxout [embed_t; W v_t],   v_t = m_t sqrt(n / |m_t|^2)

    where m_t, n numbers wide, is the mean of the vectors of the pieces of t. So from the beginning words that are alike
    have vectors that are alike, also those that are met for the first time. The vectors are learned no further, and
    stored with the model: the Transformer that they come from is not needed any more (Tulkens and van Dongen, 2024,
    model2vec). Registered as `spacy_weakner.StaticPieces.v1`; `embed` of `spacy.Tok2Vec.v2`.

    embed (Model[List[Doc], List[Floats2d]]): Other embeddings, e.g. `spacy.MultiHashEmbed.v2`: shapes, affixes, and
        what is to be learned of single words.
    width (int): Width of the output, and of W v.
    path (Optional[Union[str, Path]]): Folder of the table, as `spacy weakner pieces` writes it. It is read when the
        model is initialised.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token embeddings, per Doc (n_tokens, width).
    RAISES (WeaknerError): If the width is out of range; when it is initialised, if there is no such table.
    """
    check_range("width", width, 1, None)
    tables: List[Tuple[PieceTable, WordVectors]] = []
    pieces: Model[List[Doc], List[Floats2d]] = Model(
        "static_pieces",
        partial(_forward, tables),
        init=partial(_init, path),
        params={"E": None},
        dims={"nO": None},
        attrs={"tokenizer": ""},
    )
    mix: Model[Any, Any] = with_array(Maxout(width, nP=3, normalize=True, dropout=0.0))
    projected: Any = chain(pieces, with_array(Linear(width)))
    beside: Any = concatenate(embed, projected)
    model: Model[Any, Any] = chain(beside, mix)
    model.set_dim("nO", width)
    return model


def _init(path: Optional[Union[str, Path]], model: Model, X: Any = None, Y: Any = None) -> None:
    if path is None:
        raise WeaknerError(Errors.WK731)
    table = read_pieces(path)
    model.attrs["tokenizer"] = table.tokenizer
    model.set_dim("nO", table.vectors.shape[1], force=True)
    vectors: Any = table.vectors
    model.set_param("E", model.ops.asarray2f(vectors))


def _forward(
    tables: List[Tuple[PieceTable, WordVectors]], model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[Any], List[Doc]]]:
    lengths = [len(doc) for doc in docs]
    if not sum(lengths):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], _no_gradient
    orths = numpy.concatenate([doc.to_array(ORTH) for doc in docs])
    unique, inverse = numpy.unique(orths, return_inverse=True)
    vectors: Any = _words(tables, model)(unique, docs[0].vocab.strings)[inverse]
    return model.ops.unflatten(model.ops.asarray2f(vectors), model.ops.asarray1i(lengths)), _no_gradient


def _words(tables: List[Tuple[PieceTable, WordVectors]], model: Model) -> WordVectors:
    """What looks words up in the table as it is now: weights may have been loaded since, or brought to a GPU."""
    tokenizer: str = model.attrs["tokenizer"]
    vectors: Any = model.get_param("E")
    for table, words in tables:
        if table.vectors is vectors and table.tokenizer == tokenizer:
            return words
    words = WordVectors(PieceTable(tokenizer, to_numpy(vectors)))
    tables[:] = [(PieceTable(tokenizer, vectors), words), *tables[: _TABLES - 1]]
    return words


def _no_gradient(_: Any) -> List[Doc]:
    return []

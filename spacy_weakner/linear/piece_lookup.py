"""The layer that looks words up in a table of word pieces."""

from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple, Union

import numpy
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..batching import split_rows
from ..caching import read_once
from ..errors import Errors, WeaknerError
from .indicators import no_gradient
from .pieces import PieceTable, WordVectors, read_pieces

# Maximum number of cached tables: a model and its copies share one, a teacher may have another.
_TABLES = 4
_Known = List[Tuple[PieceTable, WordVectors]]


def PieceLookup(
    path: Optional[Union[str, Path]] = None, length: Optional[float] = None
) -> Model[List[Doc], List[Floats2d]]:
    """Represent every token by the mean of the vectors of its word pieces. The layer has no weights; the table is
    stored with the model, on the host.

    path (Optional[Union[str, Path]]): Folder of the table of `spacy weakner encoder distill`. It is read when
        the model is initialized.
    length (Optional[float]): Length to which all vectors are scaled; None: the square root of their width, so that the
        mean square of their numbers is 1, as after a layer normalization.
    RETURNS (Model[List[Doc], List[Floats2d]]): Vectors of each Doc, (n_tokens, width of the table); 0 for white space.
    """
    return Model(
        "piece_lookup",
        # Not an attribute, which is loaded with the weights: the setting in the config must take effect.
        partial(_forward, [], length),
        init=partial(_init, path),
        dims={"nO": None},
        attrs={"tokenizer": "", "vectors": None},
    )


def _init(path: Optional[Union[str, Path]], model: Model, X: Any = None, Y: Any = None) -> None:
    if path is None:
        raise WeaknerError(Errors.WK731)
    table = read_pieces(path)
    model.attrs["tokenizer"], model.attrs["vectors"] = table
    model.set_dim("nO", table.vectors.shape[1], force=True)


def _forward(
    tables: _Known, length: Optional[float], model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[Any], List[Doc]]]:
    return read_once(model, docs, lambda: _look_up(tables, length, model, docs)), no_gradient


def _look_up(tables: _Known, length: Optional[float], model: Model, docs: List[Doc]) -> List[Floats2d]:
    if not any(map(len, docs)):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs]
    orths = numpy.concatenate([doc.to_array(ORTH) for doc in docs])
    unique, inverse = numpy.unique(orths, return_inverse=True)
    found = _words(tables, model)(unique, docs[0].vocab.strings)
    if length is not None:
        found *= length / found.shape[1] ** 0.5
    vectors: Any = found[inverse]
    return split_rows(model.ops.asarray2f(vectors), docs)


def _words(tables: _Known, model: Model) -> WordVectors:
    """Return the word vectors of the current table: another one may have been loaded since the last call."""
    wanted = PieceTable(model.attrs["tokenizer"], model.attrs["vectors"])
    if wanted.vectors is None:
        raise WeaknerError(Errors.WK731)
    for table, words in tables:
        if table.vectors is wanted.vectors and table.tokenizer == wanted.tokenizer:
            return words
    words = WordVectors(wanted)
    tables[:] = [(wanted, words), *tables[: _TABLES - 1]]
    return words

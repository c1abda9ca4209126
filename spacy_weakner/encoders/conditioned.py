"""An encoder of tokens conditioned on questions, on top of any other encoder."""

from typing import Any, Callable, List, Tuple

import numpy
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .queried import WORDS, Queried


def build_conditioned_encoder(tok2vec: Model[List[Doc], List[Floats2d]]) -> Model[Queried, List[Floats3d]]:
    """Encode text and questions separately, and represent token t for question q by

        [h_t; q; h_t * q]

    where q is the mean over the question's tokens. (In a convolution over "question + text", tokens further away than
    its window would not depend on the question.) Registered as `spacy_weakner.ConditionedEncoder.v1`.

    tok2vec (Model[List[Doc], List[Floats2d]]): An encoder of the component's own: it also reads the questions, so it
        cannot be a listener.
    RETURNS (Model[Queried, List[Floats3d]]): Vectors of each Doc, (n_tokens, n_queries, 3 * width).
    """
    return Model(
        "conditioned_encoder",
        _forward,
        init=_init,
        layers=[tok2vec],
        refs={"tok2vec": tok2vec},
        # A vector has three parts of equal length, of which the first depends on the token only.
        attrs={"parts": 3},
    )


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    model.get_ref("tok2vec").initialize(X=None if X is None else X.docs)


def _forward(model: Model, asked: Queried, is_train: bool) -> Tuple[List[Floats3d], Callable[[List[Floats3d]], Any]]:
    ops: Any = model.ops
    xp, docs, n = ops.xp, asked.docs, len(asked.docs)
    questions = [Doc(docs[0].vocab, words=WORDS.findall(query)) for query in asked.queries]
    vectors, backprop_vectors = model.get_ref("tok2vec")([*docs, *questions], is_train)
    lengths = numpy.asarray([len(rows) for rows in vectors[:n]])
    # shape: (n_queries, width)
    queries = xp.stack([rows.mean(axis=0) for rows in vectors[n:]])
    # Some encoders return (0, 0) arrays for Docs without tokens. shape: (n_tokens of all Docs, 1, width)
    tokens = xp.concatenate([rows.reshape(len(rows), 1, queries.shape[1]) for rows in vectors[:n]])
    shape = (len(tokens), *queries.shape)
    parts = [xp.broadcast_to(tokens, shape), xp.broadcast_to(queries, shape), tokens * queries]

    def backprop(gradient: List[Floats3d]) -> Any:
        d_token, d_query, d_product = xp.split(xp.concatenate(gradient), 3, axis=2)
        d_tokens = ops.unflatten((d_token + d_product * queries).sum(axis=1), lengths)
        back = [d_rows.reshape(rows.shape) for d_rows, rows in zip(d_tokens, vectors, strict=False)]
        d_queries = (d_query + d_product * tokens).sum(axis=0)
        for rows, d_query in zip(vectors[n:], d_queries, strict=True):
            back.append(xp.repeat(d_query[None] / len(rows), len(rows), axis=0))
        return backprop_vectors(back)

    return ops.unflatten(xp.concatenate(parts, axis=2), lengths), backprop

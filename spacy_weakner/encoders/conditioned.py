"""An encoder of tokens conditioned on questions, on top of any other encoder."""

from typing import Any, Callable, List, Tuple

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
    xp = model.ops.xp
    docs, n = asked.docs, len(asked.docs)
    questions = [Doc(docs[0].vocab, words=WORDS.findall(query)) for query in asked.queries]
    vectors, backprop_vectors = model.get_ref("tok2vec")([*docs, *questions], is_train)
    # shape: (n_queries, width)
    queries = xp.stack([rows.mean(axis=0) for rows in vectors[n:]])
    shape = queries.shape
    # Some encoders return (0, 0) arrays for Docs without tokens.
    tokens = [rows.reshape(len(doc), shape[1]) for rows, doc in zip(vectors[:n], docs, strict=True)]
    outputs = [_combine(xp, rows, queries) for rows in tokens]

    def backprop(gradient: List[Floats3d]) -> Any:
        d_queries = xp.zeros(shape, dtype="float32")
        back: List[Any] = []
        for given, rows, d_output in zip(vectors, tokens, gradient, strict=False):
            d_token, d_query, d_product = xp.split(d_output, 3, axis=2)
            back.append((d_token + d_product * queries).sum(axis=1).reshape(given.shape))
            d_queries += (d_query + d_product * rows[:, None]).sum(axis=0)
        for given, d_query in zip(vectors[n:], d_queries, strict=True):
            back.append(xp.repeat(d_query[None] / len(given), len(given), axis=0))
        return backprop_vectors(back)

    return outputs, backprop


def _combine(xp: Any, tokens: Any, queries: Any) -> Any:
    shape = (len(tokens), *queries.shape)
    repeated = xp.broadcast_to(tokens[:, None], shape)
    return xp.concatenate([repeated, xp.broadcast_to(queries, shape), repeated * queries], axis=2)

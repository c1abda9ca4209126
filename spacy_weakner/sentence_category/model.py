"""The classifier of sentences as a Thinc model."""

from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import Dropout, Linear, Model, chain
from thinc.types import Floats2d

from ..batching import split_rows
from ..heads.layers import encoder_and_head
from ..ty import Vectors


def build_sentence_category(
    tok2vec: Model[List[Doc], List[Floats2d]], nO: Optional[int] = None
) -> Model[List[Doc], Floats2d]:
    """Build a classifier of sentences (Kruengkrai et al. 2020, Section 2.1): max pooling over the tokens, and a linear
    layer. Registered as `spacy_weakner.SentenceCategory.v1`.

    Dropout is applied to the pooled vectors, at the rate `training.dropout`.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    nO (Optional[int]): Number of categories; inferred at initialization.
    RETURNS (Model[List[Doc], Floats2d]): Scores, shape (n_docs, n_categories).
    """
    pool: Model[Any, Any] = Model("max_pool", _forward)
    head: Model[Any, Any] = chain(pool, Dropout(), Linear(nO=nO))
    model: Model[Any, Any] = encoder_and_head("sentence_category", tok2vec, head)
    return model


def _forward(model: Model, vectors: Vectors, is_train: bool) -> Tuple[Floats2d, Callable[[Floats2d], Vectors]]:
    ops: Any = model.ops
    # Docs without tokens get zeros, and no gradient.
    used = [i for i, rows in enumerate(vectors) if len(rows)]
    lengths = ops.asarray1i([len(vectors[i]) for i in used])
    pooled = ops.alloc2f(len(vectors), max(rows.shape[1] for rows in vectors))
    if used:
        pooled[used], largest = ops.reduce_max(ops.flatten(vectors), lengths)

    def backprop(gradient: Floats2d) -> Vectors:
        if not used:
            return vectors
        return split_rows(ops.backprop_reduce_max(gradient[used], largest, lengths), vectors)

    return pooled, backprop

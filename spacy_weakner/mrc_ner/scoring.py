"""Log-odds of boundaries, and what they learn. All tokens of a batch, under all questions, are scored as rows of one
table."""

from itertools import pairwise
from typing import Any, Callable, List, Tuple

import numpy
from thinc.api import Model

from ..losses import Array
from .boundaries import Boundaries, boundary_loss

# Per Doc (n_tokens, n_labels, width).
Shapes = List[Tuple[int, ...]]


def as_rows(xp: Any, vectors: List[Any]) -> Any:
    """Put all vectors into one table.

    xp (Any): numpy or CuPy.
    vectors (List[Any]): Per Doc (n_tokens, n_labels, width).
    RETURNS (Any): Shape (sum of n_tokens * n_labels, width).
    """
    return xp.concatenate([own.reshape(-1, own.shape[2]) for own in vectors])


def split_rows(rows: Any, shapes: Shapes) -> List[Any]:
    """The reverse.

    rows (Any): Shape (sum of n_tokens * n_labels, any width).
    shapes (Shapes): Those of the vectors.
    RETURNS (List[Any]): Per Doc (n_tokens, n_labels, that width).
    """
    borders = numpy.cumsum([0, *(n_tokens * n_labels for n_tokens, n_labels, _ in shapes)]).tolist()
    parts = [rows[low:high] for low, high in pairwise(borders)]
    return [part.reshape(*shape[:2], rows.shape[1]) for part, shape in zip(parts, shapes, strict=True)]


def score_boundaries(head: Model, vectors: List[Any]) -> List[Array]:
    """Score tokens as starts and ends.

    head (Model): The layers.
    vectors (List[Any]): Per Doc (n_tokens, n_labels, width).
    RETURNS (List[Array]): Per Doc (n_tokens, n_labels, 2): log-odds, on the host.
    """
    output = head.ops.to_numpy(head.predict(as_rows(head.ops.xp, vectors)))
    return split_rows(output, [own.shape for own in vectors])


def boundaries_loss(
    head: Model, vectors: List[Any], targets: List[Boundaries], positive_weight: float
) -> Tuple[float, Callable[[], List[Any]]]:
    """The loss of the boundaries.

    head (Model): The layers.
    vectors (List[Any]): Per Doc (n_tokens, n_labels, width).
    targets (List[Boundaries]): Per Doc.
    positive_weight (float): See `boundary_loss`.
    RETURNS (Tuple[float, Callable]): Sum over sentences; and a callback that adds to the gradients of the layers, and
        gives those of the vectors.
    """
    ops: Any = head.ops
    shapes: Shapes = [own.shape for own in vectors]
    output, backprop = head.begin_update(as_rows(ops.xp, vectors))
    scores = split_rows(ops.to_numpy(output), shapes)
    results = [boundary_loss(own, to, positive_weight) for own, to in zip(scores, targets, strict=True)]
    gradient = numpy.concatenate([own.reshape(-1, 2) for _, own in results]).astype("float32")
    return sum(loss for loss, _ in results), lambda: split_rows(backprop(ops.asarray2f(gradient)), shapes)

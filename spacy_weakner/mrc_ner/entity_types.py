"""Types within labels, learned in addition to the boundaries from the vectors of entities: the protocol of such
methods, and their loss."""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Protocol, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from thinc.api import Model, glorot_uniform_init

from ..ty import Array
from .boundaries import Boundaries
from .decoding import pair_boundaries


class Mentions(NamedTuple):
    """The entities of a sentence.

    spans (NDArray[numpy.int64]): Shape (n, 3): start, end and label.
    vectors (Array): Shape (n, width): the teacher's vector of each entity, summed over its tokens.
    """

    spans: NDArray[numpy.int64]
    vectors: Array


@runtime_checkable
class EntityTyping(Protocol):
    """A method that finds types of the entities in a corpus, and their loss."""

    @property
    def n_types(self) -> int:
        """The number of types."""

    def reset(self) -> None:
        """Remove the types of an earlier training."""

    def renew(self, batches: Iterator[Array]) -> bool:
        """Find types.

        batches (Iterator[Array]): The teacher's vectors of entities, shape (n, width), batch by batch.
        RETURNS (bool): True if the numbers of the types have a new meaning, so that the layer which scores them must be
            initialized again.
        """

    def __call__(self, scores: Array, vectors: Array) -> Tuple[Array, Array]:
        """Compute the loss of some entities.

        scores (Array): Shape (n, n_types): scores of their types.
        vectors (Array): Shape (n, width): the teacher's vectors.
        RETURNS (Tuple[Array, Array]): Loss of each entity, and its gradient, shape (n, n_types).
        """


def mention_spans(target: Boundaries, max_width: Optional[int]) -> NDArray[numpy.int64]:
    """Return the entities of a target, shape (n, 3): start, end and label."""
    return pair_boundaries(target.wanted, max_width) if target.spans is None else target.spans


def pool(xp: Any, vectors: Any, spans: NDArray[numpy.int64]) -> Any:
    """Sum the vectors of each entity's tokens, shape (n_tokens, n_labels, width), for the question of its label: shape
    (n, width)."""
    if not len(spans):
        return xp.zeros((0, vectors.shape[2]), dtype="float32")
    return xp.stack([vectors[start:end, k].sum(axis=0) for start, end, k in spans.tolist()])


def types_loss(
    typing: Optional[EntityTyping], layer: Optional[Model], vectors: List[Any], mentions: List[Optional[Mentions]]
) -> Tuple[float, Callable[[List[Any]], None]]:
    """Compute the loss of the types: the mean over the entities of each sentence.

    typing (Optional[EntityTyping]): The method; None: types are not learned.
    layer (Optional[Model]): Maps the first columns of entity vectors, which depend on the tokens and not on the
        question, to scores of types.
    vectors (List[Any]): (n_tokens, n_labels, width) for each Doc.
    mentions (List[Optional[Mentions]]): The entities of each Doc; None as long as there is no teacher.
    RETURNS (Tuple[float, Callable]): Sum over sentences; and a callback that adds to the gradients of the layer, and to
        those of the vectors, which are its argument.
    """
    used = [(i, mention) for i, mention in enumerate(mentions) if mention is not None and len(mention.spans)]
    if typing is None or layer is None or not used:
        return 0.0, lambda gradients: None
    ops, width = layer.ops, layer.get_dim("nI")
    pooled = ops.xp.concatenate([pool(ops.xp, vectors[i][..., :width], mention.spans) for i, mention in used])
    scores, backprop = layer.begin_update(pooled)
    values, slope = typing(ops.to_numpy(scores), numpy.concatenate([mention.vectors for _, mention in used]))
    shares = numpy.concatenate([numpy.full(len(mention.spans), 1.0 / len(mention.spans)) for _, mention in used])

    def learn(gradients: List[Any]) -> None:
        rows = iter(backprop(ops.asarray2f((slope * shares[:, None]).astype("float32"))))
        for i, mention in used:
            for start, end, k in mention.spans.tolist():
                gradients[i][start:end, k, :width] += next(rows)

    return float((values * shares).sum()), learn


def restart(layer: Model) -> None:
    """Initialize the weights of a linear layer again."""
    shape = layer.get_param("W").shape
    layer.set_param("W", glorot_uniform_init(layer.ops, shape))
    layer.set_param("b", layer.ops.alloc1f(shape[0]))

"""Types within labels, learned in addition to the boundaries from the vectors of entities: the protocol of such
methods."""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Protocol, Tuple, runtime_checkable

from thinc.api import Model

from ..ty import Array, SpanArray


class Mentions(NamedTuple):
    """The entities of a sentence.

    spans (SpanArray): Shape (n, 3): start, end and label.
    vectors (Array): Shape (n, width): the teacher's vector of each entity.
    """

    spans: SpanArray
    vectors: Array


@runtime_checkable
class EntityTyping(Protocol):
    """A method that finds types of the entities in a corpus, and their loss. Its layer maps the first columns of entity
    vectors, which depend on the tokens and not on the question, to scores of types."""

    @property
    def n_types(self) -> int:
        """The number of types."""

    def reset(self) -> None:
        """Remove the types of an earlier training."""

    def pool(self, vectors: Any, spans: SpanArray) -> Any:
        """Compute the vectors of entities.

        vectors (Any): Shape (n_tokens, n_labels, width).
        spans (SpanArray): Shape (n, 3): start, end and label.
        RETURNS (Any): Shape (n, width).
        """

    def renew(self, layer: Model, batches: Iterator[Array]) -> None:
        """Find types.

        layer (Model): The layer; initialized again if the numbers of the types have a new meaning.
        batches (Iterator[Array]): The teacher's vectors of entities, shape (n, width), batch by batch.
        """

    def loss(
        self, layer: Model, vectors: List[Any], mentions: List[Optional[Mentions]]
    ) -> Tuple[float, Callable[[List[Any]], None]]:
        """Compute the loss of the entities of some Docs.

        layer (Model): The layer.
        vectors (List[Any]): (n_tokens, n_labels, width) for each Doc.
        mentions (List[Optional[Mentions]]): The entities of each Doc; None as long as there is no teacher.
        RETURNS (Tuple[float, Callable]): Sum over sentences; and a callback that adds to the gradients of the layer,
            and to those of the vectors, which are its argument.
        """

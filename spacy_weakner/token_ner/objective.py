"""What a token classifier is trained on: the form that all objectives have."""

from typing import Any, Iterable, Iterator, NamedTuple, Optional, Protocol, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import TagScheme
from ..losses import Array


class Augmented(NamedTuple):
    """What the model says of augmented sentences.

    outputs (Array): Shape (n, n_tags): its outputs.
    tokens (NDArray[numpy.int64]): Shape (n,): the tokens of the batch that they are another form of.
    """

    outputs: Array
    tokens: NDArray[numpy.int64]


class TokenBatch(NamedTuple):
    """The tokens of a batch, one sentence after the other.

    outputs (Array): Shape (n_tokens, n_tags): outputs of the model; see `distribution`.
    targets (Array): n_tokens rows, as `Objective.encode` made them.
    teacher (Optional[Array]): Shape (n_tokens, n_tags): outputs of the teacher; None if there is none yet.
    augmented (Optional[Augmented]): What the model says of their augmented forms.
    """

    outputs: Array
    targets: Array
    teacher: Optional[Array] = None
    augmented: Optional[Augmented] = None


class TokenGradient(NamedTuple):
    """Value and gradient of an objective.

    loss (float): Sum over tokens.
    outputs (Array): Its gradient, shape (n_tokens, n_tags).
    augmented (Optional[Array]): That with respect to `Augmented.outputs`.
    """

    loss: float
    outputs: Array
    augmented: Optional[Array] = None


@runtime_checkable
class Objective(Protocol):
    """What to learn from a sentence, and how."""

    @property
    def uses_teacher(self) -> bool:
        """Whether it wants to know what an earlier state of the model says, which the training clock renews."""

    @property
    def teacher_at_start(self) -> bool:
        """Whether there has to be a teacher from the first update on; if not, it comes after the first interval."""

    @property
    def uses_augmented(self) -> bool:
        """Whether it learns from augmented sentences, where there are any."""

    def labels(self, doc: Doc) -> Iterable[str]:
        """RETURNS (Iterable[str]): The entity labels in what it learns from of an annotated Doc."""

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        """Read what is to be learned off an example.

        example (Example): Its reference carries the annotation; the target is on the tokens of the predicted Doc.
        scheme (TagScheme): The tags of the component.
        RETURNS (Array): One row per token.
        RAISES (KeyError): With the label as argument, for an entity label that the scheme does not have.
        """

    def reset(self) -> None:
        """Another training begins: forget what was seen of a corpus."""

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Look at the whole corpus with the eyes of a new teacher.

        batches (Iterator[Tuple[Array, Array]]): Targets and outputs of the teacher, by and by.
        """

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        """Compute the loss.

        batch (TokenBatch): The tokens.
        RETURNS (TokenGradient): Loss and gradient; zero where there is nothing to learn.
        """

    def statistics(self) -> "dict[str, float]":
        """RETURNS (Dict[str, float]): What was counted since the last call, by name."""


class Plain:
    """What objectives are that need no teacher and count nothing."""

    uses_teacher = False
    teacher_at_start = False
    uses_augmented = False

    def reset(self) -> None:
        """There is nothing to forget."""

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Nothing is renewed."""

    def statistics(self) -> "dict[str, float]":
        """RETURNS (Dict[str, float]): Nothing."""
        return {}


def one_hot(indices: Any, n: int) -> Array:
    """Hard labels as probabilities.

    indices (Any): Shape (n_tokens,).
    n (int): Number of classes.
    RETURNS (Array): Shape (n_tokens, n), float64.
    """
    return (numpy.asarray(indices)[:, None] == numpy.arange(n)).astype("float64")

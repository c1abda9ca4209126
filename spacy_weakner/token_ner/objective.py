"""Training objectives of a token classifier, and their protocol."""

from dataclasses import dataclass
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Protocol, Set, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, TagScheme, hard_labels, soft_or_hard_labels
from ..losses import KLDivergence, ProbabilityLoss, loss_of_tokens
from ..ty import Array, BoolMask
from .distribution import token_scores


class Augmented(NamedTuple):
    """The model's outputs for augmented sentences.

    outputs (Array): The outputs, shape (n, n_tags).
    tokens (NDArray[numpy.int64]): Shape (n,): the original token in the batch of each augmented token.
    """

    outputs: Array
    tokens: NDArray[numpy.int64]


class TokenBatch(NamedTuple):
    """The concatenated tokens of a batch.

    outputs (Array): Shape (n_tokens, n_tags): outputs of the model; see `distribution`.
    targets (Array): n_tokens rows from `Objective.encode`.
    teacher (Optional[Array]): Shape (n_tokens, n_tags): outputs of the teacher; None if there is none yet.
    augmented (Optional[Augmented]): Outputs of the model for augmented sentences.
    """

    outputs: Array
    targets: Array
    teacher: Optional[Array] = None
    augmented: Optional[Augmented] = None


class TokenGradient(NamedTuple):
    """Value and gradient of an objective.

    loss (float): Sum over tokens.
    outputs (Array): Gradient with respect to the outputs, shape (n_tokens, n_tags).
    augmented (Optional[Array]): Gradient with respect to `Augmented.outputs`.
    """

    loss: float
    outputs: Array
    augmented: Optional[Array] = None


@runtime_checkable
class Objective(Protocol):
    """A training objective: the targets of a sentence, and the loss."""

    @property
    def uses_teacher(self) -> bool:
        """RETURNS (bool): True if it uses a teacher: an earlier state of the model, renewed by the training clock."""

    @property
    def teacher_at_start(self) -> bool:
        """RETURNS (bool): True if it needs a teacher from the first update on, not only after the first interval."""

    @property
    def uses_augmented(self) -> bool:
        """RETURNS (bool): True if it uses augmented sentences."""

    def labels(self, doc: Doc) -> Iterable[str]:
        """RETURNS (Iterable[str]): The entity labels in the annotation of a Doc that the objective uses."""

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        """Read the target of an example.

        example (Example): Its reference has the annotation; the target is aligned to the tokens of the predicted Doc.
        scheme (TagScheme): The tags of the component.
        RETURNS (Array): One row per token.
        RAISES (UnknownLabel): If the scheme lacks an entity label, which is the argument of the error.
        """

    def reset(self) -> None:
        """Remove the state of an earlier training."""

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Process the predictions of a new teacher for the whole corpus.

        batches (Iterator[Tuple[Array, Array]]): Targets and outputs of the teacher, batch by batch.
        """

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        """Compute the loss.

        batch (TokenBatch): The tokens.
        RETURNS (TokenGradient): Loss and gradient; zero without targets.
        """


class NoTeacher:
    """Mixin for objectives that need no teacher."""

    uses_teacher = False
    teacher_at_start = False
    uses_augmented = False

    def reset(self) -> None:
        """Do nothing."""

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Do nothing."""


def one_hot(indices: Any, n: int) -> Array:
    """Encode hard labels as probabilities, shape (n_tokens, n), float64."""
    return (numpy.asarray(indices)[:, None] == numpy.arange(n)).astype("float64")


@dataclass
class HardLabels(NoTeacher):
    """An objective on hard labels, in which each of the two heads learns its part of a tag: whether a token belongs to
    an entity and, if so, which tag it has. Missing tags have no loss.

        L = sum_i loss(1 - s_i or s_i) + sum_{i in entities} loss(softmax(z_i)_{y_i})

    loss (ProbabilityLoss): For example `spacy_weakner.CategoricalCrossentropy.v1`. (For cross-entropy, the sum equals
        the loss of the joint distribution; other losses are bounded for each head, as in the authors' code.)
    whole_tag (bool): Apply the loss to the probability of the whole tag instead, as in the paper:
        L = sum_i loss(P_i(y_i)).
    """

    loss: ProbabilityLoss
    whole_tag: bool = False

    def labels(self, doc: Doc) -> Set[str]:
        return hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        return scheme.from_example(example)

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        known = batch.targets != MISSING
        return hard_label_loss(self.loss, batch.outputs, batch.targets, known, self.whole_tag)


def hard_label_loss(
    loss: ProbabilityLoss, outputs: Array, tags: Array, used: BoolMask, whole_tag: bool = False
) -> TokenGradient:
    """Compute the loss of both heads.

    loss (ProbabilityLoss): The loss of each head.
    outputs (Array): Shape (n_tokens, n_tags): outputs of the model.
    tags (Array): Shape (n_tokens,): tag ids.
    used (BoolMask): Mask of the tokens with a loss.
    whole_tag (bool): Apply the loss to the whole tag.
    RETURNS (TokenGradient): Loss and gradient, summed over tokens.
    """
    scores = token_scores(outputs)
    if whole_tag:
        rows, joint = numpy.flatnonzero(used), scores.joint()
        d_joint = numpy.zeros_like(joint)
        if not len(rows):
            return TokenGradient(0.0, d_joint)
        values, d_joint[rows] = loss_of_tokens(loss, joint[rows], one_hot(tags[rows], joint.shape[1]))
        return TokenGradient(float(values.sum()), scores.joint_gradient(d_joint))
    d_entity, d_types = numpy.zeros_like(scores.entity), numpy.zeros_like(scores.types)
    total = 0.0
    rows = numpy.flatnonzero(used)
    if len(rows):
        values, d_entity[rows] = loss_of_tokens(loss, scores.entity[rows], one_hot(tags[rows] > 0, 2))
        total += float(values.sum())
    rows = numpy.flatnonzero(used & (tags > 0))
    if len(rows):
        wanted = one_hot(tags[rows] - 1, d_types.shape[1])
        values, d_types[rows] = loss_of_tokens(loss, scores.types[rows], wanted)
        total += float(values.sum())
    return TokenGradient(total, scores.gradient(d_entity, d_types))


@dataclass
class SoftLabels(NoTeacher):
    """The divergence of the model from soft labels q (Meng et al. 2021, Equation 6):

        L = sum_i KL(q_i || P_i)

    By the chain rule, this is the divergence of the entity head, plus that of the tag head times q's probability of an
    entity. Missing tokens have no loss. For sentences without soft labels, their tags are used.

    loss (Optional[ProbabilityLoss]): A loss on the probabilities of all tags that replaces the divergence.
    """

    loss: Optional[ProbabilityLoss] = None

    def labels(self, doc: Doc) -> Set[str]:
        return soft_or_hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        soft = scheme.soft_from_example(example)
        if soft is None:
            tags = scheme.from_example(example)
            return numpy.where(tags[:, None] == MISSING, 0.0, one_hot(tags, len(scheme)))
        return soft

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        rows = numpy.flatnonzero(batch.targets.any(axis=1))
        gradient = numpy.zeros(batch.outputs.shape)
        if not len(rows):
            return TokenGradient(0.0, gradient)
        scores, wanted = token_scores(batch.outputs[rows]), batch.targets[rows]
        values, slope = loss_of_tokens(self.loss or KLDivergence(), scores.joint(), wanted)
        gradient[rows] = scores.joint_gradient(slope)
        return TokenGradient(float(values.sum()), gradient)

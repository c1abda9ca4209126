"""What a token classifier is trained on: the form that all objectives have."""

from dataclasses import dataclass
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Protocol, Set, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, BoolMask, TagScheme, hard_labels, soft_or_hard_labels
from ..losses import Array, KLDivergence, ProbabilityLoss, loss_of_tokens
from .distribution import read_scores


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


class NoTeacher:
    """What objectives are that need no teacher."""

    uses_teacher = False
    teacher_at_start = False
    uses_augmented = False

    def reset(self) -> None:
        """There is nothing to forget."""

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Nothing is renewed."""


def one_hot(indices: Any, n: int) -> Array:
    """Hard labels as probabilities, shape (n_tokens, n), float64."""
    return (numpy.asarray(indices)[:, None] == numpy.arange(n)).astype("float64")


@dataclass
class HardLabels(NoTeacher):
    """Each of the two heads learns its part of a tag: whether a token belongs to an entity and, if it does, which tag
    it has. Missing tags teach nothing.

        L = sum_i loss(1 - s_i or s_i) + sum_{i in entities} loss(softmax(z_i)_{y_i})

    loss (ProbabilityLoss): For example `spacy_weakner.CategoricalCrossentropy.v1`. (Under cross-entropy the sum is that
        of the joint distribution; under others the two are bounded each for itself, as in the authors' code.)
    whole_tag (bool): Apply the loss to the probability of the whole tag instead, as the paper writes it:
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
    """The loss of both heads.

    loss (ProbabilityLoss): The loss of each.
    outputs (Array): Shape (n_tokens, n_tags): outputs of the model.
    tags (Array): Shape (n_tokens,): tag ids.
    used (BoolMask): Tokens that teach anything.
    whole_tag (bool): Take the loss of the whole tag.
    RETURNS (TokenGradient): Summed over tokens.
    """
    scores = read_scores(outputs)
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

    By the chain rule that is the divergence of the entity head, plus that of the tag head times q's probability of an
    entity. Tokens about which nothing is known teach nothing. Sentences without soft labels are learned from by their
    tags.

    loss (Optional[ProbabilityLoss]): Another loss on the probabilities of all tags, in the place of the divergence.
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
        scores, wanted = read_scores(batch.outputs[rows]), batch.targets[rows]
        values, slope = loss_of_tokens(self.loss or KLDivergence(), scores.joint(), wanted)
        gradient[rows] = scores.joint_gradient(slope)
        return TokenGradient(float(values.sum()), gradient)

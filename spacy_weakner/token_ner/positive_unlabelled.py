"""Learning from labels that miss entities: the risk of positive and unlabelled tokens (Kiryo et al. 2017; of entities
Peng et al. 2019)."""

from dataclasses import dataclass
from typing import Set

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.tags import IntTags, TagScheme, hard_labels
from ..errors import check_range
from ..losses import Array, CategoricalCrossentropy, ProbabilityLoss, loss_of_tokens
from .distribution import read_scores
from .objective import Plain, TokenBatch, TokenGradient, one_hot

ENTITY, OUTSIDE = 1, 0


@dataclass
class PositiveUnlabelled(Plain):
    """Entities that have a label are entities; tokens that are "O" are unlabelled, for some of them belong to entities
    that were missed. If a share r of the tokens of entities is labelled, each of these stands for 1/r, and what the
    missed ones teach as "O" is taken off again (Kiryo et al. 2017, Equation 6, with one sample of both):

        L = 1/r sum_{i in P} (-log s_i - log softmax(z_i)_{y_i})
            + max(0, sum_{i in U} loss(1 - s_i) - (1/r - 1) sum_{i in P} loss(1 - s_i))

    over the labelled tokens P and the unlabelled ones U of a batch, s the probability of an entity. What is within the
    maximum estimates what the tokens teach that are no entities; it cannot be less than nothing, so that where it is,
    the batch teaches no "O". Missing tokens are in neither. With r = 1 that is `HardLabels` with `loss` for "O".

    loss (ProbabilityLoss): Of "O". Let it be bounded, as `spacy_weakner.GeneralizedCrossEntropy.v1` is: under
        cross-entropy what is taken off grows with how sure the model is of the labelled tokens, and soon nothing says
        any more what is no entity.
    share (float): r, at least 0.01: the recall of the labels, in tokens of entities.
    RAISES (WeaknerError): If the share is none.
    """

    loss: ProbabilityLoss
    share: float

    def __post_init__(self) -> None:
        check_range("share", self.share, 0.01, 1.0)

    def labels(self, doc: Doc) -> Set[str]:
        return hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        return scheme.from_example(example)

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        tags: IntTags = batch.targets
        scores = read_scores(batch.outputs)
        labelled, unlabelled = numpy.flatnonzero(tags > 0), numpy.flatnonzero(tags == 0)
        weight, surely = 1.0 / self.share, CategoricalCrossentropy()
        total, d_entity = _learn(surely, scores.entity, labelled, ENTITY, weight)
        types, d_types = _learn(surely, scores.types, labelled, tags[labelled] - 1, weight)
        given, d_given = _learn(self.loss, scores.entity, unlabelled, OUTSIDE, 1.0)
        taken, d_taken = _learn(self.loss, scores.entity, labelled, OUTSIDE, 1.0 - weight)
        total += types
        if given + taken > 0.0:
            total, d_entity = total + given + taken, d_entity + d_given + d_taken
        return TokenGradient(total, scores.gradient(d_entity, d_types))


def _learn(
    loss: ProbabilityLoss, log_probabilities: Array, rows: Array, wanted: "Array | int", weight: float
) -> "tuple[float, Array]":
    """Loss of some tokens, and its gradient, which is 0 for the others."""
    gradient = numpy.zeros_like(log_probabilities)
    if not len(rows):
        return 0.0, gradient
    classes = numpy.broadcast_to(wanted, rows.shape)
    values, slope = loss_of_tokens(loss, log_probabilities[rows], one_hot(classes, log_probabilities.shape[1]))
    gradient[rows] = weight * slope
    return weight * float(values.sum()), gradient

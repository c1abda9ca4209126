"""Learning from one tag per token."""

from dataclasses import dataclass
from typing import Set

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, BoolMask, TagScheme, hard_labels
from ..losses import Array, ProbabilityLoss, loss_of_tokens
from .distribution import read_scores
from .objective import Plain, TokenBatch, TokenGradient, one_hot


@dataclass
class HardLabels(Plain):
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
        return hard_label_loss(self.loss, batch.outputs, batch.targets, known, known, self.whole_tag)


def hard_label_loss(
    loss: ProbabilityLoss, outputs: Array, tags: Array, entity: BoolMask, types: BoolMask, whole_tag: bool = False
) -> TokenGradient:
    """The loss of both heads.

    loss (ProbabilityLoss): The loss of each.
    outputs (Array): Shape (n_tokens, n_tags): outputs of the model.
    tags (Array): Shape (n_tokens,): tag ids.
    entity (BoolMask): Tokens that teach whether they belong to an entity.
    types (BoolMask): Tokens that teach their tag, if that is not "O".
    whole_tag (bool): Take the loss of the whole tag; "O" is learned by the tokens of `entity`, others by those of
        `types`.
    RETURNS (TokenGradient): Summed over tokens.
    """
    scores = read_scores(outputs)
    if whole_tag:
        rows, joint = numpy.flatnonzero(numpy.where(tags > 0, types, entity)), scores.joint()
        d_joint = numpy.zeros_like(joint)
        if not len(rows):
            return TokenGradient(0.0, d_joint)
        values, d_joint[rows] = loss_of_tokens(loss, joint[rows], one_hot(tags[rows], joint.shape[1]))
        return TokenGradient(float(values.sum()), scores.joint_gradient(d_joint))
    d_entity, d_types = numpy.zeros_like(scores.entity), numpy.zeros_like(scores.types)
    total = 0.0
    rows = numpy.flatnonzero(entity)
    if len(rows):
        values, d_entity[rows] = loss_of_tokens(loss, scores.entity[rows], one_hot(tags[rows] > 0, 2))
        total += float(values.sum())
    rows = numpy.flatnonzero(types & (tags > 0))
    if len(rows):
        wanted = one_hot(tags[rows] - 1, d_types.shape[1])
        values, d_types[rows] = loss_of_tokens(loss, scores.types[rows], wanted)
        total += float(values.sum())
    return TokenGradient(total, scores.gradient(d_entity, d_types))

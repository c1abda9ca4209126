"""Learning from a distribution over tags per token, as an ensemble gives it (Meng et al. 2021, Equation 6)."""

from dataclasses import dataclass
from typing import Optional, Set

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, TagScheme, soft_or_hard_labels
from ..losses import Array, CategoricalCrossentropy, KLDivergence, ProbabilityLoss, loss_of_tokens
from .distribution import read_scores
from .objective import Plain, TokenBatch, TokenGradient, one_hot


@dataclass
class SoftLabels(Plain):
    """The divergence of the model from soft labels q (Meng et al. 2021, Equation 6):

        L = sum_i KL(q_i || P_i)

    By the chain rule that is the divergence of the entity head, plus that of the tag head times q's probability of an
    entity. Tokens about which nothing is known teach nothing. Sentences without soft labels are learned from by their
    tags.

    separate (bool): What the authors' code minimises: the cross-entropy of the entity head, plus the divergence of the
        tag head over all tokens alike, those that are hardly entities included.
    loss (Optional[ProbabilityLoss]): Another loss on the probabilities of all tags, in the place of the divergence. Not
        together with `separate`.
    RAISES (ValueError): If both are given.
    """

    separate: bool = False
    loss: Optional[ProbabilityLoss] = None

    def __post_init__(self) -> None:
        if self.separate and self.loss is not None:
            raise ValueError(
                "SoftLabels has both 'loss' and 'separate = true', which has losses of its own. Leave 'loss' out, or "
                "set separate = false."
            )

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
        if not self.separate:
            values, slope = loss_of_tokens(self.loss or KLDivergence(), scores.joint(), wanted)
            gradient[rows] = scores.joint_gradient(slope)
            return TokenGradient(float(values.sum()), gradient)
        entity, types = split(wanted)
        entity_values, d_entity = CategoricalCrossentropy()(scores.entity, entity)
        type_values, d_types = KLDivergence()(scores.types, types)
        gradient[rows] = scores.gradient(d_entity, d_types)
        return TokenGradient(float(entity_values.sum() + type_values.sum()), gradient)


def split(probabilities: Array) -> "tuple[Array, Array]":
    """Take a distribution over tags apart.

    probabilities (Array): Shape (n_tokens, n_tags), "O" first.
    RETURNS (Tuple[Array, Array]): Shape (n_tokens, 2): "O" or entity; and (n_tokens, n_tags - 1): the tags given that
        it is one, 0 where it cannot be.
    """
    of_entity = probabilities[:, 1:].sum(axis=1, keepdims=True)
    entity = numpy.concatenate([probabilities[:, :1], of_entity], axis=1)
    return entity, probabilities[:, 1:] / numpy.where(of_entity > 0.0, of_entity, 1.0)

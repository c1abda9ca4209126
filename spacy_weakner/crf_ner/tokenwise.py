"""Token classification: `crf_ner` without its chain."""

from dataclasses import dataclass
from typing import Sequence

import numpy

from ..corpus.tags import MISSING
from ..crf.kernel import Array, CRFParameters
from ..errors import check_range
from ..losses import ProbabilityLoss, log_softmax, log_softmax_gradient, loss_of_tokens
from .likelihood import CRFGradient, Target, count_sentences, zero
from .losses import HardTags


@dataclass(frozen=True)
class TokenwiseLoss(HardTags):
    """Every token by itself, under the softmax of its emissions. Missing tags take no part.

    Transitions get no gradient: they stay as the model begins, next to 0 (or as `LoadWeights` has set them).
    Predictions still keep to the tag scheme. Robust losses are defined for classification, and meet tagging in this
    form (the robust weakly supervised baseline of Jiang et al. 2021 is mean squared error on tokens).

    loss (ProbabilityLoss): Loss of a token's probabilities.
    weak_weight (float): Factor on the loss of weakly labelled sentences.
    """

    loss: ProbabilityLoss
    weak_weight: float = 1.0

    def __post_init__(self) -> None:
        check_range("weak_weight", self.weak_weight, 0.0, None)

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[Target]) -> CRFGradient:
        result = zero(parameters, emissions)
        total = 0.0
        for scores, target, gradient in zip(emissions, targets, result.emissions, strict=True):
            known = numpy.flatnonzero(target.tags != MISSING)
            if not len(known):
                continue
            log_probabilities = log_softmax(scores[known])
            truths = (target.tags[known, None] == numpy.arange(scores.shape[1])).astype("float64")
            values, slope = loss_of_tokens(self.loss, log_probabilities, truths)
            gradient[known] = target.weight * log_softmax_gradient(log_probabilities, slope)
            total += target.weight * float(values.sum())
        return result._replace(loss=total / max(1, count_sentences(emissions)))

"""Losses over tag sequences. Missing tags are marginalized: see `likelihood.py`.

The gradient is the sum over sentences, so that splitting a batch changes nothing. The reported value is the mean.
"""

from dataclasses import dataclass
from typing import List, Optional, Sequence, Set

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, TagScheme, hard_labels, soft_or_hard_labels
from ..corpus.weak import is_weak
from ..crf.kernel import Array, Batch, CRFParameters, pad
from ..crf.scaled import partition
from ..errors import check_range
from ..losses import ProbabilityLoss, log_softmax, log_softmax_gradient, loss_of_tokens
from .likelihood import (
    CRFGradient,
    Target,
    Weights,
    add,
    check_possible,
    count_sentences,
    marginal_likelihood,
    unpad,
    zero,
)


class HardTags:
    """What losses learn of a sentence that has one tag per token: a weak sentence counts by `weak_weight`."""

    weak_weight: float

    def labels(self, doc: Doc) -> Set[str]:
        return hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Target:
        return Target(scheme.from_example(example), self.weak_weight if is_weak(example.reference) else 1.0)


@dataclass(frozen=True)
class CRFNegativeLogLikelihood(HardTags):
    """Negative log-likelihood of a linear-chain CRF (Lafferty et al. 2001), marginalized over missing tags.

    weak_weight (float): Factor on the loss of weakly labeled sentences.
    """

    weak_weight: float = 1.0

    def __post_init__(self) -> None:
        check_range("weak_weight", self.weak_weight, 0.0, None)

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[Target]) -> CRFGradient:
        tags = [target.tags for target in targets]
        return marginal_likelihood(parameters, emissions, tags, _weights(targets))


@dataclass(frozen=True)
class PartialCRF(HardTags):
    """Marginalized CRF likelihood (Tsuboi et al. 2008) for annotations with holes.

    A model that sees no "O" at all learns that everything is an entity.

    negative_rate (float): Share of the missing tags that are taken as "O", drawn anew in every update (a CRF form
        of negative sampling, Li et al. 2021). 0 is the pure marginal likelihood, 1 reads all that is missing as "O".
    weak_weight (float): Factor on the loss of weakly labeled sentences.
    """

    negative_rate: float = 0.2
    weak_weight: float = 1.0

    def __post_init__(self) -> None:
        check_range("weak_weight", self.weak_weight, 0.0, None)
        check_range("negative_rate", self.negative_rate, 0.0, 1.0)

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[Target]) -> CRFGradient:
        tags = [sample_negatives(target.tags, self.negative_rate) for target in targets]
        return marginal_likelihood(parameters, emissions, tags, _weights(targets))


@dataclass(frozen=True)
class SoftLabelCRF:
    """Divergence of the CRF from soft labels, for labels that are themselves probabilities.

        L = KL(q || p) = log Z - E_q[s(y)] - H(q),   q(y) proportional to prod_t q_t(y_t) over the legal sequences y

    where q_t are the soft labels of token t, and s(y) the score of a tag sequence. Up to the entropy H(q), which does
    not depend on the model, this is the expected negative log-likelihood of tags drawn from q (the noise-aware loss of
    Ratner et al. 2016, for sequences). The gradient is the marginals of the model minus those of q.

    A token about which nothing is known (its row of soft labels is 0) is given the model's own marginals, as they
    stand, so that it teaches next to nothing. Sentences without soft labels are treated as in `PartialCRF`, so that
    gold can be mixed in.

    negative_rate (float): Share of the tokens about which nothing is known, or whose tag is missing, that are taken as
        "O", drawn anew in every update; see `PartialCRF`.
    """

    negative_rate: float = 0.2

    def __post_init__(self) -> None:
        check_range("negative_rate", self.negative_rate, 0.0, 1.0)

    def labels(self, doc: Doc) -> Set[str]:
        return soft_or_hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Target:
        soft = scheme.soft_from_example(example)
        return Target(scheme.from_example(example) if soft is None else soft)

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[Target]) -> CRFGradient:
        tags = [sample_negatives(target.tags, self.negative_rate) for target in targets]
        used = [i for i, sentence in enumerate(tags) if sentence.ndim == 2 and sentence.any()]
        hard = [numpy.full(len(sentence), MISSING) if sentence.ndim == 2 else sentence for sentence in tags]
        result = marginal_likelihood(parameters, emissions, hard)
        return add(result, self._divergence(parameters, emissions, tags, used)) if used else result

    def _divergence(
        self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Array], used: List[int]
    ) -> CRFGradient:
        batch = pad([emissions[i] for i in used])
        log_z, marginals = partition(parameters, batch)
        model = marginals(None)
        given = batch.pad_like([tags[i] for i in used], 1.0, "float64")
        with numpy.errstate(divide="ignore"):
            beliefs = numpy.log(numpy.where(given.any(-1, keepdims=True), given, model.tokens))
        # q is a chain itself: its transitions cost nothing where they are legal.
        legal = CRFParameters(*(numpy.where(numpy.isfinite(scores), 0.0, -numpy.inf) for scores in parameters))
        log_z_of_wanted, marginals = partition(legal, Batch(beliefs, batch.lengths, batch.order))
        check_possible(log_z_of_wanted, batch, used)
        wanted = marginals(None)
        scored = _expected(wanted.tokens, batch.emissions) + sum(map(_expected, wanted.counts, parameters))
        entropy = log_z_of_wanted.sum() - _expected(wanted.tokens, beliefs)
        total = float(log_z.sum() - scored - entropy)
        gradient = unpad(batch, model.tokens - wanted.tokens, emissions, used)
        return CRFGradient(max(0.0, total) / count_sentences(emissions), gradient, model.counts.minus(wanted.counts))


@dataclass(frozen=True)
class TokenwiseLoss(HardTags):
    """Every token by itself, under the softmax of its emissions. Missing tags take no part.

    Transitions get no gradient: they stay as the model begins, next to 0 (or as `LoadWeights` has set them).
    Predictions still keep to the tag scheme. Robust losses are defined for classification, and meet tagging in this
    form (the robust weakly supervised baseline of Jiang et al. 2021 is mean squared error on tokens).

    loss (ProbabilityLoss): Loss of a token's probabilities.
    weak_weight (float): Factor on the loss of weakly labeled sentences.
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


def sample_negatives(tags: Array, rate: float) -> Array:
    """Take a share of the tokens about which nothing is known as "O". Tags: shape (n_tokens,), -1 where missing; or
    soft labels, shape (n_tokens, n_tags), rows of 0 there."""
    missing = tags == MISSING if tags.ndim == 1 else ~tags.any(axis=1)
    if rate == 0.0 or not missing.any():
        return tags
    # numpy's global generator is the one that spaCy seeds with [training] seed.
    drawn = missing & (numpy.random.uniform(size=len(tags)) < rate)
    if tags.ndim == 1:
        return numpy.where(drawn, 0, tags)
    return numpy.where(drawn[:, None], numpy.arange(tags.shape[1]) == 0, tags)


def _weights(targets: Sequence[Target]) -> Optional[Weights]:
    # None, the fast way, where all count the same.
    weights = [target.weight for target in targets]
    return None if set(weights) <= {1.0} else numpy.asarray(weights)


def _expected(probabilities: Array, scores: Array) -> Array:
    # 0 * -inf is 0 here: what cannot be does not count.
    return (probabilities * numpy.where(probabilities > 0.0, scores, 0.0)).sum()

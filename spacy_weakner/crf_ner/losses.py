"""Losses over tag sequences. Missing tags are marginalized: see `likelihood.py`.

Gradients are sums over sentences, so that they do not depend on the split into batches. Reported values are means.
"""

from dataclasses import dataclass
from typing import List, Optional, Sequence, Set

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..batching import split_rows
from ..corpus.tags import MISSING, TagScheme, hard_labels, soft_or_hard_labels
from ..corpus.weak import is_weak
from ..crf.kernel import CRFParameters, PaddedBatch, pad_emissions
from ..crf.scaled import partition
from ..errors import check_range
from ..losses import ProbabilityLoss, log_softmax, log_softmax_gradient, loss_of_tokens
from ..ty import Array
from .likelihood import (
    CRFGradient,
    CRFTarget,
    Weights,
    add,
    check_possible,
    marginal_likelihood,
    n_with_tokens,
    unpad,
    zero,
)


class HardTags:
    """Mixin for losses on sentences with one tag per token; weakly labeled ones have the weight `weak_weight`."""

    weak_weight: float

    def __post_init__(self) -> None:
        check_range("weak_weight", self.weak_weight, 0.0, None)

    def labels(self, doc: Doc) -> Set[str]:
        return hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> CRFTarget:
        return CRFTarget(scheme.from_example(example), self.weak_weight if is_weak(example.reference) else 1.0)


@dataclass(frozen=True)
class CRFNegativeLogLikelihood(HardTags):
    """Negative log-likelihood of a linear-chain CRF (Lafferty et al. 2001), marginalized over missing tags.

    weak_weight (float): Factor on the loss of weakly labeled sentences.
    """

    weak_weight: float = 1.0

    def __call__(
        self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[CRFTarget]
    ) -> CRFGradient:
        tags = [target.tags for target in targets]
        return marginal_likelihood(parameters, emissions, tags, _weights(targets))


@dataclass(frozen=True)
class PartialCRF(HardTags):
    """Marginal likelihood of a CRF (Tsuboi et al. 2008) for annotations with missing tags.

    Without any "O" in training, a model learns to label everything as an entity.

    negative_rate (float): Share of the missing tags that are taken as "O", sampled in every update (a CRF form of
        negative sampling, Li et al. 2021). 0 is the pure marginal likelihood; with 1, all missing tags are "O".
    weak_weight (float): Factor on the loss of weakly labeled sentences.
    """

    negative_rate: float = 0.2
    weak_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("negative_rate", self.negative_rate, 0.0, 1.0)

    def __call__(
        self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[CRFTarget]
    ) -> CRFGradient:
        tags = sample_hard_negatives([target.tags for target in targets], self.negative_rate)
        return marginal_likelihood(parameters, emissions, tags, _weights(targets))


@dataclass(frozen=True)
class SoftLabelCRF:
    """Divergence of the CRF from soft labels, which are probabilities of tags.

        L = KL(q || p) = log Z - E_q[s(y)] - H(q),   q(y) proportional to prod_t q_t(y_t) over the legal sequences y

    where q_t are the soft labels of token t, and s(y) is the score of a tag sequence. Up to the entropy H(q), which
    does not depend on the model, this is the expected negative log-likelihood of tags drawn from q (the noise-aware
    loss of Ratner et al. 2016, for sequences). The gradient is the marginals of the model minus those of q.

    The soft labels of a missing token (a row of 0) are replaced by the model's current marginals, so that its gradient
    is nearly 0. Sentences without soft labels are treated as in `PartialCRF`, so that gold can be added.

    negative_rate (float): Share of the missing tokens, in soft or hard labels, that are taken as "O", sampled in every
        update; see `PartialCRF`.
    """

    negative_rate: float = 0.2

    def __post_init__(self) -> None:
        check_range("negative_rate", self.negative_rate, 0.0, 1.0)

    def labels(self, doc: Doc) -> Set[str]:
        return soft_or_hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> CRFTarget:
        soft = scheme.soft_from_example(example)
        return CRFTarget(scheme.from_example(example) if soft is None else soft)

    def __call__(
        self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[CRFTarget]
    ) -> CRFGradient:
        tags = [sample_negatives(target.tags, self.negative_rate) for target in targets]
        used = [i for i, sentence in enumerate(tags) if sentence.ndim == 2 and sentence.any()]
        hard = [numpy.full(len(sentence), MISSING) if sentence.ndim == 2 else sentence for sentence in tags]
        result = marginal_likelihood(parameters, emissions, hard)
        return add(result, self._divergence(parameters, emissions, tags, used)) if used else result

    def _divergence(
        self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Array], used: List[int]
    ) -> CRFGradient:
        batch = pad_emissions([emissions[i] for i in used])
        log_z, marginals = partition(parameters, batch)
        model = marginals(None)
        given = batch.pad_like([tags[i] for i in used], 1.0, "float64")
        with numpy.errstate(divide="ignore"):
            beliefs = numpy.log(numpy.where(given.any(-1, keepdims=True), given, model.tokens))
        # q is a chain as well: the scores of its legal transitions are 0.
        legal = CRFParameters(*(numpy.where(numpy.isfinite(scores), 0.0, -numpy.inf) for scores in parameters))
        log_z_of_wanted, marginals = partition(legal, PaddedBatch(beliefs, batch.lengths, batch.order))
        check_possible(log_z_of_wanted, batch, used)
        wanted = marginals(None)
        scored = _expected(wanted.tokens, batch.emissions) + sum(map(_expected, wanted.counts, parameters))
        entropy = log_z_of_wanted.sum() - _expected(wanted.tokens, beliefs)
        total = float(log_z.sum() - scored - entropy)
        gradient = unpad(batch, model.tokens - wanted.tokens, emissions, used)
        return CRFGradient(max(0.0, total) / n_with_tokens(emissions), gradient, model.counts.minus(wanted.counts))


@dataclass(frozen=True)
class TokenwiseLoss(HardTags):
    """A classification loss on each token separately, with the softmax of its emissions. Missing tags have no loss.

    Transitions get no gradient: they keep their initial values, near 0 (or those set by `LoadWeights`). Predictions
    still follow the tag scheme. This form makes robust losses, which are defined for classification, usable for tagging
    (the robust weakly supervised baseline of Jiang et al. 2021 is mean squared error on tokens).

    loss (ProbabilityLoss): Loss of a token's probabilities.
    weak_weight (float): Factor on the loss of weakly labeled sentences.
    """

    loss: ProbabilityLoss
    weak_weight: float = 1.0

    def __call__(
        self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[CRFTarget]
    ) -> CRFGradient:
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
        return result._replace(loss=total / max(1, n_with_tokens(emissions)))


def sample_hard_negatives(tags: Sequence[Array], rate: float) -> List[Array]:
    """Set a random share of the missing tokens of all sentences to "O", as `sample_negatives` does in one sentence.
    One draw for all of them saves much of the time of a linear CRF."""
    if rate == 0.0 or not tags:
        return [*tags]
    joined = numpy.concatenate(tags)
    drawn = (joined == MISSING) & (numpy.random.uniform(size=len(joined)) < rate)
    return split_rows(numpy.where(drawn, 0, joined), tags)


def sample_negatives(tags: Array, rate: float) -> Array:
    """Set a random share of the missing tokens to "O". `tags` has the shape (n_tokens,), -1 if missing; or soft labels,
    shape (n_tokens, n_tags), a row of 0 if missing."""
    missing = tags == MISSING if tags.ndim == 1 else ~tags.any(axis=1)
    if rate == 0.0 or not missing.any():
        return tags
    # spaCy seeds numpy's global generator with [training] seed.
    drawn = missing & (numpy.random.uniform(size=len(tags)) < rate)
    if tags.ndim == 1:
        return numpy.where(drawn, 0, tags)
    return numpy.where(drawn[:, None], numpy.arange(tags.shape[1]) == 0, tags)


def _weights(targets: Sequence[CRFTarget]) -> Optional[Weights]:
    # None, which is faster, if all weights are 1.
    weights = [target.weight for target in targets]
    return None if set(weights) <= {1.0} else numpy.asarray(weights)


def _expected(probabilities: Array, scores: Array) -> Array:
    # 0 * -inf is 0 here: impossible events do not count.
    return (probabilities * numpy.where(probabilities > 0.0, scores, 0.0)).sum()

"""Samplers of negatives: in every update, they select the unlabeled spans that are taken as "O".

Most spans of a sentence are not entities, even if most entities are unlabeled, so a few randomly sampled spans hardly
ever include an unlabeled entity (Theorem 1 of the paper on weighted sampling). This holds for all n (n + 1) / 2 spans;
with a limited width, there are fewer spans, which are harder, and unlabeled entities are sampled more often: with 40
tokens and a width of at most 10, about twice as often.
"""

import math
from dataclasses import dataclass
from typing import Optional, Protocol, runtime_checkable

import numpy
from numpy.typing import NDArray

from ..errors import check_range
from ..ty import Floats, TrainingProgress

Indices = NDArray[numpy.int64]
START = TrainingProgress(0, 0, 0.0)
_NO_PROBABILITIES = "A sampler that weights or excludes candidates needs their probabilities."


@runtime_checkable
class NegativeSampler(Protocol):
    """A sampler of negatives.

    weighted (bool): True if it needs the probabilities of all spans, by an oracle or the model in training, and the
        progress of training.
    exclude (float): Minimum probability of "O", by an oracle, of spans that may be sampled. 0: no oracle is needed.
    """

    @property
    def weighted(self) -> bool: ...

    @property
    def exclude(self) -> float: ...

    def __call__(
        self, n_candidates: int, n_tokens: int, log_p: Optional[Floats] = None, tick: TrainingProgress = START
    ) -> Indices:
        """Sample negatives for one sentence with numpy's global generator (which spaCy seeds with [training] seed).

        n_candidates (int): Number of spans that are not annotated.
        n_tokens (int): Length of the sentence.
        log_p (Optional[Floats]): Shape (n_candidates, n_labels): by the oracle, if there is one, else, if
            `weighted`, by the model; label 0 is "O".
        tick (TrainingProgress): The progress of training.
        RETURNS (Indices): Unique indices of the sampled candidates.
        """


def number_of_negatives(n_tokens: int, n_candidates: int, ratio: float) -> int:
    """Return the size of the sample: λ n, rounded up, but at most the number of candidates.

    n_tokens (int): n.
    n_candidates (int): Number of candidates.
    ratio (float): λ.
    RETURNS (int): The size.
    """
    # A product like 0.35 * 20 may exceed 7 by a rounding error.
    return min(n_candidates, math.ceil(round(ratio * n_tokens, 9)))


@dataclass(frozen=True)
class AllNegatives:
    """A sampler that takes all spans without annotation as "O": for complete annotations, and as a baseline."""

    weighted = False
    exclude = 0.0

    def __call__(
        self, n_candidates: int, n_tokens: int, log_p: Optional[Floats] = None, tick: TrainingProgress = START
    ) -> Indices:
        return numpy.arange(n_candidates)


@dataclass(frozen=True)
class UniformNegativeSampler:
    """A sampler that samples all candidates with equal probability (Li et al. 2021, Section 3.2).

    ratio (float): λ: negatives per token. (With 0, only spans that are known to be wrong are "O"; without such spans, a
        model predicts entities everywhere.)
    exclude (float): Candidates with a lower probability of "O" by the oracle, a pipeline that was trained before, are
        not sampled, since long trainings memorize the unlabeled entities among the negatives. 0: there is no oracle.
    """

    ratio: float = 0.35
    exclude: float = 0.0
    weighted = False

    def __post_init__(self) -> None:
        _check(self.ratio, self.exclude)

    def __call__(
        self, n_candidates: int, n_tokens: int, log_p: Optional[Floats] = None, tick: TrainingProgress = START
    ) -> Indices:
        size = number_of_negatives(n_tokens, n_candidates, self.ratio)
        candidates = allowed(n_candidates, log_p, self.exclude)
        return numpy.random.permutation(candidates)[:size]


@dataclass(frozen=True)
class WeightedNegativeSampler:
    """A sampler that prefers spans for which the model predicts "O" with uncertainty (Li et al. 2022, Equations 3 to
    5). With the model's probabilities z of a span,

        v = z_O - max_l z_l,   u = H(z),   r = u (1 + v)^μ,   e ~ exp(r / T)

    and k spans are sampled without replacement with weights e. T = √(C (1 - progress)), but at least 1, decreases, so
    that weights are nearly uniform at the start of training, and become sharper.

    If there is an oracle, z are its probabilities (Section 4). Otherwise, z are the model's, computed from the vectors
    of the current update: with dropout in the encoder, but not in the scorer.

    The paper does not specify whether the maximum includes "O". If it does, v is 0 wherever "O" is most likely, and
    weights are nearly uniform. If it is over the entity labels only, the sampling is much sharper; on CoNLL-2003 with
    four of five entities hidden and a small encoder, it sampled so many of them that recall was low, so it is not the
    default.

    ratio (float): λ: negatives per token.
    exponent (float): μ: a high value avoids unlabeled entities, a low value prefers uncertain spans.
    n_epochs (Optional[float]): C: the larger, the more uniform the initial sampling. None (the paper): the number of
        epochs of the training, at least 1. If the training clock has `total_steps`, this number is unknown before the
        first epoch ends: until then, C is computed as if the epoch ended now, so that T starts at the square root of
        `total_steps`.
    include_outside (bool): Whether the maximum includes "O".
    exclude (float): Candidates with a lower probability of "O" by the oracle are not sampled; 0: there is no oracle.
    """

    ratio: float = 0.35
    exponent: float = 8.0
    n_epochs: Optional[float] = None
    include_outside: bool = True
    exclude: float = 0.0
    weighted = True

    def __post_init__(self) -> None:
        _check(self.ratio, self.exclude)
        check_range("exponent", self.exponent, 0.0, 100.0)
        check_range("n_epochs", self.n_epochs, 1.0, None, optional=True)

    def __call__(
        self, n_candidates: int, n_tokens: int, log_p: Optional[Floats] = None, tick: TrainingProgress = START
    ) -> Indices:
        size = number_of_negatives(n_tokens, n_candidates, self.ratio)
        if log_p is None:
            raise ValueError(_NO_PROBABILITIES)
        candidates = allowed(n_candidates, log_p, self.exclude)
        if not size or not len(candidates):
            return numpy.zeros(0, dtype="int64")
        weights = self.log_weights(log_p[candidates], tick)
        return candidates[sample_without_replacement(weights, size)]

    def temperature(self, tick: TrainingProgress) -> float:
        """Compute the temperature T.

        tick (TrainingProgress): The progress of training.
        RETURNS (float): T, at least 1.
        """
        n_epochs = max(1.0, tick.n_epochs) if self.n_epochs is None else self.n_epochs
        return max(1.0, math.sqrt(n_epochs * (1.0 - tick.progress)))

    def log_weights(self, log_p: Floats, tick: TrainingProgress) -> Floats:
        """Compute r / T, the logarithm of e up to a constant.

        log_p (Floats): Shape (n_candidates, n_labels); label 0 is "O".
        tick (TrainingProgress): The progress of training.
        RETURNS (Floats): Shape (n_candidates,).
        """
        log_z = numpy.asarray(log_p, dtype="float64")
        z = numpy.exp(log_z)
        others = z if self.include_outside else z[:, 1:]
        difference = z[:, 0] - others.max(axis=1)
        result: Floats = entropy(log_z) * (1.0 + difference) ** self.exponent / self.temperature(tick)
        return result


def allowed(n_candidates: int, log_p: Optional[Floats], exclude: float) -> Indices:
    """Return the candidates that may be sampled, ascending: those to which the oracle assigns at least the probability
    `exclude` of "O" or, without an oracle, all. log_p: shape (n_candidates, n_labels), "O" first."""
    if not exclude:
        return numpy.arange(n_candidates)
    if log_p is None:
        raise ValueError(_NO_PROBABILITIES)
    return numpy.flatnonzero(log_p[:, 0] >= math.log(exclude))


def entropy(log_p: Floats) -> Floats:
    """Compute the entropy, in nats, of each row of log-probabilities, shape (n, n_labels), which may be -inf."""
    z = numpy.exp(log_p)
    result: Floats = -(z * numpy.where(z > 0.0, log_p, 0.0)).sum(axis=1)
    return result


def sample_without_replacement(log_weights: Floats, size: int) -> Indices:
    """Sample successively, with probabilities proportional to the weights of the remaining candidates (Gumbel-top-k:
    Kool et al. 2019); needs only the logarithms of the weights."""
    keys = log_weights + numpy.random.gumbel(size=len(log_weights))
    if size >= len(keys):
        return numpy.arange(len(keys))
    return numpy.argpartition(-keys, size)[:size]


def _check(ratio: float, exclude: float) -> None:
    check_range("ratio", ratio, 0.0, 1000.0)
    check_range("exclude", exclude, 0.0, 1.0)

"""Which unlabeled spans are taken as "O": drawn afresh in every update.

Most spans of a sentence are no entities, also where most entities are unlabeled, so few spans drawn at random hardly
ever hit an unlabeled entity (Theorem 1 of the paper on weighted sampling). That holds for all n (n + 1) / 2 spans;
where their width is limited there are fewer, each of them harder, and hidden entities are hit more often: for 40 tokens
and at most 10 of them about twice as often.
"""

import math
from dataclasses import dataclass
from typing import Optional, Protocol, runtime_checkable

import numpy
from numpy.typing import NDArray

from ..errors import check_range
from ..ty import Tick

Floats = NDArray[numpy.float64]
Indices = NDArray[numpy.int64]
START = Tick(0, 0, 0.0)
_NO_PROBABILITIES = "A sampler that weights or excludes candidates needs their probabilities."


@runtime_checkable
class NegativeSampler(Protocol):
    """Draws negatives.

    weighted (bool): Whether it wants to know what is thought of every span, by an oracle or the model that learns, and
        how far the training is.
    exclude (float): What an oracle has to think of a span at least for it to be drawn: its probability of "O". 0: no
        oracle is needed.
    """

    @property
    def weighted(self) -> bool: ...

    @property
    def exclude(self) -> float: ...

    def __call__(
        self, n_candidates: int, n_tokens: int, log_probabilities: Optional[Floats] = None, tick: Tick = START
    ) -> Indices:
        """Draw negatives for one sentence, with numpy's global generator (which spaCy seeds with [training] seed).

        n_candidates (int): Number of spans that are not annotated.
        n_tokens (int): Length of the sentence.
        log_probabilities (Optional[Floats]): Shape (n_candidates, n_labels), by the oracle, if there is one, or else by
            the model, if `weighted`; label 0 is "O".
        tick (Tick): How far the training is.
        RETURNS (Indices): Which of the candidates are taken, none of them twice.
        """


def number_of_negatives(n_tokens: int, n_candidates: int, ratio: float) -> int:
    """Size of the sample: λ n rounded up, but no more than there are.

    n_tokens (int): n.
    n_candidates (int): Number of candidates.
    ratio (float): λ.
    RETURNS (int): The number.
    """
    # A product like 0.35 * 20 may lie a rounding error above 7.
    return min(n_candidates, math.ceil(round(ratio * n_tokens, 9)))


@dataclass(frozen=True)
class AllNegatives:
    """All that is not annotated is "O": for complete annotations, and as a baseline."""

    weighted = False
    exclude = 0.0

    def __call__(
        self, n_candidates: int, n_tokens: int, log_probabilities: Optional[Floats] = None, tick: Tick = START
    ) -> Indices:
        return numpy.arange(n_candidates)


@dataclass(frozen=True)
class UniformNegativeSampler:
    """All candidates alike (Li et al. 2021, Section 3.2).

    ratio (float): λ: negatives per token. (With 0 only spans that are known to be wrong are seen as "O"; without these
        a model finds entities everywhere.)
    exclude (float): Candidates whose probability of "O" is lower by the oracle, a pipeline that was trained before, are
        not drawn: long trainings learn the unlabeled entities among the negatives by heart. 0: there is no oracle.
    """

    ratio: float = 0.35
    exclude: float = 0.0
    weighted = False

    def __post_init__(self) -> None:
        _check(self.ratio, self.exclude)

    def __call__(
        self, n_candidates: int, n_tokens: int, log_probabilities: Optional[Floats] = None, tick: Tick = START
    ) -> Indices:
        size = number_of_negatives(n_tokens, n_candidates, self.ratio)
        candidates = allowed(n_candidates, log_probabilities, self.exclude)
        return numpy.random.permutation(candidates)[:size]


@dataclass(frozen=True)
class WeightedNegativeSampler:
    """Prefer spans that the model is uncertain of but takes for "O" (Li et al. 2022, Equations 3 to 5).
    With z the model's probabilities of a span,

        v = z_O - max_l z_l,   u = H(z),   r = u (1 + v)^μ,   e ~ exp(r / T)

    and k spans are drawn without replacement with weights e. T = √(C (1 - progress)), but at least 1, falls from nearly
    uniform weights, while the model knows little, to sharp ones.

    Where there is an oracle, the probabilities are its own (Section 4). Else they are the model's, of the vectors of
    the update at hand, so that the encoder's dropout is on, while the scorer's is off.

    The paper leaves open whether the maximum is over "O" too. If it is, v is 0 wherever "O" is most likely, and weights
    are nearly uniform. If it is over the entity labels alone, the sampling is much sharper; on CoNLL-2003 with four of
    five entities hidden and a small encoder it hit so many of them that little was found, so it is not the default.

    ratio (float): λ: negatives per token.
    exponent (float): μ: a high one avoids unlabeled entities, a low one prefers uncertain spans.
    n_epochs (Optional[float]): C: the larger, the more uniform the sampling starts. None (the paper): the number of
        epochs of the training, at least 1. Where the training clock has `total_steps`, that is not known before the
        first epoch ends: until then C is what it would be if the epoch ended now, so that T starts at the root of
        `total_steps`.
    include_outside (bool): Whether the maximum is over "O" too.
    exclude (float): Candidates whose probability of "O" is lower by the oracle are not drawn; 0: there is no oracle.
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
        if self.n_epochs is not None:
            check_range("n_epochs", self.n_epochs, 1.0, None)

    def __call__(
        self, n_candidates: int, n_tokens: int, log_probabilities: Optional[Floats] = None, tick: Tick = START
    ) -> Indices:
        size = number_of_negatives(n_tokens, n_candidates, self.ratio)
        if log_probabilities is None:
            raise ValueError(_NO_PROBABILITIES)
        candidates = allowed(n_candidates, log_probabilities, self.exclude)
        if not size or not len(candidates):
            return numpy.zeros(0, dtype="int64")
        weights = self.log_weights(log_probabilities[candidates], tick)
        return candidates[sample_without_replacement(weights, size)]

    def temperature(self, tick: Tick) -> float:
        """T.

        tick (Tick): How far the training is.
        RETURNS (float): At least 1.
        """
        n_epochs = max(1.0, tick.n_epochs) if self.n_epochs is None else self.n_epochs
        return max(1.0, math.sqrt(n_epochs * (1.0 - tick.progress)))

    def log_weights(self, log_probabilities: Floats, tick: Tick) -> Floats:
        """r / T, the logarithm of e up to a constant.

        log_probabilities (Floats): Shape (n_candidates, n_labels); label 0 is "O".
        tick (Tick): How far the training is.
        RETURNS (Floats): Shape (n_candidates,).
        """
        log_z = numpy.asarray(log_probabilities, dtype="float64")
        z = numpy.exp(log_z)
        others = z if self.include_outside else z[:, 1:]
        difference = z[:, 0] - others.max(axis=1)
        result: Floats = entropy(log_z) * (1.0 + difference) ** self.exponent / self.temperature(tick)
        return result


def allowed(n_candidates: int, log_probabilities: Optional[Floats], exclude: float) -> Indices:
    """Which candidates may be drawn, ascending: those that the oracle gives at least the probability `exclude` of "O";
    without it all. log_probabilities: shape (n_candidates, n_labels), "O" first."""
    if not exclude:
        return numpy.arange(n_candidates)
    if log_probabilities is None:
        raise ValueError(_NO_PROBABILITIES)
    return numpy.flatnonzero(log_probabilities[:, 0] >= math.log(exclude))


def entropy(log_probabilities: Floats) -> Floats:
    """Entropy of each row of log-probabilities, shape (n, n_labels), which may be -inf; in nats."""
    z = numpy.exp(log_probabilities)
    result: Floats = -(z * numpy.where(z > 0.0, log_probabilities, 0.0)).sum(axis=1)
    return result


def sample_without_replacement(log_weights: Floats, size: int) -> Indices:
    """Draw one after the other, each in proportion to its weight among those that are left (Gumbel-top-k: Kool et al.
    2019), which needs logarithms of the weights only."""
    keys = log_weights + numpy.random.gumbel(size=len(log_weights))
    if size >= len(keys):
        return numpy.arange(len(keys))
    return numpy.argpartition(-keys, size)[:size]


def _check(ratio: float, exclude: float) -> None:
    check_range("ratio", ratio, 0.0, 1000.0)
    check_range("exclude", exclude, 0.0, 1.0)

"""Confidence intervals of F1, and of differences in F1: paired bootstrap over sentences."""

from typing import List, Sequence, Tuple, Union

import numpy
from numpy.typing import NDArray

from ..scores import Strict

# Maximum number of resampling weights in memory.
_CHUNK = 2_000_000


class Interval(Strict):
    """A 95 % confidence interval (percentiles of the resampled test sets), in [0, 100]."""

    low: float
    high: float

    def text(self) -> str:
        """Return the interval as text, such as "76.0 to 82.5"."""
        return f"{self.low:.1f} to {self.high:.1f}"


class Difference(Strict):
    """The difference between the F1 of a candidate and that of another on the same sentences."""

    baseline: str  # the other candidate
    f1: float  # in [-100, 100]
    low: float  # 95 % confidence interval of the differences on resampled test sets
    high: float
    # Two-sided p-value: twice the share of resampled test sets on which the difference is 0 or has the opposite sign,
    # at most 1. The observed test set counts as one of these, so that p is never 0.
    p: float

    @property
    def is_certain(self) -> bool:
        """RETURNS (bool): True if the interval excludes 0."""
        return self.low > 0.0 or self.high < 0.0

    def reversed(self, baseline: str) -> "Difference":
        """Return the difference of the other candidate from this one, `baseline`."""
        return Difference(baseline=baseline, f1=-self.f1, low=-self.high, high=-self.low, p=self.p)

    def text(self) -> str:
        """Return it as text, such as "2.3 F1 points more (95 % CI 1.0 to 3.6), significant"."""
        sign, word = (1, "more") if self.f1 >= 0 else (-1, "less")
        # Adding 0.0 turns -0.0 into 0.0.
        low, high = sorted(round(sign * bound, 1) + 0.0 for bound in (self.low, self.high))
        certainty = "significant" if self.is_certain else "not significant"
        return f"{sign * self.f1:.1f} F1 points {word} (95 % CI {low:.1f} to {high:.1f}), {certainty}"


class Bootstrap:
    """Resampled test sets, the same for all candidates.

    counts (NDArray): tp, fp and fn of every sentence; shape (n_candidates, n_sentences, 3).
    samples (int): Number of resampled test sets.
    seed (int): Seed of the draws.
    """

    def __init__(self, counts: "NDArray[numpy.int64]", samples: int, seed: int = 0) -> None:
        self.observed = f1(counts.sum(axis=1))
        self.samples = f1(resample(counts, samples, seed))

    def interval(self, candidate: int) -> Interval:
        """Return the confidence interval of a candidate's F1."""
        low, high = _percentiles(self.samples[:, candidate])
        return Interval(low=low, high=high)

    def difference(
        self, candidate: Union[int, Sequence[int]], baseline: Union[int, Sequence[int]], name: str
    ) -> Difference:
        """Compare two candidates, given by their indices, or the means of several; `name` is that of the baseline."""
        one, other = numpy.atleast_1d(candidate), numpy.atleast_1d(baseline)
        observed = float(self.observed[one].mean() - self.observed[other].mean())
        resampled = self.samples[:, one].mean(axis=1) - self.samples[:, other].mean(axis=1)
        flipped = int((resampled * numpy.sign(observed) <= 0).sum())
        p = min(1.0, 2 * (flipped + 1) / (len(resampled) + 1))
        low, high = _percentiles(resampled)
        return Difference(baseline=name, f1=observed, low=low, high=high, p=p)


def f1(counts: "NDArray[numpy.int64]") -> "NDArray[numpy.float64]":
    """Compute F1 in [0, 100], shape (...), from counts of tp, fp and fn, shape (..., 3)."""
    doubled = 2 * counts[..., 0]
    result: NDArray[numpy.float64] = 100.0 * doubled / numpy.maximum(1, doubled + counts[..., 1] + counts[..., 2])
    return result


def resample(counts: "NDArray[numpy.int64]", samples: int, seed: int = 0) -> "NDArray[numpy.int64]":
    """Sum the counts of sentences that are drawn with replacement."""
    n_candidates, n, _ = counts.shape
    rng = numpy.random.default_rng(seed)
    # shape: (n_sentences, n_candidates * 3). In float64, which is exact here and allows BLAS.
    table = counts.transpose(1, 0, 2).reshape(n, n_candidates * 3).astype("float64")
    sums: List[NDArray[numpy.int64]] = []
    step = max(1, _CHUNK // n)
    for first in range(0, samples, step):
        rows = min(step, samples - first)
        drawn = rng.integers(0, n, (rows, n)) + n * numpy.arange(rows)[:, None]
        # shape: (rows, n_sentences): how often each sentence was drawn
        weights = numpy.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
        sums.append((weights.astype("float64") @ table).astype("int64"))
    return numpy.concatenate(sums).reshape(samples, n_candidates, 3)


def _percentiles(values: "NDArray[numpy.float64]") -> Tuple[float, float]:
    low, high = numpy.percentile(values, [2.5, 97.5])
    return float(low), float(high)

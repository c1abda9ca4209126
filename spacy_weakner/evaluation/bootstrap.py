"""How certain precision, recall and F1 are: paired bootstrap over sentences."""

from typing import Callable, List, NamedTuple, Optional, Tuple

import numpy
from numpy.typing import NDArray

LEVEL = 95.0
# Resampling weights that are in memory at once.
_CHUNK = 2_000_000
# Counts (tp, fp, fn in the last dimension) to scores, without that dimension.
Measure = Callable[["NDArray[numpy.int64]"], "NDArray[numpy.float64]"]


class Interval(NamedTuple):
    """A 95 % confidence interval (percentiles of the resampled test sets).

    low (float): Lower bound, in [0, 100].
    high (float): Upper bound, in [0, 100].
    """

    low: float
    high: float


class Difference(NamedTuple):
    """F1 minus that of another candidate on the same sentences.

    baseline (str): Name of the other candidate.
    f1 (float): The difference, in [-100, 100].
    low (float): Lower bound of its 95 % confidence interval.
    high (float): Upper bound.
    p (float): Twice the share of resampled test sets on which the sign is another (or the difference is 0), at most 1.
        The observed test set counts as one more, so that it is never 0.
    """

    baseline: str
    f1: float
    low: float
    high: float
    p: float


class Bootstrap:
    """Resampled test sets, the same ones for all candidates.

    counts (NDArray): tp, fp and fn of every sentence; shape (n_candidates, n_sentences, 3).
    samples (int): Number of resampled test sets.
    seed (int): Seed of the draws.
    """

    def __init__(self, counts: "NDArray[numpy.int64]", samples: int, seed: int = 0) -> None:
        self.observed = f1(counts.sum(axis=1))
        self._sums = resample(counts, samples, seed)
        self.samples = f1(self._sums)

    def interval(self, candidate: int, measure: Optional[Measure] = None) -> Interval:
        """The confidence interval of a candidate.

        candidate (int): Its number.
        measure (Optional[Measure]): Of what: `precision`, `recall` or `f1`, the default.
        RETURNS (Interval): The interval.
        """
        values = self.samples[:, candidate] if measure is None else measure(self._sums[:, candidate])
        return Interval(*_percentiles(values))

    def difference(self, candidate: int, baseline: int, name: str) -> Difference:
        """Compare two candidates.

        candidate (int): Number of the one.
        baseline (int): Number of the other.
        name (str): Name of the other.
        RETURNS (Difference): The difference.
        """
        observed = float(self.observed[candidate] - self.observed[baseline])
        resampled = self.samples[:, candidate] - self.samples[:, baseline]
        flipped = int((resampled * numpy.sign(observed) <= 0).sum())
        p = min(1.0, 2 * (flipped + 1) / (len(resampled) + 1))
        return Difference(name, observed, *_percentiles(resampled), p)


def precision(counts: "NDArray[numpy.int64]") -> "NDArray[numpy.float64]":
    """Precision in [0, 100], as `Counts.precision`; see `f1`."""
    result: NDArray[numpy.float64] = 100.0 * counts[..., 0] / numpy.maximum(1, counts[..., 0] + counts[..., 1])
    return result


def recall(counts: "NDArray[numpy.int64]") -> "NDArray[numpy.float64]":
    """Recall in [0, 100], as `Counts.recall`; see `f1`."""
    result: NDArray[numpy.float64] = 100.0 * counts[..., 0] / numpy.maximum(1, counts[..., 0] + counts[..., 2])
    return result


def f1(counts: "NDArray[numpy.int64]") -> "NDArray[numpy.float64]":
    """F1 in [0, 100], as `Counts.f1`.

    counts (NDArray): tp, fp, fn in the last dimension.
    RETURNS (NDArray): Without the last dimension.
    """
    tp, fp, fn = (counts[..., i] for i in range(3))
    result: NDArray[numpy.float64] = 100.0 * 2 * tp / numpy.maximum(1, 2 * tp + fp + fn)
    return result


def resample(counts: "NDArray[numpy.int64]", samples: int, seed: int = 0) -> "NDArray[numpy.int64]":
    """Sum the counts of sentences that are drawn with replacement.

    counts (NDArray): Shape (n_candidates, n_sentences, 3).
    samples (int): How often to draw as many sentences as there are.
    seed (int): Seed of the draws.
    RETURNS (NDArray): Shape (samples, n_candidates, 3).
    """
    n_candidates, n, _ = counts.shape
    rng = numpy.random.default_rng(seed)
    # shape: (n_sentences, n_candidates * 3). In float64, whose products are exact here and run in BLAS.
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
    rest = (100.0 - LEVEL) / 2
    low, high = numpy.percentile(values, [rest, 100.0 - rest])
    return float(low), float(high)

"""From a model's score to the chance of being right: histogram binning (Zadrozny and Elkan 2001) and isotonic
regression, both a step function of the score. Arrays only, no spaCy.
"""

from typing import NamedTuple

import numpy
from numpy.typing import NDArray

Floats = NDArray[numpy.float64]
Ints = NDArray[numpy.int64]


class Steps(NamedTuple):
    """A step function of a score.

    edges (Floats): Shape (n_steps - 1,), ascending: where one step ends and the next begins. A score that equals an
        edge belongs to the step above.
    values (Floats): Shape (n_steps,): the chance of being right, in [0, 1].
    counts (Ints): Shape (n_steps,): how many observations each value is the mean of.
    """

    edges: Floats
    values: Floats
    counts: Ints

    def __call__(self, score: float) -> float:
        """Look a score up; scores beyond those seen belong to the outermost steps."""
        return float(self.values[numpy.searchsorted(self.edges, score, side="right")])


def histogram(scores: Floats, hits: Floats, n_bins: int, min_per_bin: int = 1) -> Steps:
    """Histogram binning with quantile bins, as in Appendix A of Jiang et al. (2021).

    Every bin gets about the same number of observations. Equal scores always share a bin, so ties, like few
    observations, lead to fewer bins than asked for: one that would be too small shares with the next above, the last
    with that below.

    scores (Floats): Shape (n,), finite, n > 0.
    hits (Floats): Shape (n,): how far each was right, in [0, 1].
    n_bins (int): Number of bins, at least 1.
    min_per_bin (int): So many observations per bin, at least.
    RETURNS (Steps): Bins and the mean of the hits in each.
    """
    order = numpy.argsort(scores, kind="stable")
    ascending = scores[order]
    n_bins = max(1, min(n_bins, len(scores) // max(1, min_per_bin)))
    starts = numpy.arange(1, n_bins) * len(scores) // n_bins
    # The score at which a bin starts draws all that equal it into that bin; at the lowest score no bin can start.
    edges = numpy.unique(ascending[starts])
    edges = edges[edges > ascending[0]]
    return bin_means(scores, hits, _wide_enough(edges, numpy.searchsorted(ascending, edges), len(scores), min_per_bin))


def _wide_enough(edges: Floats, below: Ints, n: int, min_per_bin: int) -> Floats:
    """Those edges between which there are enough of n observations; `below` (n_edges,) counts those under each edge."""
    kept = [0]
    chosen = []
    for i, count in enumerate(below.tolist()):
        if min(count - kept[-1], n - count) >= min_per_bin:
            kept.append(count)
            chosen.append(i)
    return edges[chosen]


def bin_means(scores: Floats, hits: Floats, edges: Floats) -> Steps:
    """The mean of the hits between given edges.

    scores, hits (Floats): Shape (n,).
    edges (Floats): Ascending; every bin must hold a score.
    RETURNS (Steps): The step function.
    """
    bins = numpy.searchsorted(edges, scores, side="right")
    counts = numpy.bincount(bins, minlength=len(edges) + 1)
    return Steps(edges, numpy.bincount(bins, hits, len(edges) + 1) / counts, counts)


def isotonic(scores: Floats, hits: Floats) -> Steps:
    """Isotonic regression: the step function that never falls and is closest to the hits (least squares), by pooling
    adjacent violators (Ayer et al. 1955).

    scores (Floats): Shape (n,), finite, n > 0.
    hits (Floats): Shape (n,): how far each was right, in [0, 1].
    RETURNS (Steps): One step per pool.
    """
    values, inverse, n_equal = numpy.unique(scores, return_inverse=True, return_counts=True)
    sums = numpy.bincount(inverse, hits)
    pools: list[list[float]] = []  # lowest score, sum, count
    for score, total, count in zip(values.tolist(), sums.tolist(), n_equal.tolist(), strict=True):
        pools.append([score, total, count])
        # mean of the pool before >= mean of this one
        while len(pools) > 1 and pools[-2][1] * pools[-1][2] >= pools[-1][1] * pools[-2][2]:
            _, total_above, count_above = pools.pop()
            pools[-1][1] += total_above
            pools[-1][2] += count_above
    lowest, totals, counts = (numpy.asarray(column) for column in zip(*pools, strict=True))
    return Steps(lowest[1:], totals / counts, counts.astype("int64"))

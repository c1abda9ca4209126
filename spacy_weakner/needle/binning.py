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
    """Isotonic regression: the step function that never falls and is closest to the hits (least squares).

    scores (Floats): Shape (n,), finite, n > 0.
    hits (Floats): Shape (n,): how far each was right, in [0, 1].
    RETURNS (Steps): One step per pool.
    """
    from sklearn.isotonic import isotonic_regression

    ascending, places, counts = numpy.unique(scores, return_inverse=True, return_counts=True)
    fitted = isotonic_regression(numpy.bincount(places, hits) / counts, sample_weight=counts)
    return bin_means(scores, hits, ascending[1:][numpy.diff(fitted) > 1e-12])

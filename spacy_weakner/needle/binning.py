"""Calibration of a model's scores to the probability of being right: histogram binning (Zadrozny and Elkan 2001) and
isotonic regression, both step functions of the score. Uses arrays only, no spaCy.
"""

from typing import NamedTuple

import numpy

from ..ty import Floats, Ints


class Steps(NamedTuple):
    """A step function of a score.

    edges (Floats): Shape (n_steps - 1,), ascending: borders between steps. A score that equals an edge belongs to the
        step above.
    values (Floats): Shape (n_steps,): the probability of being right, in [0, 1].
    counts (Ints): Shape (n_steps,): number of observations of each value, which is their mean.
    """

    edges: Floats
    values: Floats
    counts: Ints

    def __call__(self, score: float) -> float:
        """Look up a score; scores outside the observed range belong to the outermost steps."""
        return float(self.values[numpy.searchsorted(self.edges, score, side="right")])


def histogram(scores: Floats, hits: Floats, n_bins: int, min_per_bin: int = 1) -> Steps:
    """Compute histogram binning with quantile bins, as in Appendix A of Jiang et al. (2021).

    Every bin gets about the same number of observations. Equal scores always share a bin, so ties, like few
    observations, lead to fewer bins than `n_bins`: a bin that would be too small is merged with the next above, the
    last bin with the one below.

    scores (Floats): Shape (n,), finite, n > 0.
    hits (Floats): Shape (n,): the degree to which each was right, in [0, 1].
    n_bins (int): Number of bins, at least 1.
    min_per_bin (int): Minimum number of observations per bin.
    RETURNS (Steps): Bins and the mean of the hits in each.
    """
    order = numpy.argsort(scores, kind="stable")
    ascending = scores[order]
    n_bins = max(1, min(n_bins, len(scores) // max(1, min_per_bin)))
    starts = numpy.arange(1, n_bins) * len(scores) // n_bins
    # All scores that equal the first one of a bin belong to this bin; so no bin can start at the lowest score.
    edges = numpy.unique(ascending[starts])
    edges = edges[edges > ascending[0]]
    return bin_means(scores, hits, _wide_enough(edges, numpy.searchsorted(ascending, edges), len(scores), min_per_bin))


def _wide_enough(edges: Floats, below: Ints, n: int, min_per_bin: int) -> Floats:
    """Select edges with enough of n observations between them; `below`, (n_edges,), counts those below each edge."""
    kept = [0]
    chosen = []
    for i, count in enumerate(below.tolist()):
        if min(count - kept[-1], n - count) >= min_per_bin:
            kept.append(count)
            chosen.append(i)
    return edges[chosen]


def bin_means(scores: Floats, hits: Floats, edges: Floats) -> Steps:
    """Compute the means of the hits between given edges.

    scores, hits (Floats): Shape (n,).
    edges (Floats): Ascending; every bin must contain a score.
    RETURNS (Steps): The step function.
    """
    bins = numpy.searchsorted(edges, scores, side="right")
    counts = numpy.bincount(bins, minlength=len(edges) + 1)
    return Steps(edges, numpy.bincount(bins, hits, len(edges) + 1) / counts, counts)


def isotonic(scores: Floats, hits: Floats) -> Steps:
    """Fit isotonic regression: the non-decreasing step function that is closest to the hits (least squares).

    scores (Floats): Shape (n,), finite, n > 0.
    hits (Floats): Shape (n,): the degree to which each was right, in [0, 1].
    RETURNS (Steps): One step per pool.
    """
    from sklearn.isotonic import isotonic_regression

    ascending, places, counts = numpy.unique(scores, return_inverse=True, return_counts=True)
    fitted = isotonic_regression(numpy.bincount(places, hits) / counts, sample_weight=counts)
    return bin_means(scores, hits, ascending[1:][numpy.diff(fitted) > 1e-12])

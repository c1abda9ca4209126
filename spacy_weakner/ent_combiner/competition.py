"""Sets of candidates without overlaps, and their probabilities.

A set is as probable as the product of the odds of its candidates, and sets with overlaps are impossible:

    p(set) = exp(sum of the weights of its candidates) / Z

With candidates sorted by their ends, the sets among the first k are those without the k-th, and those with it and any
set of the candidates that end before it starts, which are the first ones, too:

    Z(k) = Z(k - 1) + exp(weight(k)) * Z(before(k))

Where no candidates overlap this is a logistic regression's view, one candidate at a time.
"""

from typing import NamedTuple

import numpy
from numpy.typing import NDArray

Floats = NDArray[numpy.float64]
Ints = NDArray[numpy.int64]


class Competition(NamedTuple):
    """The candidates of several Docs, as they exclude each other.

    rows (Ints): Shape (n,): the Doc of each candidate; the Docs stand one after the other.
    columns (Ints): Shape (n,): its place in the Doc.
    before (Ints): Shape (n_docs, width): how many of the Doc's candidates end before it starts.
    """

    rows: Ints
    columns: Ints
    before: Ints

    @classmethod
    def of(cls, docs: Ints, spans: Ints, n_docs: int) -> "Competition":
        """Find out which candidates exclude which.

        docs (Ints): Shape (n,): the Doc of each candidate; ascending.
        spans (Ints): Shape (n, 2 or more): start and end, sorted by ends, on tokens that no two Docs share.
        n_docs (int): Number of Docs.
        RETURNS (Competition): What is known of them.
        """
        first = numpy.searchsorted(docs, numpy.arange(n_docs))
        columns = numpy.arange(len(docs)) - first[docs]
        before = numpy.zeros((n_docs, int(columns.max(initial=-1)) + 1), dtype="int64")
        before[docs, columns] = numpy.searchsorted(spans[:, 1], spans[:, 0], side="right") - first[docs]
        return cls(docs, columns, before)

    def log_partitions(self, weights: Floats) -> Floats:
        """The logarithm of Z of every Doc.

        weights (Floats): Shape (n,): log-odds of the candidates.
        RETURNS (Floats): Shape (n_docs,); 0 where there are no candidates.
        """
        result: Floats = self._forward(self._padded(weights))[:, -1]
        return result

    def probabilities(self, weights: Floats) -> Floats:
        """The probability that a candidate is in the set: the sum over all sets that hold it.

        weights (Floats): Shape (n,): log-odds of the candidates.
        RETURNS (Floats): Shape (n,); of candidates that exclude each other they sum to 1 at most.
        """
        padded = self._padded(weights)
        totals = self._forward(padded)
        docs = numpy.arange(len(totals))
        # How likely it is that the set among the first k is asked for, from the last k to the first.
        asked = numpy.zeros_like(totals)
        asked[:, -1] = 1.0
        found = numpy.zeros_like(padded)
        for k in range(padded.shape[1] - 1, -1, -1):
            taken = asked[:, k + 1] * numpy.exp(padded[:, k] + totals[docs, self.before[:, k]] - totals[:, k + 1])
            found[:, k] = taken
            asked[:, k] += asked[:, k + 1] - taken
            asked[docs, self.before[:, k]] += taken
        return numpy.clip(found[self.rows, self.columns], 0.0, 1.0)

    def _padded(self, weights: Floats) -> Floats:
        padded = numpy.full(self.before.shape, -numpy.inf)
        padded[self.rows, self.columns] = weights
        return padded

    def _forward(self, padded: Floats) -> Floats:
        n_docs, width = padded.shape
        totals = numpy.zeros((n_docs, width + 1))
        docs = numpy.arange(n_docs)
        for k in range(width):
            totals[:, k + 1] = numpy.logaddexp(totals[:, k], padded[:, k] + totals[docs, self.before[:, k]])
        return totals

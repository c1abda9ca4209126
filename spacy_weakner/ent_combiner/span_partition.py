"""A distribution over sets of non-overlapping spans, and the fit of its weights by maximum likelihood.

The probability of a set is proportional to the product of its candidates' odds; sets with overlaps are impossible:

    p(set) = exp(sum of the weights of its candidates) / Z

With candidates sorted by their ends, the sets of the first k candidates are those without the k-th, and those with it
and any set of the before(k) candidates that end before it starts, which come first in this order:

    Z(k) = Z(k - 1) + exp(weight(k)) * Z(before(k))

If no candidates overlap, this is a logistic regression.
"""

from typing import NamedTuple, Optional

import numpy

from ..ty import Floats, Ints

_STEPS = 100
_HALVINGS = 20
_TOLERANCE = 1e-5
# The Newton system is computed again while steps gain more log-likelihood than this; later it hardly changes.
_NEW_SYSTEM = 1.0


class SpanPartition(NamedTuple):
    """The candidates of several Docs, and which of them overlap."""

    rows: Ints  # shape (n,): the Doc of each candidate, ascending
    columns: Ints  # shape (n,): index of each candidate in its Doc
    before: Ints  # shape (n_docs, width): number of the Doc's candidates that end before each candidate starts

    @classmethod
    def of(cls, docs: Ints, spans: Ints, n_docs: int) -> "SpanPartition":
        """Find the candidates that overlap. `docs`, shape (n,), are the Docs of the candidates, ascending; `spans`,
        shape (n, 2 or more), their starts and ends, sorted by ends, with tokens numbered across all Docs."""
        first = numpy.searchsorted(docs, numpy.arange(n_docs))
        columns = numpy.arange(len(docs)) - first[docs]
        before = numpy.zeros((n_docs, int(columns.max(initial=-1)) + 1), dtype="int64")
        before[docs, columns] = numpy.searchsorted(spans[:, 1], spans[:, 0], side="right") - first[docs]
        return cls(docs, columns, before)

    def log_totals(self, weights: Floats) -> Floats:
        """Compute log Z of every Doc; 0 for Docs without candidates."""
        totals: Floats = self._forward(self._padded(weights))[:, -1]
        return totals

    def probabilities(self, weights: Floats) -> Floats:
        """Compute the marginal probability of each candidate: the sum over all sets that contain it. Probabilities of
        mutually overlapping candidates sum to at most 1."""
        padded = self._padded(weights)
        totals = self._forward(padded)
        docs = numpy.arange(len(totals))
        # The probability that the recursion reaches the sets of the first k candidates, from the last k to the first.
        needed = numpy.zeros_like(totals)
        needed[:, -1] = 1.0
        found = numpy.zeros_like(padded)
        for k in range(padded.shape[1] - 1, -1, -1):
            chosen = needed[:, k + 1] * numpy.exp(padded[:, k] + totals[docs, self.before[:, k]] - totals[:, k + 1])
            found[:, k] = chosen
            needed[:, k] += needed[:, k + 1] - chosen
            needed[docs, self.before[:, k]] += chosen
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


def fit_weights(
    features: Floats, right: Floats, partition: SpanPartition, penalty: Floats, start: Optional[Floats] = None
) -> Floats:
    """Find the weights that maximize the penalized likelihood of the right sets:

        sum over Docs of log p(the right set) - 1/2 * sum over features of penalty * weight^2

    The objective is concave. Each step solves a Newton system in which candidates are assumed to be independent, as
    they are without overlaps; the step is halved until the objective increases. The search begins at `start`, or at 0.

    Shapes: features (n, n_features); `right`, 1 for right candidates, (n,); penalty, above 0, (n_features,).
    """
    weights = numpy.zeros(features.shape[1]) if start is None else start.copy()

    def value(weights: Floats) -> float:
        scores = features @ weights
        return float(right @ scores - partition.log_totals(scores).sum() - 0.5 * penalty @ weights**2)

    current, gained = value(weights), numpy.inf
    for _ in range(_STEPS):
        found = partition.probabilities(features @ weights)
        gradient = features.T @ (right - found) - penalty * weights
        if numpy.abs(gradient).max(initial=0.0) < _TOLERANCE * max(1.0, len(right)):
            break
        if gained > _NEW_SYSTEM:
            scaled = features * numpy.sqrt(found * (1.0 - found))[:, None]
            inverse = numpy.linalg.inv(scaled.T @ scaled + numpy.diag(penalty))
        step = inverse @ gradient
        for _ in range(_HALVINGS):
            changed = value(weights + step)
            if changed > current:
                break
            step = step / 2
        else:
            break
        weights, current, gained = weights + step, changed, changed - current
    return weights

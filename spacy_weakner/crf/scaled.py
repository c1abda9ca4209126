"""log Z and its gradient by products of probabilities, which are faster than sums in log space, and as exact for scores
of ordinary magnitude. Uses arrays only, no torch, no spaCy.
"""

import math
from typing import Callable, Optional, Tuple

import numpy

from ..ty import Array
from .kernel import CRFParameters, Marginals, PaddedBatch, empty, expected_counts, forward_backward, reversal, reverse

# Products of probabilities are exact if the ratio of the largest and smallest factor is at most e to this power, and
# all sums are 0 or above SMALLEST_SUM: then no product of two sums and two factors is near the smallest float64, and no
# sum can vanish within one step.
WIDEST_RANGE = 115.0
SMALLEST_SUM = 1e-100

# log Z of every sequence, and a callback from a weight per sequence (None: all 1) to the gradient of the weighted sum.
Partition = Tuple[Array, Callable[[Optional[Array]], Marginals]]


def partition(parameters: CRFParameters, batch: PaddedBatch) -> Partition:
    """Compute log Z and its gradient: like `forward_backward` and its `marginals`, but by products of probabilities
    unless there is a risk of underflow.

    parameters (CRFParameters): Scores of the CRF.
    batch (PaddedBatch): Emissions; -inf where a tag is not allowed.
    RETURNS (Partition): log Z, shape (n_sequences,), and a callback that returns the marginals, each sequence
        multiplied by its weight (in the order of the batch's rows), also in the counts. It may be called several times.
    """
    result = _scaled_partition(parameters, batch)
    if result is None:
        lattice = forward_backward(parameters, batch)
        result = lattice.log_z, lattice.marginals
    return result


def _scaled_partition(parameters: CRFParameters, batch: PaddedBatch) -> Optional[Partition]:
    # Forward-backward with sums normalized every few steps; None if it is not exact.
    n_steps, n_rows, n_tags = batch.emissions.shape
    backwards = reversal(batch)
    # As in `forward_backward`, before[t, d, b] is without the emission of step t, and upto[t, d, b] with it.
    before, upto = empty((2, n_steps, 2, n_rows, n_tags))
    transitions = empty((2, n_tags, n_tags))
    top_start, start_range = _exponentials(parameters.start, before[0, 0])
    top_end, end_range = _exponentials(parameters.end, before[0, 1])
    top_transition, transition_range = _exponentials(parameters.transitions, transitions[0])
    top_emission, emission_range = _exponentials(batch.emissions, upto[:, 0])
    if max(start_range, end_range, transition_range, emission_range) > WIDEST_RANGE:
        return None
    interval = 1 + int(WIDEST_RANGE / 2 / (transition_range + emission_range + 10.0))
    padding = None if backwards is None else ~batch.mask
    if padding is not None:
        upto[:, 0][padding] = before[:, 0][padding] = 0.0
    upto[:, 1] = reverse(upto[:, 0], backwards)
    transitions[1] = transitions[0].T
    ones = numpy.ones((n_tags, 1))
    norms = numpy.ones((1 + n_steps // interval, 2, n_rows, 1))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        previous = upto[0]
        for t, (n, current, sums) in enumerate(zip(batch.n_running, upto, before, strict=True)):
            if n < n_rows:
                current, sums, previous = current[:, :n], sums[:, :n], previous[:, :n]
            if t > 0:
                numpy.matmul(previous, transitions, out=sums)
            current *= sums
            previous = current
            if t % interval == 0:
                norm = norms[t // interval, :, :n]
                numpy.matmul(current, ones, out=norm)
                current /= norm
        ways_on = reverse(upto[:, 1], backwards)
        totals = numpy.einsum("tnc,tnc->tn", before[:, 0], ways_on)
        log_z = numpy.log(totals[0]) + numpy.log(norms[:, 1, :, 0]).sum(0)
    if padding is not None:
        totals[padding] = 1.0
    small = upto < SMALLEST_SUM
    if not totals.min() > 0 or upto[small].any():
        return None
    log_z += top_start + top_emission * batch.lengths + top_transition * (batch.lengths - 1) + top_end

    def marginals(weights: Optional[Array] = None) -> Marginals:
        shares = numpy.divide(ways_on, totals[:, :, None], order="C")
        if weights is not None:
            shares *= weights[:, None]
        edges = transitions[0] * numpy.matmul(upto[:-1, 0].swapaxes(1, 2), shares[1:]).sum(0)
        shares *= before[:, 0]
        return expected_counts(batch, shares, edges)

    return log_z, marginals


def _exponentials(scores: Array, out: Array) -> Tuple[float, float]:
    # Write exp(scores - top); return top, and its distance to the lowest score that is not forbidden.
    top = float(scores.max())
    if not math.isfinite(top):
        return top, numpy.inf
    numpy.subtract(scores, top, out=out)
    lowest = float(out.min())
    if lowest == -numpy.inf:
        lowest = float(numpy.where(numpy.isfinite(out), out, 0.0).min())
    numpy.exp(out, out=out)
    return top, -lowest

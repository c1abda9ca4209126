"""log Z and its gradient by products of probabilities, which is faster than sums in log space, and as exact for scores
of ordinary size. Arrays only, no torch, no spaCy.
"""

from typing import Optional, Tuple

import numpy
from thinc.api import get_array_module

from .kernel import Array, Batch, CRFParameters, Expectations, forward_backward, gather, reversal, sum_counts

# Products of probabilities are exact while factors spread over no more than e to this, and all sums are 0 or above
# SMALLEST_SUM: then no product of two sums and two factors comes near the smallest float64, and no sum can vanish
# within one step.
WIDEST_RANGE = 115.0
SMALLEST_SUM = 1e-100


def expectations(parameters: CRFParameters, batch: Batch, weights: Optional[Array] = None) -> Expectations:
    """Compute log Z and its gradient: as `forward_backward(...).expectations()`, but by products of probabilities if
    none of them comes near underflow.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    weights (Optional[Array]): Shape (n_sequences,), in the order of the batch's rows: factors on the marginals of each
        sequence, also within the counts; not on log Z. None: all 1.
    RETURNS (Expectations): log Z, marginals and counts.
    """
    result = _scaled_expectations(parameters, batch, weights)
    return forward_backward(parameters, batch).expectations(weights) if result is None else result


def _scaled_expectations(
    parameters: CRFParameters, batch: Batch, weights: Optional[Array] = None
) -> Optional[Expectations]:
    # Forward-backward with sums normalised every few steps; None unless it is exact.
    xp = get_array_module(batch.emissions)
    n_steps, n_rows, n_tags = batch.emissions.shape
    backwards = reversal(batch)
    # As in `forward_backward`, upto[t, d, b] with the emission of step t, and before[t, b], forwards alone, without.
    before = xp.zeros((n_steps, n_rows, n_tags))
    upto = xp.empty((n_steps, 2, n_rows, n_tags))
    sums = xp.empty((2, n_rows, n_tags))
    transitions = xp.empty((2, n_tags, n_tags))
    top_start, start_range = _exponentials(parameters.start, sums[0])
    top_end, end_range = _exponentials(parameters.end, sums[1])
    top_transition, transition_range = _exponentials(parameters.transitions, transitions[0])
    top_emission, emission_range = _exponentials(batch.emissions, upto[:, 0])
    if max(start_range, end_range, transition_range, emission_range) > WIDEST_RANGE:
        return None
    interval = 1 + int(WIDEST_RANGE / 2 / (transition_range + emission_range + 10.0))
    if backwards is not None:
        upto[:, 0][~xp.asarray(batch.mask())] = 0.0
    upto[:, 1] = gather(upto[:, 0], backwards)
    transitions[1] = transitions[0].T
    ones = xp.ones((n_tags, 1))
    norms = xp.ones((n_steps, 2, n_rows, 1))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        for t, n in enumerate(batch.n_running):
            own, norm = upto[t, :, :n], norms[t, :, :n]
            if t > 0:
                xp.matmul(upto[t - 1, :, :n], transitions, out=sums[:, :n])
            own *= sums[:, :n]
            before[t, :n] = sums[0, :n]
            if t % interval == 0:
                xp.matmul(own, ones, out=norm)
                own /= norm
        ways_on = gather(upto[:, 1], backwards)
        totals = xp.einsum("tnc,tnc->tn", before, ways_on)
        log_z = xp.log(totals[0]) + xp.log(norms[:, 1, :, 0]).sum(0)
    totals[~xp.asarray(batch.mask())] = 1.0
    small = upto < SMALLEST_SUM
    if not bool((totals > 0).all()) or bool(upto[small].any()):
        return None
    ways_on /= totals[:, :, None]
    if weights is not None:
        ways_on *= xp.asarray(weights)[:, None]
    tokens = before
    tokens *= ways_on
    edges = transitions[0] * xp.matmul(upto[:-1, 0].swapaxes(1, 2), ways_on[1:]).sum(0)
    lengths = xp.asarray(batch.lengths)
    log_z += top_start + top_emission * lengths + top_transition * (lengths - 1) + top_end
    return Expectations(log_z, tokens, sum_counts(batch, tokens, edges))


def _exponentials(scores: Array, out: Array) -> Tuple[float, float]:
    # Write exp(scores - top); return top, and how far below it the lowest score is that is not forbidden.
    xp = get_array_module(scores)
    top = float(scores.max())
    if not numpy.isfinite(top):
        return top, numpy.inf
    xp.subtract(scores, top, out=out)
    lowest = float(out.min())
    if lowest == -xp.inf:
        lowest = float(xp.where(xp.isfinite(out), out, 0.0).min())
    xp.exp(out, out=out)
    return top, -lowest

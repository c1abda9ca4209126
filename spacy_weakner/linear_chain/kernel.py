"""Linear-chain conditional random field: partition, marginals, path scores. Arrays only, no torch, no spaCy.

The score of a tag sequence y over emissions e is

    s(y) = start[y_1] + sum_t e[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_T]

and p(y) = exp(s(y) - log Z). Everything is computed in float64 and in log space, so emissions of any size are safe.
(`scaled.py` has a faster way to the gradient, for scores of ordinary size.) What is forbidden (by a tag scheme, or by a
partial annotation) has the score -inf, in the partition as in decoding. If that leaves a sequence no path, its log Z is
-inf and its marginals are zero.

Batches are time-major and sorted by length, longest first: the sequences that are still running at a step are the
first rows, so padding costs nothing. Arrays may be numpy's or cupy's.
"""

from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from thinc.api import get_array_module

# Sums below this may have lost terms to underflow and are computed again, exactly.
TINY = 1e-280
LOWEST = -1e300

Array = Any  # numpy or cupy array; shapes are in the docstrings


class CRFParameters(NamedTuple):
    """Scores of a CRF in float64; -inf where something is forbidden.

    start (Array): Shape (n_tags,).
    transitions (Array): Shape (n_tags, n_tags), from row to column.
    end (Array): Shape (n_tags,).
    """

    start: Array
    transitions: Array
    end: Array

    def constrained(self, start: Array, transitions: Array, end: Array) -> "CRFParameters":
        """Forbid what the masks do not allow.

        start, transitions, end (Array): True where allowed; the shapes of the parameters.
        RETURNS (CRFParameters): Parameters with -inf elsewhere.
        """
        xp = get_array_module(self.transitions)
        masks = (xp.asarray(start), xp.asarray(transitions), xp.asarray(end))
        return CRFParameters(*(xp.where(mask, own, -xp.inf) for own, mask in zip(self, masks, strict=True)))

    def scaled(self, factor: float) -> "CRFParameters":
        """Multiply all scores, as a temperature does."""
        return CRFParameters(*(own * factor for own in self))


@dataclass(frozen=True)
class Batch:
    """Sequences padded to one array.

    emissions (Array): Shape (max_length, n_sequences, n_tags), float64, longest sequence first.
    lengths (numpy.ndarray): Shape (n_sequences,), descending.
    order (numpy.ndarray): Shape (n_sequences,): which given sequence each row is.
    """

    emissions: Array
    lengths: numpy.ndarray
    order: numpy.ndarray

    @property
    def n_running(self) -> List[int]:
        """How many sequences are still running at each step."""
        steps = numpy.arange(self.emissions.shape[0])
        return [int(n) for n in (self.lengths[None, :] > steps[:, None]).sum(axis=1)]

    def mask(self) -> numpy.ndarray:
        """True where a step belongs to a sequence: shape (max_length, n_sequences)."""
        result: numpy.ndarray = numpy.arange(self.emissions.shape[0])[:, None] < self.lengths[None, :]
        return result

    def unpad(self, padded: Array) -> List[Array]:
        """Split a time-major array into one array per given sequence, in the order they were given in."""
        result: List[Array] = [None] * len(self.order)
        for row, (given, length) in enumerate(zip(self.order.tolist(), self.lengths.tolist(), strict=True)):
            result[given] = padded[:length, row]
        return result

    def pad_like(self, sequences: Sequence[Array], fill: Any, dtype: str) -> Array:
        """Pad other per-token arrays (one per given sequence) in the layout of this batch."""
        xp = get_array_module(self.emissions)
        shape = (*self.emissions.shape[:2], *sequences[0].shape[1:])
        padded = xp.full(shape, fill, dtype=dtype)
        for row, (given, length) in enumerate(zip(self.order.tolist(), self.lengths.tolist(), strict=True)):
            padded[:length, row] = xp.asarray(sequences[given])
        return padded

    def restrict(self, allowed: Array) -> "Batch":
        """Forbid tags per token.

        allowed (Array): Shape of the emissions; True where a tag is allowed.
        RETURNS (Batch): With -inf elsewhere.
        """
        xp = get_array_module(self.emissions)
        return Batch(xp.where(allowed, self.emissions, -xp.inf), self.lengths, self.order)

    def select(self, rows: numpy.ndarray) -> "Batch":
        """Keep some rows, in ascending order; `order` then names rows of this batch."""
        lengths = self.lengths[rows]
        return Batch(self.emissions[: int(lengths.max()), rows], lengths, numpy.arange(len(rows)))


def pad(sequences: Sequence[Array]) -> Batch:
    """Pad emissions to one batch.

    sequences (Sequence[Array]): Each of shape (n_tokens, n_tags) with n_tokens > 0.
    RETURNS (Batch): The batch.
    """
    lengths = numpy.asarray([len(sequence) for sequence in sequences])
    order = numpy.argsort(-lengths, kind="stable")
    xp = get_array_module(sequences[0])
    shape = (int(lengths.max()), len(sequences), sequences[0].shape[1])
    empty = Batch(xp.zeros(shape, dtype="float64"), lengths[order], order)
    return Batch(empty.pad_like(sequences, 0.0, "float64"), empty.lengths, order)


class Expectations(NamedTuple):
    """What the gradient of log Z consists of.

    log_z (Array): Shape (n_sequences,): log-sum of all paths.
    tokens (Array): Shape (max_length, n_sequences, n_tags): probability of each tag; zero in the padding.
    counts (CRFParameters): Expected number of uses of every parameter, summed over the batch.
    """

    log_z: Array
    tokens: Array
    counts: CRFParameters


@dataclass(frozen=True)
class Lattice:
    """The sums over all paths through a batch.

    alpha (Array): (max_length, n_sequences, n_tags): log-sum of the paths up to and with a token's tag.
    beta (Array): Same shape: log-sum of the ways on from a token's tag, without its own emission.
    log_z (Array): Shape (n_sequences,): log-sum of all paths; -inf if there is none.
    """

    parameters: CRFParameters
    batch: Batch
    alpha: Array
    beta: Array
    log_z: Array

    def token_marginals(self) -> Array:
        """Probability of each tag at each token.

        RETURNS (Array): Shape (max_length, n_sequences, n_tags); zero in the padding, and where there is no path.
        """
        xp = get_array_module(self.alpha)
        mask = xp.asarray(self.batch.mask())[:, :, None]
        return xp.exp(xp.where(mask, self.alpha + self.beta - self._norm(), -xp.inf))

    def edge_marginals(self) -> Array:
        """Probability of each pair of tags at neighbouring tokens.

        RETURNS (Array): Shape (max_length - 1, n_sequences, n_tags, n_tags); zero in the padding, and where there is
            no path.
        """
        n_steps, n_rows, n_tags = self.alpha.shape
        xp = get_array_module(self.alpha)
        edges = xp.zeros((n_steps - 1, n_rows, n_tags, n_tags))
        for t, n in enumerate(self.batch.n_running[1:]):
            edges[t, :n] = self._edges(t, n)
        return edges

    def expectations(self, weights: Optional[Array] = None) -> Expectations:
        """Everything that the gradient of log Z consists of.

        weights (Optional[Array]): Shape (n_sequences,): factors on the marginals of each sequence, also within the
            counts. None: all 1.
        RETURNS (Expectations): Marginals and counts.
        """
        tokens = self.token_marginals()
        if weights is not None:
            tokens = tokens * get_array_module(tokens).asarray(weights)[:, None]
        return Expectations(self.log_z, tokens, sum_counts(self.batch, tokens, self.edge_counts(weights)))

    def edge_counts(self, weights: Optional[Array] = None) -> Array:
        """Expected number of times that each pair of tags occurs: `edge_marginals` summed over tokens and sequences,
        without holding them all.

        weights (Optional[Array]): Shape (n_sequences,): how much each sequence counts. None: all 1.
        RETURNS (Array): Shape (n_tags, n_tags).
        """
        xp = get_array_module(self.alpha)
        counts = xp.zeros_like(self.parameters.transitions)
        factors = xp.ones(len(self.log_z)) if weights is None else xp.asarray(weights)
        for t, n in enumerate(self.batch.n_running[1:]):
            counts += xp.einsum("bij,b->ij", self._edges(t, n), factors[:n])
        return counts

    def _edges(self, t: int, n: int) -> Array:
        xp = get_array_module(self.alpha)
        ways_on = self.beta[t + 1, :n] + self.batch.emissions[t + 1, :n] - self._norm()[:n]
        return xp.exp(self.alpha[t, :n, :, None] + self.parameters.transitions + ways_on[:, None, :])

    def _norm(self) -> Array:
        # (n_sequences, 1); 0 where there is no path, so that nothing is subtracted from -inf.
        xp = get_array_module(self.alpha)
        return xp.where(self.log_z == -xp.inf, 0.0, self.log_z)[:, None]


def forward_backward(parameters: CRFParameters, batch: Batch) -> Lattice:
    """Sum over all paths (Lafferty et al. 2001; Rabiner 1989), in log space. The backward pass is the forward pass
    over the reversed sequences, so both run in one loop.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    RETURNS (Lattice): The sums.
    """
    xp = get_array_module(batch.emissions)
    n_rows = len(batch.lengths)
    backwards = reversal(batch)
    emissions = xp.stack([batch.emissions, gather(batch.emissions, backwards)], axis=1)
    transitions = xp.stack([parameters.transitions, parameters.transitions.T])
    top_transition = max(float(transitions.max()), LOWEST)
    exponentials = xp.exp(transitions - top_transition)
    # before[t, d, b] sums the paths that lead to a tag at step t, without its emission.
    before = xp.zeros_like(emissions)
    before[0, 0], before[0, 1] = parameters.start, parameters.end
    with numpy.errstate(divide="ignore"):
        for t, n in enumerate(batch.n_running[1:], start=1):
            x = before[t - 1, :, :n] + emissions[t - 1, :, :n]
            after = before[t, :, :n]
            top = xp.maximum(x.max(-1, keepdims=True), LOWEST)
            sums = xp.matmul(xp.exp(x - top), exponentials)
            xp.log(sums, out=after)
            after += top + top_transition
            if sums.min() < TINY:
                # Underflow, or nothing leads there: these are computed again, term by term.
                d, row, tag = xp.nonzero(sums < TINY)
                after[d, row, tag] = logsumexp(x[d, row] + transitions[d, :, tag])
    alpha = before[:, 0] + batch.emissions
    beta = gather(before[:, 1], backwards)
    last = alpha[xp.asarray(batch.lengths) - 1, xp.arange(n_rows)]
    return Lattice(parameters, batch, alpha, beta, logsumexp(last + parameters.end))


def path_scores(parameters: CRFParameters, batch: Batch, tags: Array) -> Array:
    """Scores of given tag sequences.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions.
    tags (Array): Shape (max_length, n_sequences); any valid tag in the padding.
    RETURNS (Array): Shape (n_sequences,); minus log Z it is the log-probability.
    """
    xp = get_array_module(batch.emissions)
    mask = xp.asarray(batch.mask())
    rows = xp.arange(tags.shape[1])
    emitted = xp.take_along_axis(batch.emissions, tags[:, :, None], axis=2)[:, :, 0]
    moved = parameters.transitions[tags[:-1], tags[1:]]
    last = tags[xp.asarray(batch.lengths) - 1, rows]
    total = xp.where(mask, emitted, 0.0).sum(0) + xp.where(mask[1:], moved, 0.0).sum(0)
    return total + parameters.start[tags[0]] + parameters.end[last]


def logsumexp(x: Array) -> Array:
    """log(sum(exp(x))) over the last axis; -inf for a row of -inf."""
    xp = get_array_module(x)
    top = xp.maximum(x.max(-1, keepdims=True), LOWEST)
    with numpy.errstate(divide="ignore"):
        return xp.log(xp.exp(x - top).sum(-1)) + top[..., 0]


def reversal(batch: Batch) -> Optional[Tuple[Array, Array]]:
    """Index for `gather` that reverses every sequence within its length; None if a plain flip does."""
    n_steps, n_rows = batch.emissions.shape[:2]
    if batch.lengths[-1] == n_steps:
        return None
    xp = get_array_module(batch.emissions)
    steps = batch.lengths[None, :] - 1 - numpy.arange(n_steps)[:, None]
    steps = numpy.where(steps < 0, numpy.arange(n_steps)[:, None], steps)
    return xp.asarray(steps), xp.arange(n_rows)[None, :]


def gather(x: Array, index: Optional[Tuple[Array, Array]]) -> Array:
    """Reverse sequences in time, by the index of `reversal`."""
    return x[::-1] if index is None else x[index]


def sum_counts(batch: Batch, tokens: Array, edges: Array) -> CRFParameters:
    """Expected use of every parameter: that of start and end from token marginals, that of transitions is given."""
    xp = get_array_module(tokens)
    last = tokens[xp.asarray(batch.lengths) - 1, xp.arange(len(batch.lengths))]
    return CRFParameters(tokens[0].sum(0), edges, last.sum(0))

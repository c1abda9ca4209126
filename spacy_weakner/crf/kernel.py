"""Linear-chain conditional random field: partition, marginals, path scores. Uses arrays only, no torch, no spaCy.

The score of a tag sequence y over emissions e is

    s(y) = start[y_1] + sum_t e[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_T]

and p(y) = exp(s(y) - log Z). Everything is computed in float64 and in log space, so emissions may have any magnitude.
(`scaled.py` computes the gradient faster, for scores of ordinary magnitude.) Tags and transitions that are forbidden
(by a tag scheme or a partial annotation) have the score -inf, both in the partition and in decoding. If a sequence has
no path left, its log Z is -inf and its marginals are zero.

Batches are time-major and sorted by length, longest first: at each step, the sequences that have not ended are the
first rows, so padding costs nothing.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..ty import Array

# Sums below this may have lost terms to underflow, and are computed again in log space.
TINY = 1e-280
LOWEST = -1e300
CACHE_LINE = 64  # bytes


class CRFParameters(NamedTuple):
    """Scores of a CRF in float64; -inf for forbidden tags and transitions.

    start (Array): Shape (n_tags,).
    transitions (Array): Shape (n_tags, n_tags), from row to column.
    end (Array): Shape (n_tags,).
    """

    start: Array
    transitions: Array
    end: Array

    def constrained(self, start: Array, transitions: Array, end: Array) -> "CRFParameters":
        """Forbid tags and transitions by masks.

        start, transitions, end (Array): True where allowed, in the shapes of the parameters.
        RETURNS (CRFParameters): Parameters with -inf elsewhere.
        """
        masks = (start, transitions, end)
        return CRFParameters(*(numpy.where(mask, values, -numpy.inf) for values, mask in zip(self, masks, strict=True)))

    def scaled(self, factor: float) -> "CRFParameters":
        """Multiply all scores by a factor, such as the inverse of a temperature."""
        return CRFParameters(*(values * factor for values in self))

    def minus(self, other: "CRFParameters") -> "CRFParameters":
        """Subtract other parameters, for example expected counts."""
        return CRFParameters(*(a - b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences padded to one array.

    emissions (Array): Shape (max_length, n_sequences, n_tags), float64, longest sequence first; 0 in the padding.
    lengths (numpy.ndarray): Shape (n_sequences,), descending.
    order (numpy.ndarray): Shape (n_sequences,): index of each row in the given sequences.
    """

    emissions: Array
    lengths: numpy.ndarray
    order: numpy.ndarray

    @cached_property
    def n_running(self) -> List[int]:
        """The number of sequences that have not ended at each step."""
        running: List[int] = self.mask.sum(axis=1).tolist()
        return running

    @cached_property
    def mask(self) -> Array:
        """True for steps within a sequence: shape (max_length, n_sequences)."""
        return numpy.arange(len(self.emissions))[:, None] < self.lengths

    @cached_property
    def ends(self) -> Tuple[Array, Array]:
        """Index of the last step of every sequence in a time-major array."""
        return self.lengths - 1, numpy.arange(len(self.lengths))

    def unpad(self, padded: Array) -> List[Array]:
        """Split a time-major array into one array per sequence, in their original order."""
        result: List[Any] = [None] * len(self.order)
        for row, given, length in zip(padded.swapaxes(0, 1), self.order.tolist(), self.lengths.tolist(), strict=True):
            result[given] = row[:length]
        return result

    def pad_like(self, sequences: Sequence[Array], fill: Any, dtype: str) -> Array:
        """Pad other per-token arrays (one per original sequence) to the layout of this batch."""
        return _pad(sequences, self.lengths, self.order, fill, dtype)

    def restrict(self, allowed: Array) -> "PaddedBatch":
        """Forbid tags of tokens.

        allowed (Array): True where a tag is allowed, in the shape of the emissions.
        RETURNS (PaddedBatch): The batch with -inf elsewhere.
        """
        return PaddedBatch(numpy.where(allowed, self.emissions, -numpy.inf), self.lengths, self.order)

    def select(self, rows: Array) -> "PaddedBatch":
        """Keep some rows, in ascending order, which also becomes the new `order`."""
        lengths = self.lengths[rows]
        return PaddedBatch(self.emissions[: int(lengths.max()), rows], lengths, numpy.arange(len(rows)))


def pad_emissions(sequences: Sequence[Array]) -> PaddedBatch:
    """Pad emissions to one batch.

    sequences (Sequence[Array]): Each of shape (n_tokens, n_tags) with n_tokens > 0.
    RETURNS (PaddedBatch): The batch.
    """
    lengths = numpy.asarray([len(sequence) for sequence in sequences])
    order = (-lengths).argsort(kind="stable")
    lengths = lengths[order]
    return PaddedBatch(_pad(sequences, lengths, order, 0.0, "float64"), lengths, order)


def _pad(sequences: Sequence[Array], lengths: Array, order: Array, fill: Any, dtype: str) -> Array:
    padded = empty((int(lengths[0]), len(order), *sequences[0].shape[1:]), dtype)
    if lengths[-1] < lengths[0]:
        padded.fill(fill)
    for row, given, length in zip(padded.swapaxes(0, 1), order.tolist(), lengths.tolist(), strict=True):
        row[:length] = sequences[given]
    return padded


def empty(shape: Sequence[int], dtype: str = "float64") -> Array:
    """Return an empty array aligned to a cache line, unlike numpy's: arithmetic on it is up to a third faster."""
    n_bytes = math.prod(shape) * numpy.dtype(dtype).itemsize
    memory = numpy.empty(n_bytes + CACHE_LINE, dtype="uint8")
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


class Marginals(NamedTuple):
    """The gradient of log Z, or of a weighted sum over several sequences.

    tokens (Array): Shape (max_length, n_sequences, n_tags): probability of each tag; zero in the padding.
    counts (CRFParameters): Expected count of every parameter, summed over the batch.
    """

    tokens: Array
    counts: CRFParameters


@dataclass(frozen=True)
class Lattice:
    """The sums over all paths of a batch.

    alpha (Array): (max_length, n_sequences, n_tags): log-sum of the paths up to and including a token's tag.
    beta (Array): Same shape: log-sum of the path continuations from a token's tag, without its own emission.
    log_z (Array): Shape (n_sequences,): log-sum of all paths; -inf if there is none.
    """

    parameters: CRFParameters
    batch: PaddedBatch
    alpha: Array
    beta: Array
    log_z: Array

    def token_marginals(self) -> Array:
        """Compute the probability of each tag at each token.

        RETURNS (Array): Shape (max_length, n_sequences, n_tags); zero in the padding, and if there is no path.
        """
        mask = self.batch.mask[:, :, None]
        return numpy.exp(numpy.where(mask, self.alpha + self.beta - self._norm(), -numpy.inf))

    def marginals(self, weights: Optional[Array] = None) -> Marginals:
        """Compute the gradient of log Z.

        weights (Optional[Array]): Shape (n_sequences,): factors on the marginals of each sequence, also in the counts.
            None: all 1.
        RETURNS (Marginals): The gradient; zero for sequences without a path.
        """
        tokens = self.token_marginals()
        if weights is None:
            weights = numpy.ones(len(self.log_z))
        transitions = self.parameters.transitions
        ways_on = self.beta + self.batch.emissions - self._norm()
        edges = numpy.zeros_like(transitions)
        for t, n in enumerate(self.batch.n_running[1:]):
            pairs = numpy.exp(self.alpha[t, :n, :, None] + transitions + ways_on[t + 1, :n, None, :])
            edges += numpy.einsum("bij,b->ij", pairs, weights[:n])
        return expected_counts(self.batch, tokens * weights[:, None], edges)

    def _norm(self) -> Array:
        # (n_sequences, 1); 0 if there is no path, so that -inf is not subtracted from -inf.
        return numpy.where(self.log_z == -numpy.inf, 0.0, self.log_z)[:, None]


def forward_backward(parameters: CRFParameters, batch: PaddedBatch) -> Lattice:
    """Sum over all paths (Lafferty et al. 2001; Rabiner 1989) in log space. The backward pass is the forward pass on
    the reversed sequences, so both run in one loop.

    parameters (CRFParameters): Scores of the CRF.
    batch (PaddedBatch): Emissions; -inf where a tag is not allowed.
    RETURNS (Lattice): The sums.
    """
    backwards = reversal(batch)
    emissions = numpy.stack([batch.emissions, reverse(batch.emissions, backwards)], axis=1)
    transitions = numpy.stack([parameters.transitions, parameters.transitions.T])
    top_transition = max(float(transitions.max()), LOWEST)
    exponentials = numpy.exp(transitions - top_transition)
    # before[t, d, b] sums the paths to each tag at step t, without its emission, in direction d for sequence b.
    before = numpy.zeros_like(emissions)
    before[0, 0], before[0, 1] = parameters.start, parameters.end
    with numpy.errstate(divide="ignore"):
        for t, n in enumerate(batch.n_running[1:], start=1):
            x = before[t - 1, :, :n] + emissions[t - 1, :, :n]
            after = before[t, :, :n]
            top = numpy.maximum(x.max(-1, keepdims=True), LOWEST)
            sums = numpy.matmul(numpy.exp(x - top), exponentials)
            numpy.log(sums, out=after)
            after += top + top_transition
            if sums.min() < TINY:
                # Underflow, or no path leads there: compute these sums again in log space.
                d, row, tag = numpy.nonzero(sums < TINY)
                after[d, row, tag] = logsumexp(x[d, row] + transitions[d, :, tag])
    alpha = before[:, 0] + batch.emissions
    beta = reverse(before[:, 1], backwards)
    last = alpha[batch.ends]
    return Lattice(parameters, batch, alpha, beta, logsumexp(last + parameters.end))


class Paths:
    """One tag sequence for every sequence of a batch.

    batch (PaddedBatch): The batch.
    tags (Array): Shape (max_length, n_sequences); any valid tag in the padding.
    """

    def __init__(self, batch: PaddedBatch, tags: Array) -> None:
        n_tags = batch.emissions.shape[2]
        self.batch, self.n_tags = batch, n_tags
        self.first, self.last = tags[0], tags[batch.ends]
        # Flat indices into emissions and transitions.
        self.scored = tags + n_tags * numpy.arange(tags.size).reshape(tags.shape)
        self.moves = n_tags * tags[:-1] + tags[1:]

    def scores(self, parameters: CRFParameters) -> Array:
        """Compute the scores of the paths; these scores minus log Z are log-probabilities.

        parameters (CRFParameters): Scores of the CRF.
        RETURNS (Array): Shape (n_sequences,).
        """
        emitted = self.batch.emissions.reshape(-1).take(self.scored)
        moved = numpy.where(self.batch.mask[1:], parameters.transitions.reshape(-1).take(self.moves), 0.0)
        return emitted.sum(0) + moved.sum(0) + parameters.start[self.first] + parameters.end[self.last]

    def subtract(self, marginals: Marginals, weights: Optional[Array]) -> Marginals:
        """Subtract the gradient of the paths' scores.

        marginals (Marginals): Marginals of all paths; their tokens, which must be contiguous, are changed in place.
        weights (Optional[Array]): Shape (n_sequences,): weight of each path. None: all 1.
        RETURNS (Marginals): The difference.
        """
        tokens, counts = marginals
        by_token = self.batch.mask if weights is None else numpy.where(self.batch.mask, weights, 0.0)
        tokens.reshape(-1)[self.scored] -= by_token
        n = self.n_tags
        start, end = (numpy.bincount(tags, weights, n) for tags in (self.first, self.last))
        moves = numpy.bincount(self.moves.reshape(-1), by_token[1:].reshape(-1), n * n).reshape(n, n)
        return Marginals(tokens, counts.minus(CRFParameters(start, moves, end)))


def logsumexp(x: Array) -> Array:
    """Compute log(sum(exp(x))) over the last axis; -inf for a row of -inf."""
    top = numpy.maximum(x.max(-1, keepdims=True), LOWEST)
    with numpy.errstate(divide="ignore"):
        return numpy.log(numpy.exp(x - top).sum(-1)) + top[..., 0]


def reversal(batch: PaddedBatch) -> Optional[Tuple[Array, Array]]:
    """Return the index with which `gather` reverses every sequence within its length; None if flipping is enough."""
    n_steps, n_rows = batch.emissions.shape[:2]
    if batch.lengths[-1] == n_steps:
        return None
    steps = batch.lengths[None, :] - 1 - numpy.arange(n_steps)[:, None]
    steps = numpy.where(steps < 0, numpy.arange(n_steps)[:, None], steps)
    return steps, numpy.arange(n_rows)[None, :]


def reverse(x: Array, index: Optional[Tuple[Array, Array]]) -> Array:
    """Reverse sequences in time with the index of `reversal`."""
    return x[::-1] if index is None else x[index]


def expected_counts(batch: PaddedBatch, tokens: Array, edges: Array) -> Marginals:
    """Complete marginals with the expected counts of the parameters; those of start and end follow from the tokens."""
    return Marginals(tokens, CRFParameters(tokens[0].sum(0), edges, tokens[batch.ends].sum(0)))

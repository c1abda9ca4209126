"""Best paths through a CRF, and probabilities of entities. Arrays only, no torch, no spaCy."""

from contextlib import contextmanager
from itertools import pairwise
from typing import Iterator, List, NamedTuple, Sequence, Tuple

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .kernel import Array, Batch, CRFParameters, Lattice, empty, logsumexp

# Pairs of tags of all sequences of a step, at most: their scores and transitions fit into a cache of 1 MB.
_CACHED = 45_000


class Path(NamedTuple):
    """A tag sequence and its score.

    tags (numpy.ndarray): Shape (n_tokens,).
    score (float): s(y); -inf if the constraints leave no path.
    """

    tags: numpy.ndarray
    score: float


@contextmanager
def _small_buffers() -> Iterator[None]:
    """Keep numpy from copying broadcast or reversed operands through a buffer of 8192 elements, as it does where these
    are not one piece of memory for so long. Those of a batch are shorter, and as fast where they are."""
    size = numpy.setbufsize(1024)
    try:
        yield
    finally:
        numpy.setbufsize(size)


@_small_buffers()
def viterbi(parameters: CRFParameters, batch: Batch) -> List[Path]:
    """Find the best path of every sequence. Back-pointers are recomputed along the best path alone, which costs
    one row per step instead of one table.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    RETURNS (List[Path]): One per sequence, in the order that `pad` was given.
    """
    n_steps, n_rows, n_tags = batch.emissions.shape
    n_running = batch.n_running
    best = empty(batch.emissions.shape)
    best[0] = parameters.start + batch.emissions[0]
    # So many sequences at a time that what a step works on stays in the cache.
    at_once = max(1, min(n_rows, _CACHED // n_tags**2))
    step = _Step(parameters.transitions, at_once)
    for first in range(0, n_rows, at_once):
        # Sequences that end before the first of them go on over padding.
        rows = slice(first, first + at_once)
        for t in range(1, batch.lengths[first]):
            step(best[t - 1, rows], batch.emissions[t, rows], best[t, rows])
    tags = numpy.zeros((n_steps, n_rows), dtype="int64")
    total = numpy.empty(n_rows)
    to_next = numpy.ascontiguousarray(parameters.transitions.T)
    running = 0
    for t in range(n_steps - 1, -1, -1):
        n = n_running[t]
        if n > running:
            final = best[t, running:n] + parameters.end
            tags[t, running:n] = final.argmax(-1)
            total[running:n] = final.max(-1)
        if running:
            tags[t, :running] = (best[t, :running] + to_next.take(tags[t + 1, :running], axis=0)).argmax(-1)
        running = n
    ordered = numpy.empty(n_rows)
    ordered[batch.order] = total
    return [Path(path, score) for path, score in zip(batch.unpad(tags), ordered.tolist(), strict=True)]


def k_best(parameters: CRFParameters, batch: Batch, k: int) -> List[List[Path]]:
    """Find the k best paths of every sequence. Of the k * n_tags ways to a tag only those are looked at that can be
    among its k best: k (k + 1) / 2 of them, once the k best tags before it are found.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    k (int): How many paths, at least 1.
    RETURNS (List[List[Path]]): Per sequence at most k paths, best first; fewer where there are no more.
    """
    _, n_rows, n_tags = batch.emissions.shape
    results: List[List[Path]] = [[] for _ in range(n_rows)]
    # So many sequences at a time that the scores of a step stay in the cache.
    at_once = max(1, min(n_rows, _CACHED // n_tags**2))
    for first in range(0, n_rows, at_once):
        rows = slice(first, first + at_once)
        history, pointers = _reach(parameters, batch.emissions[:, rows], batch.lengths[rows], k)
        for row, given in enumerate(batch.order[rows]):
            length = int(batch.lengths[first + row])
            final = (history[length - 1][:, row] + parameters.end).reshape(-1)
            for state in numpy.argsort(-final, kind="stable")[:k].tolist():
                if final[state] == -numpy.inf:
                    break
                tags = numpy.empty(length, dtype="int64")
                score = float(final[state])
                for t in range(length - 1, -1, -1):
                    rank, tag = divmod(state, n_tags)
                    tags[t] = tag
                    if t > 0:
                        state = int(pointers[t - 1][rank, row, tag])
                results[given].append(Path(tags, score))
    return results


def _reach(
    parameters: CRFParameters, emissions: Array, lengths: NDArray[numpy.intp], k: int
) -> Tuple[List[Array], List[NDArray[numpy.intp]]]:
    """The k best ways to every tag of every step.

    emissions (Array): Shape (n_steps, n_rows, n_tags); the longest sequences first.
    lengths (NDArray[numpy.intp]): Shape (n_rows,).
    RETURNS (Tuple[List[Array], List[NDArray[numpy.intp]]]): Per step (rank, row, tag) of the sequences that have it:
        scores, and from the second step on, rank * n_tags + tag of the step before.
    """
    _, n_rows, n_tags = emissions.shape
    best = numpy.full((k, n_rows, n_tags), -numpy.inf)
    best[0] = parameters.start + emissions[0]
    history, pointers = [best], []
    to = numpy.ascontiguousarray(parameters.transitions.T)
    # The way of rank r over the tag in place m is no better than the best ones over m others, nor than r over the same.
    pairs = numpy.array([(m, r) for m in range(min(k, n_tags)) for r in range(k - m)])
    places, ranks = pairs[:, :1], pairs[:, 1:]
    rows, tags = (side.reshape(-1) for side in numpy.divmod(numpy.arange(n_rows * n_tags), n_tags))
    for t in range(1, int(lengths[0])):
        n = int(numpy.searchsorted(-lengths, -t))  # those that are longer
        size = n * n_tags
        previous = history[-1][:, :n].reshape(-1)
        # (place, row and tag): the tags before, by the best way over each.
        over, first = _largest((previous[:size].reshape(n, 1, n_tags) + to).reshape(size, n_tags), min(k, n_tags))
        # (pair, row and tag): the ways over them.
        over = over[places[:, 0]]
        ways = previous.take(ranks * size + rows[:size] * n_tags + over) + to.take(tags[:size] * n_tags + over)
        ways[first[places[:, 0]] == -numpy.inf] = -numpy.inf
        chosen, scores = _largest(numpy.ascontiguousarray(ways.T), k)
        states = (ranks * n_tags + over).reshape(-1).take(chosen * size + numpy.arange(size))
        pointers.append(states.reshape(k, n, n_tags))
        history.append(scores.reshape(k, n, n_tags) + emissions[t, :n])
    return history, pointers


def _largest(scores: Array, k: int) -> Tuple[NDArray[numpy.intp], Array]:
    """Where the k largest values of each row are, the largest first, and the values; -inf where there are no more.

    scores (Array): Shape (n_rows, n), in one piece; overwritten.
    RETURNS (Tuple[NDArray[numpy.intp], Array]): Shape (k, n_rows) both.
    """
    n_rows, n = scores.shape
    where = numpy.zeros((k, n_rows), dtype="intp")
    values = numpy.full((k, n_rows), -numpy.inf)
    begins, flat = numpy.arange(n_rows) * n, scores.reshape(-1)
    # A few passes are faster than a partition of each row.
    for rank in range(min(k, n)):
        scores.argmax(1, out=where[rank])
        cells = begins + where[rank]
        flat.take(cells, out=values[rank], mode="clip")
        flat[cells] = -numpy.inf
    return where, values


def entity_log_probabilities(
    lattice: Lattice, row: int, spans: Sequence[Tuple[int, int, Sequence[int]]], continues: Array
) -> List[float]:
    """Log-probability that exactly these entities stand in a sequence, each by itself: the tags spell it, the token
    before does not belong to it, and the token after does not go on with it. Under the constraints of the scheme that
    is the sum over all sequences that decode to the entity. Without them, illegal spellings that `TagScheme.decode`
    would read as the entity as well do not count.

    lattice (Lattice): Sums over the paths.
    row (int): Row of the sequence in the lattice's batch.
    spans (Sequence[Tuple[int, int, Sequence[int]]]): (start, end, tag ids of the tokens).
    continues (Array): Shape (n_tags, n_tags): [a, b] is True if b after a goes on with a's entity.
    RETURNS (List[float]): One per span, at most 0; -inf where there is no path.
    """
    if lattice.log_z[row] == -numpy.inf:
        return [-numpy.inf] * len(spans)
    start_scores, transitions, end_scores = lattice.parameters
    emissions = lattice.batch.emissions[:, row]
    alpha, beta = lattice.alpha[:, row], lattice.beta[:, row]
    length = int(lattice.batch.lengths[row])
    log_z = float(lattice.log_z[row])
    not_continued = numpy.where(continues, -numpy.inf, transitions)
    result = []
    for start, end, tags in spans:
        first, last = tags[0], tags[-1]
        before = start_scores[first] if start == 0 else logsumexp(alpha[start - 1] + not_continued[:, first])
        within = sum(float(emissions[start + i, tag]) for i, tag in enumerate(tags))
        moves = sum(float(transitions[a, b]) for a, b in pairwise(tags))
        if end == length:
            after = end_scores[last]
        else:
            after = logsumexp(not_continued[last] + emissions[end] + beta[end])
        result.append(min(0.0, float(before) + within + moves + float(after) - log_z))
    return result


class _Step:
    """One step of Viterbi, laid out for arithmetic on whole arrays: sequences last, and pairs of tags by how far
    `from` is behind `to`, so that the scores of all `from` at one distance are one piece of memory.

    transitions (Array): Shape (n_tags, n_tags).
    n_rows (int): Number of sequences, at most.
    """

    def __init__(self, transitions: Array, n_rows: int) -> None:
        n_tags = len(transitions)
        to = numpy.arange(n_tags)
        distances = (to[:, None] + to) % n_tags
        self.transitions = empty((n_tags, n_tags * n_rows))
        self.transitions.reshape(n_tags, n_tags, n_rows)[...] = transitions[distances, to][:, :, None]
        self.twice = numpy.zeros((2, n_tags, n_rows))
        self.shifted = sliding_window_view(self.twice.reshape(-1), n_tags * n_rows)[:-1:n_rows]
        self.scores = empty((n_tags, n_tags * n_rows))
        self.result = empty((n_tags, n_rows))
        self.flat_result = self.result.reshape(-1)

    def __call__(self, before: Array, emissions: Array, out: Array) -> None:
        """Write the scores of the best ways up to and with each tag.

        before (Array): The scores before, shape (n_rows, n_tags).
        emissions (Array): Same shape.
        out (Array): Same shape; is written to.
        """
        n = len(before)
        self.twice[:, :, :n] = before.T
        numpy.add(self.shifted, self.transitions, out=self.scores)
        numpy.maximum.reduce(self.scores, axis=0, out=self.flat_result)
        numpy.add(self.result.T[:n], emissions, out=out)

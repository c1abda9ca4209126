"""Best paths through a CRF, and probabilities of entities. Arrays only, no torch, no spaCy."""

from itertools import pairwise
from typing import List, NamedTuple, Sequence, Tuple

import numpy
from thinc.api import get_array_module

from .kernel import Array, Batch, CRFParameters, Lattice, logsumexp


class Path(NamedTuple):
    """A tag sequence and its score.

    tags (numpy.ndarray): Shape (n_tokens,).
    score (float): s(y); -inf if the constraints leave no path.
    """

    tags: numpy.ndarray
    score: float


def viterbi(parameters: CRFParameters, batch: Batch) -> List[Path]:
    """Find the best path of every sequence. Back-pointers are recomputed along the best path alone, which costs
    one row per step instead of one table.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    RETURNS (List[Path]): One per sequence, in the order that `pad` was given.
    """
    xp = get_array_module(batch.emissions)
    n_steps, n_rows, n_tags = batch.emissions.shape
    n_running = batch.n_running
    best = xp.empty_like(batch.emissions)
    best[0] = parameters.start + batch.emissions[0]
    transitions = parameters.transitions[:, None, :]
    # (from, row, to): reducing over the first axis keeps the inner loops contiguous.
    scores = xp.empty((n_tags, n_rows, n_tags))
    for t in range(1, n_steps):
        n = n_running[t]
        xp.add(best[t - 1, :n].T[:, :, None], transitions, out=scores[:, :n])
        xp.max(scores[:, :n], axis=0, out=best[t, :n])
        best[t, :n] += batch.emissions[t, :n]
    tags = xp.zeros((n_steps, n_rows), dtype="int64")
    total = xp.empty(n_rows)
    to_next = xp.ascontiguousarray(parameters.transitions.T)
    running = 0
    for t in range(n_steps - 1, -1, -1):
        n = n_running[t]
        if n > running:
            final = best[t, running:n] + parameters.end
            tags[t, running:n] = final.argmax(-1)
            total[running:n] = final.max(-1)
        if running:
            tags[t, :running] = (best[t, :running] + to_next[tags[t + 1, :running]]).argmax(-1)
        running = n
    return _paths(batch, tags, total)


def k_best(parameters: CRFParameters, batch: Batch, k: int) -> List[List[Path]]:
    """Find the k best paths of every sequence.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    k (int): How many paths, at least 1.
    RETURNS (List[List[Path]]): Per sequence at most k paths, best first; fewer where there are no more.
    """
    xp = get_array_module(batch.emissions)
    n_steps, n_rows, n_tags = batch.emissions.shape
    n_running = batch.n_running
    # (row, rank, tag): scores of the best `rank` ways to reach a tag.
    best = xp.full((n_rows, k, n_tags), -xp.inf)
    best[:, 0] = parameters.start + batch.emissions[0]
    history = [best]
    pointers = []
    for t in range(1, n_steps):
        n = n_running[t]
        previous = history[-1][:n]
        scores = previous[:, :, :, None] + parameters.transitions
        scores = scores.reshape(n, k * n_tags, n_tags)
        kept = xp.argsort(-scores, axis=1)[:, :k]
        pointers.append(kept)
        history.append(xp.take_along_axis(scores, kept, axis=1) + batch.emissions[t, :n, None])
    results: List[List[Path]] = [[] for _ in range(n_rows)]
    for row, given in enumerate(batch.order):
        length = int(batch.lengths[row])
        final = (history[length - 1][row] + parameters.end).reshape(-1)
        for state in xp.argsort(-final)[:k].tolist():
            if final[state] == -xp.inf:
                break
            tags = numpy.empty(length, dtype="int64")
            score = float(final[state])
            for t in range(length - 1, -1, -1):
                rank, tag = divmod(state, n_tags)
                tags[t] = tag
                if t > 0:
                    state = int(pointers[t - 1][row, rank, tag])
            results[given].append(Path(tags, score))
    return results


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
    xp = get_array_module(lattice.alpha)
    if lattice.log_z[row] == -xp.inf:
        return [-numpy.inf] * len(spans)
    start_scores, transitions, end_scores = lattice.parameters
    emissions = lattice.batch.emissions[:, row]
    alpha, beta = lattice.alpha[:, row], lattice.beta[:, row]
    length = int(lattice.batch.lengths[row])
    log_z = float(lattice.log_z[row])
    not_continued = xp.where(xp.asarray(continues), -xp.inf, transitions)
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


def _paths(batch: Batch, tags: Array, scores: Array) -> List[Path]:
    if not isinstance(tags, numpy.ndarray):
        tags, scores = tags.get(), scores.get()
    unpadded = batch.unpad(tags)
    ordered = numpy.empty(len(scores))
    ordered[batch.order] = scores
    return [Path(path, float(score)) for path, score in zip(unpadded, ordered, strict=True)]

"""Best paths through a CRF, and probabilities of entities. Arrays only, no torch, no spaCy."""

from typing import List, NamedTuple, Sequence, Tuple

import numpy

from .kernel import Array, Batch, CRFParameters, Lattice, logsumexp


class Path(NamedTuple):
    """A tag sequence and its score.

    tags (numpy.ndarray): Shape (n_tokens,).
    score (float): s(y); -inf if the constraints leave no path.
    """

    tags: numpy.ndarray
    score: float


def viterbi(parameters: CRFParameters, batch: Batch) -> List[Path]:
    """Find the best path of every sequence.

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    RETURNS (List[Path]): One per sequence, in the order that `pad` was given.
    """
    best = _best_ways(parameters, batch)
    final = best[batch.ends] + parameters.end
    tags = _trace_back(parameters, best, batch.lengths - 1, final.argmax(-1))
    scores = numpy.empty(len(batch.order))
    scores[batch.order] = final.max(-1)
    return [Path(path, score) for path, score in zip(batch.unpad(tags), scores.tolist(), strict=True)]


def k_best(parameters: CRFParameters, batch: Batch, k: int) -> List[List[Path]]:
    """Find the k best paths of every sequence. Every path but the best leaves a better one at some step, seen from the
    end, and goes the best way from there to the beginning. Of all steps and tags at which the paths found so far can be
    left, and have not been, the best gives the next path (Lawler 1972).

    parameters (CRFParameters): Scores of the CRF.
    batch (Batch): Emissions; -inf where a tag is not allowed.
    k (int): How many paths, at least 1.
    RETURNS (List[List[Path]]): Per sequence at most k paths, best first; fewer where there are no more.
    """
    n_steps, n_rows, n_tags = batch.emissions.shape
    best, rows, steps = _best_ways(parameters, batch), numpy.arange(n_rows), numpy.arange(n_steps)[:, None]
    # left[r, t, row, tag]: the score of the best path with this tag at step t that goes on like path r behind it.
    left = numpy.full((k, n_steps, n_rows, n_tags), -numpy.inf)
    left[0][batch.ends] = best[batch.ends] + parameters.end
    peaks = left.max(-1)
    tags = numpy.zeros((k, n_steps, n_rows), dtype="int64")
    results: List[List[Path]] = [[] for _ in rows]
    for rank in range(k):
        chosen = peaks.reshape(-1, n_rows).argmax(0)
        scores = peaks.reshape(-1, n_rows)[chosen, rows].tolist()
        before, at = numpy.divmod(chosen, n_steps)
        place = (before, at, rows)
        tag = left[place].argmax(-1)
        tags[rank] = numpy.where(steps > at, tags[before, :, rows].T, _trace_back(parameters, best, at, tag))
        for given, path, length, score in zip(batch.order, tags[rank].T, batch.lengths.tolist(), scores, strict=True):
            if score > -numpy.inf:
                results[given].append(Path(path[:length], score))
        left[(*place, tag)] = -numpy.inf
        peaks[place] = left[place].max(-1)
        earlier = (steps < at)[:-1]
        left[rank, :-1] = numpy.where(earlier[:, :, None], _turns(parameters, batch, best, tags[rank]), left[rank, :-1])
        peaks[rank, :-1] = left[rank, :-1].max(-1)
    return results


def _turns(parameters: CRFParameters, batch: Batch, best: Array, tags: Array) -> Array:
    """The scores of the best paths that have another tag than some path at one step, and go on like it.

    best (Array): As `_best_ways` gives it.
    tags (Array): Shape (n_steps, n_rows): the path of each sequence.
    RETURNS (Array): Shape (n_steps - 1, n_rows, n_tags); -inf for the path's own tags.
    """
    steps, rows = numpy.arange(len(tags))[:, None], numpy.arange(tags.shape[1])
    own = numpy.where(batch.mask, batch.emissions[steps, rows, tags], 0.0)
    own[:-1] += numpy.where(batch.mask[1:], parameters.transitions[tags[:-1], tags[1:]], 0.0)
    own[batch.ends] += parameters.end[tags[batch.ends]]
    # What the path gains from each step on.
    onwards = numpy.cumsum(own[::-1], axis=0)[::-1]
    scores = numpy.ascontiguousarray(parameters.transitions.T)[tags[1:]]
    scores += best[:-1]
    scores += onwards[1:, :, None]
    scores[steps[:-1], rows, tags[:-1]] = -numpy.inf
    return scores


def _best_ways(parameters: CRFParameters, batch: Batch) -> Array:
    """The scores of the best ways up to and with each tag.

    RETURNS (Array): Shape of the emissions; anything but NaN in the padding.
    """
    best = numpy.zeros(batch.emissions.shape)
    best[0] = parameters.start + batch.emissions[0]
    # shape: (n_tags, n_tags, 1), from and to: the largest of the first axis is found fastest
    transitions = parameters.transitions[:, :, None]
    ways = numpy.empty((*parameters.transitions.shape, len(batch.lengths)))
    for t, n in enumerate(batch.n_running[1:], start=1):
        some = ways[:, :, :n]
        numpy.add(best[t - 1, :n].T[:, None, :], transitions, out=some)
        best[t, :n] = some.max(0).T + batch.emissions[t, :n]
    return best


def _trace_back(parameters: CRFParameters, best: Array, at: Array, tag: Array) -> Array:
    """The best ways that end in given tags. Back-pointers are recomputed along them alone, which costs one row per step
    instead of one table.

    best (Array): As `_best_ways` gives it.
    at, tag (Array): Shape (n_rows,): where each way ends, and in which tag.
    RETURNS (Array): Shape (n_steps, n_rows): its tags; 0 after the end.
    """
    to = numpy.ascontiguousarray(parameters.transitions.T)
    tags = numpy.zeros(best.shape[:2], dtype="int64")
    tags[at, numpy.arange(len(at))] = tag
    for t in range(int(at.max()) - 1, -1, -1):
        rows = numpy.flatnonzero(at > t)
        tags[t, rows] = (best[t, rows] + to[tags[t + 1, rows]]).argmax(-1)
    return tags


def entity_log_probabilities(
    lattice: Lattice, rows: Array, spans: Sequence[Tuple[int, int, Sequence[int]]], continues: Array
) -> Array:
    """Log-probability that exactly these entities stand in a sequence, each by itself: the tags spell it, the token
    before does not belong to it, and the token after does not go on with it. Under the constraints of the scheme that
    is the sum over all sequences that decode to the entity. Without them, illegal spellings that `TagScheme.decode`
    would read as the entity as well do not count.

    lattice (Lattice): Sums over the paths.
    rows (Array): Shape (n,): row of each entity's sequence in the lattice's batch.
    spans (Sequence[Tuple[int, int, Sequence[int]]]): (start, end, tag ids of the tokens) of each entity.
    continues (Array): Shape (n_tags, n_tags): [a, b] is True if b after a goes on with a's entity.
    RETURNS (Array): Shape (n,): at most 0; -inf where there is no path.
    """
    if not spans:
        return numpy.zeros(0)
    scores, batch = lattice.parameters, lattice.batch
    start, end = numpy.array([span[:2] for span in spans]).T
    # All tokens of all entities, one after the other.
    tags = numpy.concatenate([span[2] for span in spans])
    last = numpy.cumsum(end - start) - 1
    first = last - (end - start) + 1
    entity = numpy.repeat(numpy.arange(len(spans)), end - start)
    own = batch.emissions[numpy.arange(len(tags)) + (start - first)[entity], rows[entity], tags]
    own[:-1] += numpy.where(entity[1:] == entity[:-1], scores.transitions[tags[:-1], tags[1:]], 0.0)
    within = numpy.add.reduceat(own, first)
    not_continued = numpy.where(continues, -numpy.inf, scores.transitions)
    before = logsumexp(lattice.alpha[start - 1, rows] + not_continued.T[tags[first]])
    before = numpy.where(start == 0, scores.start[tags[first]], before)
    # At the last step there is no next one; what is read there does not count.
    following = numpy.minimum(end, len(batch.emissions) - 1)
    after = logsumexp(not_continued[tags[last]] + batch.emissions[following, rows] + lattice.beta[following, rows])
    after = numpy.where(end == batch.lengths[rows], scores.end[tags[last]], after)
    log_z = lattice.log_z[rows]
    dead = log_z == -numpy.inf
    return numpy.where(dead, -numpy.inf, numpy.minimum(0.0, before + within + after - numpy.where(dead, 0.0, log_z)))

"""Best paths through a CRF, and probabilities of entities. Arrays only, no torch, no spaCy."""

import math
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
    tags = numpy.zeros(best.shape[:2], dtype="int64")
    tags[batch.ends] = final.argmax(-1)
    # Back-pointers are recomputed along the best ways alone, which costs one row per step instead of one table.
    to = numpy.ascontiguousarray(parameters.transitions.T)
    for t in range(len(tags) - 2, -1, -1):
        n = batch.n_running[t + 1]
        tags[t, :n] = (best[t, :n] + to[tags[t + 1, :n]]).argmax(-1)
    scores = numpy.empty(len(batch.order))
    scores[batch.order] = final.max(-1)
    return [Path(path, score) for path, score in zip(batch.unpad(tags), scores.tolist(), strict=True)]


def _best_ways(parameters: CRFParameters, batch: Batch) -> Array:
    """The scores of the best ways up to and with each tag.

    RETURNS (Array): Shape of the emissions; anything but NaN in the padding.
    """
    best = numpy.zeros(batch.emissions.shape)
    best[0] = parameters.start + batch.emissions[0]
    # shape: (n_tags, 1, n_tags), from and to: the largest of the first axis is found fastest
    transitions = parameters.transitions[:, None, :]
    ways = numpy.empty((len(transitions), *best.shape[1:]))
    for t, n in enumerate(batch.n_running[1:], start=1):
        some = ways[:, :n]
        numpy.add(best[t - 1, :n].T[:, :, None], transitions, out=some)
        best[t, :n] = some.max(0) + batch.emissions[t, :n]
    return best


def probable_spans(lattice: Lattice, tags: Array, least: float) -> Array:
    """Find all spans that may be entities. An entity is no more probable than any tags that it begins with, so that
    few are tried.

    lattice (Lattice): Sums over the paths.
    tags (Array): Shape (n_labels, 3): for each label the first tag of an entity of several tokens, the next ones but
        the last, and the tag of one of one token.
    least (float): The least probability, above 0.
    RETURNS (Array): Shape (n, 4): row of the batch, start, end and number of the label; some are less probable.
    """
    batch, transitions = lattice.batch, lattice.parameters.transitions
    first, inside, _ = tags.T
    sure = lattice.token_marginals()[:, :, tags] >= least
    starts, rows, labels = numpy.nonzero(sure[..., 0] | sure[..., 2])
    found = [numpy.stack([rows, starts, starts + 1, labels], axis=1)]
    starts, rows, labels = numpy.nonzero(sure[..., 0])
    # Log-sum of the paths that begin so.
    begun, last = lattice.alpha[starts, rows, first[labels]] - lattice.log_z[rows], first[labels]
    for width in range(2, len(batch.emissions) + 1):
        kept = starts + width <= batch.lengths[rows]
        starts, rows, labels, begun, last = (values[kept] for values in (starts, rows, labels, begun, last))
        if not len(starts):
            break
        found.append(numpy.stack([rows, starts, starts + width, labels], axis=1))
        token, tag = starts + width - 1, inside[labels]
        begun += transitions[last, tag] + batch.emissions[token, rows, tag]
        kept = begun + lattice.beta[token, rows, tag] >= math.log(least)
        starts, rows, labels, begun, last = (values[kept] for values in (starts, rows, labels, begun, tag))
    return numpy.concatenate(found)


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
    token_scores = batch.emissions[numpy.arange(len(tags)) + (start - first)[entity], rows[entity], tags]
    token_scores[:-1] += numpy.where(entity[1:] == entity[:-1], scores.transitions[tags[:-1], tags[1:]], 0.0)
    within = numpy.add.reduceat(token_scores, first)
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

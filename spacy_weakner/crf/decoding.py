"""Best paths of a CRF, and probabilities of entities. Uses arrays only, no torch, no spaCy."""

import math
from typing import List, NamedTuple, Sequence, Tuple

import numpy

from ..ty import Array
from .kernel import CRFParameters, Lattice, PaddedBatch, logsumexp

# Maximum number of scores of transitions in memory: 2 MB, which fit the caches.
_CHUNK = 2**18


class Path(NamedTuple):
    """A tag sequence and its score.

    tags (numpy.ndarray): Shape (n_tokens,).
    score (float): s(y); -inf if the constraints allow no path.
    """

    tags: numpy.ndarray
    score: float


def viterbi(parameters: CRFParameters, batch: PaddedBatch) -> List[Path]:
    """Find the best path of every sequence.

    parameters (CRFParameters): Scores of the CRF.
    batch (PaddedBatch): Emissions; -inf where a tag is not allowed.
    RETURNS (List[Path]): One path per sequence, in the order of the sequences given to `pad`.
    """
    best = _best_ways(parameters, batch)
    final = best[batch.ends] + parameters.end
    tags = numpy.zeros(best.shape[:2], dtype="int64")
    tags[batch.ends] = final.argmax(-1)
    # Back-pointers are computed only along the best paths, which needs one row per step instead of a table.
    to = numpy.ascontiguousarray(parameters.transitions.T)
    for t in range(len(tags) - 2, -1, -1):
        n = batch.n_running[t + 1]
        tags[t, :n] = (best[t, :n] + to[tags[t + 1, :n]]).argmax(-1)
    scores = numpy.empty(len(batch.order))
    scores[batch.order] = final.max(-1)
    return [Path(path, score) for path, score in zip(batch.unpad(tags), scores.tolist(), strict=True)]


def _best_ways(parameters: CRFParameters, batch: PaddedBatch) -> Array:
    """Return the scores of the best paths up to and including each tag, in the shape of the emissions; the values in
    the padding are arbitrary but not NaN."""
    best = numpy.zeros(batch.emissions.shape)
    best[0] = parameters.start + batch.emissions[0]
    # shape: (n_tags, 1, n_tags), from and to: the maximum over the first axis is the fastest
    transitions = parameters.transitions[:, None, :]
    _, n_rows, n_tags = batch.emissions.shape
    size = min(n_rows, max(1, _CHUNK // n_tags**2))
    ways = numpy.empty((n_tags, size, n_tags))
    for t, n in enumerate(batch.n_running[1:], start=1):
        for low in range(0, n, size):
            rows = slice(low, min(low + size, n))
            some = ways[:, : rows.stop - low]
            numpy.add(best[t - 1, rows].T[:, :, None], transitions, out=some)
            best[t, rows] = some.max(0) + batch.emissions[t, rows]
    return best


def probable_spans(lattice: Lattice, tags: Array, least: float) -> Array:
    """Find all spans that may be entities with a minimum probability. An entity is at most as probable as any prefix of
    its tags, so that few spans are tried.

    lattice (Lattice): Sums over the paths.
    tags (Array): Shape (n_labels, 3): for each label the first tag of an entity of several tokens, the tag of its inner
        tokens, and the tag of an entity of one token.
    least (float): The minimum probability, above 0.
    RETURNS (Array): Shape (n, 4): row of the batch, start, end and number of the label. Includes all spans with the
        minimum probability, and some less probable ones.
    """
    batch, transitions = lattice.batch, lattice.parameters.transitions
    first, inside, _ = tags.T
    probable = lattice.token_marginals()[:, :, tags] >= least
    starts, rows, labels = numpy.nonzero(probable[..., 0] | probable[..., 2])
    found = [numpy.stack([rows, starts, starts + 1, labels], axis=1)]
    starts, rows, labels = numpy.nonzero(probable[..., 0])
    # Log-probability of the prefixes: log-sum of their paths minus log Z.
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
    """Compute the log-probability of each entity: its tokens have the given tags, the token before does not belong to
    it, and the token after does not continue it. With the constraints of the tag scheme, this is the sum over all
    sequences that decode to the entity. Without them, illegal tags that `TagScheme.decode` also decodes to the entity
    are not counted.

    lattice (Lattice): Sums over the paths.
    rows (Array): Shape (n,): row of each entity's sequence in the lattice's batch.
    spans (Sequence[Tuple[int, int, Sequence[int]]]): (start, end, tag ids of the tokens) of each entity.
    continues (Array): Shape (n_tags, n_tags): [a, b] is True if tag b after tag a continues the entity of a.
    RETURNS (Array): Shape (n,): at most 0; -inf if there is no path.
    """
    if not spans:
        return numpy.zeros(0)
    scores, batch = lattice.parameters, lattice.batch
    start, end = numpy.array([span[:2] for span in spans]).T
    # The concatenated tokens of all entities.
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
    # The last step has no next one; the value used instead is discarded below.
    following = numpy.minimum(end, len(batch.emissions) - 1)
    after = logsumexp(not_continued[tags[last]] + batch.emissions[following, rows] + lattice.beta[following, rows])
    after = numpy.where(end == batch.lengths[rows], scores.end[tags[last]], after)
    log_z = lattice.log_z[rows]
    dead = log_z == -numpy.inf
    return numpy.where(dead, -numpy.inf, numpy.minimum(0.0, before + within + after - numpy.where(dead, 0.0, log_z)))

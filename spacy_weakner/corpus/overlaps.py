"""Selection among overlapping spans."""

from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

import numpy
from spacy.tokens import Span

from ..ty import Entity
from .counts import RowCounts

OVERLAPS = "overlapping spans; their tokens count as missing"


def without_overlaps(spans: Sequence[Tuple[int, int]], ranks: Any, n_tokens: int) -> List[int]:
    """Select spans greedily by rank, highest first, skipping each that overlaps a selected one. Return their indices,
    sorted by start."""
    free = numpy.ones(n_tokens, dtype=bool)
    chosen: List[int] = []
    for i in numpy.argsort(-numpy.asarray(ranks), kind="stable").tolist():
        start, end = spans[i]
        if free[start:end].all():
            free[start:end] = False
            chosen.append(i)
    return sorted(chosen, key=lambda i: spans[i][0])


def highest_ranked(ranks: Mapping[Entity, float]) -> List[Entity]:
    """Return the entities of the highest rank among overlapping ones, sorted by start."""
    entities = sorted(ranks)
    n_tokens = max((end for _, end, _ in entities), default=0)
    chosen = without_overlaps([entity[:2] for entity in entities], [ranks[entity] for entity in entities], n_tokens)
    return [entities[i] for i in chosen]


def overlapping(entities: Iterable[Entity]) -> List[List[Entity]]:
    """Group entities, from left to right, so that entities of different groups do not overlap."""
    groups: List[List[Entity]] = []
    reach = 0
    for entity in sorted(set(entities)):
        if entity[0] >= reach:
            groups.append([])
        groups[-1].append(entity)
        reach = max(reach, entity[1])
    return groups


def drop_overlaps(entities: Iterable[Entity], counts: RowCounts) -> Tuple[List[Entity], List[Tuple[int, int]]]:
    """Separate entities that overlap no other from the ranges of overlapping ones: a Doc can hold only one of these,
    and the right one is unknown."""
    clusters = overlapping(entities)
    kept = [cluster[0] for cluster in clusters if len(cluster) == 1]
    others = [cluster for cluster in clusters if len(cluster) > 1]
    counts.note(OVERLAPS, sum(map(len, others)))
    return kept, [(cluster[0][0], max(end for _, end, _ in cluster)) for cluster in others]


def longest_first(spans: Sequence[Span]) -> List[int]:
    """Select among overlapping matches of a source: more characters first, then more tokens, then the leftmost, then
    the alphabetically first label. Return their indices, sorted by start."""
    bounds = [(span.start, span.end) for span in spans]
    keys = [(span.start_char - span.end_char, span.start - span.end, span.start, span.label_) for span in spans]
    ranks = numpy.argsort(sorted(range(len(keys)), key=keys.__getitem__))
    return without_overlaps(bounds, -ranks, max((end for _, end in bounds), default=0))


def best_without_overlaps(
    spans: Sequence[Tuple[int, int]], weights: Any, n_tokens: int, least: float = 0.0
) -> List[int]:
    """Select the non-overlapping spans with the largest sum of weights. If the weights are probabilities of being
    right, this selection has the largest expected number of right spans: two neighbors win over a span across both
    unless that is more probable than both together.

        best(end) = max(best(end - 1), max_{spans that end there} best(start) + weight)

    weights (Any): Shape (n,). Spans with a weight of 0 or less are not selected. Of equally good selections, the one
        with the earlier spans of the list is taken.
    least (float): Minimum gain of a selected span: smaller gains are rounding errors.
    RETURNS (List[int]): Indices of the selected spans, sorted by start.
    """
    by_end: Dict[int, List[int]] = {}
    for i, (_, end) in enumerate(spans):
        by_end.setdefault(end, []).append(i)
    best, last = [0.0] * (n_tokens + 1), [-1] * (n_tokens + 1)
    for end in range(1, n_tokens + 1):
        best[end] = best[end - 1]
        for i in by_end.get(end, ()):
            value = best[spans[i][0]] + float(weights[i])
            if value > best[end] + least:
                best[end], last[end] = value, i
    chosen: List[int] = []
    end = n_tokens
    while end > 0:
        i = last[end]
        if i < 0:
            end -= 1
        else:
            chosen.append(i)
            end = spans[i][0]
    return chosen[::-1]

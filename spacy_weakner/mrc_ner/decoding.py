"""Decodes entities from probabilities of boundaries."""

from typing import Dict, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..corpus.overlaps import best_without_overlaps, without_overlaps
from ..heads.entities import Prediction
from ..ty import NEAREST, Array, BoolMask, Entity, SpanArray
from .boundaries import ENDS, STARTS, probabilities

# Number of nearest ends that are tried with a start if entities may have any width.
N_ENDS_PROBABLE = 64
# Maximum number of (most probable) pairs in a Doc that are processed, which bounds the cost of a low threshold.
MOST_PAIRS = 100_000
_PAIRS_AT_A_TIME = 1 << 20


def ends_to_try(pairing: str, max_width: Optional[int]) -> int:
    """Return the number of nearest ends to pair with each start."""
    if pairing == NEAREST:
        return 1
    return N_ENDS_PROBABLE if max_width is None else max_width


def nearest_ends(starts: Array, ends: Array, max_width: Optional[int] = None, n_ends: int = 1) -> SpanArray:
    """Pair every start with the nearest end that does not come before it (Li et al. 2020; Xue et al. 2020). Several
    starts may share an end.

    starts (Array): Shape (n_tokens,): True for the first token of a span.
    ends (Array): Shape (n_tokens,): True for the last token of a span.
    max_width (Optional[int]): Maximum number of tokens of a span; starts whose nearest end is further away have no end.
    n_ends (int): Maximum number of ends of a start: the nearest, the next one and so on.
    RETURNS (SpanArray): Shape (n, 2): spans, ends exclusive, by start.
    """
    # Starts are processed in chunks, to bound the memory.
    begins, closes = numpy.flatnonzero(starts), numpy.flatnonzero(ends)
    after = numpy.append(closes + 1, 0)
    found = [numpy.zeros((0, 2), dtype="int64")]
    size = max(1, _PAIRS_AT_A_TIME // max(1, n_ends))
    for low in range(0, len(begins), size):
        some_begins = begins[low : low + size]
        places = numpy.searchsorted(closes, some_begins)[:, None] + numpy.arange(min(n_ends, len(closes)))
        stops = after[numpy.minimum(places, len(closes))]
        fits = places < len(closes)
        if max_width is not None:
            fits &= stops - some_begins[:, None] <= max_width
        rows, columns = numpy.nonzero(fits)
        found.append(numpy.stack([some_begins[rows], stops[rows, columns]], axis=1))
    return numpy.concatenate(found)


def pair_boundaries(boundaries: NDArray[numpy.bool_], max_width: Optional[int], n_ends: int = 1) -> SpanArray:
    """Pair starts and ends for all labels; see `nearest_ends`.

    boundaries (NDArray[numpy.bool_]): Shape (n_tokens, n_labels, 2): True where spans begin and end.
    max_width, n_ends: See `nearest_ends`.
    RETURNS (SpanArray): Shape (n, 3): start, end and label, by label and start.
    """
    found = [numpy.zeros((0, 3), dtype="int64")]
    for k in numpy.flatnonzero(numpy.all(boundaries.any(axis=0), axis=1)).tolist():
        pairs = nearest_ends(boundaries[:, k, STARTS], boundaries[:, k, ENDS], max_width, n_ends)
        found.append(numpy.column_stack([pairs, numpy.full(len(pairs), k)]))
    return numpy.concatenate(found)


def most_probable(spans: SpanArray, boundaries: Array) -> SpanArray:
    """Remove the least probable pairs if there are more than `MOST_PAIRS`."""
    if len(spans) <= MOST_PAIRS:
        return spans
    probability, (starts, ends, labels) = probabilities(boundaries), spans.T
    products = probability[starts, labels, STARTS] * probability[ends - 1, labels, ENDS]
    kept = numpy.argsort(-products, kind="stable")[:MOST_PAIRS]
    return spans[numpy.sort(kept)]


def find_entities(
    boundaries: Array, spans: SpanArray, preset: BoolMask, labels: Sequence[str], temperature: float
) -> Dict[Entity, Tuple[float, float]]:
    """Score the entities of a Doc.

    boundaries (Array): Shape (n_tokens, n_labels, 2): log-odds of starts and ends.
    spans (SpanArray): Shape (n, 3): start, end and label.
    preset (BoolMask): Shape (n_tokens,): tokens that must not be part of any entity.
    labels (Sequence[str]): The labels.
    temperature (float): Divisor of the log-odds before they become probabilities.
    RETURNS (Dict[Entity, Tuple[float, float]]): Entities, which may overlap, each with the product of the probabilities
        of its start and its end: at temperature 1, and at the given one.
    """
    both = [probabilities(boundaries, by) for by in (1.0, temperature)]
    found: Dict[Entity, Tuple[float, float]] = {}
    for first, after, k in spans.tolist():
        if not preset[first:after].any():
            probability, calibrated = (float(sides[first, k, STARTS] * sides[after - 1, k, ENDS]) for sides in both)
            found[first, after, labels[k]] = (probability, calibrated)
    return found


def select_answers(
    found: Dict[Entity, Tuple[float, float]], n_tokens: int, nested: bool, best_sum: bool = False
) -> Prediction:
    """Choose among overlapping entities: one after the other, the most probable first.

    found (Dict[Entity, Tuple[float, float]]): The output of `find_entities`.
    n_tokens (int): Length of the Doc.
    nested (bool): Return all entities as candidates.
    best_sum (bool): Choose those with the largest sum of probabilities, if all ends were tried; candidates are chosen
        in the same way, for each label separately.
    RETURNS (Prediction): The prediction.
    """
    choose = best_without_overlaps if best_sum else without_overlaps

    def chosen(among: List[Entity]) -> List[Entity]:
        spans = [(start, end) for start, end, _ in among]
        return [among[i] for i in choose(spans, [found[entity][0] for entity in among], n_tokens)]

    entities = sorted(found)
    candidates = entities
    if best_sum and nested:
        labels = sorted({label for _, _, label in entities})
        candidates = sorted(e for label in labels for e in chosen([span for span in entities if span[2] == label]))
    best = chosen(candidates)
    return Prediction(
        best,
        [found[entity][1] for entity in best],
        candidates if nested else None,
        [found[entity][1] for entity in candidates] if nested else (),
    )

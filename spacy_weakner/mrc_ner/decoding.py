"""Decodes entities from probabilities of boundaries."""

from typing import Dict, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..corpus.overlaps import best_without_overlaps
from ..heads.entities import Prediction
from ..ty import Array, BoolMask, Entity, SpanArray
from .boundaries import ENDS, STARTS, probabilities

# Number of nearest ends that are tried with a start if entities may have any width.
N_ENDS = 64
# Maximum number of (most probable) pairs in a Doc that are processed, which bounds the cost of a low threshold.
MOST_PAIRS = 100_000
_PAIRS_AT_A_TIME = 1 << 20


def pair_boundaries(boundaries: NDArray[numpy.bool_], max_width: Optional[int]) -> SpanArray:
    """Pair every start with the ends of the same label that do not come before it. (Li et al. 2020 and Xue et al. 2020
    pair it with the nearest one.)

    boundaries (NDArray[numpy.bool_]): Shape (n_tokens, n_labels, 2): True where spans begin and end.
    max_width (Optional[int]): Maximum number of tokens of a span; None: any number, but only the 64 nearest ends.
    RETURNS (SpanArray): Shape (n, 3): start, end and label, by label, start and end.
    """
    found = [numpy.zeros((0, 3), dtype="int64")]
    for k in numpy.flatnonzero(numpy.all(boundaries.any(axis=0), axis=1)).tolist():
        starts, ends = (numpy.flatnonzero(boundaries[:, k, side]) for side in (STARTS, ENDS))
        after = numpy.append(ends + 1, 0)  # past the last end, widths are negative
        nearest = numpy.arange(min(N_ENDS if max_width is None else max_width, len(ends)))
        # Starts are processed in chunks, to bound the memory.
        size = max(1, _PAIRS_AT_A_TIME // len(nearest))
        for low in range(0, len(starts), size):
            begins = starts[low : low + size, None]
            widths = after.take(numpy.searchsorted(ends, begins) + nearest, mode="clip") - begins
            rows, columns = numpy.nonzero((widths > 0) & (widths <= (max_width or len(boundaries))))
            firsts = begins[rows, 0]
            found.append(numpy.column_stack([firsts, firsts + widths[rows, columns], numpy.full(len(rows), k)]))
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


def select_answers(found: Dict[Entity, Tuple[float, float]], n_tokens: int, nested: bool) -> Prediction:
    """Choose the entities without overlaps that have the largest sum of probabilities.

    found (Dict[Entity, Tuple[float, float]]): The output of `find_entities`.
    n_tokens (int): Length of the Doc.
    nested (bool): Choose for each label separately first: these are the candidates, from which the entities come.
    RETURNS (Prediction): The prediction.
    """

    def chosen(among: List[Entity]) -> List[Entity]:
        spans = [(start, end) for start, end, _ in among]
        return [among[i] for i in best_without_overlaps(spans, [found[entity][0] for entity in among], n_tokens)]

    def scores(entities: List[Entity]) -> List[Optional[float]]:
        return [found[entity][1] for entity in entities]

    entities = sorted(found)
    if not nested:
        best = chosen(entities)
        return Prediction(best, scores(best))
    labels = {label for _, _, label in entities}
    candidates = sorted(e for label in labels for e in chosen([span for span in entities if span[2] == label]))
    best = chosen(candidates)
    return Prediction(best, scores(best), candidates, scores(candidates))

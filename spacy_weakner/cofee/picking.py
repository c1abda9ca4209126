"""Iterative self-picking (Xue et al. 2020, Section 4.2): a model that was trained on a gazetteer's labels finds
entities that the gazetteer misses."""

from dataclasses import dataclass
from typing import Optional

import numpy

from ..corpus.overlaps import best_without_overlaps
from ..errors import check_range
from ..mrc_ner.boundaries import ENDS, STARTS, Boundaries
from ..mrc_ner.decoding import pair_boundaries
from ..ty import Array, SpanArray


@dataclass(frozen=True)
class SelfPicking:
    """A relabeler that picks spans whose start and end have probabilities above a threshold as entities (Xue et al.
    2020, Section 4.2): of all labels, those without overlaps that have the largest sum of probabilities. (The paper
    pairs each start with the nearest end, for each label separately; with a low threshold, that end is often an
    improbable one, which cuts an entity short.) The probabilities are those of the teacher, the model at the last
    renewal. Tokens without annotation have no loss, even if they are picked: use sentences whose unlabeled tokens are
    "O".

    threshold (float): The picking rate delta. Below 0.5, more entities are picked than the model would predict; the
        best value in the paper is 0.1.
    union (bool): Keep the given labels, and pick none that overlaps them. (In the paper they are replaced.)
    max_width (Optional[int]): Maximum number of tokens of an entity. None: any number, but a start is paired with the
        64 nearest ends only.
    at_start (bool): Whether to pick with the initial model, which must then have learned the given labels. If not, the
        given labels are used until the first renewal after the start. A model that has not learned them well picks far
        too many entities.
    RAISES (WeaknerError): If the threshold or the maximum width is out of range.
    """

    threshold: float = 0.1
    union: bool = False
    max_width: Optional[int] = 10
    at_start: bool = False

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 0.0, 1.0)
        check_range("max_width", self.max_width, 1, None, optional=True)

    def __call__(self, target: Boundaries, probabilities: Array) -> Boundaries:
        given = target.spans if self.union else target.spans[:0]
        spans = pair_boundaries(probabilities > self.threshold, self.max_width)
        spans = most_expected(spans, probabilities, given)
        wanted = target.wanted.copy() if self.union else numpy.zeros_like(target.wanted)
        starts, ends, labels = spans.T
        wanted[starts, labels, STARTS] = True
        wanted[ends - 1, labels, ENDS] = True
        return Boundaries(wanted, target.known, numpy.unique(numpy.concatenate([given, spans]), axis=0))


def most_expected(spans: SpanArray, probabilities: Array, given: SpanArray) -> SpanArray:
    """Choose spans that overlap neither each other nor the given ones, with the largest sum of the products of start
    and end probabilities. Spans: shape (n, 3), start, end and label; probabilities: shape (n_tokens, n_labels,
    2)."""
    taken = numpy.zeros(len(probabilities), dtype=bool)
    for start, end, _ in given.tolist():
        taken[start:end] = True
    spans = spans[[not taken[start:end].any() for start, end, _ in spans.tolist()]] if len(given) else spans
    starts, ends, labels = spans.T
    weights = probabilities[starts, labels, STARTS] * probabilities[ends - 1, labels, ENDS]
    return spans[best_without_overlaps(spans[:, :2].tolist(), weights, len(probabilities))]

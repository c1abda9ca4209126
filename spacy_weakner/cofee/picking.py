"""Iterative self-picking (Xue et al. 2020, Section 4.2): a model that was trained on a gazetteer's labels finds what
the gazetteer has missed."""

from dataclasses import dataclass
from typing import Optional

import numpy

from ..corpus.overlaps import best_without_overlaps
from ..errors import check_choice, check_range
from ..losses import Array
from ..mrc_ner.boundaries import ENDS, STARTS, Boundaries
from ..mrc_ner.decoding import Spans, ends_to_try, pair_boundaries
from ..mrc_ner.entity_types import mention_spans
from ..ty import NEAREST, PAIRINGS, PROBABLE


@dataclass(frozen=True)
class SelfPicking:
    """Take as entities what begins and ends with a probability above a threshold (Xue et al. 2020, Section 4.2), each
    start with its nearest end (`pairing`). The probabilities are those of the teacher: the model itself as it was at
    the last renewal. Tokens without annotation teach nothing, whatever is picked there: give sentences whose other
    tokens are "O".

    threshold (float): The picking rate delta. Below 0.5 it recalls more than the model would predict; the paper's best
        is 0.1.
    union (bool): Keep the given labels beside the picked ones. (In the paper they are replaced.)
    pairing (str): "nearest": each start has the nearest end, for each label alone, as in the paper. "probable": all
        ends within `max_width` are tried (64 if it is None), and of entities without overlaps, whatever their labels,
        those are picked whose probabilities have the largest sum; none overlaps a given one that is kept. With a low
        threshold the nearest end is often one that is hardly probable, and cuts an entity short.
    max_width (Optional[int]): Tokens of an entity, at most.
    at_start (bool): Whether the model that the training begins with picks, which must have learned the given labels
        then. If not, the labels are the given ones until the first renewal after the start. A model that has not
        learned them well yet picks far too much.
    RAISES (WeaknerError): If the threshold is no probability, or the pairing unknown.
    """

    threshold: float = 0.1
    union: bool = False
    max_width: Optional[int] = 10
    pairing: str = NEAREST
    at_start: bool = False

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 0.0, 1.0)
        check_choice("pairing", self.pairing, PAIRINGS)
        if self.max_width is not None:
            check_range("max_width", self.max_width, 1, None)

    def __call__(self, target: Boundaries, probabilities: Array) -> Boundaries:
        n_ends = ends_to_try(self.pairing, self.max_width)
        spans = pair_boundaries(probabilities > self.threshold, self.max_width, n_ends)
        given = mention_spans(target, None) if self.union else numpy.zeros((0, 3), dtype="int64")
        if self.pairing == PROBABLE:
            spans = most_expected(spans, probabilities, given)
        wanted = target.wanted.copy() if self.union else numpy.zeros_like(target.wanted)
        starts, ends, labels = spans.T
        wanted[starts, labels, STARTS] = True
        wanted[ends - 1, labels, ENDS] = True
        return Boundaries(wanted, target.known, numpy.unique(numpy.concatenate([given, spans]), axis=0))


def most_expected(spans: Spans, probabilities: Array, given: Spans) -> Spans:
    """Choose spans that overlap neither each other nor the given ones, with the largest sum of the probabilities of
    start times end. Spans: shape (n, 3), start, end and label; probabilities: shape (n_tokens, n_labels, 2)."""
    taken = numpy.zeros(len(probabilities), dtype=bool)
    for start, end, _ in given.tolist():
        taken[start:end] = True
    spans = spans[[not taken[start:end].any() for start, end, _ in spans.tolist()]] if len(given) else spans
    starts, ends, labels = spans.T
    weights = probabilities[starts, labels, STARTS] * probabilities[ends - 1, labels, ENDS]
    return spans[best_without_overlaps(spans[:, :2].tolist(), weights, len(probabilities))]

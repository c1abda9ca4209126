"""Iterative self-picking (Xue et al. 2020, Section 4.2): a model that was trained on a gazetteer's labels finds what
the gazetteer has missed."""

from dataclasses import dataclass
from typing import Optional

import numpy

from ..errors import check_range
from ..losses import Array
from ..mrc_ner.boundaries import ENDS, STARTS, Boundaries
from ..mrc_ner.decoding import N_ENDS, pair_boundaries
from ..mrc_ner.relabelling import Matches
from ..mrc_ner.typing import mention_spans


@dataclass(frozen=True)
class SelfPicking:
    """Take as entities what begins and ends with a probability above a threshold, each start with its nearest end,
    or, if the model has a matcher, with the ends that it says belong to it, by the same threshold. The
    probabilities are those of the teacher: the model itself as it was at the last renewal. Until the first one the
    labels are the given ones. Tokens without annotation teach nothing, whatever is picked there: give sentences whose
    other tokens are "O".

    threshold (float): The picking rate delta. Below 0.5 it recalls more than the model would predict; the paper's best
        is 0.1.
    union (bool): Keep the given labels beside the picked ones. (In the paper they are replaced.)
    max_width (Optional[int]): Tokens of an entity, at most.
    RAISES (WeaknerError): If the threshold is no probability.
    """

    threshold: float = 0.1
    union: bool = False
    max_width: Optional[int] = 10

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 0.0, 1.0)
        if self.max_width is not None:
            check_range("max_width", self.max_width, 1, None)

    def __call__(self, target: Boundaries, probabilities: Array, matches: Optional[Matches] = None) -> Boundaries:
        wanted = target.wanted.copy() if self.union else numpy.zeros_like(target.wanted)
        spans = pair_boundaries(probabilities > self.threshold, self.max_width, N_ENDS if matches else 1)
        if matches:
            spans = spans[matches(spans) > self.threshold]
        starts, ends, labels = spans.T
        wanted[starts, labels, STARTS] = True
        wanted[ends - 1, labels, ENDS] = True
        if self.union:
            spans = numpy.unique(numpy.concatenate([spans, mention_spans(target, None)]), axis=0)
        return Boundaries(wanted, target.known, spans)


def make_self_picking(threshold: float = 0.1, union: bool = False, max_width: Optional[int] = 10) -> SelfPicking:
    """Create it; registered as `spacy_weakner.SelfPicking.v1`. Arguments as in `SelfPicking`."""
    return SelfPicking(threshold, union, max_width)

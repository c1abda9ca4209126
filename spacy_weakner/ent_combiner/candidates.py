"""What is decided about: the entities that somebody names, and their neighbours."""

import math
from itertools import pairwise
from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..corpus.tags import BoolMask
from ..corpus.weak import PREDICTED_PREFIX, group_scores
from ..ty import Entity
from .competition import Floats, Ints

_UNKNOWN = -1


class Candidates(NamedTuple):
    """The candidates of several Docs. The tokens of all Docs stand in one row.

    offsets (Ints): Shape (n_docs + 1,): the first token of each Doc, and the number of tokens.
    spans (Ints): Shape (n, 3): start, end and number of the label. Without duplicates, sorted by end, start and label.
        They may overlap.
    named (BoolMask): Shape (n_groups, n): whether a group names a candidate.
    scores (Floats): Shape (n_groups, n): the probability that it gives it; NaN where it gives none.
    looked (BoolMask): Shape (n_groups, n_docs): whether a Doc has the group.
    """

    offsets: Ints
    spans: Ints
    named: BoolMask
    scores: Floats
    looked: BoolMask

    @property
    def docs(self) -> Ints:
        """RETURNS (Ints): Shape (n,): the Doc of each candidate."""
        found: Ints = numpy.searchsorted(self.offsets, self.spans[:, 0], side="right") - 1
        return found

    @property
    def neighbours(self) -> Tuple[Ints, Ints]:
        """RETURNS (Tuple[Ints, Ints]): Shape (n,) both: the tokens before and after each candidate; where its Doc has
        none, the number of tokens."""
        docs, n_tokens = self.docs, self.offsets[-1]
        start, end = self.spans[:, 0], self.spans[:, 1]
        before = numpy.where(start > self.offsets[docs], start - 1, n_tokens)
        return before, numpy.where(end < self.offsets[docs + 1], end, n_tokens)

    def select(self, which: Any) -> "Candidates":
        """RETURNS (Candidates): Some of them."""
        return self._replace(spans=self.spans[which], named=self.named[:, which], scores=self.scores[:, which])

    def split(self, values: Sequence[Any]) -> List[Any]:
        """RETURNS (List[Any]): What is known of each candidate, by Doc."""
        ends = numpy.searchsorted(self.spans[:, 1], self.offsets, side="right").tolist()
        return [values[first:last] for first, last in pairwise(ends)]

    def entities(self, labels: Sequence[str]) -> List[Entity]:
        """The candidates on the tokens of their Docs.

        labels (Sequence[str]): The labels, in their order.
        RETURNS (List[Entity]): One each.
        """
        bounds: Any = self.spans[:, :2] - self.offsets[self.docs, None]
        names = [labels[number] for number in self.spans[:, 2].tolist()]
        return list(zip(*bounds.T.tolist(), names, strict=True))


def read_candidates(docs: Sequence[Doc], groups: Sequence[str], labels: Sequence[str], border: int) -> Candidates:
    """Collect the entities of some span groups, and variants of them. What other components predict has been thought
    over; a match of a list or a rule has not, so that of matches there are variants.

    docs (Sequence[Doc]): The Docs.
    groups (Sequence[str]): Names of the groups, such as "weak:terms" and "pred:crf_ner".
    labels (Sequence[str]): The labels, sorted; entities with others are left out.
    border (int): By how many tokens, at most, one end of a variant differs from a match.
    RETURNS (Candidates): The candidates.
    """
    offsets = numpy.cumsum([0, *map(len, docs)])
    looked = numpy.zeros((len(groups), len(docs)), dtype=bool)
    for row, group in enumerate(groups):
        looked[row] = [group in doc.spans for doc in docs]
    votes = [_read_votes(docs, group, offsets, labels) for group in groups]
    spans = [own for own, _ in votes]
    for group, own in zip(groups, list(spans), strict=True):
        if border and not group.startswith(PREDICTED_PREFIX):
            spans.append(border_variants(own, border, offsets))
    # One number for each span, which sorts as they do.
    shape = (int(offsets[-1]) + 1, int(offsets[-1]) + 1, max(1, len(labels)))
    keys = [numpy.ravel_multi_index((own[:, 1], own[:, 0], own[:, 2]), shape) for own in spans]
    unique = numpy.unique(numpy.concatenate([numpy.zeros(0, dtype="int64"), *keys]))
    ends, starts, numbers = numpy.unravel_index(unique, shape)
    named = numpy.zeros((len(groups), len(unique)), dtype=bool)
    scores = numpy.full(named.shape, numpy.nan)
    for row, ((_, given), own) in enumerate(zip(votes, keys, strict=False)):
        places = numpy.searchsorted(unique, own)
        named[row, places] = True
        numpy.fmax.at(scores[row], places, given)  # of those that are named twice the larger score
    return Candidates(
        offsets, numpy.stack([starts, ends, numbers], axis=1), named, scores, looked.reshape(len(groups), len(docs))
    )


def border_variants(spans: Ints, border: int, offsets: Ints) -> Ints:
    """Spans with one end elsewhere.

    spans (Ints): Shape (n, 3), as those of `Candidates`.
    border (int): By how many tokens, at most.
    offsets (Ints): As those of `Candidates`.
    RETURNS (Ints): Shape (n_variants, 3): those that are inside their Doc and not empty; without the spans themselves.
    """
    steps = [by for by in range(-border, border + 1) if by]
    moves = [(by, 0, 0) for by in steps] + [(0, by, 0) for by in steps]
    moved = (spans[:, None] + numpy.array(moves, dtype="int64").reshape(-1, 3)).reshape(-1, 3)
    doc = numpy.repeat(numpy.searchsorted(offsets, spans[:, 0], side="right") - 1, len(moves))
    start, end = moved[:, 0], moved[:, 1]
    return moved[(offsets[doc] <= start) & (start < end) & (end <= offsets[doc + 1])]


def _read_votes(docs: Sequence[Doc], group: str, offsets: Ints, labels: Sequence[str]) -> Tuple[Ints, Floats]:
    """The spans of a group, and their scores."""
    ids = {get_string_id(label): number for number, label in enumerate(labels)}
    rows = [
        (span.start + offset, span.end + offset, ids.get(span.label, _UNKNOWN), math.nan if score is None else score)
        for doc, offset in zip(docs, offsets.tolist(), strict=False)
        if group in doc.spans
        for span, score in zip(doc.spans[group], group_scores(doc, group), strict=True)
    ]
    table = numpy.array(rows, dtype="float64").reshape(-1, 4)
    table = table[table[:, 2] != _UNKNOWN]
    return table[:, :3].astype("int64"), table[:, 3]

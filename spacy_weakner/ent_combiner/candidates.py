"""Candidates: the entities that sources and components propose, and spans that differ from them by a token."""

import math
from itertools import pairwise
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

import numpy
from spacy.strings import get_string_id
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..corpus.overlaps import best_without_overlaps
from ..corpus.tags import BoolMask, TagScheme
from ..corpus.weak import PREDICTED_PREFIX, group_scores
from ..ty import Entity, PathScore
from .span_partition import Floats, Ints, SpanPartition

_UNKNOWN = -1


class Candidates(NamedTuple):
    """The candidates of several Docs. The tokens of all Docs are numbered together.

    offsets (Ints): Shape (n_docs + 1,): the first token of each Doc, and the number of tokens.
    spans (Ints): Shape (n, 3): start, end and number of the label. Without duplicates, sorted by end, start and label.
        They may overlap.
    proposed (BoolMask): Shape (n_groups, n): whether a group has the candidate.
    scores (Floats): Shape (n_groups, n): its probability there; NaN where there is none.
    has_group (BoolMask): Shape (n_groups, n_docs): whether a Doc has the group.
    """

    offsets: Ints
    spans: Ints
    proposed: BoolMask
    scores: Floats
    has_group: BoolMask

    @property
    def docs(self) -> Ints:
        """Shape (n,): the Doc of each candidate."""
        found: Ints = numpy.searchsorted(self.offsets, self.spans[:, 0], side="right") - 1
        return found

    @property
    def neighbours(self) -> Tuple[Ints, Ints]:
        """Shape (n,) both: the tokens before and after each candidate; where its Doc has none, the number of tokens."""
        docs, n_tokens = self.docs, self.offsets[-1]
        start, end = self.spans[:, 0], self.spans[:, 1]
        before = numpy.where(start > self.offsets[docs], start - 1, n_tokens)
        return before, numpy.where(end < self.offsets[docs + 1], end, n_tokens)

    def select(self, which: Any) -> "Candidates":
        """Some of the candidates."""
        return self._replace(spans=self.spans[which], proposed=self.proposed[:, which], scores=self.scores[:, which])

    def split(self, values: Sequence[Any]) -> List[Any]:
        """Values of all candidates, by Doc."""
        ends = numpy.searchsorted(self.spans[:, 1], self.offsets, side="right").tolist()
        return [values[first:last] for first, last in pairwise(ends)]

    def entities(self, labels: Sequence[str]) -> List[Entity]:
        """The candidates as entities of their Docs."""
        bounds: Any = self.spans[:, :2] - self.offsets[self.docs, None]
        names = [labels[number] for number in self.spans[:, 2].tolist()]
        return list(zip(*bounds.T.tolist(), names, strict=True))


def read_candidates(docs: Sequence[Doc], groups: Sequence[str], labels: Sequence[str], border: int) -> Candidates:
    """Collect the entities of some span groups, and border variants of matches: unlike a trained component, a list or a
    rule does not decide where an entity ends.

    docs (Sequence[Doc]): The Docs.
    groups (Sequence[str]): Names of the groups, such as "weak:terms" and "pred:crf_ner".
    labels (Sequence[str]): The labels, sorted; entities with others are left out.
    border (int): By how many tokens, at most, one end of a variant differs from a match.
    RETURNS (Candidates): The candidates.
    """
    offsets = numpy.cumsum([0, *map(len, docs)])
    has_group = numpy.zeros((len(groups), len(docs)), dtype=bool)
    for row, group in enumerate(groups):
        has_group[row] = [group in doc.spans for doc in docs]
    found = [_read_group(docs, group, offsets, labels) for group in groups]
    spans = [proposed for proposed, _ in found]
    for group, proposed in zip(groups, list(spans), strict=True):
        if border and not group.startswith(PREDICTED_PREFIX):
            spans.append(border_variants(proposed, border, offsets))
    # One number for each span, which sorts as they do.
    shape = (int(offsets[-1]) + 1, int(offsets[-1]) + 1, max(1, len(labels)))
    keys = [numpy.ravel_multi_index((rows[:, 1], rows[:, 0], rows[:, 2]), shape) for rows in spans]
    unique = numpy.unique(numpy.concatenate([numpy.zeros(0, dtype="int64"), *keys]))
    ends, starts, numbers = numpy.unravel_index(unique, shape)
    is_proposed = numpy.zeros((len(groups), len(unique)), dtype=bool)
    scores = numpy.full(is_proposed.shape, numpy.nan)
    for row, ((_, probabilities), group_keys) in enumerate(zip(found, keys, strict=False)):
        places = numpy.searchsorted(unique, group_keys)
        is_proposed[row, places] = True
        numpy.fmax.at(scores[row], places, probabilities)  # the larger one, if a group has an entity twice
    return Candidates(offsets, numpy.stack([starts, ends, numbers], axis=1), is_proposed, scores, has_group)


def border_variants(spans: Ints, border: int, offsets: Ints) -> Ints:
    """Spans that differ from some spans at one end, by `border` tokens at most; those that are inside their Doc and not
    empty. Spans and offsets as in `Candidates`."""
    steps = [by for by in range(-border, border + 1) if by]
    moves = [(by, 0, 0) for by in steps] + [(0, by, 0) for by in steps]
    moved = (spans[:, None] + numpy.array(moves, dtype="int64").reshape(-1, 3)).reshape(-1, 3)
    doc = numpy.repeat(numpy.searchsorted(offsets, spans[:, 0], side="right") - 1, len(moves))
    start, end = moved[:, 0], moved[:, 1]
    return moved[(offsets[doc] <= start) & (start < end) & (end <= offsets[doc + 1])]


def _read_group(docs: Sequence[Doc], group: str, offsets: Ints, labels: Sequence[str]) -> Tuple[Ints, Floats]:
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


class Scored(NamedTuple):
    """The candidates of several Docs, their log-odds, and the labels in their order."""

    candidates: Candidates
    log_odds: Floats
    labels: Sequence[str]

    @property
    def partition(self) -> SpanPartition:
        """Which candidates exclude which."""
        return SpanPartition.of(self.candidates.docs, self.candidates.spans, len(self.candidates.offsets) - 1)

    def probabilities(self) -> Floats:
        """The probability of each candidate."""
        return self.partition.probabilities(self.log_odds)

    def pairs(self) -> List[List[Tuple[Entity, float]]]:
        """Per Doc the candidates with their probabilities."""
        entities = self.candidates.entities(self.labels)
        return self.candidates.split(list(zip(entities, self.probabilities().tolist(), strict=True)))

    def distributions(self, scheme: TagScheme) -> List[Floats2d]:
        """Per Doc the probabilities of tags, float32 (n_tokens, n_tags): a token has one of an entity's tags as
        often as the entity is in the set."""
        offsets = self.candidates.offsets
        rows: Any = numpy.zeros((offsets[-1], len(scheme)))
        for (start, end, label), probability in zip(
            self.candidates.spans.tolist(), self.probabilities().tolist(), strict=True
        ):
            rows[numpy.arange(start, end), scheme.span_tags(self.labels[label], end - start)] += probability
        rows[:, 0] = numpy.maximum(0.0, 1.0 - rows.sum(axis=1))
        rows = (rows / rows.sum(axis=1, keepdims=True)).astype("float32")
        return [rows[begin:end] for begin, end in pairwise(offsets.tolist())]

    def paths(self, scheme: TagScheme) -> Iterator[PathScore]:
        """The most probable set of each Doc as tags, with the sum of its log-odds and its log-probability."""
        totals = self.partition.log_totals(self.log_odds).tolist()
        best = choose(self.candidates.spans, self.log_odds)
        chosen = self.candidates.select(best)
        lengths = numpy.diff(self.candidates.offsets).tolist()
        entities, odds = chosen.split(chosen.entities(self.labels)), chosen.split(self.log_odds[best].tolist())
        for of_doc, weights, length, total in zip(entities, odds, lengths, totals, strict=True):
            tags = scheme.encode(of_doc, numpy.ones(length, dtype=bool))
            score = float(sum(weights))
            yield PathScore([scheme.tags[tag] for tag in tags.tolist()], score, min(0.0, score - total))


def choose(spans: Ints, weights: Floats) -> Ints:
    """Indices of the spans without overlaps whose weights have the largest sum, by start; none whose weight is 0 or
    less."""
    heavy = numpy.flatnonzero(weights > 0.0)
    bounds: Any = spans[heavy, :2].tolist()
    chosen = best_without_overlaps(bounds, weights[heavy].tolist(), max((end for _, end in bounds), default=0))
    return heavy[numpy.array(chosen, dtype="int64")]

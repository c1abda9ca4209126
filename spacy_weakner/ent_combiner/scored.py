"""What the odds of candidates say about Docs."""

from itertools import pairwise
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

import numpy
from thinc.types import Floats2d

from ..corpus.overlaps import best_without_overlaps
from ..corpus.tags import TagScheme
from ..ty import Entity, PathScore
from .candidates import Candidates
from .competition import Competition, Floats, Ints


class Scored(NamedTuple):
    """The candidates of several Docs, and their odds.

    candidates (Candidates): The candidates.
    log_odds (Floats): Shape (n,).
    labels (Sequence[str]): The labels, in their order.
    """

    candidates: Candidates
    log_odds: Floats
    labels: Sequence[str]

    @property
    def competition(self) -> Competition:
        """RETURNS (Competition): Which candidates exclude which."""
        return Competition.of(self.candidates.docs, self.candidates.spans, len(self.candidates.offsets) - 1)

    def probabilities(self) -> Floats:
        """RETURNS (Floats): Shape (n,): the probability of each candidate."""
        return self.competition.probabilities(self.log_odds)

    def pairs(self) -> List[List[Tuple[Entity, float]]]:
        """RETURNS (List[List[Tuple[Entity, float]]]): Per Doc the candidates with their probabilities."""
        entities = self.candidates.entities(self.labels)
        return self.candidates.split(list(zip(entities, self.probabilities().tolist(), strict=True)))

    def distributions(self, scheme: TagScheme) -> List[Floats2d]:
        """The probabilities of tags: a token has one of an entity's tags as often as the entity is in the set.

        scheme (TagScheme): The tags.
        RETURNS (List[Floats2d]): Per Doc float32 (n_tokens, n_tags); rows sum to 1.
        """
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
        """The most probable set of each Doc.

        scheme (TagScheme): The tags.
        YIELDS (PathScore): The set as tags, with the sum of its log-odds and its log-probability.
        """
        totals = self.competition.log_partitions(self.log_odds).tolist()
        best = choose(self.candidates.spans, self.log_odds)
        chosen = self.candidates.select(best)
        lengths = numpy.diff(self.candidates.offsets).tolist()
        entities, odds = chosen.split(chosen.entities(self.labels)), chosen.split(self.log_odds[best].tolist())
        for own, weights, length, total in zip(entities, odds, lengths, totals, strict=True):
            tags = scheme.encode(own, numpy.ones(length, dtype=bool))
            score = float(sum(weights))
            yield PathScore([scheme.tags[tag] for tag in tags.tolist()], score, min(0.0, score - total))


def choose(spans: Ints, weights: Floats) -> Ints:
    """Choose spans without overlaps whose weights have the largest sum; none whose weight is 0 or less.

    spans (Ints): Shape (n, 2 or more): start and end.
    weights (Floats): Shape (n,).
    RETURNS (Ints): Numbers of those that are chosen, by start.
    """
    heavy = numpy.flatnonzero(weights > 0.0)
    bounds: Any = spans[heavy, :2].tolist()
    chosen = best_without_overlaps(bounds, weights[heavy].tolist(), max((end for _, end in bounds), default=0))
    return heavy[numpy.array(chosen, dtype="int64")]

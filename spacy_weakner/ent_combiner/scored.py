"""What the odds of candidates say about Docs."""

from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

import numpy
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..annotations.overlaps import best_without_overlaps
from ..annotations.tags import TagScheme
from ..ty import Entity, PathScore
from .competition import Competition, Floats


class Scored(NamedTuple):
    """The candidates of several Docs, and their odds.

    docs (List[Doc]): The Docs.
    entities (List[List[Entity]]): The candidates of each Doc, sorted by end, start and label.
    log_odds (Floats): Shape (n_candidates,): of all of them, one Doc after the other.
    """

    docs: List[Doc]
    entities: List[List[Entity]]
    log_odds: Floats

    def candidates(self) -> List[List[Tuple[Entity, float]]]:
        """RETURNS (List[List[Tuple[Entity, float]]]): Per Doc the candidates with their probabilities."""
        competition = Competition.of(self.entities)
        parts = competition.split(competition.probabilities(self.log_odds))
        return [list(zip(own, part.tolist(), strict=True)) for own, part in zip(self.entities, parts, strict=True)]

    def distributions(self, scheme: TagScheme) -> List[Floats2d]:
        """The probabilities of tags: a token has one of an entity's tags as often as the entity is in the set.

        scheme (TagScheme): The tags.
        RETURNS (List[Floats2d]): Per Doc float32 (n_tokens, n_tags); rows sum to 1.
        """
        result: List[Any] = []
        for doc, candidates in zip(self.docs, self.candidates(), strict=True):
            rows = numpy.zeros((len(doc), len(scheme)))
            for (start, end, label), probability in candidates:
                rows[numpy.arange(start, end), scheme.span_tags(label, end - start)] += probability
            rows[:, 0] = numpy.maximum(0.0, 1.0 - rows.sum(axis=1))
            result.append((rows / rows.sum(axis=1, keepdims=True)).astype("float32"))
        return result

    def paths(self, scheme: TagScheme) -> Iterator[PathScore]:
        """The most probable set of each Doc.

        scheme (TagScheme): The tags.
        YIELDS (PathScore): The set as tags, with the sum of its log-odds and its log-probability.
        """
        competition = Competition.of(self.entities)
        totals = competition.log_partitions(self.log_odds).tolist()
        for doc, own, odds, total in zip(
            self.docs, self.entities, competition.split(self.log_odds), totals, strict=True
        ):
            best = choose(own, odds, len(doc))
            tags = scheme.encode([own[i] for i in best], numpy.ones(len(doc), dtype=bool))
            score = float(odds[best].sum()) if best else 0.0
            yield PathScore([scheme.tags[tag] for tag in tags.tolist()], score, min(0.0, score - total))


def choose(entities: Sequence[Entity], weights: Any, n_tokens: int) -> List[int]:
    """Choose candidates without overlaps whose weights have the largest sum; none whose weight is 0 or less.

    entities (Sequence[Entity]): The candidates.
    weights (Any): Shape (n_candidates,).
    n_tokens (int): Length of the Doc.
    RETURNS (List[int]): Numbers of those that are chosen, by start.
    """
    return best_without_overlaps([(start, end) for start, end, _ in entities], weights, n_tokens)

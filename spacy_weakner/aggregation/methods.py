"""The interface of methods that combine sources token by token, and the selection of entities from results."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.overlaps import best_without_overlaps
from ..corpus.tags import IntTags, TagScheme
from ..ty import Entity, Floats
from .observations import ObservedSource, SourceAccuracy, abstain_on_unknown_labels, observe
from .votes import VoteCounts, break_ties, log_odds, majority_shares, weighted_shares

SCHEME = "BIO"
# Smaller gains are rounding errors.
SMALLEST_GAIN = 1e-12


class Combined(NamedTuple):
    """The result of combining the sources of a Doc."""

    entities: List[Entity]
    candidates: int  # number of distinct proposals
    probabilities: Floats  # shape (n_tokens, n_tags); rows sum to 1, or to 0 without votes


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """Base of fitted methods, which compute one distribution over tags per token from the votes of sources. The third
    one is `label_model.FittedModel`."""

    scheme: TagScheme
    sources: Tuple[ObservedSource, ...]  # in the order of the columns, the most trusted first
    docs: int = 0  # Docs used for the fit
    iterations: int = 0  # of EM
    converged: bool = True  # True if EM has converged
    source_accuracies: Tuple[SourceAccuracy, ...] = ()  # estimated accuracies

    @property
    def names(self) -> Tuple[str, ...]:
        """Names of the sources."""
        return tuple(source.name for source in self.sources)

    @abstractmethod
    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        """Map votes (n_tokens, n_sources) to distributions (n_tokens, n_tags); rows sum to 1, or to 0 without votes."""


class Majority(Method):
    """One vote per source; see `votes.majority_shares`."""

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        def shares(votes: IntTags) -> Floats:
            return majority_shares(abstain_on_unknown_labels(votes, self.sources, self.scheme), len(self.scheme))

        return _at_once(shares, docs)


@dataclass(frozen=True, kw_only=True)
class Weighted(Method):
    """Votes weighted by accuracy; see `votes.weighted_shares`."""

    counts: Tuple[Tuple[VoteCounts, ...], ...]  # per source, in the order of the columns
    outside_accuracy: Optional[float] = None  # probability of "O" where all votes are "O"; None if unknown

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        weights = log_odds(self.counts, self.scheme)

        def shares(votes: IntTags) -> Floats:
            votes = abstain_on_unknown_labels(votes, self.sources, self.scheme)
            return weighted_shares(votes, weights, self.scheme, self.outside_accuracy)

        return _at_once(shares, docs)


def combine_sources(method: Method, docs: Sequence[Doc]) -> List[Optional[Combined]]:
    """Combine the sources of Docs; None for a Doc that no source has labeled."""
    votes = [observe(doc, method.names, method.scheme) for doc in docs]
    results: List[Optional[Combined]] = []
    distributions = method.distributions(votes)
    all_scores = _at_once(break_ties, distributions, votes)
    for doc, probabilities, scores in zip(docs, distributions, all_scores, strict=True):
        if any(weak.weak_group(name) in doc.spans for name in method.names):
            proposed = proposals(doc, method.names)
            chosen = best_entities(scores, proposed, method.scheme)
            results.append(Combined(chosen, len(proposed), probabilities))
        else:
            results.append(None)
    return results


def proposals(doc: Doc, names: Sequence[str]) -> List[Entity]:
    """Return the distinct entities that sources propose, sorted; they may overlap."""
    return sorted({entity for name in names for entity in weak.group_entities(doc, weak.weak_group(name))})


def best_entities(probabilities: Floats, candidates: Collection[Entity], scheme: TagScheme) -> List[Entity]:
    """Select the non-overlapping proposed entities whose tags are right for the largest expected number of tokens:
    posterior decoding that only selects whole proposals.

    If any legal tag sequence were allowed, sources that disagree on a boundary would often be combined into an entity
    that none of them has proposed, and that is nearly always wrong.

    The gain of an entity over "O" is sum_t p_t(tag of t) - p_t(O); see `best_without_overlaps`. Of equally good
    selections, the one with fewer, earlier entities is taken. Probabilities: (n_tokens, n_tags).
    """
    outside = numpy.concatenate([[0.0], numpy.cumsum(probabilities[:, 0])])
    gains: Dict[Entity, float] = {}
    for start, end, label in sorted(candidates):
        inside = probabilities[numpy.arange(start, end), scheme.span_tags(label, end - start)].sum()
        gain = float(inside - (outside[end] - outside[start]))
        if gain > SMALLEST_GAIN:
            gains[start, end, label] = gain
    entities, bounds = list(gains), [entity[:2] for entity in gains]
    chosen = best_without_overlaps(bounds, list(gains.values()), len(probabilities), SMALLEST_GAIN)
    return [entities[i] for i in chosen]


def _at_once(function: Callable[..., Floats], *docs: Sequence[Any]) -> List[Floats]:
    """Apply a token-wise function to all Docs together, which is faster than Doc by Doc."""
    lengths = [len(rows) for rows in docs[0]]
    if not lengths:
        return []
    result = function(*(numpy.concatenate(arrays) for arrays in docs))
    return numpy.split(result, numpy.cumsum(lengths)[:-1])

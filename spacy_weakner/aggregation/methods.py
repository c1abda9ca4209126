"""The methods that combine sources token by token, as one interface."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.tags import IntTags, TagScheme
from ..ty import Entity
from .decoding import Floats, best_entities, proposals
from .observations import Belief, Source, observe, without_ignorance
from .votes import Accuracy, break_ties, log_odds, majority_shares, weighted_shares

SCHEME = "BIO"


class Combined(NamedTuple):
    """What is known about a Doc after its sources were combined.

    entities (List[Entity]): The entities.
    candidates (int): Different proposals that they were chosen from.
    probabilities (Floats): Shape (n_tokens, n_tags); rows sum to 1, or are 0 where nothing is known.
    """

    entities: List[Entity]
    candidates: int
    probabilities: Floats


class Method(Protocol):
    """A way to make one distribution over tags per token of what all sources say; the third is `label_model.Fitted`."""

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        """Per Doc (n_tokens, n_tags), of (n_tokens, n_sources); rows sum to 1, or are 0 where nothing is known."""

    @property
    def beliefs(self) -> Sequence[Belief]:
        """What is believed about the sources."""

    def to_json(self) -> Dict[str, Any]:
        """What was learned, as JSON can hold it."""


@dataclass(frozen=True)
class Majority:
    """One source, one vote; see `votes.majority_shares`.

    scheme (TagScheme): The tag scheme.
    sources (Tuple[Source, ...]): The sources, in the order of the columns.
    """

    scheme: TagScheme
    sources: Tuple[Source, ...]

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        def shares(says: IntTags) -> Floats:
            return majority_shares(without_ignorance(says, self.sources, self.scheme), len(self.scheme))

        return _at_once(shares, docs)

    @property
    def beliefs(self) -> List[Belief]:
        return []

    def to_json(self) -> Dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Weighted:
    """Votes weighted by accuracy; see `votes.weighted_shares`.

    scheme (TagScheme): The tag scheme.
    sources (Tuple[Source, ...]): The sources, in the order of the columns.
    accuracies (Tuple[Tuple[Accuracy, ...], ...]): Per source, in the order of the columns.
    quiet (Optional[float]): Probability of "O" where all votes are "O"; None if nothing tells.
    """

    scheme: TagScheme
    sources: Tuple[Source, ...]
    accuracies: Tuple[Tuple[Accuracy, ...], ...]
    quiet: Optional[float] = None

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        weights = log_odds(self.accuracies, self.scheme)

        def shares(says: IntTags) -> Floats:
            return weighted_shares(without_ignorance(says, self.sources, self.scheme), weights, self.scheme, self.quiet)

        return _at_once(shares, docs)

    @property
    def beliefs(self) -> List[Belief]:
        return [accuracy.belief for of_source in self.accuracies for accuracy in of_source]

    def to_json(self) -> Dict[str, Any]:
        accuracies = [accuracy._asdict() for of_source in self.accuracies for accuracy in of_source]
        return {"accuracies": accuracies, "quiet": self.quiet}


def combine(method: Method, docs: Sequence[Doc], names: Sequence[str], scheme: TagScheme) -> List[Optional[Combined]]:
    """Combine what sources say about Docs.

    method (Method): The method.
    docs (Sequence[Doc]): The Docs.
    names (Sequence[str]): The sources, the most trusted first.
    scheme (TagScheme): The tag scheme.
    RETURNS (List[Optional[Combined]]): Per Doc; None if none of the sources has looked at it.
    """
    said = [observe(doc, names, scheme) for doc in docs]
    results: List[Optional[Combined]] = []
    distributions = method.distributions(said)
    all_scores = _at_once(break_ties, distributions, said)
    for doc, probabilities, scores in zip(docs, distributions, all_scores, strict=True):
        if any(weak.weak_group(name) in doc.spans for name in names):
            proposed = proposals(doc, names)
            chosen = best_entities(scores, proposed, scheme)
            results.append(Combined(chosen, len(proposed), probabilities))
        else:
            results.append(None)
    return results


def _at_once(function: Callable[..., Floats], *docs: Sequence[Any]) -> List[Floats]:
    """Let a function of single tokens see those of all Docs together: many short Docs take as long as one long one."""
    lengths = [len(says) for says in docs[0]]
    if not lengths:
        return []
    result = function(*(numpy.concatenate(arrays) for arrays in docs))
    return numpy.split(result, numpy.cumsum(lengths)[:-1])

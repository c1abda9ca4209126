"""Token-level voting.

A source votes for the tag that it gives a token: a complete source also for "O", while others abstain outside their
entities. Votes become one distribution over tags per token, from which `methods.best_entities` selects whole proposals.
"""

from typing import List, NamedTuple, Optional, Sequence

import numpy
from spacy.tokens import Doc

from ..corpus.tags import IntTags, TagScheme
from ..errors import Errors, WeaknerError
from ..ty import BoolMask, Entity, Floats
from .observations import ABSTAIN, UNSEEN, ObservedSource, SourceAccuracy, abstain_on_unknown_labels, observe, tally

# Breaks ties, and is too small to change any other decision.
TIE = 1e-4
# Number of gold votes with the same weight as the prior.
PRIOR_STRENGTH = 4.0
LOWEST_ACCURACY, HIGHEST_ACCURACY = 0.01, 0.99


class VoteCounts(NamedTuple):
    """The number of right votes of a source for a label, token by token."""

    source: str
    label: str  # or "O"
    right: int  # votes that agree with gold
    votes: int  # votes on gold
    gold: int  # gold tokens of the label, in Docs that the source has labeled
    estimate: float  # smoothed share of right votes

    @property
    def accuracy(self) -> SourceAccuracy:
        """Smoothed precision, and recall."""
        return SourceAccuracy(self.source, self.label, self.estimate, self.right / self.gold if self.gold else None)


def majority_shares(votes: IntTags, n_tags: int) -> Floats:
    """Return the share of votes for each tag, shape (n_tokens, n_tags); 0 without votes."""
    return _shares(tally(votes, numpy.ones((votes.shape[1], n_tags))))


def weighted_shares(
    votes: IntTags, weights: Floats, scheme: TagScheme, outside_accuracy: Optional[float] = None
) -> Floats:
    """Return the probability of each tag if sources err independently: the softmax of the summed log-odds.

    If a source is right with probability p, and gives each of the n - 1 wrong answers with (1 - p) / (n - 1), its vote
    multiplies the odds of its tag by p (n - 1) / (1 - p) (the rule of Nitzan and Paroush 1982 for two answers; Dawid
    and Skene 1979 with one rate per source and label). The n answers are the labels and "O": where all votes begin
    entities, no inside tag can be right. Where all votes are "O", as on most tokens, sources do not err independently:
    there, "O" has the probability `outside_accuracy`, if given.

    Shapes: votes (n_tokens, n_sources), see `observe`; weights, the log-odds of each source's vote for each tag,
    (n_sources, n_tags); result (n_tokens, n_tags), with rows that sum to 1, or to 0 without votes.
    """
    scores = tally(votes, weights)
    cast = tally(votes, numpy.ones(weights.shape)) > 0
    odds = numpy.exp(scores - scores.max(-1, keepdims=True)) * _answers(cast, scheme)
    odds[(votes < 0).all(1)] = 0.0
    shares = _shares(odds)
    if outside_accuracy is not None:
        agreed = (votes == 0).any(1) & (votes <= 0).all(1)
        shares[agreed] = (1 - outside_accuracy) / (shares.shape[1] - 1)
        shares[agreed, 0] = outside_accuracy
    return shares


def break_ties(shares: Floats, votes: IntTags) -> Floats:
    """Return shares plus small terms that decide only ties, in favor of the more trusted (earlier) source."""
    # The vote of a source outweighs those of all less trusted ones: 1/2 > 1/4 + 1/8 + ...
    trust = 0.5 ** numpy.arange(1, votes.shape[1] + 1)
    weights = numpy.broadcast_to(trust[:, None], (len(trust), shares.shape[1]))
    scores: Floats = shares + TIE * tally(votes, weights)
    return scores


# Weights


class GoldCounts:
    """A counter of right votes of each source on Docs with gold. Only tokens in a proposed entity are counted: all
    others do not show which source is right in a disagreement."""

    def __init__(self, sources: Sequence[ObservedSource], scheme: TagScheme) -> None:
        self.sources = sources
        self.scheme = scheme
        self.docs = 0
        # The label of each tag: 0 for "O"; the last is for gold labels that no source has.
        self.label_of = numpy.array([0, *(1 + i for i in range(len(scheme.labels)) for _ in scheme.prefixes), 0])
        self.label_of[-1] = 1 + len(scheme.labels)
        shape = (len(sources), 2 + len(scheme.labels))
        self.right, self.votes, self.gold = (numpy.zeros(shape, dtype="int64") for _ in range(3))
        # Numbers of tokens where all votes are "O": those where "O" is right, and all.
        self.outside = numpy.zeros(2, dtype="int64")

    def add(self, doc: Doc, gold: Sequence[Entity], known: BoolMask) -> None:
        """Count the votes on a Doc. `known` is False where gold is missing."""
        votes = observe(doc, [source.name for source in self.sources], self.scheme)
        votes = abstain_on_unknown_labels(votes, self.sources, self.scheme)
        truth = self.scheme.encode([entity for entity in gold if entity[2] in self.scheme.labels], known)
        for start, end, label in gold:
            if label not in self.scheme.labels:  # every vote is wrong
                truth[start:end] = len(self.scheme)
        proposed = (votes > 0).any(1)
        outside = (truth >= 0) & (votes == 0).any(1) & ~proposed
        self.outside += numpy.array([(truth[outside] == 0).sum(), outside.sum()])
        counted = (truth >= 0) & proposed
        self.docs += 1
        for column in range(votes.shape[1]):
            seen = counted & (votes[:, column] != UNSEEN)
            voted = seen & (votes[:, column] != ABSTAIN)
            agrees = voted & (votes[:, column] == truth)
            self.votes[column] += self._by_label(votes[voted, column])
            self.right[column] += self._by_label(votes[agrees, column])
            self.gold[column] += self._by_label(truth[seen])

    def by_source(self) -> List[List[VoteCounts]]:
        """Return, per source, the counts for "O", if it votes for "O", and for its labels. The share of right votes for
        a label is shrunk towards the source's overall share, which is shrunk towards its declared reliability (0.5
        without one), each with the weight of `PRIOR_STRENGTH` votes."""
        result = []
        names = ("O", *self.scheme.labels)
        for i, source in enumerate(self.sources):
            votes = source.complete or source.entities
            if votes and source.reliability is None and not self.votes[i].any():
                raise WeaknerError(Errors.WK330.format(source=source.name))
            declared = 0.5 if source.reliability is None else source.reliability
            whole = _smoothed(self.right[i].sum(), self.votes[i].sum(), declared)
            counts = zip(names, self.right[i].tolist(), self.votes[i].tolist(), self.gold[i].tolist(), strict=False)
            result.append(
                [
                    VoteCounts(source.name, name, right, votes, gold, _smoothed(right, votes, whole))
                    for name, right, votes, gold in counts
                    if name in source.labels or (name == "O" and source.complete)
                ]
            )
        return result

    def outside_accuracy(self) -> Optional[float]:
        """Return the smoothed share of "O" where all votes are "O"; None if gold has no such tokens."""
        right, total = self.outside.tolist()
        return (right + 1) / (total + 2) if total else None

    def _by_label(self, tags: IntTags) -> IntTags:
        return numpy.bincount(self.label_of[tags], minlength=self.votes.shape[1])


def log_odds(counts: Sequence[Sequence[VoteCounts]], scheme: TagScheme) -> Floats:
    """Return the weight of each source's vote for each tag, shape (n_sources, n_tags): log(p (n - 1) / (1 - p)), where
    n is the number of labels including "O"; 0 for votes that the source never casts."""
    weights = numpy.zeros((len(counts), len(scheme)))
    for row, of_source in zip(weights, counts, strict=True):
        for label_counts in of_source:
            p = min(max(label_counts.estimate, LOWEST_ACCURACY), HIGHEST_ACCURACY)
            label = label_counts.label
            tags = [0] if label == "O" else [scheme.index[f"{x}-{label}"] for x in scheme.prefixes]
            row[tags] = numpy.log(p * len(scheme.labels) / (1 - p))
    return weights


def _smoothed(right: float, n: float, prior: float) -> float:
    return float((right + PRIOR_STRENGTH * prior) / (n + PRIOR_STRENGTH))


def _answers(cast: BoolMask, scheme: TagScheme) -> BoolMask:
    # (n_tokens, n_tags): "O", and the tags with the prefix of any vote, or else with the first prefix.
    prefix = numpy.array([-1, *(i for _ in scheme.labels for i in range(len(scheme.prefixes)))])
    used = numpy.stack([cast[:, prefix == i].any(1) for i in range(len(scheme.prefixes))], axis=1)
    used[~used.any(1), 0] = True
    outside = numpy.ones((len(used), 1), dtype=bool)
    return numpy.concatenate([outside, numpy.tile(used, len(scheme.labels))], axis=1)


def _shares(votes: Floats) -> Floats:
    total = votes.sum(-1, keepdims=True)
    result: Floats = votes / numpy.where(total > 0, total, 1.0)
    return result

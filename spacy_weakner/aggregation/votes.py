"""Votes of the sources, token by token.

A source votes for the tag that it gives a token: a complete source for "O" too, while the silence of any other source,
and of one that has not looked, is no vote. Votes become one distribution over tags per token, from which
`decoding.best_entities` chooses whole proposals.
"""

from typing import List, NamedTuple, Optional, Sequence

import numpy
from spacy.tokens import Doc

from ..corpus.tags import BoolMask, IntTags, TagScheme
from ..errors import Errors, WeaknerError
from ..ty import Entity
from .decoding import Floats
from .observations import SILENT, UNSEEN, Belief, Source, observe, tally, without_ignorance

# Breaks ties, and is too small to turn any other decision.
TIE = 1e-4
# Gold of this many votes weighs as much as what was believed before.
PRIOR_STRENGTH = 4.0
# Nothing is right or wrong for certain.
LOWEST_ACCURACY, HIGHEST_ACCURACY = 0.01, 0.99


class Accuracy(NamedTuple):
    """How often a source's votes for a label are right, token by token.

    source (str): Name of the source.
    label (str): The label it votes for, or "O".
    right (int): Votes that agree with gold.
    votes (int): Votes on gold.
    gold (int): Gold tokens of the label, in Docs that the source has looked at.
    estimate (float): The smoothed share of right votes.
    """

    source: str
    label: str
    right: int
    votes: int
    gold: int
    estimate: float

    @property
    def belief(self) -> Belief:
        """RETURNS (Belief): Smoothed precision, and recall."""
        return Belief(self.source, self.label, self.estimate, self.right / self.gold if self.gold else None)


def majority_shares(says: IntTags, n_tags: int) -> Floats:
    """The share of the votes that each tag gets.

    says (IntTags): Shape (n_tokens, n_sources), see `observe`.
    n_tags (int): Number of tags.
    RETURNS (Floats): Shape (n_tokens, n_tags); rows sum to 1, or are 0 where nobody votes, so that nothing is known.
    """
    return _shares(tally(says, numpy.ones((says.shape[1], n_tags))))


def weighted_shares(says: IntTags, weights: Floats, scheme: TagScheme, quiet: Optional[float] = None) -> Floats:
    """The probability of each tag if sources err independently: the softmax of the summed log-odds.

    If a source is right with probability p, and gives each of the n - 1 wrong answers with (1 - p) / (n - 1), its vote
    multiplies the odds of its tag by p (n - 1) / (1 - p) (the rule of Nitzan and Paroush 1982 for two answers; Dawid
    and Skene 1979 with one rate per source and label). The n answers are the labels and "O": where all votes begin
    entities, none of the tags inside of one can be right.

    says (IntTags): Shape (n_tokens, n_sources), see `observe`.
    weights (Floats): Shape (n_sources, n_tags): log-odds of each source's vote for each tag.
    scheme (TagScheme): The tag scheme.
    quiet (Optional[float]): Probability of "O" where all votes are "O", as most are: there sources do not err
        independently. None: as the weights say.
    RETURNS (Floats): Shape (n_tokens, n_tags); rows sum to 1, or are 0 where nobody votes.
    """
    scores = tally(says, weights)
    cast = tally(says, numpy.ones(weights.shape)) > 0
    odds = numpy.exp(scores - scores.max(-1, keepdims=True)) * _answers(cast, scheme)
    odds[(says < 0).all(1)] = 0.0
    shares = _shares(odds)
    if quiet is not None:
        agreed = (says == 0).any(1) & (says <= 0).all(1)
        shares[agreed] = (1 - quiet) / (shares.shape[1] - 1)
        shares[agreed, 0] = quiet
    return shares


def break_ties(shares: Floats, says: IntTags) -> Floats:
    """Add so little to the shares that it decides only ties: they go to the tag of the more trusted source.

    shares (Floats): Shape (n_tokens, n_tags).
    says (IntTags): Shape (n_tokens, n_sources), the most trusted source first.
    RETURNS (Floats): Scores of the same shape.
    """
    # A source outweighs all that are less trusted: 1/2 > 1/4 + 1/8 + ...
    trust = 0.5 ** numpy.arange(1, says.shape[1] + 1)
    weights = numpy.broadcast_to(trust[:, None], (len(trust), shares.shape[1]))
    scores: Floats = shares + TIE * tally(says, weights)
    return scores


# Weights


class GoldCounts:
    """Counts how often the votes of every source are right, on Docs whose gold is known.

    Only tokens count for which some source proposes an entity: that all others are "O" says nothing about who is right
    where sources disagree.

    sources (Sequence[Source]): The sources.
    scheme (TagScheme): The tag scheme.
    """

    def __init__(self, sources: Sequence[Source], scheme: TagScheme) -> None:
        self.sources = sources
        self.scheme = scheme
        self.docs = 0
        # The label of each tag: 0 for "O"; the last is that of gold labels that no source knows.
        self.label_of = numpy.array([0, *(1 + i for i in range(len(scheme.labels)) for _ in scheme.prefixes), 0])
        self.label_of[-1] = 1 + len(scheme.labels)
        shape = (len(sources), 2 + len(scheme.labels))
        self.right, self.votes, self.gold = (numpy.zeros(shape, dtype="int64") for _ in range(3))
        # Tokens that all votes say are "O": those where that is right, and all of them.
        self.quiet = numpy.zeros(2, dtype="int64")

    def add(self, doc: Doc, gold: Sequence[Entity], known: BoolMask) -> None:
        """Count the votes about a Doc.

        doc (Doc): A Doc that sources have written to.
        gold (Sequence[Entity]): Its gold entities.
        known (BoolMask): Shape (n_tokens,): False where gold is missing.
        """
        says = observe(doc, [source.name for source in self.sources], self.scheme)
        says = without_ignorance(says, self.sources, self.scheme)
        truth = self.scheme.encode([entity for entity in gold if entity[2] in self.scheme.labels], known)
        for start, end, label in gold:
            if label not in self.scheme.labels:  # wrong whatever sources vote for
                truth[start:end] = len(self.scheme)
        proposed = (says > 0).any(1)
        quiet = (truth >= 0) & (says == 0).any(1) & ~proposed
        self.quiet += numpy.array([(truth[quiet] == 0).sum(), quiet.sum()])
        counted = (truth >= 0) & proposed
        self.docs += 1
        for column in range(says.shape[1]):
            seen = counted & (says[:, column] != UNSEEN)
            spoken = seen & (says[:, column] != SILENT)
            agrees = spoken & (says[:, column] == truth)
            self.votes[column] += self._by_label(says[spoken, column])
            self.right[column] += self._by_label(says[agrees, column])
            self.gold[column] += self._by_label(truth[seen])

    def accuracies(self) -> List[List[Accuracy]]:
        """Estimate accuracies: the share of right votes per label, drawn towards that of the source as a whole, which
        is drawn towards its declared reliability (0.5 without one), each with the weight of `PRIOR_STRENGTH` votes.

        RETURNS (List[List[Accuracy]]): Per source: for "O", if it votes for that, and for its labels.
        RAISES (WeaknerError): For a source of which neither gold nor a declaration tells anything.
        """
        result = []
        names = ("O", *self.scheme.labels)
        for i, source in enumerate(self.sources):
            # Who never votes need not be known.
            votes = source.complete or source.entities
            if votes and source.reliability is None and not self.votes[i].any():
                raise WeaknerError(Errors.WK330.format(source=source.name))
            declared = 0.5 if source.reliability is None else source.reliability
            whole = _smoothed(self.right[i].sum(), self.votes[i].sum(), declared)
            counts = zip(names, self.right[i].tolist(), self.votes[i].tolist(), self.gold[i].tolist(), strict=False)
            result.append(
                [
                    Accuracy(source.name, name, right, votes, gold, _smoothed(right, votes, whole))
                    for name, right, votes, gold in counts
                    if name in source.labels or (name == "O" and source.complete)
                ]
            )
        return result

    def quiet_accuracy(self) -> Optional[float]:
        """RETURNS (Optional[float]): Smoothed share of "O" where all votes are "O"; None without gold for that."""
        right, total = self.quiet.tolist()
        return (right + 1) / (total + 2) if total else None

    def _by_label(self, tags: IntTags) -> IntTags:
        return numpy.bincount(self.label_of[tags], minlength=self.votes.shape[1])


def log_odds(accuracies: Sequence[Sequence[Accuracy]], scheme: TagScheme) -> Floats:
    """Weights of the votes.

    accuracies (Sequence[Sequence[Accuracy]]): Per source, in the order of the columns.
    scheme (TagScheme): The tag scheme.
    RETURNS (Floats): Shape (n_sources, n_tags): log(p (n - 1) / (1 - p)) with n = labels and "O"; 0 for votes that the
        source never casts.
    """
    weights = numpy.zeros((len(accuracies), len(scheme)))
    for row, of_source in zip(weights, accuracies, strict=True):
        for accuracy in of_source:
            p = min(max(accuracy.estimate, LOWEST_ACCURACY), HIGHEST_ACCURACY)
            tags = [0] if accuracy.label == "O" else [scheme.index[f"{x}-{accuracy.label}"] for x in scheme.prefixes]
            row[tags] = numpy.log(p * len(scheme.labels) / (1 - p))
    return weights


def _smoothed(right: float, n: float, prior: float) -> float:
    return float((right + PRIOR_STRENGTH * prior) / (n + PRIOR_STRENGTH))


def _answers(cast: BoolMask, scheme: TagScheme) -> BoolMask:
    # (n_tokens, n_tags): "O", and the tags with a prefix that some vote has; where none has any, with the first one.
    prefix = numpy.array([-1, *(i for _ in scheme.labels for i in range(len(scheme.prefixes)))])
    used = numpy.stack([cast[:, prefix == i].any(1) for i in range(len(scheme.prefixes))], axis=1)
    used[~used.any(1), 0] = True
    outside = numpy.ones((len(used), 1), dtype=bool)
    return numpy.concatenate([outside, numpy.tile(used, len(scheme.labels))], axis=1)


def _shares(votes: Floats) -> Floats:
    total = votes.sum(-1, keepdims=True)
    result: Floats = votes / numpy.where(total > 0, total, 1.0)
    return result

"""The distribution of a source's votes, given the true tags.

The votes of a source are modeled from left to right. If it has an open entity, it continues it or not; if not, it opens
an entity of some label or none. Both depend on the state z of the token, which is its true tag or a distractor: not an
entity, but something similar. The likelihood of the vote of a source on a token is therefore

    p(vote | z, within y) = g(z, y)                              if it continues its entity of label y
                            (1 - g(z, y)) * o(z, label or none)  if it does not (without the first factor if no entity
                                                                 is open)

This differs in two ways from one independent table per token, as in most label models. Whether a source continues its
own entity is weak evidence, and is not counted as new evidence at each token. And sources label the same distractors;
without a state for distractors, the best explanation of such agreement is an additional entity.

The tables have few parameters, tied as in `SourceParameters`. Free tables have a higher likelihood, but without gold
they lose their meaning: they explain whatever the sources have in common.
"""

from dataclasses import dataclass
from typing import Any, List, Tuple

import numpy

from ..corpus.tags import IntTags
from ..ty import Floats
from .observations import UNSEEN

# Kinds of states in which a source may continue its entity: outside, at the first token of a new entity, inside an
# entity of the same label, inside one of another label, at a distractor.
OUTSIDE, BEGINS, SAME, OTHER, DISTRACTOR = range(5)
# The prior. The reliability r of a source is declared, or else DEFAULT_RELIABILITY.
DEFAULT_RELIABILITY = 0.7
# Probability that a source opens a true entity with its label, by completeness: a term list is incomplete.
HIT = {True: 0.7, False: 0.5}
WRONG_LABEL = 0.1
OPENS_INSIDE = 0.05
CONTINUES = (0.2, 0.1, 0.9, 0.5, 0.7)
# Share of a source's entities that it opens outside entities and distractors.
STRAY = 0.02
# Probabilities of impossible votes are slightly above 0, so that logarithms are finite.
TINY = 1e-12


@dataclass(frozen=True)
class SourceParameters:
    """The parameters of one source. "Its labels" are the labels that it uses anywhere. For the source, all states of
    other labels are like "O", so that it is no evidence against labels that it does not use."""

    shares: Floats  # distribution of its entities over the labels; fixed
    outside: Floats  # shape (1 + n_labels,): o(O, none), and o(O, label)
    distractor: Floats  # shape (1 + n_labels,): the same in the distractor state
    # Shape (n_labels,): probability that it opens an entity of the right label where one begins, unless it opens one of
    # a wrong label.
    hit: Floats
    # Probability that it opens an entity of a wrong label where one of its labels begins; `shares` determine the label.
    wrong: float
    inside: float  # probability that it opens an entity inside one of its labels; `shares` determine the label
    continues: Floats  # shape (5,): probability that it continues its entity, by kind of state

    def tables(self) -> Tuple[Floats, Floats]:
        """Return o, shape (n_states, 1 + n_labels), and g, shape (n_states, n_labels)."""
        n_labels = len(self.shares)
        opens = numpy.tile(self.outside, (2 * n_labels + 2, 1))
        opens[-1] = self.distractor
        for label in numpy.flatnonzero(self.shares).tolist():
            others = numpy.where(numpy.arange(n_labels) == label, 0.0, self.shares)
            begins, inside = opens[1 + 2 * label], opens[2 + 2 * label]
            begins[1:] = self.wrong * (others / max(others.sum(), TINY))
            begins[1 + label] = (1 - self.wrong) * self.hit[label]
            begins[0] = (1 - self.wrong) * (1 - self.hit[label])
            inside[0], inside[1:] = 1 - self.inside, self.inside * self.shares
        return opens, self.continues[kinds(self.shares)]

    def log_events(self) -> Floats:
        """Return the log-likelihoods of all events, shape (n_events, n_states), see `events`; finite everywhere."""
        opens, continues = self.tables()
        n_labels = continues.shape[1]
        table = numpy.zeros((n_labels + 1, n_labels + 2, len(opens)))
        table[:, :-1] = _log(opens).T
        table[1:, :-1] += _log(1 - continues).T[:, None]
        table[1:, -1] = _log(continues).T
        # Without an open entity, nothing can continue: this event represents sources that have not labeled the Doc.
        table[0, -1] = 0.0
        return table.reshape(-1, len(opens))


def kinds(shares: Floats) -> IntTags:
    """Return the kind of each state for an entity of each label, shape (n_states, n_labels)."""
    n_labels = len(shares)
    result = numpy.full((2 * n_labels + 2, n_labels), OUTSIDE)
    for label in numpy.flatnonzero(shares).tolist():
        result[1 + 2 * label] = BEGINS
        result[2 + 2 * label] = OTHER
        result[2 + 2 * label, label] = SAME
    result[-1] = DISTRACTOR
    return result


def events(votes: IntTags, n_labels: int) -> IntTags:
    """Return the vote of each source on each token as one number, its event: (n_labels + 2) * within + what. `within`
    is the label (from 1) of its open entity, or 0; `what` is the label of the entity that it opens, 0 for none, or
    n_labels + 1 if it continues. Both shapes are (n_tokens, n_sources)."""
    tags = numpy.maximum(votes, 0)
    label = (tags + 1) // 2
    within = numpy.zeros_like(label)
    within[1:] = label[:-1]
    continues = (tags > 0) & (tags % 2 == 0)
    unseen = votes == UNSEEN
    within[unseen] = 0
    return within * (n_labels + 2) + numpy.where(continues | unseen, n_labels + 1, label)


def prior(rates: Floats, reliability: float, complete: bool) -> SourceParameters:
    """Return the means of a source's prior, given its entities per token and label, its reliability and its
    completeness."""
    shares = rates / rates.sum() if rates.sum() > 0 else rates
    stray = STRAY * rates
    distracted = (1 - reliability) * shares
    several = numpy.count_nonzero(shares) > 1
    wrong = WRONG_LABEL if several else 0.0
    return SourceParameters(
        shares=shares,
        outside=numpy.concatenate([[1 - stray.sum()], stray]),
        distractor=numpy.concatenate([[1 - distracted.sum()], distracted]),
        hit=numpy.where(shares > 0, HIT[complete] / (1 - wrong), 0.0),
        wrong=wrong,
        inside=OPENS_INSIDE,
        continues=numpy.array(CONTINUES),
    )


def maximize(counts: Floats, means: SourceParameters, strength: float) -> SourceParameters:
    """Compute the M-step: the parameters with the highest posterior density, given the expected number of each event in
    each state, shape (n_events, n_states). The Dirichlet parameters of the prior are 1 + strength * mean."""
    n_labels = len(means.shares)
    table = counts.reshape(n_labels + 1, n_labels + 2, -1)
    opened = table[:, :-1].sum(0).T  # (n_states, 1 + n_labels)
    went_on, stopped = table[1:, -1].T, table[1:, :-1].sum(1).T  # (n_states, n_labels)
    known = numpy.flatnonzero(means.shares)
    like_outside = [0, *(z for x in numpy.flatnonzero(means.shares == 0).tolist() for z in (1 + 2 * x, 2 + 2 * x))]
    begins, inside = opened[1 + 2 * known], opened[2 + 2 * known]
    right = begins[numpy.arange(len(known)), 1 + known]
    wrong = begins[:, 1:].sum(1) - right
    hit = means.hit.copy()
    hit[known] = _share(right, begins[:, 0], means.hit[known], strength)
    kind = kinds(means.shares)
    yes, no = (numpy.bincount(kind.ravel(), x.ravel(), minlength=5) for x in (went_on, stopped))
    return SourceParameters(
        shares=means.shares,
        outside=_shares(opened[like_outside].sum(0), means.outside, strength),
        distractor=_shares(opened[-1], means.distractor, strength),
        hit=hit,
        wrong=float(_share(wrong.sum(), begins.sum() - wrong.sum(), means.wrong, strength)) if means.wrong else 0.0,
        inside=float(_share(inside[:, 1:].sum(), inside[:, 0].sum(), means.inside, strength)),
        continues=_share(yes, no, means.continues, strength),
    )


def log_prior(parameters: SourceParameters, means: SourceParameters, strength: float) -> float:
    """Return the log-density of the prior, up to a constant; see `maximize`."""
    known = means.shares > 0
    pairs: List[Tuple[Any, Any]] = [
        (parameters.outside, means.outside),
        (parameters.distractor, means.distractor),
        (parameters.hit[known], means.hit[known]),
        (1 - parameters.hit[known], 1 - means.hit[known]),
        (parameters.continues, means.continues),
        (1 - parameters.continues, 1 - means.continues),
        (parameters.inside, means.inside),
        (1 - parameters.inside, 1 - means.inside),
        (parameters.wrong, means.wrong),
        (1 - parameters.wrong, 1 - means.wrong),
    ]
    return strength * float(sum((numpy.asarray(mean) * _log(numpy.asarray(value))).sum() for value, mean in pairs))


def _share(yes: Any, no: Any, mean: Any, strength: float) -> Floats:
    result: Floats = (yes + strength * mean) / numpy.maximum(yes + no + strength, TINY)
    return result


def _shares(counts: Floats, means: Floats, strength: float) -> Floats:
    raised = counts + strength * means
    return raised / max(raised.sum(), TINY)


def _log(x: Floats) -> Floats:
    return numpy.log(numpy.maximum(x, TINY))

"""How a source writes, given the true tags.

A source is read from left to right. Where it has opened an entity before, it goes on with it or not; where it does not
go on, it opens an entity of some label or keeps silent. Both depend on the state z of the token, which is its true tag,
or `tempting`: no entity, but something that looks like one. So the likelihood of what a source says about a token is

    p(says | z, within y) = g(z, y)                              if it goes on with its entity of label y
                            (1 - g(z, y)) * o(z, label or none)  if it does not (without the first factor if no entity
                                                                 is open)

This differs in two ways from one independent table per token, as in most label models. Whether a source goes on with
its own entity says little about the truth, and is not counted as fresh evidence at every token. And sources fire at the
same tempting tokens; without a state for them, the best explanation of such agreement is one more entity.

The tables have few parameters, tied as `SourceParameters` says. Free tables have a higher likelihood, but no gold
holds them to their meaning: they wander off to explain whatever the sources share.
"""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Tuple

import numpy

from ..corpus.tags import IntTags
from .decoding import Floats
from .observations import UNSEEN

# Kinds of state in which a source may go on with its entity: outside, at the first token of a new entity, inside an
# entity of the same label, inside one of another label, tempting.
OUTSIDE, BEGINS, SAME, OTHER, TEMPTING = range(5)
# What is believed before any data is seen. The reliability r of a source is declared, or DEFAULT_RELIABILITY.
DEFAULT_RELIABILITY = 0.7
# Chance that a source opens a true entity with its label, by completeness: a term list has holes.
HIT = {True: 0.7, False: 0.5}
WRONG_LABEL = 0.1
OPENS_INSIDE = 0.05
GOES_ON = (0.2, 0.1, 0.9, 0.5, 0.7)
# Share of a source's entities that open where nothing tempts.
UNTEMPTED = 0.02
# Probabilities of what a source never does are not quite 0, so that logarithms are finite.
TINY = 1e-12


@dataclass(frozen=True)
class SourceParameters:
    """The parameters of one source. "Its labels" are those that it uses anywhere; all states of other labels are to it
    like "O", so that its silence about what it does not know counts for nothing.

    shares (Floats): Shape (n_labels,): how its entities spread over the labels; fixed.
    outside (Floats): Shape (1 + n_labels,): o(O, none), and o(O, label).
    tempting (Floats): Shape (1 + n_labels,): the same in the tempting state.
    hit (Floats): Shape (n_labels,): chance that it opens an entity of the right label where one of that label begins,
        unless it opens one of a wrong label.
    wrong (float): Chance that it opens an entity of a wrong label where one of its labels begins. Which one, is drawn
        by `shares`.
    inside (float): Chance that it opens an entity inside one of its labels. Which one, is drawn by `shares`.
    goes_on (Floats): Shape (5,): chance that it goes on, by kind of state.
    """

    shares: Floats
    outside: Floats
    tempting: Floats
    hit: Floats
    wrong: float
    inside: float
    goes_on: Floats

    def to_json(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The parameters, as JSON can hold them."""
        return {k: v.tolist() if isinstance(v, numpy.ndarray) else v for k, v in asdict(self).items()}

    def tables(self) -> Tuple[Floats, Floats]:
        """RETURNS (Tuple[Floats, Floats]): o, shape (n_states, 1 + n_labels), and g, shape (n_states, n_labels)."""
        n_labels = len(self.shares)
        opens = numpy.tile(self.outside, (2 * n_labels + 2, 1))
        opens[-1] = self.tempting
        for label in numpy.flatnonzero(self.shares).tolist():
            others = self._other_shares(label)
            begins, inside = opens[1 + 2 * label], opens[2 + 2 * label]
            begins[1:] = self.wrong * others
            begins[1 + label] = (1 - self.wrong) * self.hit[label]
            begins[0] = (1 - self.wrong) * (1 - self.hit[label])
            inside[0], inside[1:] = 1 - self.inside, self.inside * self.shares
        return opens, self.goes_on[kinds(self.shares)]

    def log_events(self) -> Floats:
        """Log-likelihood of everything that a source can do at a token.

        RETURNS (Floats): Shape (n_events, n_states), see `events`; finite everywhere.
        """
        opens, goes_on = self.tables()
        n_labels = goes_on.shape[1]
        table = numpy.zeros((n_labels + 1, n_labels + 2, len(opens)))
        table[:, :-1] = _log(opens).T
        table[1:, :-1] += _log(1 - goes_on).T[:, None]
        table[1:, -1] = _log(goes_on).T
        # Nothing can go on where nothing is open: the place of sources that have not looked, who say nothing.
        table[0, -1] = 0.0
        return table.reshape(-1, len(opens))

    def _other_shares(self, label: int) -> Floats:
        others = self.shares.copy()
        others[label] = 0.0
        return others / max(others.sum(), TINY)


def kinds(shares: Floats) -> IntTags:
    """RETURNS (IntTags): Shape (n_states, n_labels): the kind of each state for an entity of each label."""
    n_labels = len(shares)
    result = numpy.full((2 * n_labels + 2, n_labels), OUTSIDE)
    for label in numpy.flatnonzero(shares).tolist():
        result[1 + 2 * label] = BEGINS
        result[2 + 2 * label] = OTHER
        result[2 + 2 * label, label] = SAME
    result[-1] = TEMPTING
    return result


def events(says: IntTags, n_labels: int) -> IntTags:
    """What every source does at every token, as one number: (n_labels + 2) * within + what, where `within` is the label
    (from 1) of the entity it has open, or 0; and `what` is the label of the entity that it opens, 0 for none, or
    n_labels + 1 if it goes on.

    says (IntTags): Shape (n_tokens, n_sources): BIO tags, see `observations.observe`.
    n_labels (int): Number of labels.
    RETURNS (IntTags): Shape (n_tokens, n_sources).
    """
    tags = numpy.maximum(says, 0)
    label = (tags + 1) // 2
    within = numpy.zeros_like(label)
    within[1:] = label[:-1]
    goes_on = (tags > 0) & (tags % 2 == 0)
    unseen = says == UNSEEN
    within[unseen] = 0
    return within * (n_labels + 2) + numpy.where(goes_on | unseen, n_labels + 1, label)


def prior(rates: Floats, reliability: float, complete: bool) -> SourceParameters:
    """What is believed about a source before its agreement with others is seen.

    rates (Floats): Shape (n_labels,): entities per token that it writes.
    reliability (float): Probability that one of its entities is right.
    complete (bool): Whether it means "O" by its silence.
    RETURNS (SourceParameters): Means of the prior.
    """
    shares = rates / rates.sum() if rates.sum() > 0 else rates
    untempted = UNTEMPTED * rates
    tempted = (1 - reliability) * shares
    several = numpy.count_nonzero(shares) > 1
    wrong = WRONG_LABEL if several else 0.0
    return SourceParameters(
        shares=shares,
        outside=numpy.concatenate([[1 - untempted.sum()], untempted]),
        tempting=numpy.concatenate([[1 - tempted.sum()], tempted]),
        hit=numpy.where(shares > 0, HIT[complete] / (1 - wrong), 0.0),
        wrong=wrong,
        inside=OPENS_INSIDE,
        goes_on=numpy.array(GOES_ON),
    )


def maximise(counts: Floats, means: SourceParameters, strength: float) -> SourceParameters:
    """The M-step: the parameters of the highest posterior density, given how often each event was met in each state.

    counts (Floats): Shape (n_events, n_states), expected.
    means (SourceParameters): Means of the prior.
    strength (float): How many observations the prior of each parameter is worth (its Dirichlet parameters are
        1 + strength * mean).
    RETURNS (SourceParameters): The parameters.
    """
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
        tempting=_shares(opened[-1], means.tempting, strength),
        hit=hit,
        wrong=float(_share(wrong.sum(), begins.sum() - wrong.sum(), means.wrong, strength)) if means.wrong else 0.0,
        inside=float(_share(inside[:, 1:].sum(), inside[:, 0].sum(), means.inside, strength)),
        goes_on=_share(yes, no, means.goes_on, strength),
    )


def log_prior(parameters: SourceParameters, means: SourceParameters, strength: float) -> float:
    """Log-density of the prior, up to a constant.

    parameters (SourceParameters): The parameters.
    means, strength: See `maximise`.
    RETURNS (float): The log-density.
    """
    known = means.shares > 0
    pairs: List[Tuple[Any, Any]] = [
        (parameters.outside, means.outside),
        (parameters.tempting, means.tempting),
        (parameters.hit[known], means.hit[known]),
        (1 - parameters.hit[known], 1 - means.hit[known]),
        (parameters.goes_on, means.goes_on),
        (1 - parameters.goes_on, 1 - means.goes_on),
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

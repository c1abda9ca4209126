"""Confident learning (Northcutt et al. 2021): identification of suspect labels.

For a token i with the label k_i (possibly "O"), p_i(k) is the probability of label k by a model that was not trained on
it: the sum over the tags of k. The threshold of a label is the mean self-confidence of the tokens that have it,

    t(k) = mean of p_i(k) over all i with k_i = k

and a token is suspect if its own label is below its threshold times the setting `factor`, while another label reaches
its own threshold:

    p_i(k_i) < factor t(k_i)   and   p_i(j) >= t(j) for a j other than k_i

The most probable such j is the label that the model predicts instead. A label that models seldom predict thus needs a
low probability, and a label that they often predict needs a high one. An entity is suspect if any of its tokens is: its
borders, or its label, are then wrong.

If a model does not have a label, p is NaN: the label is then neither suspect nor predicted instead.
"""

from itertools import groupby
from statistics import fmean
from typing import List, NamedTuple, Sequence

import numpy

from ..ty import Entity, Floats, Ints

OUTSIDE = "O"
# Column of a token whose label is missing, or has no column.
UNKNOWN = -1


class SuspectTokens(NamedTuple):
    """Suspect tokens."""

    start: int
    end: int
    label: str  # the label that the tokens have; "O" outside entities
    probability: float  # its probability: at the most suspect token of an entity, else the mean
    instead: str  # the label predicted instead; if it is the same label, the entity should be longer
    instead_probability: float  # its probability


class Suspicion(NamedTuple):
    """Per token of a Doc: the probability of its label (NaN without a label), the column of the label that is more
    likely to be right (`UNKNOWN` if the token is not suspect), and the probability of that label."""

    given: Floats
    instead: Ints
    instead_probability: Floats

    def at(self, i: int, labels: Sequence[str], entity: Entity) -> SuspectTokens:
        """Return a finding for an entity with this suspect token."""
        return SuspectTokens(*entity, float(self.given[i]), labels[self.instead[i]], float(self.instead_probability[i]))


def given_labels(n_tokens: int, entities: Sequence[Entity], outside: Sequence[int], labels: Sequence[str]) -> Ints:
    """Return the columns of the labels of tokens; `UNKNOWN` if the label is missing or has no column. Tokens in
    `outside` are labeled "O"."""
    columns = {label: column for column, label in enumerate(labels)}
    result = numpy.full(n_tokens, UNKNOWN, dtype="int64")
    result[list(outside)] = columns[OUTSIDE]
    for start, end, label in entities:
        result[start:end] = columns.get(label, UNKNOWN)
    return result


def self_confidence(rows: Floats, given: Ints) -> Floats:
    """Return the probabilities of the labels of tokens; NaN if the label is missing, or the model does not have it."""
    return numpy.where(given == UNKNOWN, numpy.nan, rows[numpy.arange(len(given)), given])


def suspect_tokens(rows: Floats, given: Ints, thresholds: Floats, factor: float = 1.0) -> Suspicion:
    """Apply the rule to probabilities, (n_tokens, n_labels), given labels, (n_tokens,), and thresholds, (n_labels,). A
    label without a threshold (NaN) is never predicted instead."""
    confidence = self_confidence(rows, given)
    reaches = rows >= thresholds
    reaches[numpy.arange(len(given)), given] = False
    others = numpy.where(reaches, rows, -1.0)
    suspect = (confidence < factor * thresholds[given]) & reaches.any(axis=1)
    return Suspicion(confidence, numpy.where(suspect, others.argmax(axis=1), UNKNOWN), others.max(axis=1))


def find_suspects(suspicion: Suspicion, entities: Sequence[Entity], labels: Sequence[str]) -> List[SuspectTokens]:
    """Return the entities with a suspect token, with the probabilities of the most suspect one."""
    result = []
    for start, end, label in entities:
        tokens = [i for i in range(start, end) if suspicion.instead[i] != UNKNOWN]
        if tokens:
            result.append(suspicion.at(min(tokens, key=lambda i: suspicion.given[i]), labels, (start, end, label)))
    return result


def find_outside(
    suspicion: Suspicion, outside: Sequence[int], entities: Sequence[Entity], labels: Sequence[str]
) -> List[SuspectTokens]:
    """Return runs of suspect tokens outside entities with one label instead, and entities next to a token that should
    have the same label, so that they end in the wrong place."""
    suspect = [i for i in outside if suspicion.instead[i] != UNKNOWN]
    found = {i: suspicion.at(i, labels, (i, i + 1, OUTSIDE)) for i in suspect}
    result = _join(list(found.values()))
    for start, end, label in entities:
        beside = [found[i] for i in (start - 1, end) if i in found and found[i].instead == label]
        if beside:
            confidence = float(numpy.nanmin(suspicion.given[start:end]))  # NaN: white space
            result.append(SuspectTokens(start, end, label, confidence, label, beside[0].instead_probability))
    return result


def _join(tokens: Sequence[SuspectTokens]) -> List[SuspectTokens]:
    # In a run, the starts increase by 1, as the numbers do.
    grouped = groupby(enumerate(tokens), key=lambda pair: (pair[1].start - pair[0], pair[1].instead))
    runs = [[token for _, token in run] for _, run in grouped]
    return [
        run[0]._replace(
            end=run[-1].end,
            probability=fmean(token.probability for token in run),
            instead_probability=fmean(token.instead_probability for token in run),
        )
        for run in runs
    ]

"""Which labels are suspect (confident learning, Northcutt et al. 2021).

Of a token i that has the label k_i (perhaps "O"), p_i(k) is the probability that a model which has not seen its label
gives to k: the sum over the tags of k. The threshold of a label is the mean self-confidence of the tokens that have it,

    t(k) = mean of p_i(k) over all i with k_i = k

and a token is suspect if its own label is below the threshold, times the setting `factor`, while another one reaches
its own:

    p_i(k_i) < factor t(k_i)   and   p_i(j) >= t(j) for a j other than k_i

The most probable such j is what the model says instead. So a label that models hardly dare to predict needs little
probability to count, and one that they predict everywhere needs much. An entity is suspect if any of its tokens is: its
borders, or its label, are wrong then.

Where a model is not to be asked about a label, since it does not know it, p is NaN: this neither counts nor accuses.
"""

from statistics import fmean
from typing import List, NamedTuple, Sequence

import numpy
from numpy.typing import NDArray

from ...ty import Entity

OUTSIDE = "O"
# Column of a token whose label is not known, or is known to no model.
UNKNOWN = -1
Columns = NDArray[numpy.int64]
Rows = NDArray[numpy.float64]


class Finding(NamedTuple):
    """Suspect tokens.

    start (int): First token.
    end (int): One past the last.
    label (str): The label that they have; "O" outside of entities.
    probability (float): What the model gives to it, in an entity where it is the most suspect, else on average.
    instead (str): What the model says there. If it is the label itself, the entity ought to be longer.
    instead_probability (float): What the model gives to that.
    """

    start: int
    end: int
    label: str
    probability: float
    instead: str
    instead_probability: float


class Suspicion(NamedTuple):
    """What the model says of the tokens of a Doc.

    own (NDArray): Shape (n_tokens,): probability of the label that a token has; NaN where none is known.
    instead (NDArray): Shape (n_tokens,): column of what is more likely to be right; `UNKNOWN` if it is not suspect.
    instead_own (NDArray): Shape (n_tokens,): probability of that.
    """

    own: Rows
    instead: Columns
    instead_own: Rows

    def at(self, i: int, labels: Sequence[str], entity: Entity) -> Finding:
        """RETURNS (Finding): The entity, since this token is suspect."""
        return Finding(*entity, float(self.own[i]), labels[self.instead[i]], float(self.instead_own[i]))


def given_labels(n_tokens: int, entities: Sequence[Entity], outside: Sequence[int], labels: Sequence[str]) -> Columns:
    """The labels that tokens have.

    n_tokens (int): Number of tokens.
    entities (Sequence[Entity]): The entities.
    outside (Sequence[int]): Tokens that are known to be "O".
    labels (Sequence[str]): The columns.
    RETURNS (NDArray): Shape (n_tokens,): columns; `UNKNOWN` where nothing is known, or no column has the label.
    """
    columns = {label: column for column, label in enumerate(labels)}
    result = numpy.full(n_tokens, UNKNOWN, dtype="int64")
    result[list(outside)] = columns[OUTSIDE]
    for start, end, label in entities:
        result[start:end] = columns.get(label, UNKNOWN)
    return result


def own_probabilities(rows: Rows, given: Columns) -> Rows:
    """What the model gives to the labels that tokens have.

    rows (NDArray): Shape (n_tokens, n_labels): what the model says.
    given (NDArray): Shape (n_tokens,): columns of the labels.
    RETURNS (NDArray): Shape (n_tokens,); NaN where no label is known, or the model does not know it.
    """
    return numpy.where(given == UNKNOWN, numpy.nan, rows[numpy.arange(len(given)), given])


def suspect_tokens(rows: Rows, given: Columns, thresholds: Rows, factor: float = 1.0) -> Suspicion:
    """Apply the rule.

    rows, given: See `own_probabilities`.
    thresholds (NDArray): Shape (n_labels,): of each label the mean self-confidence; NaN where there is none, and the
        label accuses nobody.
    factor (float): Of the threshold of a token's own label.
    RETURNS (Suspicion): What is suspect.
    """
    own = own_probabilities(rows, given)
    reaches = rows >= thresholds
    reaches[numpy.arange(len(given)), given] = False
    said = numpy.where(reaches, rows, -1.0)
    suspect = (own < factor * thresholds[given]) & reaches.any(axis=1)
    return Suspicion(own, numpy.where(suspect, said.argmax(axis=1), UNKNOWN), said.max(axis=1))


def find_entities(suspicion: Suspicion, entities: Sequence[Entity], labels: Sequence[str]) -> List[Finding]:
    """Entities with a suspect token.

    suspicion (Suspicion): What is suspect.
    entities (Sequence[Entity]): The entities.
    labels (Sequence[str]): The columns.
    RETURNS (List[Finding]): In the order of the entities, each with what is said of its most suspect token.
    """
    result = []
    for start, end, label in entities:
        tokens = [i for i in range(start, end) if suspicion.instead[i] != UNKNOWN]
        if tokens:
            result.append(suspicion.at(min(tokens, key=lambda i: suspicion.own[i]), labels, (start, end, label)))
    return result


def find_outside(
    suspicion: Suspicion, outside: Sequence[int], entities: Sequence[Entity], labels: Sequence[str]
) -> List[Finding]:
    """Suspect tokens outside of entities, and the entities beside which one ought to have the same label, so that they
    end in the wrong place.

    suspicion (Suspicion): What is suspect.
    outside (Sequence[int]): Tokens that are known to be "O".
    entities (Sequence[Entity]): The entities.
    labels (Sequence[str]): The columns.
    RETURNS (List[Finding]): Runs of tokens of which the same is said, and entities.
    """
    suspect = [i for i in outside if suspicion.instead[i] != UNKNOWN]
    found = {i: suspicion.at(i, labels, (i, i + 1, OUTSIDE)) for i in suspect}
    result = _join(list(found.values()))
    for start, end, label in entities:
        beside = [found[i] for i in (start - 1, end) if i in found and found[i].instead == label]
        if beside:
            own = float(suspicion.own[start:end].min())
            result.append(Finding(start, end, label, own, label, beside[0].instead_probability))
    return result


def _join(tokens: Sequence[Finding]) -> List[Finding]:
    runs: List[List[Finding]] = []
    for each in tokens:
        if runs and runs[-1][-1].end == each.start and runs[-1][-1].instead == each.instead:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [
        run[0]._replace(
            end=run[-1].end,
            probability=fmean(each.probability for each in run),
            instead_probability=fmean(each.instead_probability for each in run),
        )
        for run in runs
    ]

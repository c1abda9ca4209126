"""What is known about a candidate, as numbers.

Of each group (what it does not say counts 0):

| column | value |
|--------|-------|
| exact | 1 if the group names the candidate |
| logit | half the log-odds of the probability that it gives it, if the group gives any; the least if it names it not |
| exact:LABEL | exact, of candidates of one label |
| wider_left, wider_right | the candidate goes on beyond an entity of the group, to the left, or to the right |
| short_left, short_right | the candidate lacks tokens of an entity of the group, at the left, or at the right |
| around, within, crosses | the candidate goes beyond an entity at both ends, lies inside one, or has a part of one |
| other_label | the group gives the same span another label |
| other_overlap | it gives other labels to spans that overlap |
| absent | 1 if the group has not looked |

From "wider_left" to "other_overlap" the value is the entity's probability, 1 if the group gives none; the largest of
several. Of all groups: how many of them name the candidate. Of the text: length, case, digits, punctuation and
closed-class words at the ends, the tokens around; and how often candidates with the same words were right, see
`memory`. And the label.
"""

from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Token

from .candidates import Candidates, Votes
from .competition import Floats
from .memory import COLUMNS, Memory, memory_keys

Mask = NDArray[numpy.bool_]

# Probabilities beyond that are as good as certain.
LEAST = 0.002
RELATIONS = (
    "wider_left",
    "wider_right",
    "short_left",
    "short_right",
    "around",
    "within",
    "crosses",
    "other_label",
    "other_overlap",
)
LENGTHS: Dict[str, Callable[[int], bool]] = {
    "two": lambda n: n == 2,
    "three": lambda n: n == 3,
    "four_or_more": lambda n: n > 3,
}
KINDS: Dict[str, Callable[[Token], bool]] = {
    "upper": lambda token: token.is_upper and len(token) > 1,
    "title": lambda token: token.is_title,
    "digit": lambda token: any(char.isdigit() for char in token.text),
    "punct": lambda token: token.is_punct,
    "stop": lambda token: token.is_stop,
    "short": lambda token: len(token) < 3,
}
PLACES = ("first", "last", "previous", "next")


class FeatureSpace:
    """The columns of the features.

    groups (Sequence[str]): The groups whose votes are read.
    scored (Sequence[bool]): Whether a group gives probabilities.
    labels (Sequence[str]): The labels of candidates.
    """

    def __init__(self, groups: Sequence[str], scored: Sequence[bool], labels: Sequence[str]) -> None:
        self.groups = tuple(groups)
        self.scored = tuple(scored)
        self.labels = tuple(labels)
        names: List[Tuple[str, bool]] = [("intercept", True)]
        names += [(f"label:{label}", False) for label in self.labels]
        for group, has_scores in zip(self.groups, self.scored, strict=True):
            names += [(f"{group} exact", True)]
            names += [(f"{group} logit", True)] if has_scores else []
            names += [(f"{group} exact:{label}", False) for label in self.labels]
            names += [(f"{group} {relation}", False) for relation in (*RELATIONS, "absent")]
        names += [(f"named by {count}", False) for count in range(2, len(self.groups) + 1)]
        names += [(f"length {name}", False) for name in LENGTHS]
        names += [(f"{place} {kind}", False) for place in PLACES for kind in (*KINDS, "none")]
        names += [(column, False) for column in COLUMNS]
        self.names = tuple(name for name, _ in names)
        self.main = numpy.array([is_main for _, is_main in names])

    def matrix(self, doc: Doc, candidates: Candidates, memory: Memory) -> Floats:
        """Look at the candidates of a Doc.

        doc (Doc): The Doc.
        candidates (Candidates): Its candidates, with the votes of the groups in their order.
        memory (Memory): What is remembered of their words.
        RETURNS (Floats): Shape (n_candidates, n_features); the last columns are those of the memory.
        """
        entities = candidates.entities
        ids = {label: i for i, label in enumerate(self.labels)}
        spans = numpy.array([(start, end, ids[label]) for start, end, label in entities], dtype="int64").reshape(-1, 3)
        by_label = spans[:, 2:] == numpy.arange(len(self.labels))
        columns = [numpy.ones((len(spans), 1)), by_label]
        named = numpy.zeros(len(spans), dtype="int64")
        for votes, has_scores in zip(candidates.votes, self.scored, strict=True):
            exact = numpy.array([entity in (votes or ()) for entity in entities], dtype=bool)
            named += exact
            columns.append(exact[:, None])
            if has_scores:
                columns.append(_logits(candidates, votes)[:, None])
            columns.append(by_label & exact[:, None])
            columns.append(_relations(spans, votes or {}, ids))
            columns.append(numpy.full((len(spans), 1), votes is None))
        columns.append(named[:, None] >= numpy.arange(2, len(self.groups) + 1))
        lengths = (spans[:, 1] - spans[:, 0]).tolist()
        columns.append(_table([[holds(n) for holds in LENGTHS.values()] for n in lengths], len(LENGTHS)))
        columns.append(_text(doc, spans))
        columns.append(memory.columns(memory_keys(doc, entities)))
        return numpy.concatenate([column.astype("float64") for column in columns], axis=1)


def logit(probabilities: Floats) -> Floats:
    """The log-odds of probabilities; finite for 0 and 1, too."""
    clipped = numpy.clip(probabilities, LEAST, 1.0 - LEAST)
    result: Floats = numpy.log(clipped) - numpy.log1p(-clipped)
    return result


def _logits(candidates: Candidates, votes: Optional[Votes]) -> Floats:
    if votes is None:
        return numpy.zeros(len(candidates.entities))
    given = [votes.get(entity, 0.0) for entity in candidates.entities]
    return logit(numpy.array([0.5 if score is None else score for score in given], dtype="float64")) / 2


def _relations(spans: NDArray[numpy.int64], votes: Votes, ids: Dict[str, int]) -> Floats:
    result = numpy.zeros((len(spans), len(RELATIONS)))
    said = numpy.array([(start, end, ids[label]) for start, end, label in votes], dtype="int64").reshape(-1, 3)
    strength = numpy.array([1.0 if score is None else score for score in votes.values()])
    ours, theirs = _overlapping(spans, said)
    low, high = numpy.sign(said[theirs, 0] - spans[ours, 0]), numpy.sign(spans[ours, 1] - said[theirs, 1])
    same = said[theirs, 2] == spans[ours, 2]
    other = ~same
    masks: List[Mask] = [
        same & (low > 0) & (high == 0),
        same & (low == 0) & (high > 0),
        same & (low < 0) & (high == 0),
        same & (low == 0) & (high < 0),
        same & (low > 0) & (high > 0),
        same & (low < 0) & (high < 0),
        same & (low * high < 0),
        other & (low == 0) & (high == 0),
        other & ((low != 0) | (high != 0)),
    ]
    for column, mask in enumerate(masks):
        numpy.maximum.at(result[:, column], ours[mask], strength[theirs[mask]])
    return result


def _overlapping(
    spans: NDArray[numpy.int64], said: NDArray[numpy.int64]
) -> Tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
    """All pairs that share a token, as indices: only neighbours are compared, since texts may be long."""
    order = numpy.argsort(said[:, 0], kind="stable")
    starts, ends = said[order, 0], said[order, 1]
    first = numpy.searchsorted(numpy.maximum.accumulate(ends), spans[:, 0], side="right")
    counts = numpy.maximum(numpy.searchsorted(starts, spans[:, 1], side="left") - first, 0)
    ours = numpy.repeat(numpy.arange(len(spans)), counts)
    steps = numpy.arange(len(ours)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    near = numpy.repeat(first, counts) + steps
    overlap = ends[near] > spans[ours, 0]
    return ours[overlap], order[near[overlap]]


def _text(doc: Doc, spans: NDArray[numpy.int64]) -> Floats:
    known = _table([[holds(token) for holds in KINDS.values()] + [False] for token in doc], len(KINDS) + 1)
    outside = numpy.zeros((1, len(KINDS) + 1))
    outside[0, -1] = 1.0
    known = numpy.concatenate([outside, known, outside])
    start, end = spans[:, 0] + 1, spans[:, 1] + 1  # of the rows of what is known
    return numpy.concatenate([known[start], known[end - 1], known[start - 1], known[end]], axis=1)


def _table(rows: Sequence[Sequence[bool]], width: int) -> Floats:
    return numpy.array(rows, dtype="float64").reshape(-1, width)

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

from typing import Any, List, Sequence, Tuple

import numpy

from ..corpus.tags import BoolMask
from .candidates import Candidates
from .competition import Floats, Ints
from .memory import COLUMNS, Memory, memory_keys
from .words import KINDS, Words

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
LENGTHS = ("two", "three", "four_or_more")
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
        names += [(f"{place} {kind}", False) for place in PLACES for kind in KINDS]
        names += [(column, False) for column in COLUMNS]
        self.names = tuple(name for name, _ in names)
        self.main = numpy.array([is_main for _, is_main in names])

    def matrix(self, words: Words, candidates: Candidates, memory: Memory) -> Floats:
        """Look at the candidates of some Docs.

        words (Words): The words of the Docs.
        candidates (Candidates): The candidates, as the groups name them in their order.
        memory (Memory): What is remembered of their words.
        RETURNS (Floats): Shape (n_candidates, n_features); the last columns are those of the memory.
        """
        spans, docs = candidates.spans, candidates.docs
        start, end, label = spans.T
        by_label = label[:, None] == numpy.arange(len(self.labels))
        columns: List[Any] = [numpy.ones(len(spans)), by_label]
        for named, scores, looked, has_scores in zip(*candidates[2:], self.scored, strict=True):
            columns.append(named)
            if has_scores:
                given = numpy.where(named, numpy.where(numpy.isnan(scores), 0.5, scores), 0.0)
                columns.append(numpy.where(looked[docs], logit(given) / 2, 0.0))
            columns.append(by_label & named[:, None])
            columns.append(_relations(spans, spans[named], numpy.where(numpy.isnan(scores), 1.0, scores)[named]))
            columns.append(~looked[docs])
        columns.append(candidates.named.sum(axis=0)[:, None] >= numpy.arange(2, len(self.groups) + 1))
        columns.append(numpy.minimum(end - start, 4)[:, None] == numpy.arange(2, 5))
        before, after = candidates.neighbours
        columns += [words.kinds[places] for places in (start, end - 1, before, after)]
        columns.append(memory.columns(memory_keys(words.hashes, candidates, self.labels)))
        return numpy.column_stack(columns).astype("float64", copy=False)


def logit(probabilities: Floats) -> Floats:
    """The log-odds of probabilities; finite for 0 and 1, too."""
    clipped = numpy.clip(probabilities, LEAST, 1.0 - LEAST)
    result: Floats = numpy.log(clipped) - numpy.log1p(-clipped)
    return result


def _relations(spans: Ints, said: Ints, strength: Floats) -> Floats:
    result = numpy.zeros((len(spans), len(RELATIONS)))
    ours, theirs = _overlapping(spans, said)
    low, high = numpy.sign(said[theirs, 0] - spans[ours, 0]), numpy.sign(spans[ours, 1] - said[theirs, 1])
    same = said[theirs, 2] == spans[ours, 2]
    other = ~same
    masks: List[BoolMask] = [
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


def _overlapping(spans: Ints, said: Ints) -> Tuple[Ints, Ints]:
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

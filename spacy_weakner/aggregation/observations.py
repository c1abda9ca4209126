"""Votes of sources on tokens, as numbers.

Abstention is not disagreement, so there are three kinds of tokens without an entity:

| a source that               | votes outside its entities         | here     |
|-----------------------------|------------------------------------|----------|
| is complete (a model)       | "O"                                | 0        |
| is not complete (a list)    | nothing: the list may have a hole  | `ABSTAIN`|
| has not labeled the Doc     | nothing                            | `UNSEEN` |

A source that gives a span several labels is also `UNSEEN` there.
"""

from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.tags import IntTags, TagScheme
from ..ty import Entity, Floats
from .policies import ProposedSpan, candidates_of, select_spans

ABSTAIN = -1
UNSEEN = -2


class ObservedSource(NamedTuple):
    """A weak source in a corpus."""

    name: str
    reliability: Optional[float]  # declared probability that one of its entities is right
    complete: bool  # True if tokens outside its entities are "O"
    labels: Tuple[str, ...]  # labels of its entities, sorted
    docs: int  # Docs that it has labeled
    entities: int  # candidates, including overlapping ones


class SourceAccuracy(NamedTuple):
    """Estimated accuracy of a source at one label."""

    source: str
    label: str
    precision: float  # probability that the source is right where it gives this label
    recall: Optional[float]  # probability that the source gives this label where it is right; None if unknown
    # False if the estimate is little more than the prior: it is learned from agreement, and no other source uses the
    # label.
    identified: bool = True


class SourceSurvey:
    """A collector of the sources in a stream of Docs. With `names`, only these are used, the most trusted first."""

    def __init__(self, names: Optional[Sequence[str]] = None) -> None:
        self.names = None if names is None else list(names)
        self.docs: Counter[str] = Counter()
        self.entities: Counter[str] = Counter()
        self.labels: Dict[str, Set[str]] = {}
        self.complete: Set[str] = set()
        # The count of each declared value: the sum of a Counter does not depend on the order of the Docs.
        self.declared: Dict[str, Counter[float]] = {}

    def add(self, doc: Doc) -> None:
        for name in weak.weak_sources(doc):
            if self.names is not None and name not in self.names:
                continue
            spans = doc.spans[weak.weak_group(name)]
            self.docs[name] += 1
            self.entities[name] += len(spans)
            self.labels.setdefault(name, set()).update(span.label_ for span in spans)
            if weak.is_complete(doc, name):
                self.complete.add(name)
            reliability = weak.get_reliability(doc, name)
            if reliability is not None:
                self.declared.setdefault(name, Counter())[reliability] += 1

    def sources(self) -> List[ObservedSource]:
        """Return the sources found, the most trusted first, or by name if no order was given."""
        order = sorted(self.docs) if self.names is None else [name for name in self.names if name in self.docs]
        return [
            ObservedSource(
                name,
                _mean(self.declared.get(name, Counter())),
                name in self.complete,
                tuple(sorted(self.labels[name])),
                self.docs[name],
                self.entities[name],
            )
            for name in order
        ]


def all_labels(sources: Sequence[ObservedSource]) -> Tuple[str, ...]:
    """Return the labels of all sources, sorted."""
    return tuple(sorted({label for source in sources for label in source.labels}))


class Answer(NamedTuple):
    """The labels of a source on a Doc."""

    entities: Tuple[Entity, ...]  # without overlaps, from left to right
    complete: bool  # True if all other tokens are "O"
    unclear: Tuple[Tuple[int, int], ...] = ()  # spans whose several labels have equal support of other sources


def answers(doc: Doc, names: Iterable[str]) -> Dict[str, Answer]:
    """Return the answers of the sources that have labeled a Doc. Of overlapping candidates, the longest is used. Of
    several labels of a span, the one that most other sources give is used; in a tie, the source abstains.
    """
    proposed = {name: candidates_of(doc, name) for name in names if weak.weak_group(name) in doc.spans}
    support: Counter[Entity] = Counter(e for found in proposed.values() for e in {c.entity for c in found})
    return {name: _answer(found, name, support, weak.is_complete(doc, name)) for name, found in proposed.items()}


def _answer(candidates: List[ProposedSpan], name: str, support: "Counter[Entity]", complete: bool) -> Answer:
    if len(candidates) < 2:
        return Answer(tuple(c.entity for c in candidates), complete)
    by_span: Dict[Tuple[int, int], Dict[str, ProposedSpan]] = {}
    for c in candidates:
        by_span.setdefault((c.start, c.end), {})[c.label] = c
    chosen, unclear = [], set()
    for span, by_label in by_span.items():
        # The source supports each of its labels equally, so all counts are too high by one.
        (label, most), *others = Counter({label: support[c.entity] for label, c in by_label.items()}).most_common()
        if others and others[0][1] == most:
            unclear.add(span)
        chosen.append(by_label[label])
    entities = select_spans(chosen, "longest", [name])
    return Answer(
        tuple(entity for entity in entities if entity[:2] not in unclear),
        complete,
        tuple(entity[:2] for entity in entities if entity[:2] in unclear),
    )


def encode_answers(given: Dict[str, Answer], length: int, names: Sequence[str], scheme: TagScheme) -> IntTags:
    """Return answers as numbers, shape (n_tokens, n_sources): a tag id, `ABSTAIN` or `UNSEEN`."""
    votes = numpy.full((length, len(names)), UNSEEN, dtype="int64")
    for column, name in enumerate(names):
        if name in given:
            # `encode` marks missing tokens by -1, which is ABSTAIN.
            votes[:, column] = scheme.encode(given[name].entities, numpy.full(length, given[name].complete))
            for start, end in given[name].unclear:
                votes[start:end, column] = UNSEEN
    return votes


def observe(doc: Doc, names: Sequence[str], scheme: TagScheme) -> IntTags:
    """Return the votes of the sources on the tokens of a Doc: `answers` as numbers."""
    return encode_answers(answers(doc, names), len(doc), names, scheme)


def tally(votes: IntTags, weights: Floats) -> Floats:
    """Return the sums of votes, with a weight for each source and tag, shape (n_tokens, n_tags)."""
    total: Floats = numpy.zeros((len(votes), weights.shape[1]))
    for column, weight in zip(votes.T, weights, strict=True):
        voters = numpy.flatnonzero(column >= 0)
        total[voters, column[voters]] += weight[column[voters]]
    return total


def abstain_on_unknown_labels(votes: IntTags, sources: Sequence[ObservedSource], scheme: TagScheme) -> IntTags:
    """Turn a vote for "O" into `ABSTAIN` where another source proposes a label that the source never uses: a model
    without a label for drugs is no evidence against a drug."""
    unknown = numpy.array([[tag != "O" and tag[2:] not in s.labels for tag in scheme.tags] for s in sources])
    if not unknown.any():
        return votes
    proposed = tally(votes, numpy.ones(unknown.shape)) > 0
    foreign = proposed.astype("float64") @ unknown.T > 0
    return numpy.where((votes == 0) & foreign, ABSTAIN, votes)


def _mean(values: "Counter[float]") -> Optional[float]:
    total = sum(values.values())
    return sum(value * n for value, n in sorted(values.items())) / total if total else None

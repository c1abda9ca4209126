"""The vote of every source on every token, as numbers.

Abstention is not disagreement, so three kinds of tokens without an entity are distinguished:

| a source that               | votes outside its entities         | here     |
|-----------------------------|------------------------------------|----------|
| is complete (a model)       | "O"                                | 0        |
| is not complete (a list)    | nothing: the list may have a hole  | `ABSTAIN`|
| has not labeled the Doc     | nothing                            | `UNSEEN` |

A source that gives a span several labels is `UNSEEN` there as well.
"""

from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.tags import IntTags, TagScheme
from ..ty import Entity
from .policies import Candidate, candidates_of, resolve

Floats = NDArray[numpy.float64]
ABSTAIN = -1
UNSEEN = -2


class Source(NamedTuple):
    """A weak source in a corpus."""

    name: str
    reliability: Optional[float]  # declared probability that one of its entities is right
    complete: bool  # True if tokens outside its entities are "O" to it
    labels: Tuple[str, ...]  # of its entities, sorted
    docs: int  # that it has labeled
    entities: int  # candidates, those that overlap included


class SourceAccuracy(NamedTuple):
    """Estimated accuracy of a source at one label."""

    source: str
    label: str
    precision: float  # probability that it is right where it gives this label
    recall: Optional[float]  # probability that it gives this label where that is right; None if it is not known
    # False if the estimate is little more than the prior: it is learned from agreement, and no other source ever gives
    # the label.
    identified: bool = True


class SourceSurvey:
    """Collects the sources of a stream of Docs; with names only these, the most trusted first."""

    def __init__(self, names: Optional[Sequence[str]] = None) -> None:
        self.names = None if names is None else list(names)
        self.docs: Counter[str] = Counter()
        self.entities: Counter[str] = Counter()
        self.labels: Dict[str, Set[str]] = {}
        self.complete: Set[str] = set()
        # How often each value was declared: the sum of a Counter does not depend on the order of the Docs.
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

    def sources(self) -> List[Source]:
        """The sources found, the most trusted first; by name if no order was given."""
        order = sorted(self.docs) if self.names is None else [name for name in self.names if name in self.docs]
        return [
            Source(
                name,
                _mean(self.declared.get(name, Counter())),
                name in self.complete,
                tuple(sorted(self.labels[name])),
                self.docs[name],
                self.entities[name],
            )
            for name in order
        ]


def all_labels(sources: Sequence[Source]) -> Tuple[str, ...]:
    """The labels of all sources together, sorted."""
    return tuple(sorted({label for source in sources for label in source.labels}))


class Answer(NamedTuple):
    """How a source labels a Doc."""

    entities: Tuple[Entity, ...]  # without overlaps, from left to right
    complete: bool  # True if all other tokens are "O" to it
    unclear: Tuple[Tuple[int, int], ...] = ()  # spans with several labels, none of which most other sources give


def answers(doc: Doc, names: Iterable[str]) -> Dict[str, Answer]:
    """The answers of those sources that have labeled a Doc. Of candidates that overlap the longest counts. Of several
    labels of a span the one counts that most other sources give it; if there is none, the source abstains.
    """
    proposed = {name: candidates_of(doc, name) for name in names if weak.weak_group(name) in doc.spans}
    support: Counter[Entity] = Counter(e for found in proposed.values() for e in {c.entity for c in found})
    return {name: _answer(found, name, support, weak.is_complete(doc, name)) for name, found in proposed.items()}


def _answer(candidates: List[Candidate], name: str, support: "Counter[Entity]", complete: bool) -> Answer:
    if len(candidates) < 2:
        return Answer(tuple(c.entity for c in candidates), complete)
    by_span: Dict[Tuple[int, int], Dict[str, Candidate]] = {}
    for c in candidates:
        by_span.setdefault((c.start, c.end), {})[c.label] = c
    chosen, unclear = [], set()
    for span, by_label in by_span.items():
        # The source supports each of its labels equally, so all counts are one too high.
        (label, most), *others = Counter({label: support[c.entity] for label, c in by_label.items()}).most_common()
        if others and others[0][1] == most:
            unclear.add(span)
        chosen.append(by_label[label])
    entities = resolve(chosen, "longest", [name])
    return Answer(
        tuple(entity for entity in entities if entity[:2] not in unclear),
        complete,
        tuple(entity[:2] for entity in entities if entity[:2] in unclear),
    )


def encode_answers(given: Dict[str, Answer], length: int, names: Sequence[str], scheme: TagScheme) -> IntTags:
    """Answers as numbers, shape (n_tokens, n_sources): a tag id, `ABSTAIN` or `UNSEEN`."""
    votes = numpy.full((length, len(names)), UNSEEN, dtype="int64")
    for column, name in enumerate(names):
        if name in given:
            # `encode` marks what is not known by -1, which is ABSTAIN.
            votes[:, column] = scheme.encode(given[name].entities, numpy.full(length, given[name].complete))
            for start, end in given[name].unclear:
                votes[start:end, column] = UNSEEN
    return votes


def observe(doc: Doc, names: Sequence[str], scheme: TagScheme) -> IntTags:
    """The votes of the sources on the tokens of a Doc: `answers` as numbers."""
    return encode_answers(answers(doc, names), len(doc), names, scheme)


def tally(votes: IntTags, weights: Floats) -> Floats:
    """Add up votes, with the weight of each source's vote for each tag; shape (n_tokens, n_tags)."""
    total: Floats = numpy.zeros((len(votes), weights.shape[1]))
    for column, weight in zip(votes.T, weights, strict=True):
        voters = numpy.flatnonzero(column >= 0)
        total[voters, column[voters]] += weight[column[voters]]
    return total


def abstain_on_unknown_labels(votes: IntTags, sources: Sequence[Source], scheme: TagScheme) -> IntTags:
    """Turn a vote for "O" into `ABSTAIN` where another source proposes a label that the source never uses: a model that
    does not know drugs is no evidence against one."""
    unknown = numpy.array([[tag != "O" and tag[2:] not in s.labels for tag in scheme.tags] for s in sources])
    if not unknown.any():
        return votes
    proposed = tally(votes, numpy.ones(unknown.shape)) > 0
    foreign = proposed.astype("float64") @ unknown.T > 0
    return numpy.where((votes == 0) & foreign, ABSTAIN, votes)


def _mean(values: "Counter[float]") -> Optional[float]:
    total = sum(values.values())
    return sum(value * n for value, n in sorted(values.items())) / total if total else None

"""What every source says about every token, as numbers.

Abstention is not disagreement, so three kinds of saying nothing are told apart:

| a source that               | about a token outside its entities | here     |
|-----------------------------|------------------------------------|----------|
| is complete (a model)       | "O"                                | 0        |
| is not complete (a list)    | nothing: the list may have a hole  | `SILENT` |
| has not looked at the Doc   | nothing at all                     | `UNSEEN` |

A source that gives a span several labels, and leaves open which, is `UNSEEN` there as well.
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
SILENT = -1
UNSEEN = -2


class Source(NamedTuple):
    """A weak source, as a corpus shows it.

    name (str): Its name.
    reliability (Optional[float]): Declared probability that one of its entities is right; None if none is declared.
    complete (bool): Whether its silence means "O".
    labels (Tuple[str, ...]): Labels of its entities, sorted.
    docs (int): Docs that it has looked at.
    entities (int): Its candidates.
    """

    name: str
    reliability: Optional[float]
    complete: bool
    labels: Tuple[str, ...]
    docs: int
    entities: int


class Belief(NamedTuple):
    """How good a source is held to be at one label.

    source (str): Name of the source.
    label (str): The label.
    precision (float): Probability that it is right where it gives this label.
    recall (Optional[float]): Probability that it gives this label where that is right; None if nothing tells.
    identified (bool): Whether the data tell this. Not if it is learned from agreement, and no other source ever gives
        the label: then it is little more than what was believed before.
    """

    source: str
    label: str
    precision: float
    recall: Optional[float]
    identified: bool = True


class SourceSurvey:
    """Collects from a stream of Docs what there is to know about their sources.

    names (Optional[Sequence[str]]): Sources to look for, the most trusted first; None: all.
    """

    def __init__(self, names: Optional[Sequence[str]] = None) -> None:
        self.names = None if names is None else list(names)
        self.docs: Counter[str] = Counter()
        self.entities: Counter[str] = Counter()
        self.labels: Dict[str, Set[str]] = {}
        self.complete: Set[str] = set()
        # How often each value was declared: the sum of a Counter does not depend on the order of the Docs.
        self.declared: Dict[str, Counter[float]] = {}

    def add(self, doc: Doc) -> None:
        """Take a Doc into account."""
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
        """RETURNS (List[Source]): The sources seen, the most trusted first; by name if no order was given."""
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


def survey(docs: Iterable[Doc], names: Optional[Sequence[str]] = None) -> List[Source]:
    """Look through a corpus for its sources.

    docs (Iterable[Doc]): The corpus.
    names (Optional[Sequence[str]]): Sources to look for, the most trusted first; None: all, by name.
    RETURNS (List[Source]): Those that wrote to at least one Doc.
    """
    seen = SourceSurvey(names)
    for doc in docs:
        seen.add(doc)
    return seen.sources()


def all_labels(sources: Sequence[Source]) -> Tuple[str, ...]:
    """RETURNS (Tuple[str, ...]): The labels of all sources together, sorted."""
    return tuple(sorted({label for source in sources for label in source.labels}))


class Answer(NamedTuple):
    """What a source says about a Doc that it has looked at.

    entities (Tuple[Entity, ...]): Entities without overlaps, from left to right.
    complete (bool): Whether all other tokens are "O" to it.
    unclear (Tuple[Tuple[int, int], ...]): Spans that it gives several labels, none of which other sources single out.
    """

    entities: Tuple[Entity, ...]
    complete: bool
    unclear: Tuple[Tuple[int, int], ...] = ()


def answers(doc: Doc, names: Iterable[str]) -> Dict[str, Answer]:
    """Ask sources about a Doc. One whose candidates overlap is asked for one answer: the longest of them. One that
    gives a span several labels means one of these: that which most other sources give it, if there is such a one; else
    it says nothing about the span.

    doc (Doc): The Doc.
    names (Iterable[str]): Names of the sources.
    RETURNS (Dict[str, Answer]): Without the sources that have not looked at the Doc.
    """
    proposed = {name: candidates_of(doc, name) for name in names if weak.weak_group(name) in doc.spans}
    support: Counter[Entity] = Counter(e for own in proposed.values() for e in {c.entity for c in own})
    return {name: _answer(own, name, support, weak.is_complete(doc, name)) for name, own in proposed.items()}


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
    """Write answers as numbers.

    given (Dict[str, Answer]): The answers about a Doc.
    length (int): Its number of tokens.
    names (Sequence[str]): Names of the sources; their order is that of the columns.
    scheme (TagScheme): The tag scheme; must have all labels of the sources.
    RETURNS (IntTags): Shape (n_tokens, n_sources): a tag id, `SILENT` or `UNSEEN`.
    """
    says = numpy.full((length, len(names)), UNSEEN, dtype="int64")
    for column, name in enumerate(names):
        if name in given:
            # `encode` marks what is not known by -1, which is SILENT.
            says[:, column] = scheme.encode(given[name].entities, numpy.full(length, given[name].complete))
            for start, end in given[name].unclear:
                says[start:end, column] = UNSEEN
    return says


def observe(doc: Doc, names: Sequence[str], scheme: TagScheme) -> IntTags:
    """What the sources say about the tokens of a Doc: `answers` as numbers."""
    return encode_answers(answers(doc, names), len(doc), names, scheme)


def tally(says: IntTags, weights: Floats) -> Floats:
    """Add up votes.

    says (IntTags): Shape (n_tokens, n_sources), see `observe`.
    weights (Floats): Shape (n_sources, n_tags): what the vote of a source for a tag counts.
    RETURNS (Floats): Shape (n_tokens, n_tags).
    """
    total: Floats = numpy.zeros((len(says), weights.shape[1]))
    for column, own in zip(says.T, weights, strict=True):
        voters = numpy.flatnonzero(column >= 0)
        total[voters, column[voters]] += own[column[voters]]
    return total


def without_ignorance(says: IntTags, sources: Sequence[Source], scheme: TagScheme) -> IntTags:
    """Take the silence of a source for no vote where another one proposes a label that it never uses: a model that was
    never asked for drugs does not say that there is none.

    says (IntTags): Shape (n_tokens, n_sources), see `observe`.
    sources (Sequence[Source]): The sources, in the order of the columns.
    scheme (TagScheme): The tag scheme.
    RETURNS (IntTags): The same, with `SILENT` there.
    """
    unknown = numpy.array([[tag != "O" and tag[2:] not in s.labels for tag in scheme.tags] for s in sources])
    if not unknown.any():
        return says
    proposed = tally(says, numpy.ones(unknown.shape)) > 0
    foreign = proposed.astype("float64") @ unknown.T > 0
    return numpy.where((says == 0) & foreign, SILENT, says)


def _mean(values: "Counter[float]") -> Optional[float]:
    total = sum(values.values())
    return sum(value * n for value, n in sorted(values.items())) / total if total else None

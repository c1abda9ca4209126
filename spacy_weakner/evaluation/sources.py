"""Weak sources of a corpus, and their agreement."""

from collections import Counter, defaultdict
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.gold import Gold
from ..ty import Entity
from .evaluate import Evaluation, GoldScores
from .relations import NONE, SAME, TYPE, SpanIndex

# Name of the weak labels in `doc.ents`, as `aggregate` writes them, among the sources.
ENTS = "ents"


class LabelReport(NamedTuple):
    """Spans of one source with one label, or with any: distinct phrases, and Docs and tokens with such spans."""

    spans: int
    phrases: int
    docs: int
    tokens: int


class SourceReport(NamedTuple):
    """One weak source; "ents" are the `doc.ents` of weak Docs. Docs and tokens are those that it has labeled."""

    name: str
    docs: int
    tokens: int
    total: LabelReport  # a span with two labels is two spans
    per_label: Dict[str, LabelReport]
    overlapping: int  # spans that overlap another span of this source with other bounds
    ambiguous: int  # bounds in a Doc with several labels
    ambiguous_phrases: int  # phrases with several labels, anywhere in the corpus
    alone: int  # spans that overlap no span of any other source
    gold: Optional[GoldScores]

    @property
    def doc_coverage(self) -> float:
        """Share of its Docs that have a span, in [0, 100]."""
        return 100.0 * self.total.docs / max(1, self.docs)

    @property
    def token_coverage(self) -> float:
        """Share of the tokens of these Docs that are in a span, in [0, 100]."""
        return 100.0 * self.total.tokens / max(1, self.tokens)


class Overlap(NamedTuple):
    """Spans of one source beside those of another, in the Docs that both have labeled. The last four sum to `spans`."""

    source: str
    other: str
    docs: int = 0
    spans: int = 0
    same: int = 0  # the other has the same span with the same label
    conflict: int = 0  # the other has the same span, but with other labels
    overlapping: int = 0  # the other has spans that overlap it, but none with these bounds
    only: int = 0  # the other has no span there


def labels_by_source(doc: Doc) -> Dict[str, List[Entity]]:
    """The labels of each source that has labeled a Doc."""
    groups = [weak.weak_group(source) for source in weak.weak_sources(doc)]
    found = {source_name(group): weak.group_entities(doc, group) for group in groups}
    # If all tokens are missing, either no source has labeled the Doc, or none has found anything.
    if weak.is_weak(doc) and (found or doc.has_annotation("ENT_IOB")):
        found[ENTS] = weak.doc_entities(doc)
    return found


def source_name(group: str) -> str:
    """Name of a span group in reports: that of the source, where it cannot be taken for something else."""
    name = group[len(weak.WEAK_PREFIX) :] if group.startswith(weak.WEAK_PREFIX) else group
    return group if name == ENTS or name.startswith(weak.PREDICTED_PREFIX) else name


class SourceCounter:
    """Counts the spans of one source while Docs pass by.

    name (str): Its name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.docs = self.tokens = self.overlapping = self.ambiguous = self.alone = 0
        self._covered: Counter[str] = Counter()
        self._covered_docs: Counter[str] = Counter()
        self._all_covered = self._all_docs = 0
        self._phrases: Counter[Tuple[str, str]] = Counter()
        self._evaluation = Evaluation()

    def add(self, doc: Doc, index: SpanIndex, others: List[SpanIndex], gold: Optional[Gold]) -> None:
        """Count one Doc that the source has labeled."""
        self.docs += 1
        self.tokens += len(doc)
        self.overlapping += len(index.overlapping())
        self.ambiguous += sum(len(labels) > 1 for labels in index.bounds.values())
        self.alone += sum(all(other.relation(entity) == NONE for other in others) for entity in index.entities)
        self._covered.update(label for labels in index.tokens.values() for label in labels)
        self._covered_docs.update({label for _, _, label in index.entities})
        self._all_covered += len(index.tokens)
        self._all_docs += bool(index.entities)
        self._phrases.update((doc[start:end].text, label) for start, end, label in index.entities)
        if gold is not None:
            self._evaluation.add(doc, list(index.entities), gold)

    def result(self, top: int) -> SourceReport:
        """What was counted."""
        labels_of: Dict[str, Set[str]] = {}
        spans: Counter[str] = Counter()
        phrases: Counter[str] = Counter()
        for (text, label), n in self._phrases.items():
            labels_of.setdefault(text, set()).add(label)
            spans[label] += n
            phrases[label] += 1
        return SourceReport(
            name=self.name,
            docs=self.docs,
            tokens=self.tokens,
            total=LabelReport(sum(spans.values()), len(labels_of), self._all_docs, self._all_covered),
            per_label={
                label: LabelReport(spans[label], phrases[label], self._covered_docs[label], self._covered[label])
                for label in sorted(spans)
            },
            overlapping=self.overlapping,
            ambiguous=self.ambiguous,
            ambiguous_phrases=sum(len(labels) > 1 for labels in labels_of.values()),
            alone=self.alone,
            gold=self._evaluation.result(top) if self._evaluation.docs else None,
        )


class OverlapCounter:
    """Counts how the sources of each pair agree while Docs pass by."""

    def __init__(self) -> None:
        self._docs: Counter[Tuple[str, str]] = Counter()
        self._relations: Dict[Tuple[str, str], Counter[str]] = defaultdict(Counter)

    def add(self, indexes: Dict[str, SpanIndex]) -> None:
        """Count one Doc."""
        for source, index in indexes.items():
            for other, other_index in indexes.items():
                if source != other:
                    self._docs[source, other] += 1
                    self._relations[source, other].update(map(other_index.relation, index.entities))

    def result(self) -> List[Overlap]:
        """One per ordered pair that has a Doc in common, sorted by name."""
        overlaps = []
        for pair, docs in sorted(self._docs.items()):
            counts = self._relations[pair]
            spans = sum(counts.values())
            same, conflict, only = (counts[relation] for relation in (SAME, TYPE, NONE))
            overlaps.append(Overlap(*pair, docs, spans, same, conflict, spans - same - conflict - only, only))
        return overlaps

"""Analysis of weak labels: coverage of each source, conflicts between sources and, where there is gold, errors."""

from collections import Counter, defaultdict
from itertools import permutations
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.tokens import Doc

from ..calibration.reliability import CalibrationCounter, Reliability
from ..corpus import weak
from ..corpus.docbin import stream_docs
from ..corpus.gold import Gold, find_gold
from ..errors import Errors, WeaknerError, check_range
from ..progress import Progress
from ..ty import Entity
from .candidates import same_sentences
from .evaluate import NONE, SAME, TYPE, Evaluation, GoldScores, LengthRecall, SpanIndex, recall_by_length

# Source name of the weak labels in `doc.ents`, which `aggregate` writes.
ENTS = "ents"


class SpanCounts(NamedTuple):
    """Counts of a source's spans with one label, or with any; of distinct phrases; of Docs and tokens with a span."""

    spans: int
    phrases: int
    docs: int
    tokens: int


class SourceAnalysis(NamedTuple):
    """The report on one weak source, over the Docs that it has labeled. "ents" are the `doc.ents` of weak Docs."""

    name: str
    docs: int
    tokens: int
    total: SpanCounts  # a span with two labels is two spans
    per_label: Dict[str, SpanCounts]
    overlapping: int  # spans that overlap another span of this source with different bounds
    ambiguous: int  # bounds in a Doc with several labels
    alone: int  # spans that overlap no span of any other source
    gold: Optional[GoldScores]

    @property
    def doc_coverage(self) -> float:
        """RETURNS (float): Percentage of the labeled Docs that have a span."""
        return 100.0 * self.total.docs / max(1, self.docs)

    @property
    def token_coverage(self) -> float:
        """RETURNS (float): Percentage of the tokens of the labeled Docs that are in a span."""
        return 100.0 * self.total.tokens / max(1, self.tokens)


class Overlap(NamedTuple):
    """A source's spans compared with those of another, in Docs that both have labeled. The last four sum to `spans`."""

    source: str
    other: str
    docs: int = 0
    spans: int = 0
    same: int = 0  # the other source has the same span with the same label
    conflict: int = 0  # the other source has the same span, but with other labels
    overlapping: int = 0  # the other source has spans that overlap it, but none with these bounds
    only: int = 0  # the other source has no span there


class GoldReport(NamedTuple):
    """Counts of the gold of a corpus."""

    docs: int
    missing: int  # tokens without annotation
    lengths: List[LengthRecall]


class Analysis(NamedTuple):
    """The analysis of a corpus."""

    docs: int
    tokens: int
    unlabeled: int  # Docs that no source has labeled
    gold: Optional[GoldReport]
    sources: List[SourceAnalysis]  # sorted by name, "ents" last
    overlaps: List[Overlap]
    # Of sources and candidates of components ("pred:<pipe>") that have scores; empty without gold.
    calibration: Dict[str, Reliability]


def analyze(
    corpus: Path,
    *,
    gold: Optional[Path] = None,
    sources: Optional[Sequence[str]] = None,
    top: int = 10,
    progress: bool = False,
) -> Analysis:
    """Analyze weak labels. The corpus is read once, and only counts are kept.

    Gold is the span group "gold", or `doc.ents` of Docs that are not weak, or a separate corpus. Sources are scored
    on the Docs that they have labeled. Predicted spans that touch tokens without annotation are not scored.

    corpus (Path): A `.spacy` file or a folder of them, with the span groups `weak:<source>`.
    gold (Optional[Path]): A corpus with gold for the same sentences in the same order.
    sources (Optional[Sequence[str]]): The sources to analyze: names, "ents" or "pred:<pipe>"; None: all.
    top (int): Number of phrases in the lists of frequent errors.
    progress (bool): Show progress.
    RETURNS (Analysis): The analysis.
    RAISES (WeaknerError): If the input is missing or empty, has neither weak labels nor gold, or lacks one of the
        sources, or if the gold has other sentences.
    """
    check_range("top", top, 0, None)
    counter = _Counter(None if sources is None else set(sources))
    docs = stream_docs(Path(corpus))
    pairs: Iterable[Tuple[Doc, Doc]] = ((doc, doc) for doc in docs)
    if gold is not None:
        pairs = same_sentences(docs, stream_docs(gold), gold, corpus)
    for doc, gold_doc in Progress(pairs, desc="analyze", unit="doc", enabled=progress):
        counter.add(doc, find_gold(gold_doc))
    if not counter.docs:
        raise WeaknerError(Errors.WK101.format(path=corpus))
    if gold is not None and not counter.gold_docs:
        cure = "Give a corpus with entities that are not weak"
        raise WeaknerError(Errors.WK407.format(path=gold, what="gold", cure=cure))
    if not counter.seen and not counter.gold_docs:
        raise WeaknerError(Errors.WK301.format(path=corpus))
    for name in sources or ():
        if name not in counter.seen:
            there = ", ".join(sorted(counter.seen)) or "none"
            raise WeaknerError(Errors.WK302.format(path=corpus, source=name, sources=there))
    return counter.result(top)


class _Counter:
    """Counts of a corpus, added Doc by Doc."""

    def __init__(self, wanted: Optional[Set[str]]) -> None:
        self.seen: Set[str] = set()
        self.docs = self.tokens = self.unlabeled = self.gold_docs = self.gold_missing = 0
        self._wanted = wanted
        self._sources: Dict[str, _SourceCounter] = {}
        # By pair of sources: "docs" that both have labeled, and relations of the first one's spans to the second's.
        self._overlaps: Dict[Tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._calibration: Dict[str, CalibrationCounter] = {}
        self._gold_lengths: Counter[int] = Counter()

    def add(self, doc: Doc, gold: Optional[Gold]) -> None:
        self.docs += 1
        self.tokens += len(doc)
        if gold is not None:
            self.gold_docs += 1
            self.gold_missing += len(gold.missing)
            self._gold_lengths.update(end - start for start, end, _ in gold.entities)
        indexes = {name: SpanIndex(spans) for name, spans in _labels_by_source(doc).items() if self._note(name)}
        self.unlabeled += not indexes
        for name, index in indexes.items():
            # "ents" is made from the sources' spans, so it would leave none of them alone.
            others = [other for other_name, other in indexes.items() if other_name not in (name, ENTS)]
            if name not in self._sources:
                self._sources[name] = _SourceCounter(name)
            self._sources[name].add(doc, index, others, gold)
        for source, other in permutations(indexes, 2):
            relations = map(indexes[other].relation, indexes[source].entities)
            self._overlaps[source, other].update(["docs", *relations])
        for group in sorted(doc.spans):
            if group.startswith((weak.WEAK_PREFIX, weak.PREDICTED_PREFIX)):
                name = _source_name(group)
                if self._note(name) and gold is not None:
                    counter = self._calibration.setdefault(name, CalibrationCounter())
                    counter.add(weak.group_entities(doc, group), weak.group_scores(doc, group), gold)

    def _note(self, name: str) -> bool:
        """Note the name of a source; return True if it is wanted."""
        self.seen.add(name)
        return self._wanted is None or name in self._wanted

    def result(self, top: int) -> Analysis:
        gold = None
        if self.gold_docs:
            lengths = recall_by_length(self._gold_lengths, self._gold_lengths)
            gold = GoldReport(self.gold_docs, self.gold_missing, lengths)
        overlaps = []
        for pair, counts in sorted(self._overlaps.items()):
            docs, same, conflict, only = (counts[relation] for relation in ("docs", SAME, TYPE, NONE))
            spans = counts.total() - docs
            overlaps.append(Overlap(*pair, docs, spans, same, conflict, spans - same - conflict - only, only))
        calibration = {name: counter.result() for name, counter in sorted(self._calibration.items())}
        return Analysis(
            docs=self.docs,
            tokens=self.tokens,
            unlabeled=self.unlabeled,
            gold=gold,
            sources=[self._sources[n].result(top) for n in sorted(self._sources, key=lambda n: (n == ENTS, n))],
            overlaps=overlaps,
            calibration={name: result for name, result in calibration.items() if result is not None},
        )


class _SourceCounter:
    """Counts of one source's spans, added Doc by Doc."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.docs = self.tokens = self.overlapping = self.ambiguous = self.alone = 0
        # By label; None: with any label.
        self._covered: Counter[Optional[str]] = Counter()
        self._covered_docs: Counter[Optional[str]] = Counter()
        self._phrases: Counter[Tuple[str, str]] = Counter()
        self._evaluation = Evaluation()

    def add(self, doc: Doc, index: SpanIndex, others: List[SpanIndex], gold: Optional[Gold]) -> None:
        self.docs += 1
        self.tokens += len(doc)
        self.overlapping += len(index.overlapping())
        self.ambiguous += sum(len(labels) > 1 for labels in index.bounds.values())
        self.alone += sum(all(other.relation(entity) == NONE for other in others) for entity in index.entities)
        self._covered.update(x for spans in index.tokens.values() for x in {None, *(label for _, _, label in spans)})
        self._covered_docs.update({label for labels in index.bounds.values() for label in (None, *labels)})
        self._phrases.update((doc[start:end].text, label) for start, end, label in index.entities)
        if gold is not None:
            self._evaluation.add(doc, list(index.entities), gold)

    def result(self, top: int) -> SourceAnalysis:
        spans: Counter[str] = Counter()
        for (_, label), n in self._phrases.items():
            spans[label] += n
        phrases = Counter(label for _, label in self._phrases)
        docs, tokens, texts = self._covered_docs, self._covered, {text for text, _ in self._phrases}
        return SourceAnalysis(
            name=self.name,
            docs=self.docs,
            tokens=self.tokens,
            total=SpanCounts(self._phrases.total(), len(texts), docs[None], tokens[None]),
            per_label={x: SpanCounts(spans[x], phrases[x], docs[x], tokens[x]) for x in sorted(spans)},
            overlapping=self.overlapping,
            ambiguous=self.ambiguous,
            alone=self.alone,
            gold=self._evaluation.result(top) if self._evaluation.docs else None,
        )


def _labels_by_source(doc: Doc) -> Dict[str, List[Entity]]:
    """Return the spans of each source that has labeled a Doc."""
    groups = [weak.weak_group(source) for source in weak.weak_sources(doc)]
    found = {_source_name(group): weak.group_entities(doc, group) for group in groups}
    # If all tokens are missing, either no source has labeled the Doc, or none has found anything.
    if weak.is_weak(doc) and (found or doc.has_annotation("ENT_IOB")):
        found[ENTS] = weak.doc_entities(doc)
    return found


def _source_name(group: str) -> str:
    """Return the name of a span group in reports: the name of its source, unless that is ambiguous."""
    name = group[len(weak.WEAK_PREFIX) :] if group.startswith(weak.WEAK_PREFIX) else group
    return group if name == ENTS or name.startswith(weak.PREDICTED_PREFIX) else name

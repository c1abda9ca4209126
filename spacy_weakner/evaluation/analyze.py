"""Analysis of weak labels: coverage of each source, conflicts between sources and, where gold is known, errors."""

from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.tokens import Doc

from ..calibration.reliability import CalibrationCounter, Reliability
from ..corpus import weak
from ..corpus.docbin import stream_docs
from ..corpus.gold import Gold, find_gold
from ..corpus.tags import same_tokens
from ..errors import Errors, WeaknerError, check_range
from ..files import existing
from ..progress import Progress
from .evaluate import LengthRecall, recall_by_length
from .relations import SpanIndex
from .sources import ENTS, Overlap, OverlapCounter, SourceCounter, SourceReport, labels_by_source, source_name


class GoldReport(NamedTuple):
    """The gold of a corpus."""

    docs: int
    missing: int  # tokens without annotation
    labels: Dict[str, int]
    lengths: List[LengthRecall]


class Analysis(NamedTuple):
    """The analysis of a corpus."""

    docs: int
    tokens: int
    unlabeled: int  # Docs that no source has labeled
    gold: Optional[GoldReport]
    sources: List[SourceReport]  # sorted by name, "ents" last
    overlaps: List[Overlap]
    # Of sources, and candidates of components ("pred:<pipe>"), that give scores; only where gold is known.
    calibration: Dict[str, Reliability]


def analyze(
    corpus: Path,
    *,
    gold: Optional[Path] = None,
    sources: Optional[Sequence[str]] = None,
    top: int = 10,
    progress: bool = False,
) -> Analysis:
    """Audit weak labels. The corpus is read once, and only counts are kept.

    Gold is the span group "gold", or `doc.ents` of Docs that are not weak, or a corpus of its own. Sources are scored
    on the Docs that they have labeled. Predicted spans that touch tokens without annotation are not scored.

    corpus (Path): A `.spacy` file or a folder of them, with the span groups `weak:<source>`.
    gold (Optional[Path]): A corpus with gold for the same sentences in the same order.
    sources (Optional[Sequence[str]]): The sources to look at: names, "ents" or "pred:<pipe>"; None: all.
    top (int): Number of phrases in the lists of frequent errors.
    progress (bool): Show how far it has come.
    RETURNS (Analysis): What was found.
    RAISES (WeaknerError): For missing or empty input, input with neither weak labels nor gold, sources that are not
        there, and gold of other sentences.
    """
    check_range("top", top, 0, None)
    counter = _Counter(None if sources is None else set(sources))
    pairs = _read(Path(corpus), None if gold is None else Path(gold))
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
    """Counts while Docs pass by."""

    def __init__(self, wanted: Optional[Set[str]]) -> None:
        self.seen: Set[str] = set()
        self.docs = self.tokens = self.unlabeled = self.gold_docs = self.gold_missing = 0
        self._wanted = wanted
        self._sources: Dict[str, SourceCounter] = {}
        self._overlaps = OverlapCounter()
        self._calibration: Dict[str, CalibrationCounter] = {}
        self._gold_labels: Counter[str] = Counter()
        self._gold_lengths: Counter[int] = Counter()

    def add(self, doc: Doc, gold: Optional[Gold]) -> None:
        self.docs += 1
        self.tokens += len(doc)
        if gold is not None:
            self.gold_docs += 1
            self.gold_missing += len(gold.missing)
            self._gold_labels.update(label for _, _, label in gold.entities)
            self._gold_lengths.update(end - start for start, end, _ in gold.entities)
        indexes = {}
        for name, entities in labels_by_source(doc).items():
            self.seen.add(name)
            if self._is_wanted(name):
                indexes[name] = SpanIndex(entities)
        self.unlabeled += not indexes
        for name, index in indexes.items():
            # "ents" is made of the sources: no span of a source would ever be alone beside it.
            others = [other for other_name, other in indexes.items() if other_name not in (name, ENTS)]
            if name not in self._sources:
                self._sources[name] = SourceCounter(name)
            self._sources[name].add(doc, index, others, gold)
        self._overlaps.add(indexes)
        self._add_scores(doc, gold)

    def _is_wanted(self, name: str) -> bool:
        return self._wanted is None or name in self._wanted

    def _add_scores(self, doc: Doc, gold: Optional[Gold]) -> None:
        for group in sorted(doc.spans):
            if group.startswith((weak.WEAK_PREFIX, weak.PREDICTED_PREFIX)):
                name = source_name(group)
                self.seen.add(name)
                if gold is not None and self._is_wanted(name):
                    counter = self._calibration.setdefault(name, CalibrationCounter())
                    counter.add(weak.group_entities(doc, group), weak.group_scores(doc, group), gold)

    def result(self, top: int) -> Analysis:
        gold = None
        if self.gold_docs:
            lengths = recall_by_length(self._gold_lengths, self._gold_lengths)
            gold = GoldReport(self.gold_docs, self.gold_missing, dict(sorted(self._gold_labels.items())), lengths)
        names = sorted(self._sources, key=lambda name: (name == ENTS, name))
        calibration = {name: counter.result() for name, counter in sorted(self._calibration.items())}
        return Analysis(
            docs=self.docs,
            tokens=self.tokens,
            unlabeled=self.unlabeled,
            gold=gold,
            sources=[self._sources[name].result(top) for name in names],
            overlaps=self._overlaps.result(),
            calibration={name: result for name, result in calibration.items() if result is not None},
        )


def _read(corpus: Path, gold: Optional[Path]) -> Iterator[Tuple[Doc, Doc]]:
    """Docs of the corpus, each with the Doc that holds its gold."""
    existing(corpus)
    if gold is None:
        yield from ((doc, doc) for doc in stream_docs(corpus))
        return
    existing(gold)
    for number, (doc, other) in enumerate(zip_longest(stream_docs(corpus), stream_docs(gold)), start=1):
        if doc is None or other is None or not same_tokens(doc, other):
            raise WeaknerError(Errors.WK400.format(path=gold, other=corpus, number=number))
        yield doc, other

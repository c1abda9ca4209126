"""Chooses sentences of a stream that are uncertain, diverse, and cover all labels."""

import heapq
import re
from collections import Counter
from operator import itemgetter
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..runtime.hashes import hash_text
from ..ty import Entity, Floats
from .uncertainty import UncertainSpan

# Minimum cosine of the words of two sentences that count as nearly the same.
NEAR = 0.8
# Share of the choice that is divided equally between the labels, before the best remaining sentences are chosen.
SHARED = 0.5
_DIGIT = re.compile(r"\d")
# Sentences that a pool holds before it first discards any.
_LEAST = 1000


class Sentence(NamedTuple):
    """A sentence that may be suggested. It outlives the Doc that it was read from."""

    key: str  # equal for equal sentences; see `sentence_key`
    words: Tuple[str, ...]
    spaces: Tuple[bool, ...]
    id: Optional[str]
    score: float
    by_label: Dict[str, float]  # the share of each label in the score
    span: Optional[UncertainSpan]  # the most uncertain span
    groups: Dict[str, List[Tuple[Entity, Optional[float]]]]  # labels of weak sources and candidates
    ids: Dict[Entity, Tuple[str, ...]] = {}  # concept ids of these labels, and of the gold
    gold: Tuple[Entity, ...] = ()  # the entities of incomplete gold
    known: FrozenSet[int] = frozenset()  # the tokens that it says something of
    wrong: Tuple[Entity, ...] = ()  # what is no entity, as somebody has said
    cats: Mapping[str, float] = {}  # its categories
    meta: Mapping[str, Any] = {}  # what else its row says of it

    @property
    def text(self) -> str:
        """The text of the sentence."""
        return _join(self.words, self.spaces)

    @property
    def why(self) -> str:
        """The most uncertain span, in words; empty if there is none."""
        if self.span is None:
            return ""
        start, end = self.span.start, self.span.end
        return f"'{_join(self.words[start:end], self.spaces[start:end])}': {self.span.why}"


class SentencePool:
    """A pool of the best sentences, overall and per label. The seed decides between equally good sentences."""

    def __init__(self, size: int, size_of_label: int, seed: int) -> None:
        self.copies = 0
        self._size = size
        self._size_of_label = size_of_label
        self._seed = seed
        self._sentences: Dict[str, Sentence] = {}
        self._limit = _LEAST

    def add(self, sentence: Sentence) -> None:
        if sentence.key in self._sentences:
            self.copies += 1
            return
        self._sentences[sentence.key] = sentence
        if len(self._sentences) > self._limit:
            self._sentences = {best.key: best for best in self.sentences()}
            self._limit = max(_LEAST, 2 * len(self._sentences))

    def sentences(self) -> List[Sentence]:
        """Return the sentences, the best first."""
        ranked = sorted(self._sentences.values(), key=lambda s: (-s.score, hash_text(f"{self._seed} {s.key}")))
        kept = {sentence.key for sentence in ranked[: self._size]}
        for label in {label for sentence in ranked for label in sentence.by_label}:
            scores = [(sentence.by_label[label], sentence.key) for sentence in ranked if label in sentence.by_label]
            kept.update(key for _, key in heapq.nlargest(self._size_of_label, scores, key=itemgetter(0)))
        return [sentence for sentence in ranked if sentence.key in kept]


class Choice(NamedTuple):
    """Chosen sentences, in order, and the number skipped because they are nearly the same as a chosen one."""

    sentences: List[Sentence]
    near: int


def choose_sentences(sentences: Sequence[Sentence], n: int) -> Choice:
    """Choose sentences greedily. First, each label, starting with the rarest, is given its share; then the best
    remaining sentences follow. The score of a sentence is multiplied by its mean similarity to all sentences, since
    similar sentences benefit from its annotation, and reduced by its similarity to chosen sentences. Sentences that are
    nearly the same as a chosen one are skipped."""
    if not sentences:
        return Choice([], 0)
    likeness = Similarity([sentence.words for sentence in sentences])
    scores = numpy.asarray([sentence.score for sentence in sentences], dtype="float64")
    typical = likeness.to_all()
    free = numpy.ones(len(sentences), dtype=bool)
    chosen: List[int] = []
    near = 0

    def take(by: Floats) -> bool:
        nonlocal near
        open_ = free & (by > -1.0)
        if not open_.any():
            return False
        worth = numpy.where(open_, by * typical * (1.0 - likeness.most), -1.0)
        best = int(worth.argmax())  # of equally good sentences the first, which has the best score by itself
        chosen.append(best)
        free[best] = False
        likeness.add(best)
        out = free & (likeness.most >= NEAR)
        near += int(out.sum())
        free[out] = False
        return True

    for label, share in _shares(sentences, n).items():
        by_label = numpy.asarray([sentence.by_label.get(label, -1.0) for sentence in sentences], dtype="float64")
        there = sum(label in sentences[i].by_label for i in chosen)
        for _ in range(max(0, share - there)):
            if len(chosen) == n or not take(by_label):
                break
    while len(chosen) < n and take(scores):
        pass
    return Choice([sentences[i] for i in chosen], near)


def _shares(sentences: Sequence[Sentence], n: int) -> Dict[str, int]:
    """Return the number of sentences reserved for each label, the rarest label first."""
    counts = Counter(label for sentence in sentences for label in sentence.by_label)
    order = sorted(counts, key=lambda label: (counts[label], label))
    return {label: max(1, int(SHARED * n / len(order))) for label in order}


class Similarity:
    """The similarity of sentences to chosen ones: the cosine of their words, with higher weights for rare words. Case
    and digits are ignored."""

    def __init__(self, texts: Sequence[Tuple[str, ...]]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        def analyze(words: Tuple[str, ...]) -> List[str]:
            return [_DIGIT.sub("0", word.lower()) for word in words]

        # shape: (n_sentences, n_words): rows of length 1
        self._vectors = TfidfVectorizer(analyzer=analyze, smooth_idf=False, sublinear_tf=True).fit_transform(texts)
        # shape: (n_sentences,): the maximum cosine with a chosen sentence, in [0, 1]
        self.most = numpy.zeros(len(texts))

    def to_all(self) -> Floats:
        """Return the mean cosine with all sentences, in (0, 1], shape (n_sentences,)."""
        cosines: Floats = self._vectors @ numpy.asarray(self._vectors.mean(axis=0)).ravel()
        return cosines

    def add(self, i: int) -> None:
        """Add a chosen sentence."""
        cosines = (self._vectors @ self._vectors[[i]].T).toarray().ravel()
        numpy.minimum(numpy.maximum(self.most, cosines), 1.0, out=self.most)


def _join(words: Sequence[str], spaces: Sequence[bool]) -> str:
    parts = (word + " " * space for word, space in zip(words, spaces, strict=True))
    return "".join(parts).strip()

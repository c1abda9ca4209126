"""The best sentences of a stream, with a bounded number of them in memory."""

import heapq
from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..runtime.hashes import hash_text
from ..ty import Entity
from .uncertainty import UncertainSpan


class Sentence(NamedTuple):
    """A sentence that may be suggested. It outlives the Doc that it was read from."""

    key: str  # that of equal sentences; see `sentence_key`
    words: Tuple[str, ...]
    spaces: Tuple[bool, ...]
    id: Optional[str]
    score: float
    by_label: Dict[str, float]  # the share of each label in the score
    span: Optional[UncertainSpan]  # the most uncertain one
    groups: Dict[str, List[Tuple[Entity, Optional[float]]]]  # labels of weak sources and candidates

    @property
    def text(self) -> str:
        """The sentence."""
        return _join(self.words, self.spaces)

    @property
    def why(self) -> str:
        """The most uncertain span, in words; empty if there is none."""
        if self.span is None:
            return ""
        start, end = self.span.start, self.span.end
        return f"'{_join(self.words[start:end], self.spaces[start:end])}': {self.span.why}"


class Pool:
    """Keeps the best sentences, and of each label the best ones; the seed decides between equally good ones."""

    def __init__(self, size: int, size_of_label: int, seed: int) -> None:
        self.copies = 0
        self._size = size
        self._size_of_label = size_of_label
        self._seed = seed
        self._best: List[Tuple[float, str, str]] = []
        self._best_of: Dict[str, List[Tuple[float, str, str]]] = {}
        self._sentences: Dict[str, Sentence] = {}
        self._held: Counter[str] = Counter()

    def add(self, sentence: Sentence) -> None:
        """Keep a sentence if it is good enough."""
        if sentence.key in self._sentences:
            self.copies += 1
            return
        chance = self._chance(sentence)
        self._push(self._best, self._size, (sentence.score, chance, sentence.key), sentence)
        for label, score in sentence.by_label.items():
            heap = self._best_of.setdefault(label, [])
            self._push(heap, self._size_of_label, (score, chance, sentence.key), sentence)

    def sentences(self) -> List[Sentence]:
        """What was kept, the best first."""
        return sorted(self._sentences.values(), key=lambda sentence: (-sentence.score, self._chance(sentence)))

    def _chance(self, sentence: Sentence) -> str:
        return hash_text(f"{self._seed} {sentence.key}")

    def _push(
        self, heap: List[Tuple[float, str, str]], size: int, item: Tuple[float, str, str], sentence: Sentence
    ) -> None:
        out = heapq.heappushpop(heap, item) if len(heap) >= size else None
        if out is None:
            heapq.heappush(heap, item)
        if out == item:
            return
        self._sentences[item[2]] = sentence
        self._held[item[2]] += 1
        if out is not None:
            self._held[out[2]] -= 1
            if not self._held[out[2]]:
                del self._held[out[2]], self._sentences[out[2]]


def _join(words: Sequence[str], spaces: Sequence[bool]) -> str:
    parts = (word + " " * space for word, space in zip(words, spaces, strict=True))
    return "".join(parts).strip()

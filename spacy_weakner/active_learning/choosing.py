"""Chooses sentences that are uncertain, unlike each other, and about all labels."""

import math
import re
from collections import Counter
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from .pool import Sentence

# Cosine of words from which on one of two sentences teaches hardly anything that the other does not.
NEAR = 0.8
# Of what is chosen, so much is shared out between the labels in equal parts before the best of all are taken.
SHARED = 0.5
_DIGIT = re.compile(r"\d")


class Choice(NamedTuple):
    """Chosen sentences, in their order, and how many were passed over as nearly the same as one of them."""

    sentences: List[Sentence]
    near: int


def choose(sentences: Sequence[Sentence], n: int) -> Choice:
    """Choose greedily. At first each label has its turn, the rarest first, until it has its share; then the best of all
    follow. A sentence counts the more, the more it resembles the others that there are, since what is learnt from it
    holds for them; and the less, the more it resembles one that was chosen. Those that are nearly the same as such a
    one are passed over."""
    likeness = Likeness([sentence.words for sentence in sentences])
    scores = numpy.asarray([sentence.score for sentence in sentences], dtype="float64")
    typical = likeness.to_all()
    free = numpy.ones(len(sentences), dtype=bool)
    chosen: List[int] = []
    near = 0

    def take(by: NDArray[numpy.float64]) -> bool:
        nonlocal near
        open_ = free & (by > -1.0)
        if not open_.any():
            return False
        worth = numpy.where(open_, by * typical * (1.0 - likeness.most), -1.0)
        best = int(worth.argmax())  # of equally good ones the first, which is the better by itself
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
    """How many sentences each label has a right to, the rarest label first."""
    counts = Counter(label for sentence in sentences for label in sentence.by_label)
    order = sorted(counts, key=lambda label: (counts[label], label))
    return {label: max(1, int(SHARED * n / len(order))) for label in order}


class Likeness:
    """How much each sentence resembles those that were taken: the cosine of their words, rare ones counting most.
    Upper case and digits make no difference.

    texts (Sequence[Tuple[str, ...]]): The tokens of the sentences.
    most (NDArray[numpy.float64]): Shape (n_sentences,): the greatest cosine with one that was taken, in [0, 1].
    """

    def __init__(self, texts: Sequence[Tuple[str, ...]]) -> None:
        self.most = numpy.zeros(len(texts))
        words = [Counter(_DIGIT.sub("0", word.lower()) for word in text) for text in texts]
        found = Counter(word for counts in words for word in counts)
        self._vectors: List[Dict[str, float]] = []
        postings: Dict[str, Tuple[List[int], List[float]]] = {word: ([], []) for word in found}
        for i, counts in enumerate(words):
            weights = {
                word: (1.0 + math.log(count)) * (1.0 + math.log(len(texts) / found[word]))
                for word, count in counts.items()
            }
            length = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
            self._vectors.append({word: weight / length for word, weight in weights.items()})
            for word, weight in self._vectors[-1].items():
                postings[word][0].append(i)
                postings[word][1].append(weight)
        self._postings = {
            word: (numpy.asarray(where, dtype="int64"), numpy.asarray(weights))
            for word, (where, weights) in postings.items()
        }

    def to_all(self) -> NDArray[numpy.float64]:
        """Shape (n_sentences,): the mean cosine with all of them, in (0, 1]."""
        shares = {word: float(weights.sum()) / len(self.most) for word, (_, weights) in self._postings.items()}
        return numpy.asarray(
            [sum(weight * shares[word] for word, weight in vector.items()) for vector in self._vectors]
        )

    def add(self, i: int) -> None:
        """Take a sentence."""
        cosines = numpy.zeros(len(self.most))
        for word, weight in self._vectors[i].items():
            where, weights = self._postings[word]
            cosines[where] += weight * weights
        numpy.minimum(numpy.maximum(self.most, cosines), 1.0, out=self.most)

"""How often candidates with the same words were right: a term such as "water" may always be wrong."""

from typing import Any, List, Sequence

import numpy
from numpy.typing import NDArray
from spacy.strings import get_string_id

from .candidates import Candidates
from .competition import Floats

# What is remembered of a candidate: its words, those at its ends, and those around; each for its label.
WORDS = ("text", "first", "last", "previous", "next")
COLUMNS = tuple(f"{which} {what}" for which in WORDS for what in ("seen right", "seen wrong"))
# Hashes of the words of a phrase are the digits of a number, modulo 2**64; as an odd number the base has an inverse.
_BASE = 0x9E3779B97F4A7C15

Hashes = NDArray[numpy.uint64]


class Memory:
    """How often what was right, and how often wrong.

    rows (Sequence[Sequence[int]]): A key, as `memory_keys` gives them, how many candidates with it were right, and how
        many wrong.
    """

    def __init__(self, rows: Sequence[Sequence[int]] = ()) -> None:
        table = numpy.array(sorted(map(list, rows)), dtype="uint64").reshape(-1, 3)
        self._keys = table[:, 0]
        # The last row is that of keys that are not known.
        self._counts = numpy.append(table[:, 1:], [[0, 0]], axis=0).astype("float64")

    @classmethod
    def of(cls, keys: Hashes, right: Floats) -> "Memory":
        """Remember some candidates.

        keys (Hashes): Shape (n, len(WORDS)): the keys of each candidate.
        right (Floats): Shape (n,): 1 for those that are right, else 0.
        RETURNS (Memory): What is known of them.
        """
        known, which = numpy.unique(keys.reshape(-1), return_inverse=True)
        is_right = numpy.repeat(right, len(WORDS))
        counts = [numpy.bincount(which, weights, len(known)).astype("int64") for weights in (is_right, 1.0 - is_right)]
        return cls(list(zip(known.tolist(), *(own.tolist() for own in counts), strict=True)))

    @property
    def rows(self) -> List[List[int]]:
        """RETURNS (List[List[int]]): What it was made of, sorted."""
        counts = self._counts[:-1].astype("int64").tolist()
        return [[key, *own] for key, own in zip(self._keys.tolist(), counts, strict=True)]

    def columns(self, keys: Hashes) -> Floats:
        """What is remembered of some candidates.

        keys (Hashes): Shape (n, len(WORDS)): the keys of each candidate.
        RETURNS (Floats): Shape (n, len(COLUMNS)): n / (n + 1), where n is how often it was right, or wrong.
        """
        places = numpy.searchsorted(self._keys, keys)
        found = numpy.append(self._keys, numpy.uint64(0))[places] == keys
        counts = self._counts[numpy.where(found, places, len(self._keys))].reshape(-1, len(COLUMNS))
        result: Floats = counts / (counts + 1.0)
        return result


def memory_keys(words: Hashes, candidates: Candidates, labels: Sequence[str]) -> Hashes:
    """By what candidates are remembered: hashes of their words and of their label.

    words (Hashes): Shape (n_tokens + 1,): hashes of the words of all Docs, see `words`.
    candidates (Candidates): The candidates.
    labels (Sequence[str]): Their labels.
    RETURNS (Hashes): Shape (n, len(WORDS)).
    """
    start, end, label = candidates.spans.T
    before, after = candidates.neighbours
    powers, inverse = (_powers(base, len(words)) for base in (_BASE, pow(_BASE, -1, 2**64)))
    sums = numpy.concatenate([numpy.zeros(1, dtype="uint64"), numpy.cumsum(words * powers)])
    text = (sums[end] - sums[start]) * inverse[start]
    keys = numpy.stack([text, words[start], words[end - 1], words[before], words[after]], axis=1)
    salts = [[get_string_id(f"{which}\t{name}") for which in WORDS] for name in labels]
    result: Hashes = keys ^ numpy.array(salts, dtype="uint64").reshape(-1, len(WORDS))[label]
    return result


def held_out_columns(keys: Sequence[Hashes], right: Sequence[Floats], fold_of: Any) -> List[Floats]:
    """What is remembered of candidates, by the Docs of other folds: of its own Doc a candidate must know nothing.

    keys (Sequence[Hashes]): The keys of each Doc's candidates.
    right (Sequence[Floats]): Which of them are right, see `Memory.of`.
    fold_of (Any): Shape (n_docs,): the fold of each Doc.
    RETURNS (List[Floats]): Per Doc as `Memory.columns`.
    """
    memories = {}
    for fold in numpy.unique(fold_of).tolist():
        others = numpy.flatnonzero(fold_of != fold).tolist()
        memories[fold] = remember([keys[i] for i in others], [right[i] for i in others])
    return [memories[fold].columns(own) for own, fold in zip(keys, fold_of, strict=True)]


def remember(keys: Sequence[Hashes], right: Sequence[Floats]) -> Memory:
    """RETURNS (Memory): What is known of the candidates of several Docs."""
    nothing = numpy.zeros((0, len(WORDS)), dtype="uint64")
    return Memory.of(numpy.concatenate([nothing, *keys]), numpy.concatenate([numpy.zeros(0), *right]))


def _powers(base: int, n: int) -> Hashes:
    """The first powers of a number, modulo 2**64."""
    factors = numpy.full(n, base, dtype="uint64")
    factors[:1] = 1
    return numpy.cumprod(factors)

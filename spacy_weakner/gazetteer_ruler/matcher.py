"""Finding phrases in sequences of token attributes."""

from typing import Dict, List, Tuple

import numpy
from numpy.typing import NDArray

from ..ty import Entity

Key = Tuple[int, ...]


class TermTable:
    """Phrases with their labels, looked up in sequences of attribute values (ORTH, LOWER, ...)."""

    def __init__(self) -> None:
        self._labels: Dict[Key, Tuple[str, ...]] = {}
        # How long the phrases are that begin with a value: only these lengths are tried.
        self._lengths: Dict[int, Tuple[int, ...]] = {}

    def __len__(self) -> int:
        """The number of phrases; one with two labels counts once."""
        return len(self._labels)

    def add(self, key: Key, label: str) -> None:
        """Add a phrase. Adding it again changes nothing; another label is kept beside the first.

        key (Tuple[int, ...]): Attribute values of its tokens, at least one.
        label (str): Its label.
        """
        labels = self._labels.get(key, ())
        if label not in labels:
            self._labels[key] = tuple(sorted((*labels, label)))
        lengths = self._lengths.get(key[0], ())
        if len(key) not in lengths:
            self._lengths[key[0]] = tuple(sorted((*lengths, len(key))))

    def find(self, ids: NDArray[numpy.uint64]) -> List[Entity]:
        """Find all phrases, those that overlap included.

        ids (NDArray[numpy.uint64]): Attribute values of the tokens, shape (n_tokens,).
        RETURNS (List[Entity]): (start, end, label), sorted.
        """
        found: List[Entity] = []
        values = ids.tolist()
        for start, value in enumerate(values):
            for length in self._lengths.get(value, ()):
                # At the end of the text the slice is shorter than `length`, and might be a phrase of its own.
                end = start + length
                if end > len(values):
                    break
                for label in self._labels.get(tuple(values[start:end]), ()):
                    found.append((start, end, label))
        return found

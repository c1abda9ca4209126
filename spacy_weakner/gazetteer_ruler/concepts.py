"""The concepts of terms: pairs of a label and an id."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Dict, Iterable, Iterator, List, Tuple

import numpy

from ..ty import Array
from .array_file import ArrayFile, Arrays
from .ragged import Ragged
from .trie import NodeArray


@dataclass(frozen=True, eq=False)
class Concepts:
    """Unique pairs of a label and an id, sorted by label, then in the order of the list."""

    names: List[str]
    labels: Array  # shape (n_concepts,): number of each pair's label
    ids: Ragged  # id of each pair, in UTF-8; empty for terms without an id

    @classmethod
    def of(cls, pairs: Iterable[Tuple[str, str]]) -> Tuple["Concepts", Dict[Tuple[str, str], int]]:
        """Number pairs of a label and an id; return also the numbers by pair."""
        numbers = {pair: n for n, pair in enumerate(sorted(dict.fromkeys(pairs), key=itemgetter(0)))}
        places = {name: n for n, name in enumerate(dict.fromkeys(label for label, _ in numbers))}
        labels = numpy.asarray([places[label] for label, _ in numbers], dtype="uint32")
        ids = Ragged.of_texts([identifier.encode("utf-8") for _, identifier in numbers])
        return cls(list(places), labels, ids), numbers

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Tuple[str, str]]:
        return zip((self.names[label] for label in self.labels.tolist()), self.ids.texts(), strict=True)

    @property
    def has_ids(self) -> bool:
        return len(self.ids.values) > 0

    def used_names(self, concepts: NodeArray) -> List[str]:
        return [self.names[label] for label in numpy.unique(self.labels[concepts])]

    # Storage

    def to_arrays(self) -> Arrays:
        return {"concept_labels": self.labels, **self.ids.to_arrays("concept_ids")}

    @classmethod
    def from_file(cls, file_: ArrayFile) -> "Concepts":
        """Use the arrays of a file without copying them."""
        names = file_.meta.get("labels")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise file_.damaged("the labels are not a list of strings")
        labels, ids = file_.get("concept_labels", "<u4"), Ragged.from_arrays(file_, "concept_ids", "<u1")
        if int(labels.max(initial=0)) >= max(1, len(names)) or len(ids) != len(labels):
            raise file_.damaged("the arrays of the labels and ids do not fit each other")
        return cls(names, labels, ids)

"""Precision, recall and F1 of entities."""

from typing import Dict, Iterable, NamedTuple, Tuple

from ..ty import Entities


class Counts(NamedTuple):
    """Counts of exact matches (same bounds, same label).

    tp (int): Entities that are in both.
    fp (int): Predicted entities that are not gold.
    fn (int): Gold entities that were not predicted.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0

    @property
    def precision(self) -> float:
        """RETURNS (float): In [0, 100]; 0 if nothing was predicted."""
        return 100.0 * self.tp / max(1, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """RETURNS (float): In [0, 100]; 0 if there is no gold."""
        return 100.0 * self.tp / max(1, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """RETURNS (float): In [0, 100]."""
        return 100.0 * 2 * self.tp / max(1, 2 * self.tp + self.fp + self.fn)

    def plus(self, other: "Counts") -> "Counts":
        """RETURNS (Counts): The sums."""
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)


def count_matches(pairs: Iterable[Tuple[Entities, Entities]]) -> Tuple[Counts, Dict[str, Counts]]:
    """Count matching entities over a corpus (micro average).

    pairs (Iterable[Tuple[Entities, Entities]]): (gold, predicted) entities of each sentence.
    RETURNS (Tuple[Counts, Dict[str, Counts]]): Over all labels, and per label (sorted).
    """
    per_label: Dict[str, Counts] = {}
    for gold, predicted in pairs:
        right = set(gold) & set(predicted)
        for kind, entities in enumerate((right, set(predicted) - right, set(gold) - right)):
            for _, _, label in entities:
                one = Counts(*(int(kind == k) for k in range(3)))
                per_label[label] = per_label.get(label, Counts()).plus(one)
    total = Counts()
    for counts in per_label.values():
        total = total.plus(counts)
    return total, dict(sorted(per_label.items()))

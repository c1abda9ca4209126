"""Precision and recall of a pipeline if entities with low scores are left out."""

from typing import Dict, List, Optional, Sequence, Tuple

from ..corpus.gold import Gold
from ..scores import Counts
from ..ty import Entities
from .tables import Table

THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class Tradeoff:
    """A counter of entities by score."""

    def __init__(self) -> None:
        self._gold = 0
        self._scored: List[Tuple[float, bool]] = []
        self._has_scores = False

    def add(self, entities: Entities, scores: Sequence[Optional[float]], gold: Gold) -> None:
        """Add the entities of a Doc; those without a score are always kept."""
        known = set(gold.scorable(entities))
        self._gold += len(gold.entities)
        for entity, score in zip(entities, scores, strict=True):
            if entity in known:
                self._has_scores |= score is not None
                self._scored.append((1.0 if score is None else score, entity in gold.entities))

    def rows(self) -> List[List[str]]:
        """Return each threshold that leaves out entities, and 0, with precision, recall and F1; nothing without
        scores."""
        found: Dict[Counts, List[str]] = {}
        for threshold in THRESHOLDS if self._has_scores else ():
            kept = [right for score, right in self._scored if score >= threshold]
            counts = Counts(sum(kept), len(kept) - sum(kept), self._gold - sum(kept))
            scores = (counts.precision, counts.recall, counts.f1)
            found.setdefault(counts, [f"{threshold:g}", *(f"{value:.1f}" for value in scores)])
        return list(found.values())


def tradeoff_table(name: str, rows: List[List[str]]) -> Table:
    """Return a table of the precision and recall of a candidate by threshold."""
    note = "For another precision, set 'precision' in project.yml; the threshold of each label is then fitted."
    return Table(f"'{name}' without entities below a threshold", ["Threshold", "P", "R", "F1"], rows, note)

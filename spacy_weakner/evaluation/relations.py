"""How a span relates to a set of other spans: what separates the kinds of errors against gold, and of disagreement
between sources."""

from typing import Dict, Iterable, Set, Tuple

from ..ty import Entity

SAME = "same"
TYPE = "type"
BOUNDARY = "boundary"
BOTH = "both"
NONE = "none"


class SpanIndex:
    """A set of spans of one Doc that other spans are compared with. They may overlap.

    entities (Iterable[Entity]): The spans; repeated ones count once.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.entities: Set[Entity] = set(entities)
        self.bounds: Dict[Tuple[int, int], Set[str]] = {}
        self.tokens: Dict[int, Set[str]] = {}
        self._owners: Dict[int, int] = {}
        for start, end, label in self.entities:
            if (start, end) not in self.bounds:
                for token in range(start, end):
                    self._owners[token] = self._owners.get(token, 0) + 1
            self.bounds.setdefault((start, end), set()).add(label)
            for token in range(start, end):
                self.tokens.setdefault(token, set()).add(label)

    def relation(self, entity: Entity) -> str:
        """Compare a span with these. Of several relations the first of this list counts."""
        start, end, label = entity
        if entity in self.entities:
            return SAME
        if (start, end) in self.bounds:
            return TYPE
        touched = [self.tokens[token] for token in range(start, end) if token in self.tokens]
        if any(label in labels for labels in touched):
            return BOUNDARY
        return BOTH if touched else NONE

    def overlapping(self) -> Set[Entity]:
        """The spans that overlap another one of them with other bounds."""
        return {entity for entity in self.entities if any(self._owners[i] > 1 for i in range(entity[0], entity[1]))}

"""Where the gold of a Doc is."""

from typing import FrozenSet, List, NamedTuple, Optional

from spacy.tokens import Doc

from ..annotations.weak import GOLD_GROUP, doc_entities, group_entities, is_weak
from ..ty import Entities, Entity


class Gold(NamedTuple):
    """What is known for certain about a Doc.

    entities (FrozenSet[Entity]): The gold entities.
    missing (FrozenSet[int]): Tokens that nobody has annotated.
    """

    entities: FrozenSet[Entity]
    missing: FrozenSet[int] = frozenset()

    def scorable(self, entities: Entities) -> List[Entity]:
        """RETURNS (List[Entity]): Those that touch no missing token: of the others nobody knows whether they are
        right."""
        if not self.missing:
            return list(entities)
        return [entity for entity in entities if self.missing.isdisjoint(range(entity[0], entity[1]))]


def find_gold(doc: Doc) -> Optional[Gold]:
    """The gold of a Doc: the span group "gold", where `aggregate` has put it; else `doc.ents`, unless they are weak.

    doc (Doc): The Doc.
    RETURNS (Optional[Gold]): None if there is none. (A Doc without tokens has one, which is empty, unless it is weak.)
    """
    if GOLD_GROUP in doc.spans:
        return Gold(frozenset(group_entities(doc, GOLD_GROUP)))
    if is_weak(doc):
        return None
    missing = frozenset(token.i for token in doc if token.ent_iob == 0)
    if missing and len(missing) == len(doc):
        return None
    return Gold(frozenset(doc_entities(doc)), missing)

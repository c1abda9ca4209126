"""Access to the gold of a Doc."""

from typing import FrozenSet, List, NamedTuple, Optional, Sequence

import numpy
from spacy.attrs import ENT_IOB
from spacy.tokens import Doc

from ..ty import Entities, Entity
from .weak import GOLD_GROUP, EntityIds, doc_entities, doc_ids, group_entities, is_weak, set_group


class Gold(NamedTuple):
    """The gold entities of a Doc, and its tokens without annotation."""

    entities: FrozenSet[Entity]
    missing: FrozenSet[int] = frozenset()

    def scorable(self, entities: Entities) -> List[Entity]:
        """Return the entities that contain no missing token: only these can be scored."""
        if not self.missing:
            return list(entities)
        return [entity for entity in entities if self.missing.isdisjoint(range(entity[0], entity[1]))]


def keep_gold(doc: Doc) -> bool:
    """Move the gold of a Doc, if any, to the span group "gold", before weak labels are written to `doc.ents`."""
    if is_weak(doc) or not doc.has_annotation("ENT_IOB"):
        return False
    set_gold(doc, doc_entities(doc), missing_tokens(doc), doc_ids(doc))
    return True


def set_gold(
    doc: Doc, entities: Sequence[Entity], missing: Sequence[int] = (), ids: Optional[EntityIds] = None
) -> None:
    """Write gold to the span group "gold", beside weak labels."""
    group = set_group(doc, GOLD_GROUP, entities, ids=ids)
    if missing:
        group.attrs["missing"] = list(missing)


def missing_tokens(doc: Doc) -> List[int]:
    """Return the tokens whose entity annotation is missing."""
    return numpy.flatnonzero(doc.to_array([ENT_IOB]) == 0).tolist()  # many times as fast as token by token


def find_gold(doc: Doc) -> Optional[Gold]:
    """Return the gold of a Doc: the span group "gold" (see `aggregate`), or else `doc.ents`, unless they are weak."""
    if GOLD_GROUP in doc.spans:
        missing = doc.spans[GOLD_GROUP].attrs.get("missing", ())
        return Gold(frozenset(group_entities(doc, GOLD_GROUP)), frozenset(missing))
    if is_weak(doc):
        return None
    unknown = frozenset(missing_tokens(doc))
    if unknown and len(unknown) == len(doc):
        return None
    return Gold(frozenset(doc_entities(doc)), unknown)

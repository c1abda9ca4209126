"""Entities of a Doc: writing them, and their white space."""

from typing import Iterable, List, Sequence

from spacy.tokens import Doc, Span

from ..ty import Entity


def set_entities(doc: Doc, entities: Sequence[Entity], known: Sequence[bool]) -> None:
    """Write `doc.ents`.

    doc (Doc): The Doc.
    entities (Sequence[Entity]): Entities without overlaps.
    known (Sequence[bool]): Per token: False where nothing is known. Tokens of entities count as known.
    """
    spans = [Span(doc, start, end, label=label) for start, end, label in entities]
    if not any(known):
        doc.set_ents(spans, default="missing")
        return
    inside = {i for start, end, _ in entities for i in range(start, end)}
    unknown = [doc[i : i + 1] for i, k in enumerate(known) if not k and i not in inside]
    doc.set_ents(spans, missing=unknown, default="outside")


def trim_whitespace(doc: Doc, entities: Iterable[Entity]) -> List[Entity]:
    """Take white-space tokens off the ends of entities, and drop entities that consist of nothing else.

    doc (Doc): The Doc of the entities.
    entities (Iterable[Entity]): The entities.
    RETURNS (List[Entity]): What remains.
    """
    result = []
    for start, end, label in entities:
        while start < end and doc[start].is_space:
            start += 1
        while start < end and doc[end - 1].is_space:
            end -= 1
        if start < end:
            result.append((start, end, label))
    return result

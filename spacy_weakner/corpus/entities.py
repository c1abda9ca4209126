"""Entities of a Doc: writing, white space at their ends, and preset entities that components respect."""

from typing import Iterable, List, Sequence, Tuple

import numpy
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span

from ..ty import BoolMask, Entity

INSIDE, BEGINS = 1, 3  # values of ENT_IOB


def set_entities(
    doc: Doc, entities: Sequence[Entity], known: Iterable[bool], unclear: Iterable[Tuple[int, int]] = ()
) -> None:
    """Write `doc.ents`. `known` is False for tokens without annotation; those in `unclear` ranges count as missing.
    Tokens of entities always count as known."""
    spans = [Span(doc, start, end, label=label) for start, end, label in entities]
    without = {i for start, end in unclear for i in range(start, end)}
    missing = without | {i for i, is_known in enumerate(known) if not is_known}
    if len(missing) == len(doc):
        doc.set_ents(spans, default="missing")
        return
    inside = {i for start, end, _ in entities for i in range(start, end)}
    doc.set_ents(spans, missing=[doc[i : i + 1] for i in sorted(missing - inside)], default="outside")


def trim_whitespace(doc: Doc, entities: Iterable[Entity]) -> List[Entity]:
    """Remove white-space tokens from the ends of entities, and drop entities that consist of white space only."""
    trimmed = ((*trim(doc, start, end), label) for start, end, label in entities)
    return [entity for entity in trimmed if entity[0] < entity[1]]


def trim(doc: Doc, start: int, end: int) -> Tuple[int, int]:
    """Return the bounds of some tokens without white-space tokens at the ends."""
    while start < end and doc[start].is_space:
        start += 1
    while start < end and doc[end - 1].is_space:
        end -= 1
    return start, end


def preset_tokens(doc: Doc) -> BoolMask:
    """Return a mask of the tokens that already belong to an entity of the Doc, and of blocked tokens."""
    tags = doc.to_array(ENT_IOB)
    preset: BoolMask = (tags == BEGINS) | (tags == INSIDE)
    return preset


def blocked_tokens(doc: Doc) -> List[Span]:
    """Return tokens that no entity may contain: each is marked as the beginning of an entity without a type."""
    annotation = doc.to_array([ENT_IOB, ENT_TYPE])
    found = numpy.flatnonzero((annotation[:, 0] == BEGINS) & (annotation[:, 1] == 0)).tolist()
    return [doc[i : i + 1] for i in found]

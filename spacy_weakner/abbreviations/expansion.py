"""Adds short forms as entities if a document defines them as abbreviations of entities."""

from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

from spacy.tokens import Doc

from ..corpus.documents import group_documents
from ..ty import Entity
from .definitions import Bounds, Definition, find_definitions, short_forms

Form = Tuple[str, ...]
T = TypeVar("T")


class Origin(NamedTuple):
    """The entity that a short form stands for: the index of its Doc, and the index of the entity in that Doc."""

    doc: int
    entity: int


class Expansion(NamedTuple):
    """The definitions and short forms in one Doc."""

    definitions: List[Definition]
    short: Dict[Bounds, List[Origin]]  # short forms, each with the entities that it stands for


def expand(docs: Sequence[Doc], entities: Sequence[Sequence[Entity]]) -> List[Expansion]:
    """Find the short forms of a document, given as one Doc or as its sentences. `entities` are the known entities of
    each Doc; a short form whose long form is not one of them has no origins."""
    definitions = [find_definitions(doc) for doc in docs]
    if not any(definitions):
        return [Expansion([], {}) for _ in docs]
    forms: Dict[Form, List[Origin]] = {}
    for n, doc in enumerate(docs):
        for definition in definitions[n]:
            origins = [Origin(n, i) for i in _entities_at(doc, entities[n], definition.long)]
            for form in short_forms(doc, definition):
                # If it is defined twice, the definition by an entity is used.
                forms[form] = forms.get(form) or origins
    return [Expansion(definitions[n], _find(doc, forms)) for n, doc in enumerate(docs)]


def expand_documents(docs: Sequence[Doc], found: Sequence[Mapping[Entity, T]]) -> List[Dict[Entity, T]]:
    """Add the short forms of documents to the entities in their sentences; they inherit values, such as ids."""
    result: List[Dict[Entity, T]] = []
    for group in group_documents(docs):
        numbers = range(len(result), len(result) + len(group))
        entities = [list(found[n]) for n in numbers]
        for n, expansion in zip(numbers, expand(group, entities), strict=True):
            every = dict(found[n])
            for bounds, origins in expansion.short.items():
                for origin in origins:
                    entity = entities[origin.doc][origin.entity]
                    key = (*bounds, entity[2])
                    # A known entity keeps its own values, if it has any.
                    every[key] = every.get(key) or found[numbers[origin.doc]][entity]
            result.append(dict(sorted(every.items(), key=lambda item: item[0])))
    return result


def _entities_at(doc: Doc, entities: Sequence[Entity], long: Bounds) -> List[int]:
    """Return the longest entities that end where a long form ends. The long form must have no function word before
    them: a "metastatic breast cancer" is a breast cancer, but a "target of rapamycin" is not rapamycin."""
    ending = [(entity[0], i) for i, entity in enumerate(entities) if entity[1] == long[1]]
    first = min(ending, default=(0, 0))[0]
    if any(token.is_stop for token in doc[long[0] : first]):
        return []
    return [i for start, i in ending if start == first]


def _find(doc: Doc, forms: Dict[Form, List[Origin]]) -> Dict[Bounds, List[Origin]]:
    """Find all occurrences of short forms in a Doc; of those that begin at the same token, the longest."""
    by_first: Dict[str, List[Form]] = {}
    for form in sorted(forms, key=len, reverse=True):
        by_first.setdefault(form[0], []).append(form)
    tokens = [token for token in doc if not token.is_space]
    found: Dict[Bounds, List[Origin]] = {}
    i = 0
    while i < len(tokens):
        for form in by_first.get(tokens[i].text, ()):
            if tuple(token.text for token in tokens[i : i + len(form)]) == form:
                found[tokens[i].i, tokens[i + len(form) - 1].i + 1] = forms[form]
                i += len(form) - 1
                break
        i += 1
    return found

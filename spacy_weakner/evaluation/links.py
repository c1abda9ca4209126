"""Evaluation of concept ids on gold."""

from collections import Counter
from typing import AbstractSet, Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.weak import doc_ids
from ..scores import Counts
from ..ty import Entity

# The ids that a candidate gives to each entity, the best first.
Given = Mapping[Entity, Sequence[str]]


class LinkCounts(NamedTuple):
    """Counts of concept ids. A gold entity may have several ids, separated by "|"."""

    right: int = 0  # gold entities that are found with one of their ids
    given: int = 0  # predicted entities with an id
    gold: int = 0  # gold entities with an id
    found: int = 0  # gold entities with an id that are found, with any id
    known: int = 0  # found entities that are terms of the candidate's list
    known_right: int = 0  # found entities that are terms of the list and have one of their ids

    def with_sentence(
        self, wanted: Mapping[Entity, AbstractSet[str]], ids: Given, found: Sequence[Entity], known: AbstractSet[Entity]
    ) -> "LinkCounts":
        there = {entity for entity in found if entity in wanted}
        right = {entity for entity in there if not wanted[entity].isdisjoint(ids.get(entity, ())[:1])}
        counts = (right, ids, wanted, there, there & known, right & known)
        return LinkCounts(*(before + len(entities) for before, entities in zip(self, counts, strict=True)))

    @property
    def scores(self) -> Dict[str, Optional[float]]:
        """Precision, recall and F1 of entities with their ids; the share of right ids among right entities, and among
        those that are and are not terms of the list (None without such entities). All in [0, 100]."""
        counts = Counts(self.right, self.given - self.right, self.gold - self.right)
        return {
            "p": counts.precision,
            "r": counts.recall,
            "f1": counts.f1,
            "accuracy": _percent(self.right, self.found),
            "accuracy_known": _percent(self.known_right, self.known),
            "accuracy_unknown": _percent(self.right - self.known_right, self.found - self.known),
        }


class WrongLink(NamedTuple):
    """A phrase with a wrong id, or without an id, and its frequency."""

    text: str
    label: str
    gold: str
    given: str
    n: int


class WrongLinks:
    """Counts of wrong ids of right entities, added Doc by Doc."""

    def __init__(self) -> None:
        self._counts: Counter[Tuple[str, str, str, str]] = Counter()

    def add(self, gold: Doc, ids: Given, found: Sequence[Entity]) -> None:
        wanted = gold_ids(gold)
        for entity in {entity for entity in found if entity in wanted}:
            identifier = "".join(ids.get(entity, ())[:1])
            if identifier not in wanted[entity]:
                start, end, label = entity
                self._counts[gold[start:end].text, label, "|".join(sorted(wanted[entity])), identifier] += 1

    def most_frequent(self, top: int) -> List[WrongLink]:
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:top]
        return [WrongLink(*link, n) for link, n in ranked]


def gold_ids(doc: Doc) -> Dict[Entity, AbstractSet[str]]:
    """Return the ids of the entities in `doc.ents` that have any."""
    return {entity: frozenset(listed[0].split("|")) for entity, listed in doc_ids(doc).items()}


def preferred_names(nlp: Language, ids: Iterable[str]) -> Dict[str, str]:
    """Return the preferred names of those ids that are in the term lists of a pipeline."""
    lists: List[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "preferred_name")]
    names = ((id_, next(filter(None, (pipe.preferred_name(id_) for pipe in lists)), "")) for id_ in ids)
    return {id_: name for id_, name in names if name}


def _percent(n: int, of: int) -> Optional[float]:
    return 100.0 * n / of if of else None

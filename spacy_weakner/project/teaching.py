"""What a student learns from a sentence of the text: all that its teacher finds there or, with little gold, only what
the teacher is sure of (docs/evidence/students.md)."""

from typing import List, NamedTuple, Sequence

from spacy.tokens import Doc

from ..corpus.docbin import bare_copy
from ..corpus.entities import set_entities
from ..corpus.weak import doc_entities, group_entities, group_scores, set_weak
from ..scores import Strict
from ..ty import Entity
from .combine import DECIDED

# A combination is sure of an entity if its probability is not smaller than the first number, and that a candidate is no
# entity if its probability is not larger than the second.
_ENTITY, _NONE = 0.8, 0.2
# If a teacher is not sure of a larger share of its entities, students learn from all: the others are too few.
_MOST = 1 / 3


class Labels(NamedTuple):
    """What a teacher finds in a sentence."""

    entities: List[Entity]
    unsure: Sequence[Entity] = ()  # candidates, chosen or not, of which it is not sure

    @classmethod
    def of(cls, found: Doc) -> "Labels":
        """Read the decisions of a teacher. It is sure of what has no probability: a pipeline's entities, and those of
        binding terms and short forms, which are no candidates."""
        entities, unsure = doc_entities(found), []
        for candidate, p in zip(group_entities(found, DECIDED), group_scores(found, DECIDED), strict=True):
            if p is not None and (p < _ENTITY if candidate in entities else p > _NONE):
                unsure.append(candidate)
        return cls(entities, unsure)

    @property
    def sure(self) -> List[Entity]:
        """The entities of which the teacher is sure."""
        return [entity for entity in self.entities if entity not in self.unsure]

    def teach(self, text: Doc) -> Doc:
        """Return a sentence of the text, or its copy in other case, as weakly labeled; tokens of which the teacher is
        not sure are missing. It needs no matches of the lists, since trainings hide them in weakly labeled
        sentences."""
        labeled = bare_copy(text)
        set_entities(labeled, self.sure, [True] * len(text), [entity[:2] for entity in self.unsure])
        set_weak(labeled)
        return labeled


class Taught(Strict):
    """What students learn from the text."""

    entities: int  # that the teacher of all gold finds
    unsure_entities: int  # of these, those of which it is not sure
    unsure_others: int  # candidates which it has not chosen, but of which it is not sure

    @classmethod
    def of(cls, labels: Sequence[Labels]) -> "Taught":
        """Count what the teacher of all gold finds."""
        entities = sum(len(each.entities) for each in labels)
        unsure = entities - sum(len(each.sure) for each in labels)
        others = sum(len(each.unsure) for each in labels) - unsure
        return cls(entities=entities, unsure_entities=unsure, unsure_others=others)

    @property
    def leaves_out(self) -> bool:
        """True if students do not learn from candidates of which their teacher is not sure."""
        return self.unsure_entities <= _MOST * self.entities

    @property
    def note(self) -> str:
        """What is said about candidates of which the teacher is not sure; "" if there are none."""
        if not (self.unsure_entities or self.unsure_others):
            return ""
        unsure = f"{self.unsure_entities:,} of its {self.entities:,} entities"
        if not self.leaves_out:
            return f"text: the student learns from all entities, since its teacher is not sure of {unsure}"
        return (
            f"text: the student does not learn from what its teacher is not sure of: {unsure}, and "
            f"{self.unsure_others:,} candidates that it has not chosen"
        )

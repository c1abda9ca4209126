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
# Teachers that are not sure of a larger share of their entities leave their students too few.
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


class Certainty(Strict):
    """How many entities a teacher finds in the text, and of how many candidates it is not sure."""

    entities: int
    unsure: int  # of the entities
    rejected: int  # other candidates of which it is not sure

    @classmethod
    def of(cls, labels: Sequence[Labels]) -> "Certainty":
        """Count the candidates in all sentences."""
        entities = sum(len(each.entities) for each in labels)
        unsure = entities - sum(len(each.sure) for each in labels)
        return cls(entities=entities, unsure=unsure, rejected=sum(len(each.unsure) for each in labels) - unsure)

    @property
    def is_enough(self) -> bool:
        """True if a student can do without what its teacher is not sure of."""
        return self.unsure <= _MOST * self.entities

    @property
    def is_partial(self) -> bool:
        """True if the student does not learn from some candidates."""
        return bool(self.unsure or self.rejected)

    @property
    def why(self) -> str:
        """What the student does not learn from."""
        if not self.is_partial:
            return ""
        rejected = f" and {self.rejected:,} other candidates" if self.rejected else ""
        return f", without {self.unsure:,} of its {self.entities:,} entities{rejected} of which it is not sure"

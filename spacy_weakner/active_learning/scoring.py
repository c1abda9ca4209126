"""What is expected of a sentence, were it annotated."""

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus.sentences import sentence_key
from ..corpus.weak import (
    PREDICTED_PREFIX,
    WEAK_PREFIX,
    get_id,
    group_entities,
    group_scores,
    is_complete,
    weak_group,
    weak_sources,
)
from ..ty import Entity
from .models import Model
from .places import Place, doubt_by_label, places_of_candidates
from .pool import Sentence
from .voting import Vote, places_of_votes

BATCH_SIZE = 256
# The doubts of a sentence are summed up and divided by this power of its length: 0 would choose the longest sentences,
# and 1 fragments such as the lines of tables.
LENGTH_POWER = 0.75


class Scorer:
    """Reads sentences, and scores them.

    models (Sequence[Model]): The pipelines to ask.
    read (int): Sentences that were scored.
    heard (bool): Whether anything was met that doubts can be told by: probabilities, or two voters on a sentence.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = models
        self.read = 0
        self.heard = any(model.gives_probabilities for model in models)

    @property
    def is_deaf(self) -> bool:
        """RETURNS (bool): Whether nothing of what was read tells any doubt."""
        return self.read > 0 and not self.heard

    def score(self, docs: Iterator[Doc]) -> Iterator[Sentence]:
        """Score sentences.

        docs (Iterator[Doc]): The sentences, with what weak sources say.
        YIELDS (Sentence): Each of them.
        """
        for batch in minibatch(docs, BATCH_SIZE):
            sources = [{name: _read(doc, name) for name in weak_sources(doc)} for doc in batch]
            unsure = [model.places(batch) for model in self.models]
            several = len(self.models) + max(map(len, sources)) > 1
            said = [model.entities(batch) for model in self.models] if several else []
            for i, doc in enumerate(batch):
                votes = dict(sources[i])
                for n, (model, entities) in enumerate(zip(self.models, said, strict=False), start=1):
                    name = model.name if model.name not in votes else f"{model.name} ({n})"
                    votes[name] = Vote([entity for entity, _ in entities[i]], True)
                scored = [
                    pairs
                    for pairs in _groups(doc, PREDICTED_PREFIX).values()
                    if any(score is not None for _, score in pairs)
                ]
                self.heard |= len(votes) > 1 or bool(scored)
                asked = [own[i] for own in unsure] + [places_of_candidates(pairs) for pairs in scored]
                self.read += 1
                yield _sentence(doc, asked, places_of_votes(votes))


def _sentence(doc: Doc, asked: List[List[Place]], disputed: List[Place]) -> Sentence:
    """The sentence of a Doc. What several models doubt counts once, on average."""
    scale = len(doc) ** LENGTH_POWER
    by_label: Dict[str, float] = {}
    for places in asked:
        for label, doubt in doubt_by_label(places).items():
            by_label[label] = by_label.get(label, 0.0) + doubt / len(asked)
    for label, doubt in doubt_by_label(disputed).items():
        by_label[label] = by_label.get(label, 0.0) + doubt
    every = [place for places in [*asked, disputed] for place in places]
    worst: Optional[Place] = max(every, key=lambda place: place.doubt, default=None)
    return Sentence(
        key=sentence_key(doc.text),
        words=tuple(token.text for token in doc),
        spaces=tuple(bool(token.whitespace_) for token in doc),
        id=get_id(doc),
        score=sum(by_label.values()) / scale,
        by_label={label: doubt / scale for label, doubt in sorted(by_label.items())},
        place=worst,
        groups=_groups(doc, WEAK_PREFIX, PREDICTED_PREFIX),
    )


def _read(doc: Doc, source: str) -> Vote:
    return Vote(group_entities(doc, weak_group(source)), is_complete(doc, source))


def _groups(doc: Doc, *prefixes: str) -> Dict[str, List[Tuple[Entity, Optional[float]]]]:
    names = [name for name in doc.spans if name.startswith(prefixes)]
    return {name: list(zip(group_entities(doc, name), group_scores(doc, name), strict=True)) for name in names}

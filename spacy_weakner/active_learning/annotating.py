"""Sentences as Docs for annotators: with probable entities, and why they were chosen."""

from collections import Counter
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.overlaps import without_overlaps
from ..corpus.weak import PREDICTED_PREFIX, WEAK_PREFIX, set_group, set_id, set_meta, set_source
from ..ty import Entity
from .models import Model
from .pool import Sentence

SOURCE = "suggested"
_LIKELY = 0.5
Scored = List[Tuple[Entity, Optional[float]]]


def annotated(sentences: Sequence[Sentence], models: Sequence[Model], nlp: Language) -> Iterator[Doc]:
    """Make Docs without gold. The group "weak:suggested" holds the entities of the first model; without one, probable
    candidates, or what most sources agree on."""
    docs = [_doc(sentence, nlp) for sentence in sentences]
    found = models[0].entities(docs) if models else [_majority(sentence.groups) for sentence in sentences]
    for sentence, doc, entities in zip(sentences, docs, found, strict=True):
        doc.spans.clear()
        scores = [score for _, score in entities]
        known = any(score is not None for score in scores)
        set_source(doc, SOURCE, [entity for entity, _ in entities], scores if known else None)
        set_meta(doc, {"score": round(sentence.score, 4), **({"why": sentence.why} if sentence.why else {})})
        yield doc


def _doc(sentence: Sentence, nlp: Language) -> Doc:
    doc = Doc(nlp.vocab, words=list(sentence.words), spaces=list(sentence.spaces))
    set_id(doc, sentence.id)
    for name, entities in sentence.groups.items():
        set_group(doc, name, [entity for entity, _ in entities], [score for _, score in entities])
    return doc


def _majority(groups: Dict[str, Scored]) -> Scored:
    """Probable candidates; if there are none with probabilities, the entities of most sources."""
    probable: Dict[Entity, float] = {}
    for name, entities in groups.items():
        if name.startswith(PREDICTED_PREFIX):
            probable.update({entity: score for entity, score in entities if score is not None and score >= _LIKELY})
    votes: Counter[Entity] = Counter()
    for name, entities in groups.items():
        if name.startswith(WEAK_PREFIX):
            votes.update({entity for entity, _ in entities})
    ranked: Dict[Entity, float] = probable or {entity: float(n) for entity, n in votes.items()}
    order = sorted(ranked)
    end = max((end for _, end, _ in order), default=0)
    kept = without_overlaps([entity[:2] for entity in order], [ranked[entity] for entity in order], end)
    return [(order[i], probable.get(order[i])) for i in kept]

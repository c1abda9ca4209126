"""What the tests of all heads share. Sentences have entities and, for heads that classify them, a category."""

from typing import Any, Dict, List, Sequence, Tuple

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.ty import Entity

from ..util import GOLD, HEADS, QUERIES, SENTENCES, category_of, head_config, head_pipeline, make_example

CATEGORY = "sentence_category"
# Everything that a head can write to a Doc.
TALKATIVE: Dict[str, Dict[str, Any]] = {
    **{name: {} for name in HEADS},
    "crf_ner": {"scores": True, "nested": True},
    "span_ner": {"nested": True},
    "mrc_ner": {"nested": True},
}
# Settings under which a head can do with a single label.
ONE_LABEL: Dict[str, Dict[str, Any]] = {CATEGORY: {"exclusive_classes": False}}


def example(nlp: Language, text: str, entities: Sequence[Entity] = (), annotated: bool = True) -> Example:
    """An example with entities and their category, or nothing of both."""
    made = make_example(nlp, text, entities, annotated=annotated)
    if annotated:
        made.reference.cats = {category_of(entities): 1.0}
    return made


def examples(nlp: Language) -> List[Example]:
    """The sentences as examples."""
    return [example(nlp, text, entities) for text, entities in SENTENCES]


def pipeline(head: str, **settings: Any) -> Language:
    """An initialized pipeline with a head."""
    return head_pipeline(head, examples=examples, **settings)


def empty_pipeline(head: str, **settings: Any) -> Tuple[Language, Any]:
    """A pipeline with a head that is not initialized, and the head."""
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe(head, config=head_config(head, **settings))


def needs(head: str, *labels: str) -> Dict[str, Any]:
    """What the head's `initialize` wants to be told beside these labels (by default those of the sentences)."""
    return {"queries": {label: QUERIES.get(label, "what") for label in labels or QUERIES}} if head == "mrc_ner" else {}


def begin(head: str, nlp: Language, *labels: str) -> None:
    """Write into a pipeline's config what its `initialize` needs."""
    nlp.config["initialize"]["components"][head] = needs(head, *labels)


def outputs_of(ner: Any, docs: List[Doc]) -> Any:
    """What the model gives of some Docs."""
    return ner.model.predict(ner.model_inputs(docs))


def stir(nlp: Language, head: str) -> Language:
    """Give scores of boundaries, which begin as zeros, other weights, so that they find something, and the encoder
    learns."""
    if head == "mrc_ner":
        linear: Any = nlp.get_pipe(head).model.get_ref("head").layers[1]
        linear.set_param("W", numpy.random.RandomState(0).normal(size=linear.get_param("W").shape).astype("float32"))
    return nlp


def answer(head: str, doc: Doc) -> Any:
    """What a head says of a Doc: its entities, or its best category."""
    if head != CATEGORY:
        return doc_entities(doc)
    return max(doc.cats, key=lambda label: doc.cats[label]) if len(doc) else ""


def answers(head: str, nlp: Language, texts: Sequence[str]) -> List[Any]:
    """What it says of texts."""
    return [answer(head, nlp(Doc(nlp.vocab, words=text.split()))) for text in texts]


def gold_of(head: str) -> List[Any]:
    """What is right for the sentences."""
    return GOLD if head != CATEGORY else [category_of(entities) for entities in GOLD]


def as_lists(head: str, predictions: List[Any]) -> List[Any]:
    """Predictions in a form that can be compared."""
    return predictions if head != CATEGORY else [row.tolist() for row in predictions]

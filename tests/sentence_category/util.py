"""Titles with categories, and small pipelines that learn them."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..util import LISTENER, TOK2VEC, fix_seed, head_config, make_doc

NAME = "sentence_category"
TITLES: List[Tuple[str, str]] = [
    ("red wool socks", "clothes"),
    ("blue denim jacket", "clothes"),
    ("steel pan with lid", "kitchen"),
    ("pan", "kitchen"),
    ("wooden garden bench", "garden"),
    ("bench", "garden"),
]
TEXTS = [text for text, _ in TITLES]
LABELS = ("clothes", "garden", "kitchen")
MULTI = {"exclusive_classes": False}


def category_example(nlp: Language, text: str, cats: Optional[Dict[str, float]] = None, **kwargs: Any) -> Example:
    """An example with categories; without entities, if not told otherwise."""
    reference = make_doc(nlp, text, **{"annotated": False, **kwargs})
    reference.cats = cats or {}
    return Example(Doc(nlp.vocab, words=text.split()), reference)


def category_examples(nlp: Language) -> List[Example]:
    """The titles as examples."""
    return [category_example(nlp, text, {category: 1.0}) for text, category in TITLES]


def category_config(tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Dict[str, Any]:
    """Config of a small sentence_category."""
    return head_config(NAME, tok2vec, **settings)


def category_pipeline(labels: Optional[Sequence[str]] = None, seed: int = 0, **settings: Any) -> Language:
    """An initialized pipeline with a sentence_category."""
    fix_seed(seed)
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe(NAME, config=category_config(**settings))
    for label in labels or ():
        pipe.add_label(label)
    nlp.initialize(None if labels else lambda: category_examples(nlp))
    return nlp


def joint_pipeline(order: Sequence[str], encoder: Optional[Dict[str, Any]] = None, **settings: Any) -> Language:
    """An initialized pipeline of an encoder and its listeners: heads, the settings for the categories."""
    fix_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": {**(encoder or TOK2VEC)}})
    for name in order:
        config = category_config(LISTENER, **settings) if name == NAME else head_config(name, LISTENER)
        nlp.add_pipe(name, config=config)
    nlp.initialize(lambda: joint_examples(nlp))
    return nlp


def joint_examples(nlp: Language) -> List[Example]:
    """Sentences with entities and a category, with a category alone, and with entities alone."""
    both = category_example(nlp, "Bob sells socks", {"clothes": 1.0}, entities=[(0, 1, "PER")], annotated=True)
    entities = category_example(nlp, "Anna went to Paris", entities=[(0, 1, "PER"), (3, 4, "LOC")], annotated=True)
    return [both, *category_examples(nlp), entities]


def best(doc: Doc) -> str:
    """The most probable category."""
    return max(doc.cats, key=lambda label: doc.cats[label])


def empty_pipeline(**settings: Any) -> Tuple[Language, Any]:
    """A pipeline with a sentence_category that is not initialized, and the component."""
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe(NAME, config=category_config(**settings))

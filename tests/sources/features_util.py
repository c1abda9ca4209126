"""Tiny pipelines whose heads read what sources say."""

from typing import Any, Dict, List, Optional, Sequence

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_weakner.corpus.overlaps import longest_first
from spacy_weakner.corpus.weak import set_source
from spacy_weakner.ty import Entity

from ..util import SENTENCES, fix_seed, head_config, make_example

# What a list says of the sentences: wrong labels, wrong borders, an overlap, and what it does not know.
SAID: List[List[Entity]] = [
    [(0, 1, "LOC"), (3, 4, "LOC"), (3, 5, "PER")],
    [(0, 1, "LOC"), (1, 3, "PER"), (2, 4, "LOC"), (2, 4, "PER")],
    [(2, 3, "PER")],
    [],
]


def source_features(*sources: str, **settings: Any) -> Dict[str, Any]:
    """The layer's section of a config."""
    return {"@architectures": "spacy_weakner.SourceFeatures.v1", "sources": list(sources), **settings}


def said_examples(nlp: Language, *sources: str, said: Optional[Sequence[Sequence[Entity]]] = None) -> List[Example]:
    """The sentences as examples whose predicted Docs carry what sources say."""
    examples = []
    for (text, entities), matches in zip(SENTENCES, SAID if said is None else said, strict=True):
        made = make_example(nlp, text, entities)
        for source in sources:
            set_source(made.predicted, source, matches)
        examples.append(made)
    return examples


def source_pipeline(*sources: str, scheme: str = "BIO", **settings: Any) -> Language:
    """An initialized pipeline with a small crf_ner that reads sources."""
    fix_seed()
    nlp = spacy.blank("xx")
    config = head_config("crf_ner", scheme=scheme)
    config["model"]["source_features"] = source_features(*sources, **settings)
    nlp.add_pipe("crf_ner", config=config)
    nlp.initialize(lambda: said_examples(nlp, *sources))
    return nlp


def own_reading(doc: Doc, group: str) -> List[Entity]:
    """What the list says by itself."""
    spans = list(doc.spans[group])
    return [(spans[i].start, spans[i].end, spans[i].label_) for i in longest_first(spans)]

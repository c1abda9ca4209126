"""What the tests of span_ner share."""

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Model

from spacy_weakner.annotations.weak import GOLD_GROUP, set_group
from spacy_weakner.span_ner.component import SpanNer
from spacy_weakner.span_ner.model import build_span_classifier
from spacy_weakner.span_ner.samplers import AllNegatives, NegativeSampler
from spacy_weakner.ty import Entity

from ..crf_ner.test_component import Recorder
from ..util import SENTENCES, TOK2VEC, make_example, make_examples

GOLD = [entities for _, entities in SENTENCES]
ALL = {"@misc": "spacy_weakner.AllNegatives.v1"}
UNIFORM = {"@misc": "spacy_weakner.UniformNegativeSampler.v1"}
WEIGHTED = {"@misc": "spacy_weakner.WeightedNegativeSampler.v1"}
# Overlapping entities of one sentence.
NESTED_TEXT = "the University of New York today"
NESTED: List[Entity] = [(1, 5, "ORG"), (3, 5, "LOC")]


def span_config(tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Dict[str, Any]:
    """Config of a small span_ner, which takes all that is not annotated as "O" unless told otherwise."""
    model = {"@architectures": "spacy_weakner.SpanClassifier.v1", "tok2vec": tok2vec or TOK2VEC, "hidden_width": 16}
    return {"model": model, "sampler": ALL, **settings}


def span_pipeline(
    tok2vec: Optional[Dict[str, Any]] = None, seed: int = 0, labels: Optional[Sequence[str]] = None, **settings: Any
) -> Language:
    """An initialised pipeline with a small span_ner."""
    fix_random_seed(seed)
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("span_ner", config=span_config(tok2vec, **settings))
    for label in labels or ():
        ner.add_label(label)
    nlp.initialize(None if labels else lambda: make_examples(nlp))
    return nlp


def recorded_ner(nlp: Language, sampler: Optional[NegativeSampler] = None, **encoder: int) -> Tuple[SpanNer, Recorder]:
    """An initialised component whose encoder gives random vectors and writes down how it is called."""
    recorder = Recorder(**encoder)
    ner = SpanNer(nlp.vocab, build_span_classifier(recorder.model, 8), sampler=sampler or AllNegatives())
    ner.initialize(lambda: make_examples(nlp))
    return ner, recorder


def add_group(doc: Doc, name: str, entities: Iterable[Entity]) -> Doc:
    """Write a span group; spans may be without a label."""
    doc.spans[name] = [Span(doc, start, end, label=label) for start, end, label in entities]
    return doc


def with_hidden(nlp: Language, text: str, gold: Sequence[Entity], shown: Sequence[Entity] = ()) -> Example:
    """An example that keeps all its entities in the group of gold, and shows some of them."""
    example = make_example(nlp, text, shown)
    set_group(example.reference, GOLD_GROUP, gold)
    return example


def force_scores(model: Model, bias: Sequence[float]) -> None:
    """Make the scorer say the same about all spans."""
    head = model.get_ref("head")
    head.set_param("W", head.get_param("W") * 0)
    head.set_param("c", numpy.asarray(bias, dtype="float32"))


def all_spans(n_tokens: int, max_width: Optional[int] = None) -> List[Tuple[int, int]]:
    """Every span of a sentence, the slow way."""
    return [
        (start, end)
        for start in range(n_tokens)
        for end in range(start + 1, n_tokens + 1)
        if max_width is None or end - start <= max_width
    ]

"""What the tests of span_ner share."""

from itertools import pairwise
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_weakner.span_ner.component import SpanNer
from spacy_weakner.span_ner.model import build_span_classifier
from spacy_weakner.span_ner.samplers import AllNegatives, NegativeSampler
from spacy_weakner.ty import Entity

from ..util import ALL_SPANS, Recorder, head_config, head_pipeline, make_examples

ALL = ALL_SPANS
UNIFORM = {"@misc": "spacy_weakner.UniformNegativeSampler.v1"}
WEIGHTED = {"@misc": "spacy_weakner.WeightedNegativeSampler.v1"}
# Overlapping entities of one sentence.
NESTED_TEXT = "the University of New York today"
NESTED: List[Entity] = [(1, 5, "ORG"), (3, 5, "LOC")]


def span_config(tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Dict[str, Any]:
    """Config of a small span_ner, which takes all that is not annotated as "O" unless told otherwise."""
    return head_config("span_ner", tok2vec, **settings)


def span_pipeline(tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Language:
    """An initialized pipeline with a small span_ner; see `head_pipeline`."""
    return head_pipeline("span_ner", tok2vec, **settings)


def recorded_ner(nlp: Language, sampler: Optional[NegativeSampler] = None, **encoder: int) -> Tuple[SpanNer, Recorder]:
    """An initialized component whose encoder gives random vectors and writes down how it is called."""
    recorder = Recorder(**encoder)
    ner = SpanNer(nlp.vocab, build_span_classifier(recorder.model, 8), sampler=sampler or AllNegatives())
    ner.initialize(lambda: make_examples(nlp))
    return ner, recorder


def add_group(doc: Doc, name: str, entities: Iterable[Entity]) -> Doc:
    """Write a span group; spans may be without a label."""
    doc.spans[name] = [Span(doc, start, end, label=label) for start, end, label in entities]
    return doc


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


# Words of a text, and other tokens of it.
WORDS = ["New", "York", "is", "in", "New-York", "State"]
FINER = (["New", "Yor", "k", "is", "in", "New", "-", "York", "State"], [1, 0, 1, 1, 1, 0, 0, 1, 0])
COARSER = (["New", "York", "is", "in", "New-York State"], [1, 1, 1, 1, 0])


def retokenized(entities: Sequence[Entity], words: Sequence[str], spaces: Sequence[int], group: str = "x") -> Example:
    """An example with the entities on WORDS, and other tokens in the predicted Doc."""
    vocab = Vocab()
    reference = add_group(Doc(vocab, words=WORDS), group, entities)
    if all(a[1] <= b[0] for a, b in pairwise(entities)):
        reference.set_ents([Span(reference, *entity) for entity in entities], default="outside")
    example = Example(Doc(vocab, words=list(words), spaces=list(map(bool, spaces))), reference)
    assert example.predicted.text.strip() == reference.text.strip()
    return example

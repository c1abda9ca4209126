"""What several tests share: tiny data, tiny pipelines, and ways to look into them."""

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Model

from spacy_weakner.annotations.weak import doc_entities
from spacy_weakner.ty import Entity, Tick

TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 16,
    "depth": 1,
    "embed_size": 100,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": False,
}
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
PLAIN_LOSS = {"@losses": "spacy_weakner.CRFNegativeLogLikelihood.v1"}
SENTENCES: List[Tuple[str, List[Entity]]] = [
    ("Anna went to New York", [(0, 1, "PER"), (3, 5, "LOC")]),
    ("Paris likes Bob Smith", [(0, 1, "LOC"), (2, 4, "PER")]),
    ("nothing here at all", []),
    ("Bob", [(0, 1, "PER")]),
]
TEXTS = [text for text, _ in SENTENCES]


def make_doc(
    nlp: Language, text: str, entities: Sequence[Entity] = (), missing: Iterable[int] = (), annotated: bool = True
) -> Doc:
    """A Doc of the words in `text`, annotated but for the tokens in `missing`."""
    words = text.split()
    doc = Doc(nlp.vocab, words=words, spaces=[True] * (len(words) - 1) + [False] * bool(words))
    if annotated:
        spans = [spacy.tokens.Span(doc, *entity) for entity in entities]
        doc.set_ents(spans, missing=[doc[i : i + 1] for i in missing], default="outside")
    return doc


def make_example(nlp: Language, text: str, entities: Sequence[Entity] = (), **kwargs: Any) -> Example:
    """An example whose predicted Doc has the same words."""
    reference = make_doc(nlp, text, entities, **kwargs)
    return Example(Doc(nlp.vocab, words=text.split()), reference)


def make_examples(nlp: Language) -> List[Example]:
    """The sentences as examples."""
    return [make_example(nlp, text, entities) for text, entities in SENTENCES]


def crf_config(tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Dict[str, Any]:
    """Config of a small crf_ner."""
    model = {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": tok2vec or TOK2VEC}
    return {"model": model, "loss": PLAIN_LOSS, **settings}


def crf_pipeline(tok2vec: Optional[Dict[str, Any]] = None, seed: int = 0, **settings: Any) -> Language:
    """An initialised pipeline with a small crf_ner. "xx" has the tokenizer that is made fastest."""
    fix_random_seed(seed)
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner", config=crf_config(tok2vec, **settings))
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def train(nlp: Language, examples: List[Example], steps: int = 40, learn_rate: float = 0.02) -> Dict[str, float]:
    """Train a while; gives the losses of the last step."""
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = learn_rate
    losses: Dict[str, float] = {}
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    return losses


def entities_of(nlp: Language, texts: Iterable[str]) -> List[List[Entity]]:
    """Predicted entities by text."""
    return [doc_entities(nlp(Doc(nlp.vocab, words=text.split()))) for text in texts]


def gradients(model: Model) -> List[numpy.ndarray]:
    """All gradients of a model, those of torch modules included; None where there is none."""
    result = []
    for node in model.walk():
        for name in node.param_names:
            result.append(node.get_grad(name).copy() if node.has_grad(name) else None)
        for shim in node.shims:
            for parameter in shim._model.parameters():
                result.append(None if parameter.grad is None else parameter.grad.detach().numpy().copy())
    return result


def clear_gradients(model: Model) -> None:
    """Forget all gradients."""
    for node in model.walk():
        for name in node.param_names:
            if node.has_grad(name):
                node.set_grad(name, node.get_grad(name) * 0)
        for shim in node.shims:
            for parameter in shim._model.parameters():
                parameter.grad = None


def weights(model: Model) -> List[numpy.ndarray]:
    """All weights of a model, those of torch modules included."""
    result = []
    for node in model.walk():
        result.extend(node.get_param(name).copy() for name in node.param_names if node.has_param(name))
        for shim in node.shims:
            result.extend(parameter.detach().numpy().copy() for parameter in shim._model.parameters())
    return result


def same(a: Sequence[Any], b: Sequence[Any], tolerance: float = 0.0) -> bool:
    """Whether two lists of arrays are equal; a missing gradient equals zeros."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x is None and y is None:
            continue
        x = numpy.zeros_like(y) if x is None else x
        y = numpy.zeros_like(x) if y is None else y
        if not numpy.allclose(x, y, rtol=tolerance, atol=tolerance):
            return False
    return True


def all_zero(arrays: Iterable[Any]) -> bool:
    """Whether all arrays (gradients that are missing count) are exactly zero."""
    return all(x is None or not numpy.any(x) for x in arrays)


class ClockRecorder:
    """A component that writes down its ticks and renewals."""

    def __init__(self) -> None:
        self.ticks: List[Tick] = []
        self.renewals: List[Tuple[int, List[str]]] = []

    def __call__(self, doc: Doc) -> Doc:
        return doc

    def tick(self, tick: Tick) -> None:
        self.ticks.append(tick)

    def renew(self, examples: Iterable[Example]) -> None:
        self.renewals.append((self.ticks[-1].step, [example.reference.text for example in examples]))


@Language.factory("clock_recorder")
def make_clock_recorder(nlp: Language, name: str) -> ClockRecorder:
    """Create the component."""
    return ClockRecorder()


def gradients_with_and_without(nlp, name, encoder, examples):
    """Gradients of a shared encoder from one batch: with all pipes, and with one of them disabled."""
    clear_gradients(encoder)
    nlp.update(examples, sgd=False)
    together = gradients(encoder)
    clear_gradients(encoder)
    nlp.disable_pipe(name)
    nlp._link_components()
    nlp.update(examples, sgd=False)
    return together, gradients(encoder)

"""What several tests share: tiny data, tiny pipelines, and ways to look into them."""

import copy
import io
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import Future
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple
from unittest.mock import patch

import numpy
import pytest
import spacy
import torch
from spacy.lang.xx import MultiLanguage
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as run_training
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Config, Model, NumpyOps, use_ops

from spacy_weakner.corpus import records
from spacy_weakner.corpus.counts import RowCounts
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.jsonl import Row, read_row
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.crf_ner.component import CRFNer
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood
from spacy_weakner.crf_ner.model import build_crf_tagger
from spacy_weakner.encoders.conditioned import build_conditioned_encoder
from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads.head import TrainableHead
from spacy_weakner.losses import CategoricalCrossentropy
from spacy_weakner.mrc_ner.component import MRCNer
from spacy_weakner.mrc_ner.model import build_mrc_extractor
from spacy_weakner.runtime.pool import ProcessPool
from spacy_weakner.sentence_category.component import SentenceCategory
from spacy_weakner.sentence_category.model import build_sentence_category
from spacy_weakner.span_ner.component import SpanNer
from spacy_weakner.span_ner.model import build_span_classifier
from spacy_weakner.span_ner.samplers import AllNegatives
from spacy_weakner.testing.heads import GOLD as GOLD
from spacy_weakner.testing.heads import SENTENCES
from spacy_weakner.testing.heads import TEXTS as TEXTS
from spacy_weakner.token_ner.component import TokenNer
from spacy_weakner.token_ner.model import build_token_classifier
from spacy_weakner.token_ner.objective import HardLabels
from spacy_weakner.ty import Entity, TrainingProgress

# More threads only if they are asked for: most of what is computed here is too small for them.
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
# "xx" does without spaCy's table of emoticons, which would be most of what making a pipeline takes, thousands of times.
MultiLanguage.Defaults.tokenizer_exceptions = {}  # type: ignore[misc]
# Added to the seed of every pipeline that a test makes: what is asserted has to hold for any, since other CPUs, and
# other numbers of threads, train other weights from the same seed. `WEAKNER_TEST_SEED=1 pytest` tries another one.
SEED = int(os.environ.get("WEAKNER_TEST_SEED", "0"))
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
ALL_SPANS = {"@misc": "spacy_weakner.AllNegatives.v1"}
# The heads and what their factories need; the encoder goes into "model".
HEADS: Dict[str, Dict[str, Any]] = {
    "crf_ner": {"model": {"@architectures": "spacy_weakner.CRFTagger.v1"}, "loss": PLAIN_LOSS},
    "span_ner": {
        "model": {"@architectures": "spacy_weakner.SpanClassifier.v1", "hidden_width": 16},
        "sampler": ALL_SPANS,
    },
    "token_ner": {"model": {"@architectures": "spacy_weakner.TokenClassifier.v1"}},
    "mrc_ner": {"model": {"@architectures": "spacy_weakner.MRCExtractor.v1"}},
    "sentence_category": {"model": {"@architectures": "spacy_weakner.SentenceCategory.v1"}},
}
# Those that write entities, and those that may listen to the encoder of another component.
ENTITY_HEADS = [name for name in HEADS if name != "sentence_category"]
LISTENING_HEADS = [name for name in HEADS if name != "mrc_ner"]
# What mrc_ner asks for.
QUERIES = {"LOC": "where to", "PER": "who is it"}
needs_spacy_transformers = [
    # Its package may be there without being registered: beside a version of transformers that it cannot do with.
    pytest.mark.skipif(
        not entry_points(group="spacy_factories", name="transformer"), reason="needs spacy-transformers"
    ),
    # Of libraries that we cannot change.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
needs_transformers = pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra 'transformers'")


class InThisProcess(ProcessPool):
    """A pool without processes. It pickles what it calls, as the others do, and a call begins without a GPU."""

    parts = 2

    def __init__(self) -> None:
        self.done: List[Any] = []

    def submit(self, function: Any, argument: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        function, argument = pickle.loads(pickle.dumps((function, argument)))
        try:
            with use_ops("numpy"):
                future.set_result(function(argument))
            self.done.append(argument)
        except WeaknerError as error:
            future.set_exception(error)
        return future

    def failure(self, error: Exception, what: str) -> Exception:
        return error


def fix_seed(seed: int = 0) -> None:
    """Fix all random draws, by a seed and that of the run."""
    fix_random_seed(SEED + seed)


def make_tiny_bert(path: Path) -> Path:
    """Write a random BERT with a vocabulary of pieces and letters to a folder, and return it."""
    import transformers

    path.mkdir(exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["anna", "bob", "paris", "new", "york", "smith", "went", "to", "likes", "nothing", "here", "at", "all"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters, *(f"##{x}" for x in letters)]
    (path / "vocab.txt").write_text("\n".join(pieces))
    tokenizer = transformers.BertTokenizerFast.from_pretrained(str(path), model_max_length=32)
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    fix_seed()
    transformers.BertModel(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


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


def doc_from_row(row: Row, nlp: Language, misaligned: str = "error", counts: Optional[RowCounts] = None) -> Doc:
    counts = RowCounts() if counts is None else counts
    return records.make_doc(read_row(row, counts), nlp, misaligned, counts)


def raw(nlp: Language, text: str) -> Doc:
    """A Doc without annotation."""
    return make_doc(nlp, text, annotated=False)


def make_example(nlp: Language, text: str, entities: Sequence[Entity] = (), **kwargs: Any) -> Example:
    """An example whose predicted Doc has the same words."""
    reference = make_doc(nlp, text, entities, **kwargs)
    return Example(Doc(nlp.vocab, words=text.split()), reference)


def make_examples(nlp: Language) -> List[Example]:
    """The sentences as examples."""
    return [make_example(nlp, text, entities) for text, entities in SENTENCES]


def category_of(entities: Sequence[Entity]) -> str:
    """The category that heads which classify sentences learn: the label of the first entity."""
    return entities[0][2] if entities else "LOC"


def head_config(name: str, tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Dict[str, Any]:
    """Config of a small head."""
    encoder: Dict[str, Any] = {"tok2vec": tok2vec or TOK2VEC}
    if name == "mrc_ner":
        encoder = {"encoder": {"@architectures": "spacy_weakner.ConditionedEncoder.v1", **encoder}}
    return {**HEADS[name], "model": {**HEADS[name]["model"], **encoder}, **settings}


def head_pipeline(
    name: str,
    tok2vec: Optional[Dict[str, Any]] = None,
    seed: int = 0,
    labels: Optional[Sequence[str]] = None,
    examples: Callable[[Language], List[Example]] = make_examples,
    **settings: Any,
) -> Language:
    """An initialized pipeline with a small head. "xx" has the tokenizer that is made fastest."""
    fix_seed(seed)
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe(name, config=head_config(name, tok2vec, **settings))
    for label in labels or ():
        ner.add_label(label)
    if name == "mrc_ner":
        nlp.config["initialize"]["components"][name] = {"queries": QUERIES}
    nlp.initialize(None if labels else lambda: examples(nlp))
    return nlp


def crf_config(tok2vec: Optional[Dict[str, Any]] = None, **settings: Any) -> Dict[str, Any]:
    """Config of a small crf_ner."""
    return head_config("crf_ner", tok2vec, **settings)


def crf_pipeline(tok2vec: Optional[Dict[str, Any]] = None, seed: int = 0, **settings: Any) -> Language:
    """An initialized pipeline with a small crf_ner."""
    return head_pipeline("crf_ner", tok2vec, seed, **settings)


class Recorder:
    """An encoder of random vectors that writes down how it is called. Some encoders give (0, 0) arrays for Docs without
    tokens: then `empty_width` is 0."""

    def __init__(self, width: int = 4, empty_width: int = 4) -> None:
        self.docs: List[List[Doc]] = []
        self.gradients: List[Any] = []
        self.width, self.empty_width = width, empty_width
        self.model: Model = Model("recorder", self.forward, dims={"nO": width}, ops=NumpyOps())

    def forward(self, model: Model, docs: List[Doc], is_train: bool) -> Tuple[List[Any], Callable]:
        def backprop(gradient: Any) -> List[Any]:
            self.gradients.append(gradient)
            return []

        if is_train:
            self.docs.append(list(docs))
        rng = numpy.random.RandomState(0)
        sizes = [(len(doc), self.width if len(doc) else self.empty_width) for doc in docs]
        return [rng.normal(size=size).astype("float32") for size in sizes], backprop


def recorded_head(nlp: Language, name: str, **encoder: int) -> Tuple[TrainableHead, Recorder]:
    """An initialized head whose encoder gives random vectors and writes down how it is called."""
    recorder = Recorder(**encoder)
    made = {
        "crf_ner": lambda: CRFNer(nlp.vocab, build_crf_tagger(recorder.model), loss=CRFNegativeLogLikelihood()),
        "span_ner": lambda: SpanNer(nlp.vocab, build_span_classifier(recorder.model, 8), sampler=AllNegatives()),
        "token_ner": lambda: TokenNer(
            nlp.vocab, build_token_classifier(recorder.model), objective=HardLabels(CategoricalCrossentropy())
        ),
        "mrc_ner": lambda: MRCNer(nlp.vocab, build_mrc_extractor(build_conditioned_encoder(recorder.model))),
        "sentence_category": lambda: SentenceCategory(nlp.vocab, build_sentence_category(recorder.model)),
    }
    ner = made[name]()
    settings: Dict[str, Any] = {"queries": QUERIES} if name == "mrc_ner" else {}
    ner.initialize(lambda: shared_examples(nlp, annotated=True), **settings)
    return ner, recorder


def train(nlp: Language, examples: List[Example], steps: int = 40, learn_rate: float = 0.02) -> Dict[str, float]:
    """Train a while; gives the losses of the last step."""
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = learn_rate
    losses: Dict[str, float] = {}
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    return losses


def loop_config(folder: Path, components: Dict[str, Any], **sections: Dict[str, Any]) -> Config:
    """A config for spaCy's own loop of a pipeline that learns the sentences, which are written to a folder. Other
    sections are added."""
    docs = [make_doc(spacy.blank("xx"), text, entities) for text, entities in SENTENCES]
    write_docs(folder / "a.spacy", docs)
    corpus = {"@readers": "spacy_weakner.Corpus.v1", "path": str(folder / "a.spacy")}
    made = {
        "nlp": {"lang": "xx", "pipeline": [*components]},
        "components": {name: {"factory": name, **settings} for name, settings in components.items()},
        "corpora": {"train": corpus, "dev": corpus},
        **sections,
        "training": {"seed": 0, "gpu_allocator": None, **sections.get("training", {})},
    }
    return Config(made)


def run_loop(config: Config) -> Tuple[Language, str]:
    """Train as `spacy train` does; gives the pipeline, and what was printed."""
    nlp, printed = init_nlp(config), io.StringIO()
    run_training(nlp, stdout=printed, stderr=io.StringIO())
    return nlp, printed.getvalue()


def iob(doc: Doc) -> str:
    """A letter for each token: B, I, O, or - where nothing is known."""
    return "".join(token.ent_iob_ or "-" for token in doc)


def contents(folder: Path) -> Dict[str, bytes]:
    """The bytes of all files below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def entities_of(nlp: Language, texts: Iterable[str]) -> List[List[Entity]]:
    """Predicted entities by text."""
    return [doc_entities(nlp(Doc(nlp.vocab, words=text.split()))) for text in texts]


IN_PROCESSES = """
import json, sys
import torch
torch.set_num_threads(2)  # none of which survives the fork
import spacy
found = []
for path in sys.argv[2:]:
    nlp = spacy.load(path)
    for n_process in (1, 2):
        docs = nlp.pipe(json.loads(sys.argv[1]), n_process=n_process, batch_size=2)
        found.append([([(e.start, e.end, e.label_) for e in doc.ents], doc.cats) for doc in docs])
print(json.dumps(found))
"""


def said_in_processes(
    paths: Sequence[Path], texts: Sequence[str]
) -> List[Tuple[List[List[Entity]], List[Dict[str, float]]]]:
    """Entities and categories by text, which each stored pipeline predicts in a new process, and then in two."""
    command = [sys.executable, "-c", IN_PROCESSES, json.dumps(texts), *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    return [([[tuple(entity) for entity in own] for own, _ in each], [cats for _, cats in each]) for each in found]


def gradients(model: Model) -> List[numpy.ndarray]:
    """All gradients of a model, those of torch modules included; None where there is none."""
    result = []
    for node in model.walk():
        for name in node.param_names:
            result.append(node.get_grad(name).copy() if node.has_grad(name) else None)
        for shim in node.shims:
            for parameter in shim._model.parameters():
                result.append(None if parameter.grad is None else parameter.grad.detach().cpu().numpy().copy())
    return result


def loss_with(ner: TrainableHead, examples: Sequence[Example], outputs: Any) -> Tuple[float, Any]:
    """Loss of a batch, and the gradient of the outputs, for given outputs of the model."""
    found: List[Any] = []
    with patch.object(ner.model, "_func", lambda model, inputs, is_train: (outputs, found.append)):
        loss, backprop = ner.batch_loss(list(examples))
        backprop()
    return loss, found[0]


def paths(ner: Any, docs: Iterable[Doc]) -> List[Any]:
    """The best tag sequence of each Doc."""
    return [path for path, _ in ner.score_tags(docs)]


def distributions(ner: Any, docs: Iterable[Doc]) -> List[Any]:
    """The distributions over tags of each Doc's tokens."""
    return [rows for _, rows in ner.score_tags(docs)]


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
            result.extend(parameter.detach().cpu().numpy().copy() for parameter in shim._model.parameters())
    return result


def same(a: Sequence[Any], b: Sequence[Any], tolerance: float = 0.0) -> bool:
    """Whether two lists of arrays are equal; a missing gradient equals zeros. Sums in another order, or on another CPU,
    differ by what is next to nothing beside the largest value: this is what is tolerated."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if x is None and y is None:
            continue
        x = numpy.zeros_like(y) if x is None else x
        y = numpy.zeros_like(x) if y is None else y
        if not numpy.allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, numpy.abs(y).max(initial=0.0))):
            return False
    return True


def all_zero(arrays: Iterable[Any]) -> bool:
    """Whether all arrays (gradients that are missing count) are exactly zero."""
    return all(x is None or not numpy.any(x) for x in arrays)


def numeric_gradient(function: Callable[[Any], float], values: Any, step: float = 1e-6) -> Any:
    """Gradient of a function of an array by finite differences."""
    result = numpy.zeros_like(values)
    for index in numpy.ndindex(*values.shape):
        sides = []
        for sign in (1, -1):
            moved = values.copy()
            moved[index] += sign * step
            sides.append(function(moved))
        result[index] = (sides[0] - sides[1]) / (2 * step)
    return result


class ClockRecorder:
    """A component that writes down its ticks and renewals."""

    def __init__(self) -> None:
        self.ticks: List[TrainingProgress] = []
        self.renewals: List[Tuple[int, List[str]]] = []

    def __call__(self, doc: Doc) -> Doc:
        return doc

    def tick(self, tick: TrainingProgress) -> None:
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


def shared_pipeline(
    order: Sequence[str],
    encoder: str = "tok2vec",
    config: Optional[Dict[str, Any]] = None,
    listener: Optional[Dict[str, Any]] = None,
    **settings: Any,
) -> Language:
    """A pipeline of listeners to one encoder: heads, which get the settings, and perhaps a tagger."""
    fix_seed()
    nlp = spacy.blank("xx")
    nlp.add_pipe(encoder, config={"model": {**(config or TOK2VEC)}})
    listener = listener or LISTENER
    for name in order:
        tagger = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
        nlp.add_pipe(name, config=head_config(name, listener, **settings) if name in HEADS else tagger)
    nlp.initialize(lambda: shared_examples(nlp, annotated=True))
    return nlp


def shared_examples(nlp: Language, annotated: bool) -> List[Example]:
    """The sentences with tags of words and, if `annotated`, their entities and a category."""
    examples = []
    for text, entities in SENTENCES:
        reference = make_doc(nlp, text, entities, annotated=annotated)
        for token in reference:
            token.tag_ = "NN" if token.text.istitle() else "VB"
        if annotated:
            reference.cats = {category_of(entities): 1.0}
        examples.append(Example(Doc(nlp.vocab, words=text.split()), reference))
    return examples


def reload_bytes(nlp: Language, path: Any) -> Language:
    """The pipeline through bytes."""
    return load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())


def reload_disk(nlp: Language, path: Any) -> Language:
    """The pipeline through a folder."""
    nlp.to_disk(path)
    return spacy.load(path)


def reload_copy(nlp: Language, path: Any) -> Language:
    """A copy of the pipeline."""
    return copy.deepcopy(nlp)


MASKED_LMS = ("Bert", "Roberta", "XLMRoberta", "DistilBert", "Electra", "Albert", "DebertaV2", "MPNet", "ModernBert")


def make_masked_lm(kind, tokenizer):
    """A small random masked language model of one of `MASKED_LMS`."""
    import transformers

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    if kind == "DistilBert":
        sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    if kind in ("Albert", "Electra"):
        sizes["embedding_size"] = 8
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), pad_token_id=0, **special, **sizes)
    return getattr(transformers, f"{kind}ForMaskedLM")(config).eval()

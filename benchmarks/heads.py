"""Trains every head a little, under one seed: what `same.py` compares between two checkouts.

    OMP_NUM_THREADS=1 python benchmarks/heads.py FOLDER OUT.npz

FOLDER holds the corpora that HEADS name. Keys of OUT.npz, for each head: `<head>/losses` (n_updates,),
`<head>/weights/<number>` in the order of the model's nodes, and `<head>/predictions`, bytes of Docs.
"""

import json
import sys
import time
import warnings
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy
import spacy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch, registry
from thinc.api import Model

QUERIES = Path(__file__).resolve().parent.parent / "assets" / "demo" / "queries.json"
N_UPDATES, BATCH_SIZE, N_SENTENCES, N_PREDICTED = 50, 8, 160, 40
SEED, LEARN_RATE, DROPOUT = 7, 0.005, 0.2
# Updates between renewals, for heads that renew something.
INTERVAL = 10


def model(name: str, **settings: Any) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): Config of a model."""
    return {"@architectures": f"spacy_weakner.{name}.v1", **settings}


def loss(name: str, **settings: Any) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): Config of a loss."""
    return {"@losses": f"spacy_weakner.{name}.v1", **settings}


def misc(name: str, **settings: Any) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): Config of a sampler, an objective and the like."""
    return {"@misc": f"spacy_weakner.{name}.v1", **settings}


CNN = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 32,
    "depth": 2,
    "embed_size": 500,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
BILSTM = model("BiLSTMEncoder", embed=CNN, width=32, dropout=0.2)
ATTENTION = model("AttentionEncoder", tok2vec=BILSTM, heads=4, dropout=0.2)
CONDITIONED = model("ConditionedEncoder", tok2vec=CNN)
MODELS = {
    "crf_ner": model("CRFTagger", tok2vec=CNN),
    "span_ner": model("SpanClassifier", tok2vec=CNN),
    "token_ner": model("TokenClassifier", tok2vec=CNN),
    "mrc_ner": model("MRCExtractor", encoder=CONDITIONED),
    "sentence_category": model("SentenceCategory", tok2vec=CNN),
}

NLL = loss("CRFNegativeLogLikelihood", weak_weight=0.5)
TOKENS = loss("NoiseAwareCRF", level="token", strong_weight=0.95)
MAE, MSE = (
    loss("TokenwiseLoss", loss=loss(name), weak_weight=0.4) for name in ("MeanAbsoluteError", "MeanSquaredError")
)
CCE, GCE = loss("CategoricalCrossentropy"), loss("GeneralizedCrossEntropy", q=0.7)
UNIFORM = misc("UniformNegativeSampler")
INSIDE = misc("WeightedNegativeSampler", n_epochs=4.0, include_outside=False)
NESTED = {"nested": True, "spans_key": "weak:gazetteer"}
TEACHER = misc("SelfTraining", threshold=0.3)
PICKING = misc("SelfPicking", threshold=0.05)
UNION = misc("SelfPicking", threshold=0.05, union=True)
TYPING = misc("FineTyping", n_types=3, gamma=0.5)
# Name: component; corpora, which a batch takes from in turn; settings, whose "model" adds to that of MODELS.
HEADS: Dict[str, Tuple[str, str, Dict[str, Any]]] = {
    "crf": ("crf_ner", "gold", {"loss": NLL}),
    "crf, nested": ("crf_ner", "gold weak-complete", {"loss": NLL, "scheme": "IOBES", "scores": True, "nested": True}),
    "crf, decoding": ("crf_ner", "gold completed", {"loss": NLL, "constrain": "decoding", "head_learn_rate": 2.0}),
    "crf, attention": ("crf_ner", "gold", {"loss": NLL, "model": {"tok2vec": ATTENTION}}),
    "crf, partial": ("crf_ner", "weak", {"loss": loss("PartialCRF", negative_rate=0.3), "constrain": False}),
    "crf, partial, weight": ("crf_ner", "weak gold", {"loss": loss("PartialCRF", weak_weight=0.7)}),
    "crf, soft": ("crf_ner", "completed gold", {"loss": loss("SoftLabelCRF")}),
    "crf, soft, IO": ("crf_ner", "ensemble", {"loss": loss("SoftLabelCRF", negative_rate=0.1), "scheme": "IO"}),
    "crf, noise-aware": ("crf_ner", "gold completed", {"loss": loss("NoiseAwareCRF"), "constrain": "decoding"}),
    "crf, noise-aware, tokens": ("crf_ner", "completed-all gold", {"loss": TOKENS, "constrain": "decoding"}),
    "crf, tokenwise GCE": ("crf_ner", "weak-complete", {"loss": loss("TokenwiseLoss", loss=GCE)}),
    "crf, tokenwise MAE": ("crf_ner", "gold weak", {"loss": MAE}),
    "crf, tokenwise MSE": ("crf_ner", "gold", {"loss": MSE}),
    "span, uniform": ("span_ner", "weak-complete gold", {"sampler": UNIFORM}),
    "span, weighted": ("span_ner", "weak-complete", {"sampler": misc("WeightedNegativeSampler", n_epochs=4.0)}),
    "span, weighted, inside": ("span_ner", "weak-complete", {"sampler": INSIDE}),
    "span, all": ("span_ner", "gold", {"sampler": misc("AllNegatives"), "max_width": 4}),
    "span, nested": ("span_ner", "completed", {"sampler": UNIFORM, **NESTED, "incorrect_spans_key": "pred:crf_ner"}),
    "token, hard": ("token_ner", "gold", {"objective": misc("HardLabels", loss=CCE)}),
    "token, hard, BIO": ("token_ner", "weak", {"objective": misc("HardLabels", loss=GCE), "scheme": "BIO"}),
    "token, robust": (
        "token_ner",
        "weak-complete",
        {"objective": misc("NoiseRobustLearning", loss=GCE, threshold=0.3)},
    ),
    "token, teacher": ("token_ner", "ensemble", {"objective": TEACHER}),
    "token, augmented": ("token_ner", "augmented", {"objective": TEACHER}),
    "token, soft": ("token_ner", "ensemble", {"objective": misc("SoftLabels")}),
    "mrc": ("mrc_ner", "gold", {}),
    "mrc, weighted": ("mrc_ner", "weak gold", {"positive_weight": 3.0, "threshold": 0.2}),
    "mrc, nested": ("mrc_ner", "weak", {**NESTED, "threshold": 0.2}),
    "mrc, picking": ("mrc_ner", "weak-complete", {"relabel": PICKING}),
    "mrc, picking, teacher": ("mrc_ner", "weak-complete", {"relabel": UNION}),
    "mrc, typing": ("mrc_ner", "gold", {"typing": TYPING, "model": {"n_types": 3}}),
    "category": ("sentence_category", "gold", {}),
    "categories": ("sentence_category", "gold", {"exclusive_classes": False, "loss_weight": 0.5}),
}


def main() -> None:
    """Train all, and write what they have become."""
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    warnings.filterwarnings("ignore")
    found: Dict[str, NDArray] = {}
    for name, (factory, corpora, settings) in HEADS.items():
        started = time.perf_counter()
        trained = train(factory, [partial(read, folder, corpus) for corpus in corpora.split()], settings)
        found.update({f"{name}/{key}": value for key, value in trained.items()})
        first, *_, last = trained["losses"]
        print(f"{time.perf_counter() - started:7.1f} s  {name}: loss {first:.3g}, at the end {last:.3g}", flush=True)
    numpy.savez(output, **found)  # type: ignore[arg-type]


def train(factory: str, corpora: List[Callable], settings: Dict[str, Any]) -> Dict[str, NDArray]:
    """Train one head.

    factory (str): Name of the component.
    corpora (List[Callable[[Language], List[Example]]]): Read the examples.
    settings (Dict[str, Any]): As in HEADS.
    RETURNS (Dict[str, NDArray]): Losses, weights and predictions by key.
    """
    fix_random_seed(SEED)
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe(factory, config={**settings, "model": {**MODELS[factory], **settings.get("model", {})}})
    if factory == "mrc_ner":
        queries = json.loads(QUERIES.read_text(encoding="utf-8"))
        nlp.config["initialize"]["components"] = {factory: {"queries": queries}}
    examples = [corpus(nlp) for corpus in corpora]
    optimizer = nlp.initialize(lambda: chain(*examples))
    optimizer.learn_rate = LEARN_RATE
    make_clock = registry.callbacks.get("spacy_weakner.TrainingClock.v1")
    clock = make_clock(corpus=corpora[0], total_steps=N_UPDATES, interval=INTERVAL)
    batches = minibatch(chain.from_iterable(zip(*map(cycle, examples), strict=True)), BATCH_SIZE)
    losses = []
    for step, batch in enumerate(islice(batches, N_UPDATES)):
        clock(nlp, {"step": step, "epoch": step * BATCH_SIZE // N_SENTENCES})
        losses.append(nlp.update(batch, drop=DROPOUT, sgd=optimizer)[factory])
    docs = nlp.pipe([nlp.make_doc(example.text) for example in examples[0][:N_PREDICTED]])
    predictions = DocBin(docs=docs, store_user_data=True).to_bytes()
    return {
        "losses": numpy.array(losses),
        "predictions": numpy.frombuffer(predictions, dtype="uint8"),
        **{f"weights/{number}": array for number, array in enumerate(weights(pipe.model))},
    }


def read(folder: Path, corpus: str, nlp: Language) -> List[Example]:
    """Read sentences that a stage has written.

    folder (Path): Where they are.
    corpus (str): "gold", "augmented", or a folder of `.spacy` files.
    nlp (Language): The pipeline.
    RETURNS (List[Example]): The first N_SENTENCES. Those of "augmented" have their words backwards as augmented form.
    """
    path = folder / {"gold": "corpus/annotated/gold.spacy", "augmented": "ensemble"}.get(corpus, corpus)
    reader = registry.readers.get("spacy_weakner.Corpus.v1")(path=str(path), limit=N_SENTENCES)
    examples = list(reader(nlp))
    if corpus == "augmented":
        for doc in (example.reference for example in examples):
            doc.user_data["weakner.augmented"] = [token.text[::-1] for token in doc]
    return examples


def weights(model: Model) -> Iterator[NDArray]:
    """YIELDS (NDArray): Copies of a model's parameters, in the order of its nodes; those of torch too."""
    for node in model.walk():
        yield from (numpy.array(node.get_param(name)) for name in node.param_names if node.has_param(name))
        for shim in node.shims:
            yield from (tensor.detach().cpu().numpy().copy() for tensor in shim._model.state_dict().values())


if __name__ == "__main__":
    main()

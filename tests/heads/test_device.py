"""Every head on a device whose arrays are not numpy's: it trains, predicts and is stored there as on the CPU."""

import os

import numpy
import pytest
import spacy
from spacy.util import load_model_from_config
from thinc.api import Adam

from spacy_weakner.corpus.tags import make_scheme
from spacy_weakner.corpus.weak import (
    TagDistributions,
    set_augmented,
    set_confidence,
    set_soft_labels,
    set_source,
    set_weak,
)
from spacy_weakner.heads.head import PADDED_GPU
from spacy_weakner.pipelines import run_before
from spacy_weakner.training.clock import TrainingClock
from spacy_weakner.training.lbfgs import LBFGS
from spacy_weakner.training.weights import LoadWeights

from ..crf_ner.test_transformer import encoder
from ..sources.features_util import SAID, source_features
from ..util import (
    HEADS,
    LISTENING_HEADS,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    fix_seed,
    head_config,
    needs_transformers,
    shared_examples,
    shared_pipeline,
)
from .device import DeviceArray, DeviceOps, device
from .util import CATEGORY, TALKATIVE, begin, example


def loss(name, **settings):
    return {"@losses": f"spacy_weakner.{name}.v1", **settings}


def misc(name, **settings):
    return {"@misc": f"spacy_weakner.{name}.v1", **settings}


def attention(dropout=0.0, **settings):
    bilstm = {"@architectures": "spacy_weakner.BiLSTMEncoder.v1", "embed": TOK2VEC, "width": 16, "projection_width": 8}
    settings = {"heads": 2, "dropout": dropout, **settings}
    encoder = {**bilstm, "dropout": dropout}
    return {"@architectures": "spacy_weakner.AttentionEncoder.v1", "tok2vec": encoder, **settings}


GCE = loss("GeneralizedCrossEntropy")
LINEAR = {"@architectures": "spacy_weakner.IndicatorFeatures.v1", "rows": 500}
WEIGHTED = misc("WeightedNegativeSampler", ratio=1.0)
SELF = misc("SelfTraining", threshold=0.1)
# By name: the head, its settings, and those of its model.
CASES = {
    "crf": ("crf_ner", {"scores": True}, {}),
    "crf, partial": ("crf_ner", {"loss": loss("PartialCRF")}, {}),
    "crf, soft": ("crf_ner", {"loss": loss("SoftLabelCRF")}, {}),
    "crf, noise-aware": ("crf_ner", {"loss": loss("NoiseAwareCRF"), "constrain": "decoding"}, {}),
    "crf, tokenwise": ("crf_ner", {"loss": loss("TokenwiseLoss", loss=GCE)}, {}),
    "crf, sources, linear": ("crf_ner", {}, {"source_features": source_features("terms", "other"), "linear": LINEAR}),
    "crf, attention": ("crf_ner", {}, {"tok2vec": attention(gate=True)}),
    "crf, soft attention": ("crf_ner", {}, {"tok2vec": attention(kind="soft", init_range=0.1)}),
    "span, all": ("span_ner", {"nested": True}, {}),
    "span, uniform": ("span_ner", {"sampler": misc("UniformNegativeSampler"), "max_width": None}, {}),
    "span, weighted": ("span_ner", {"sampler": WEIGHTED}, {}),
    "token": ("token_ner", {"scheme": "BIO"}, {}),
    "token, robust": ("token_ner", {"objective": misc("NoiseRobustLearning", loss=GCE, threshold=0.3)}, {}),
    "token, soft": ("token_ner", {"objective": misc("SoftLabels")}, {}),
    "token, self-training": ("token_ner", {"objective": SELF}, {}),
    "mrc": ("mrc_ner", {"nested": True, "threshold": 0.2}, {}),
    "mrc, picking": ("mrc_ner", {"relabel": misc("SelfPicking", threshold=0.3, union=True)}, {}),
    "mrc, typing": ("mrc_ner", {"typing": misc("FineTyping", n_types=2)}, {"n_types": 2}),
    "category": (CATEGORY, {}, {}),
    "categories": (CATEGORY, {"exclusive_classes": False}, {"tok2vec": attention(kind="scaled")}),
}


def rich_examples(nlp, scheme="BIO"):
    """The sentences with all that any head learns from, one of them weakly labeled."""
    result = []
    for (text, entities), said in zip(SENTENCES, SAID, strict=True):
        made = example(nlp, text, entities)
        tags = make_scheme(scheme, ("LOC", "PER"))
        soft = 0.2 / len(tags) + 0.8 * (tags.from_example(made)[:, None] == numpy.arange(len(tags)))
        set_soft_labels(made.reference, TagDistributions(tags.tags, scheme, soft.astype("float32")))
        set_augmented(made.reference, [word[::-1] for word in text.split()])
        for source in ("terms", "other"):
            set_source(made.predicted, source, said)
        result.append(made)
    set_weak(result[1].reference)
    set_confidence(result[1].reference, 0.7)
    return result


def make(head, settings, layers, encoder=None):
    fix_seed()
    nlp = spacy.blank("xx")
    config = head_config(head, encoder, **settings)
    config["model"].update(layers)
    nlp.add_pipe(head, config=config)
    begin(head, nlp)
    scheme = settings.get("scheme", {"token_ner": "IO"}.get(head, "BIO"))
    nlp.initialize(lambda: rich_examples(nlp, scheme))
    return nlp, rich_examples(nlp, scheme)


def predictions(nlp, batch):
    """Entities and scores that a pipeline predicts."""
    entities, probabilities = [], []
    for doc in nlp.pipe(eg.predicted.copy() for eg in batch):
        groups = {name: group for name, group in doc.spans.items() if name.startswith("pred:")}
        scores = [score for group in groups.values() for score in group.attrs["scores"]]
        scores += [ent._.weakner_score for ent in doc.ents] + list(doc.cats.values())
        entities.append([(e.start, e.end, e.label_) for e in doc.ents])
        probabilities += [score for score in scores if score is not None]
    return entities, probabilities


def same_predictions(found, expected):
    return found[0] == expected[0] and found[1] == pytest.approx(expected[1], abs=1e-3)


def find_head(nlp):
    ((name, pipe),) = [(name, pipe) for name, pipe in nlp.pipeline if hasattr(pipe, "forward_loss")]
    return name, pipe


def losses(nlp, batch, steps=6, drop=0.0):
    """The losses of a training. With dropout, which a device draws by itself, they cannot be compared."""
    optimizer, name, found = Adam(0.01), find_head(nlp)[0], []
    clock = TrainingClock(corpus=lambda nlp: batch, total_steps=steps, interval=2)
    for step in range(steps):
        clock(nlp, {"step": step, "epoch": 0})
        found.append(nlp.update(batch, sgd=optimizer, drop=drop)[name])
    return found


def run(nlp, batch, folder):
    """Train, predict, store and load; gives what can be compared."""
    history, (name, pipe) = losses(nlp, batch), find_head(nlp)
    found = predictions(nlp, batch)
    assert same_predictions(predictions(load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()), batch), found)
    nlp.to_disk(folder)
    assert same_predictions(predictions(spacy.load(folder), batch), found)
    run_before(nlp, name, [eg.predicted for eg in batch])
    if hasattr(pipe, "held_out_loss"):
        history.append(pipe.held_out_loss(batch)(1.5))
    for method in ("score_tags", "score_candidates"):
        if hasattr(pipe, method):
            getattr(pipe, method)([eg.predicted for eg in batch])
    return history, found


def on_device_and_host(build, folder):
    expected = run(*build(), folder / "host")
    with device() as ops:
        nlp, batch = build()
        nodes = [node for _, pipe in nlp.pipeline for node in pipe.model.walk()]
        params = [node.get_param(name) for node in nodes for name in node.param_names if node.has_param(name)]
        assert params and not any(isinstance(array, numpy.ndarray) for array in params)
        assert {type(node.ops) for node in nodes} == {type(ops)}
        history, found = run(nlp, batch, folder / "device")
    assert history == pytest.approx(expected[0], rel=1e-3, abs=1e-5)
    assert same_predictions(found, expected[1])


@pytest.mark.skipif("WEAKNER_DEVICE" in os.environ, reason="it is not that device")
def test_the_device_refuses_arrays_of_the_host():
    with device() as ops:
        array, host = ops.alloc2f(2, 3), numpy.ones((2, 3), dtype="float32")
        assert isinstance(array, DeviceArray) and isinstance(ops, DeviceOps)
        for mix in (
            lambda: numpy.asarray(array),
            lambda: numpy.exp(array),
            lambda: array + host,
            lambda: host * array,
            lambda: array[numpy.asarray([0, 1])],
            lambda: ops.xp.concatenate([array, host]),
            lambda: ops.scatter_add(array, ops.asarray1i([0, 1]), host),
            lambda: array.__setitem__(0, host[0]),
        ):
            with pytest.raises((TypeError, ValueError)):
                mix()
        assert type(ops.to_numpy(array + ops.asarray(host))) is numpy.ndarray


@pytest.mark.parametrize("case", CASES)
def test_every_head_runs_there_as_on_the_cpu(case, tmp_path):
    on_device_and_host(lambda: make(*CASES[case]), tmp_path)


@pytest.mark.parametrize("case", [*CASES, "dropout of its own"])
def test_dropout_is_drawn_there(case):
    case = CASES.get(case, ("crf_ner", {}, {"tok2vec": attention(dropout=0.3)}))
    with device():
        assert numpy.isfinite(losses(*make(*case), steps=3, drop=0.1)).all()


@pytest.mark.parametrize("head", LISTENING_HEADS)
def test_with_a_shared_encoder(head, tmp_path):
    def build():
        nlp = shared_pipeline([head])
        return nlp, shared_examples(nlp, annotated=True)

    on_device_and_host(build, tmp_path)


@pytest.mark.parametrize("head, n_questions", [("crf_ner", 1), ("mrc_ner", 2)])
def test_batches_there_are_smaller_if_there_are_several_questions(head, n_questions):
    with device():
        ner = make(head, {}, {})[0].get_pipe(head)
    assert ner._padded_tokens(ner.model) == PADDED_GPU // n_questions


@pytest.mark.parametrize("head", LISTENING_HEADS)
def test_stages_start_from_weights(head, tmp_path):
    with device():
        source, _ = make(head, {}, {})
        source.to_disk(tmp_path)
        target, batch = make(head, {"head_learn_rate": 2.0}, {})
        LoadWeights(tmp_path, {head: ["encoder", "head"]})(target)
        assert same_predictions(predictions(target, batch), predictions(source, batch))


def test_lbfgs():
    with device():
        nlp, batch = make("crf_ner", {}, {"linear": LINEAR})
        LBFGS(corpus=lambda nlp: batch, max_iterations=20)(nlp)
        assert all(len(doc.ents) == len(eg.reference.ents) for doc, eg in zip(nlp.pipe(TEXTS), batch, strict=True))


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize("head", HEADS)
def test_with_a_transformer(head, still_bert, tmp_path):
    reader = {"@architectures": "spacy_weakner.QueryContextEncoder.v1", "name": str(still_bert), "stride": 4}
    layers = {"encoder": reader} if head == "mrc_ner" else {"tok2vec": encoder(still_bert)}
    on_device_and_host(lambda: make(head, TALKATIVE[head], layers), tmp_path)

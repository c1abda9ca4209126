"""Transformers that ONNX Runtime runs, tiny and made on the fly, and the pipelines of `encoder quantize`."""

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import load_config

from spacy_weakner.encoder_tools import quantize as module
from spacy_weakner.encoder_tools.quantize import export, quantize
from spacy_weakner.encoders.frozen import statistics_of
from spacy_weakner.encoders.onnx_encoder import OnnxTransformer, build_onnx_encoder
from spacy_weakner.encoders.transformer_encoder import build_transformer_encoder
from spacy_weakner.errors import WeaknerError

from ..crf_ner.test_transformer import with_own_encoder, with_shared_encoder
from ..util import (
    TEXTS,
    crf_pipeline,
    distributions,
    entities_of,
    make_doc,
    make_examples,
    needs_transformers,
    said_in_processes,
    same,
    train,
)
from . import kinds
from .sequences import module_of

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
# DeBERTa's module in transformers uses torch.jit.
pytestmark = [
    needs_transformers,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]
VOCAB = spacy.blank("xx").vocab
WORDS = ["Bob", "annas", "Bob", "zxy", "a"]
DOCS = [Doc(VOCAB, words=words) for words in ([], ["Bob"], ["\n", "Bob", " "], WORDS, WORDS * 20, ["\n"])]
LOAD = """
import json, sys, spacy
nlp = spacy.load(sys.argv[1])
print(json.dumps([[(e.start, e.end, e.label_) for e in nlp(text).ents] for text in json.loads(sys.argv[2])]))
assert "transformers" not in sys.modules
"""


@pytest.fixture(scope="module", params=[with_own_encoder, with_shared_encoder], ids=["own", "shared"])
def folders(request, tiny_bert, tmp_path_factory):
    """A trained pipeline, and the quantized one. Never write there."""
    folder, nlp = tmp_path_factory.mktemp("quantized"), request.param(tiny_bert)
    train(nlp, make_examples(nlp), steps=20)
    nlp.to_disk(folder / "float32")
    assert quantize(folder / "float32", folder / "int8").encoders == 1
    return folder / "float32", folder / "int8"


def probabilities(nlp):
    """Of all tags, from the whole pipeline before the head on."""
    docs = [make_doc(nlp, text, annotated=False) for text in TEXTS]
    for name, pipe in nlp.pipeline:
        if name == "crf_ner":
            return distributions(pipe, docs)
        docs = list(pipe.pipe(docs))


@pytest.mark.parametrize("pooling", ["mean", "first"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta"])
def test_it_computes_what_torch_computes(kind, pooling, tiny_bert, tmp_path):
    folder = getattr(kinds, kind)(tmp_path / "model", *([tiny_bert] if kind == "bert" else []))
    settings = {"pooling": pooling, "max_length": 32, "stride": 8}
    exact = build_transformer_encoder(str(folder), **settings)
    exact.initialize()
    reader = module_of(exact)
    export(reader.transformer, tmp_path / "model.onnx", "x")
    found = build_onnx_encoder(16, **settings)
    data = (tmp_path / "model.onnx").read_bytes()
    found.shims[0]._model = OnnxTransformer(data, reader.tokenizer.data, reader.max_pieces)
    for a, b in zip(exact.predict(DOCS), found.predict(DOCS), strict=True):
        numpy.testing.assert_allclose(a, b, atol=1e-4)
    assert not any(own._forward_hooks for own in reader.transformer.modules())


def test_only_the_encoder_changes(folders):
    before, after = ({path.relative_to(own): path for path in own.rglob("*") if path.is_file()} for own in folders)
    assert before.keys() == after.keys() - {Path(".receipt.json")}
    changed = {str(path) for path in before if before[path].read_bytes() != after[path].read_bytes()}
    (name,) = {"tok2vec", "crf_ner"} & {path.split("/")[0] for path in changed}
    assert changed == {"config.cfg", f"{name}/model"}
    configs = [load_config(own / "config.cfg") for own in folders]
    models = [config["components"].pop(name)["model"] for config in configs]
    assert configs[0] == configs[1]
    exact, rounded = (model if name == "tok2vec" else model["tok2vec"] for model in models)
    assert rounded["@architectures"] == "spacy_weakner.OnnxEncoder.v1"
    assert {key: exact[key] for key in rounded if key[0] != "@"} == {k: v for k, v in rounded.items() if k[0] != "@"}


def test_predictions(folders):
    """A text has the same whatever stands beside it, in any process and after any way there."""
    exact, nlp = map(spacy.load, folders)
    found = probabilities(nlp)
    assert not same(probabilities(exact), found)
    texts = ["", "Bob", *TEXTS, "\n", "Anna went to York " * 20]
    expected = [entities_of(nlp, [text])[0] for text in texts]
    assert entities_of(nlp, texts) == expected
    for other in (
        spacy.load(folders[1]),
        spacy.blank("xx", config={}).from_config(nlp.config).from_bytes(nlp.to_bytes()),
    ):
        assert same(found, probabilities(other), tolerance=0.0)
    run = subprocess.run(
        [sys.executable, "-c", LOAD, str(folders[1]), json.dumps(texts)], capture_output=True, text=True, check=True
    )
    assert [[tuple(each) for each in entities] for entities in json.loads(run.stdout)] == expected
    assert [entities for entities, _ in said_in_processes([folders[1]], texts)] == [expected] * 2


def test_it_cannot_be_trained(folders):
    nlp = spacy.load(folders[1])
    with pytest.raises(ValueError, match=r"TransformerEncoder.*quantize"):
        nlp.update(make_examples(nlp), sgd=nlp.create_optimizer())
    with pytest.raises(ValueError, match="TransformerEncoder"):
        build_onnx_encoder(16).initialize()
    (encoder,) = (node for node in nlp.get_pipe(nlp.pipe_names[0]).model.walk() if node.name == "onnx_encoder")
    assert same(encoder.predict(DOCS), encoder.copy().predict(DOCS), tolerance=0.0)


def test_disabled_components(folders, tmp_path):
    names = spacy.load(folders[0]).pipe_names
    spacy.load(folders[0], disable=names).to_disk(tmp_path / "in")
    assert quantize(tmp_path / "in", tmp_path / "out").encoders == 1
    assert spacy.load(tmp_path / "out").disabled == names


def test_errors(folders, tmp_path, monkeypatch):
    exact, rounded = folders
    crf_pipeline().to_disk(tmp_path / "plain")
    for source, reason in ((tmp_path / "plain", "no component.*crf_ner"), (rounded, "already in int8")):
        with pytest.raises(WeaknerError, match=f"WK358.*{reason}"):
            quantize(source, tmp_path / "out")
    with pytest.raises(WeaknerError, match="WK300"):
        quantize(exact, tmp_path / "plain")
    with pytest.raises(WeaknerError):
        quantize(exact, exact, overwrite=True)
    monkeypatch.setattr(module, "_TOLERANCE", 0.0)
    with pytest.raises(WeaknerError, match=r"WK358.*outputs in ONNX are different"):
        quantize(exact, tmp_path / "out")
    monkeypatch.setattr("spacy_weakner.errors.find_spec", lambda name: None)
    with pytest.raises(WeaknerError, match=r"WK350.*\[onnx\]"):
        quantize(exact, tmp_path / "out")
    with pytest.raises(WeaknerError, match=r"WK350.*\[onnx\]"):
        spacy.load(rounded)
    assert not (tmp_path / "out").exists()


def test_a_frozen_transformer_keeps_its_statistics(tiny_bert, tmp_path):
    nlp = spacy.blank("xx")
    settings = {"@architectures": "spacy_weakner.FrozenTransformer.v1", "name": str(tiny_bert), "length": 2.0}
    model = nlp.add_pipe("tok2vec", config={"model": {**settings, "max_length": 32, "stride": 8}}).model
    model.initialize(X=DOCS)
    nlp.to_disk(tmp_path / "float32")
    assert quantize(tmp_path / "float32", tmp_path / "int8").encoders == 1
    config = load_config(tmp_path / "int8" / "config.cfg")["components"]["tok2vec"]["model"]
    assert config["@architectures"] == "spacy_weakner.FrozenOnnx.v1" and config["length"] == 2.0
    found = spacy.load(tmp_path / "int8").get_pipe("tok2vec").model
    assert same(statistics_of(found, 2.0), statistics_of(model, 2.0))
    assert [rows.shape for rows in found.predict(DOCS)] == [rows.shape for rows in model.predict(DOCS)]
    assert [bool(row.any()) for row in found.predict(DOCS)[2]] == [False, True, False]

"""The road of a user through spaCy's own command line, on a tiny corpus."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.util import load_config

import spacy_weakner
from spacy_weakner.configs import make_config
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood

from .command_line import spacy_cli, with_seed
from .util import SENTENCES, make_doc, needs_transformers, same, weights

CONFIGS = Path(spacy_weakner.__file__).parent.parent / "configs"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CONFIGS.exists(), reason="not in a source tree"),
]
SMALL = {"width": 16, "depth": 1, "embed_size": 100}
ASSEMBLE = """
[nlp]
lang = "en"
pipeline = ["crf_ner"]

[components]

[components.crf_ner]
source = "one/model-last"
"""


def in_process(*args, cwd):
    """As `spacy_cli`, but in a process of its own, as it is done."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    command = [sys.executable, "-m", "spacy", *with_seed(args)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with corpus and configs, and the first stage trained with given labels."""
    path = tmp_path_factory.mktemp("project")
    nlp = spacy.blank("en")
    write_docs(path / "a.spacy", [make_doc(nlp, text, entities) for text, entities in SENTENCES])
    config = load_config(CONFIGS / "crf_ner.cfg")
    config["components"]["crf_ner"]["model"]["tok2vec"].update(SMALL)
    config["training"].update({"max_steps": 4, "eval_frequency": 2})
    config.to_disk(path / "partial.cfg")
    spacy_cli("init", "fill-config", "partial.cfg", "full.cfg", cwd=path)
    corpora = ["--paths.train", "a.spacy", "--paths.dev", "a.spacy"]
    spacy_cli("init", "labels", "full.cfg", "labels", *corpora, cwd=path)
    filled = load_config(path / "full.cfg")
    labels = {"@readers": "spacy.read_labels.v1", "path": "labels/crf_ner.json", "require": True}
    filled["initialize"]["components"]["crf_ner"] = {"labels": labels}
    filled.to_disk(path / "full.cfg")
    (path / "train.log").write_text(in_process("train", "full.cfg", "-o", "one", *corpora, cwd=path))
    return path


def load(path):
    return spacy.load(path / "model-last")


def test_init_and_train(project):
    component = load_config(project / "full.cfg")["components"]["crf_ner"]
    assert component["loss"] == {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.2, "weak_weight": 1.0}
    assert component["nested"] is False
    assert json.loads((project / "labels" / "crf_ner.json").read_text()) == ["LOC", "PER"]
    log = (project / "train.log").read_text()
    assert "LOSS CRF_NER" in log
    assert "ENTS_F" in log
    assert load(project / "one").get_pipe("crf_ner").labels == ("LOC", "PER")
    assert load(project / "one").meta["performance"]["crf_ner_loss"] > 0


def test_evaluate_and_assemble(project):
    (project / "assemble.cfg").write_text(ASSEMBLE)
    spacy_cli("assemble", "assemble.cfg", "assembled", cwd=project)
    spacy_cli("evaluate", "assembled", "a.spacy", "--output", "scores.json", cwd=project)
    scores = json.loads((project / "scores.json").read_text())
    assert 0.0 <= scores["ents_f"] <= 1.0
    ours, theirs = spacy.load(project / "assembled"), load(project / "one")
    assert same(*(weights(nlp.get_pipe("crf_ner").model) for nlp in (ours, theirs)))
    assert [doc_entities(ours(text)) for text, _ in SENTENCES] == [doc_entities(theirs(text)) for text, _ in SENTENCES]


def test_the_next_stage_begins_with_the_weights_and_has_its_own_loss(project):
    config = load_config(project / "full.cfg")
    config["components"]["crf_ner"]["loss"] = {"@losses": "spacy_weakner.CRFNegativeLogLikelihood.v1"}
    config["initialize"]["after_init"] = {
        "@callbacks": "spacy_weakner.LoadWeights.v1",
        "path": "one/model-last",
        "components": {"crf_ner": ["encoder", "head"]},
    }
    # Nothing moves, so what is saved is what was loaded.
    config["training"]["optimizer"].update({"learn_rate": 0.0, "L2": 0.0})
    config["training"]["max_steps"] = 2
    config.to_disk(project / "two.cfg")
    spacy_cli("train", "two.cfg", "-o", "two", "--paths.train", "a.spacy", "--paths.dev", "a.spacy", cwd=project)
    one, two = load(project / "one"), load(project / "two")
    assert same(*(weights(nlp.get_pipe("crf_ner").model) for nlp in (one, two)))
    assert two.get_pipe("crf_ner").loss == CRFNegativeLogLikelihood()


@needs_transformers
@pytest.mark.parametrize("recipe, heads", [("crf_ner", ["crf_ner"]), ("joint.joint", ["tok2vec", "crf_ner"])])
def test_a_transformer_is_part_of_the_pipeline(project, tiny_bert, tmp_path, recipe, heads):
    shutil.copytree(tiny_bert, tmp_path / "bert")
    config = make_config(recipe, "transformer", transformer=str(tmp_path / "bert"))
    config["nlp"]["pipeline"] = heads
    config["components"] = {name: config["components"][name] for name in heads}
    if "tok2vec" in heads:
        config["components"]["tok2vec"]["model"]["width"] = 16
    config["training"].update({"max_steps": 60, "eval_frequency": 30, "patience": 0})
    config["training"]["optimizer"]["learn_rate"]["initial_rate"] = 0.005
    config.to_disk(tmp_path / "transformer.cfg")
    corpora = ["--paths.train", "a.spacy", "--paths.dev", "a.spacy"]
    spacy_cli("train", str(tmp_path / "transformer.cfg"), "-o", str(tmp_path / "out"), *corpora, cwd=project)
    shutil.rmtree(tmp_path / "bert")
    nlp = load(tmp_path / "out")
    assert [doc_entities(nlp(text)) for text, _ in SENTENCES] == [entities for _, entities in SENTENCES]


def test_pretrained_encoder(project):
    corpus = ["--paths.train", "a.spacy"]
    spacy_cli("pretrain", "full.cfg", "pretrained", *corpus, "--pretraining.max_epochs", "2", cwd=project)
    pretrained = project / "pretrained" / "model-last.bin"
    still = [*corpus, "--paths.dev", "a.spacy", "--training.max_steps", "1", "--training.optimizer.learn_rate", "0.0"]
    spacy_cli("train", "full.cfg", "-o", "from", *still, "--initialize.init_tok2vec", pretrained, cwd=project)
    encoder = load(project / "from").get_pipe("crf_ner").model.get_ref("tok2vec")
    expected = encoder.copy().from_bytes(pretrained.read_bytes())
    assert same(weights(encoder), weights(expected))
    assert any(a.any() for a in weights(encoder))

"""span_ner on the road of a user through spaCy's own command line."""

import json

import pytest
import spacy
from spacy.util import load_config

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.span_ner.samplers import AllNegatives, WeightedNegativeSampler

from ..test_cli_train import ASSEMBLE, spacy_cli
from ..util import SENTENCES, make_doc, same, weights

pytestmark = pytest.mark.slow
CORPORA = ["--paths.train", "a.spacy", "--paths.dev", "a.spacy"]
PARTIAL = """
[paths]
train = null
dev = null

[nlp]
lang = "en"
pipeline = ["span_ner"]

[components]

[components.span_ner]
factory = "span_ner"

[components.span_ner.model]
@architectures = "spacy_weakner.SpanClassifier.v1"
hidden_width = 8

[components.span_ner.model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 16
depth = 1
embed_size = 100

[components.span_ner.sampler]
@misc = "spacy_weakner.WeightedNegativeSampler.v1"
ratio = 0.7

[training]
max_steps = 4
eval_frequency = 2

[training.before_update]
@callbacks = "spacy_weakner.TrainingClock.v1"
total_steps = 4
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with corpus and config, and a pipeline trained with given labels."""
    path = tmp_path_factory.mktemp("project")
    nlp = spacy.blank("en")
    write_docs(path / "a.spacy", [make_doc(nlp, text, entities) for text, entities in SENTENCES])
    (path / "partial.cfg").write_text(PARTIAL)
    spacy_cli("init", "fill-config", "partial.cfg", "full.cfg", cwd=path)
    spacy_cli("init", "labels", "full.cfg", "labels", *CORPORA, cwd=path)
    config = load_config(path / "full.cfg")
    labels = {"@readers": "spacy.read_labels.v1", "path": "labels/span_ner.json", "require": True}
    config["initialize"]["components"]["span_ner"] = {"labels": labels}
    config.to_disk(path / "full.cfg")
    (path / "train.log").write_text(spacy_cli("train", "full.cfg", "-o", "one", *CORPORA, cwd=path))
    return path


def load(path):
    return spacy.load(path / "model-last")


def test_fill_config_adds_every_setting(project):
    config = load_config(project / "full.cfg")
    component = config["components"]["span_ner"]
    assert component["sampler"] == {
        "@misc": "spacy_weakner.WeightedNegativeSampler.v1",
        "ratio": 0.7,
        "exponent": 8.0,
        "n_epochs": None,
        "include_outside": True,
        "exclude": 0.0,
    }
    settings = {"max_width": 10, "nested": False, "spans_key": None, "incorrect_spans_key": None, "overwrite": False}
    assert {key: component[key] for key in settings} == settings
    assert config["training"]["score_weights"]["ents_f"] == 1.0


def test_labels_and_training(project):
    assert json.loads((project / "labels" / "span_ner.json").read_text()) == ["LOC", "PER"]
    log = (project / "train.log").read_text()
    assert "LOSS SPAN_NER" in log
    assert "ENTS_F" in log
    nlp = load(project / "one")
    assert nlp.get_pipe("span_ner").labels == ("LOC", "PER")
    assert nlp.get_pipe("span_ner").sampler == WeightedNegativeSampler(0.7)
    assert nlp.meta["performance"]["span_ner_loss"] > 0


def test_evaluate_and_assemble(project):
    (project / "assemble.cfg").write_text(ASSEMBLE.replace("crf_ner", "span_ner").format(source="one/model-last"))
    spacy_cli("assemble", "assemble.cfg", "assembled", cwd=project)
    spacy_cli("evaluate", "assembled", "a.spacy", "--output", "scores.json", cwd=project)
    assert 0.0 <= json.loads((project / "scores.json").read_text())["ents_f"] <= 1.0
    ours, theirs = spacy.load(project / "assembled"), load(project / "one")
    assert same(*(weights(nlp.get_pipe("span_ner").model) for nlp in (ours, theirs)))
    assert [doc_entities(ours(text)) for text, _ in SENTENCES] == [doc_entities(theirs(text)) for text, _ in SENTENCES]


def test_the_next_stage_begins_with_the_weights_and_has_its_own_sampler(project):
    config = load_config(project / "full.cfg")
    config["components"]["span_ner"]["sampler"] = {"@misc": "spacy_weakner.AllNegatives.v1"}
    config["initialize"]["after_init"] = {"@callbacks": "spacy_weakner.LoadWeights.v1", "path": "one/model-last"}
    # Nothing moves, so what is saved is what was loaded.
    config["training"]["optimizer"].update({"learn_rate": 0.0, "L2": 0.0})
    config["training"]["max_steps"] = 2
    config.to_disk(project / "two.cfg")
    spacy_cli("train", "two.cfg", "-o", "two", *CORPORA, cwd=project)
    one, two = load(project / "one"), load(project / "two")
    assert same(*(weights(nlp.get_pipe("span_ner").model) for nlp in (one, two)))
    assert two.get_pipe("span_ner").sampler == AllNegatives()

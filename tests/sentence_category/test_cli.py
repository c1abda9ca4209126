"""Both stages through spaCy's own command line: categories alone, then entities and categories."""

from pathlib import Path

import pytest
import spacy
from spacy.util import load_config

import spacy_weakner
from spacy_weakner.configs import render_config
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs, write_docs

from ..test_cli_train import spacy_cli
from ..util import same, weights
from .util import NAME, TITLES, category_examples, joint_examples

CONFIGS = Path(spacy_weakner.__file__).parent.parent / "configs"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CONFIGS.exists(), reason="not in a source tree"),
]
SMALL = {"width": 16, "projection_width": 8}
CORPORA = ["--paths.dev", "gold.spacy", "--training.eval_frequency", "2"]


def small(name, path, **training):
    """One of the shipped configs with a small encoder."""
    config = load_config(CONFIGS / f"joint.{name}.cfg")
    model = config["components"]["tok2vec"]["model"]
    bilstm = model.get("tok2vec", model)
    bilstm.update(SMALL)
    bilstm["embed"].update({"width": 8, "rows": [50] * 4})
    config["training"].update({"max_epochs": 0, "max_steps": 4, **training})
    config.to_disk(path / f"{name}.cfg")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with corpora and configs, and the first stage, whose corpus streams."""
    path = tmp_path_factory.mktemp("joint")
    nlp = spacy.blank("en")
    write_docs(path / "titles.spacy", [eg.reference for eg in category_examples(nlp)])
    write_docs(path / "gold.spacy", [eg.reference for eg in joint_examples(nlp)])
    small("pretrain", path)
    small("joint", path)
    titles = ["--paths.train", "titles.spacy"]
    spacy_cli("init", "labels", "pretrain.cfg", "labels", *titles, *CORPORA[:2], cwd=path)
    config = load_config(path / "pretrain.cfg")
    labels = {"@readers": "spacy.read_labels.v1", "path": f"labels/{NAME}.json", "require": True}
    config["initialize"]["components"][NAME] = {"labels": labels}
    config.to_disk(path / "pretrain.cfg")
    stream = ["--training.max_epochs", "-1"]
    spacy_cli("train", "pretrain.cfg", "-o", "titles", *titles, *CORPORA, *stream, cwd=path)
    return path


def encoder(path):
    return spacy.load(path / "model-last").get_pipe("tok2vec").model


def test_the_first_stage_knows_the_categories_of_the_whole_corpus(project):
    nlp = spacy.load(project / "titles" / "model-last")
    assert nlp.get_pipe(NAME).labels == tuple(sorted({category for _, category in TITLES}))
    assert nlp.meta["performance"]["cats_score"] >= 0


def test_the_second_stage_begins_with_the_encoder_below_the_attention(project):
    # Nothing moves, so what is saved is what was loaded.
    still = ["--training.optimizer.learn_rate", "0.0", "--paths.initial", "titles/model-last"]
    log = spacy_cli("train", "joint.cfg", "-o", "joint", "--paths.train", "gold.spacy", *CORPORA, *still, cwd=project)
    assert "LOSS CRF_NER" in log and "LOSS SENTE..." in log and "CATS_SCORE" in log
    first, second = encoder(project / "titles"), encoder(project / "joint")
    assert same(weights(first), weights(second.get_ref("tok2vec")))
    assert len(weights(second)) > len(weights(first))
    nlp = spacy.load(project / "joint" / "model-last")
    assert nlp.get_pipe("crf_ner").scheme.tags[1:5] == ("B-LOC", "I-LOC", "E-LOC", "S-LOC")


def test_on_a_transformer(project, tiny_bert):
    settings = ["--paths.train", "gold.spacy", *CORPORA, "--paths.transformer", tiny_bert, "--training.max_steps", "2"]
    settings += ["--components.tok2vec.model.width", "16"]
    (project / "transformer.cfg").write_text(render_config("joint.joint", "transformer"))
    spacy_cli("train", "transformer.cfg", "-o", "transformer", *settings, cwd=project)
    nlp = spacy.load(project / "transformer" / "model-last")
    assert len(nlp("Bob sells socks").cats) == 3
    assert sum(nlp("").cats.values()) == 0.0


def test_categories_pass_through_every_format(project, tmp_path):
    convert(project / "titles.spacy", tmp_path / "titles.jsonl")
    convert(tmp_path / "titles.jsonl", tmp_path / "again.spacy")
    vocab = spacy.blank("en").vocab
    assert [doc.cats for doc in read_docs(tmp_path / "again.spacy", vocab)] == [{c: 1.0} for _, c in TITLES]

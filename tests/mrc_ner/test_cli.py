"""The shipped config through spaCy's command line."""

import json

import pytest
import spacy
from spacy.util import load_config

from spacy_weakner.corpus.docbin import write_docs

from ..test_cli_train import CONFIGS, SMALL, spacy_cli
from ..util import SENTENCES, make_doc

CONFIG = CONFIGS / "mrc_ner.cfg"
QUERIES = {"LOC": "which place", "PER": "which person"}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CONFIG.exists(), reason="not in a source tree")]


def test_train(tmp_path):
    nlp = spacy.blank("en")
    write_docs(tmp_path / "a.spacy", [make_doc(nlp, text, entities) for text, entities in SENTENCES])
    (tmp_path / "q.json").write_text(json.dumps(QUERIES))
    config = load_config(CONFIG)
    config["components"]["mrc_ner"]["model"]["encoder"]["tok2vec"].update(SMALL)
    config["training"].update({"max_steps": 2, "eval_frequency": 1})
    config.to_disk(tmp_path / "mrc.cfg")
    paths = ["--paths.train", "a.spacy", "--paths.dev", "a.spacy", "--paths.queries", "q.json"]
    assert "LOSS MRC_NER" in spacy_cli("train", "mrc.cfg", "-o", "out", *paths, cwd=tmp_path)
    ner = spacy.load(tmp_path / "out" / "model-last").get_pipe("mrc_ner")
    assert ner.queries == QUERIES and ner.labels == ("LOC", "PER")

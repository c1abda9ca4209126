"""The three stages of RoSTER on the road of a user: the shipped configs through the command line."""

import json

import pytest
import spacy
from spacy.util import load_config

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import get_soft_labels, set_weak
from spacy_weakner.relabel.soft import predict_soft_labels
from spacy_weakner.runs.train import train_members

from ..test_cli_train import CONFIGS, SMALL, spacy_cli
from ..util import SENTENCES, make_doc, same, weights

SHORT = {"training.max_steps": 6, "training.eval_frequency": 6}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CONFIGS.exists(), reason="not in a source tree")]


def small(name, folder):
    """A shipped config with a tiny encoder."""
    config = load_config(CONFIGS / f"roster.{name}.cfg")
    config["components"]["token_ner"]["model"]["tok2vec"].update(SMALL)
    config.to_disk(folder / f"{name}.cfg")
    return folder / f"{name}.cfg"


def options(values):
    return [part for key, value in values.items() for part in (f"--{key}", str(value))]


@pytest.mark.usefixtures("trained_here")
def test_three_stages(tmp_path):
    nlp = spacy.blank("en")
    docs = [make_doc(nlp, text, entities) for text, entities in SENTENCES]
    for doc in docs:
        set_weak(doc)
    write_docs(tmp_path / "weak.spacy", docs)
    first = small("noise_robust", tmp_path)
    logger = {"@loggers": "spacy_weakner.StatisticsLogger.v1", "path": str(tmp_path / "statistics.jsonl")}
    logger["logger"] = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
    overrides = {**SHORT, "training.before_update.interval": 2, "training.logger": logger}
    overrides["paths.train"] = str(tmp_path / "weak.spacy")
    members = train_members(first, tmp_path / "members", members=2, overrides=overrides)
    assert [member.skipped for member in members] == [False, False]
    predict_soft_labels(tmp_path / "weak.spacy", tmp_path / "soft.spacy", [tmp_path / "members"])
    rows = [json.loads(line) for line in (tmp_path / "statistics.jsonl").read_text().splitlines()]
    assert any("token_ner_outside_removed" in key or "outside_removed" in str(row) for row in rows for key in row)
    soft = list(read_docs(tmp_path / "soft.spacy", nlp.vocab))
    assert all(get_soft_labels(doc) is not None for doc in soft)
    second = small("ensemble", tmp_path)
    spacy_cli("train", second, "-o", "two", *options({**SHORT, "paths.train": "soft.spacy"}), cwd=tmp_path)
    third = small("self_training", tmp_path)
    settings = {**SHORT, "paths.train": "soft.spacy", "paths.initial": "two/model-last"}
    settings["training.before_update.interval"] = 2
    spacy_cli("train", third, "-o", "three", *options(settings), cwd=tmp_path)
    two, three = (spacy.load(tmp_path / name / "model-last") for name in ("two", "three"))
    assert two.get_pipe("token_ner").labels == three.get_pipe("token_ner").labels == ("LOC", "PER")
    models = [own.get_pipe("token_ner").model for own in (two, three)]
    assert not same(*map(weights, models))

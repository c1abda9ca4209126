"""Trainings on a Ray cluster."""

from pathlib import Path

import pytest
import spacy

import spacy_weakner
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runs import training
from spacy_weakner.runs.train import train_grid
from spacy_weakner.runtime.cluster import connected

from ..util import SENTENCES, make_doc

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.cluster
CONFIG = Path(spacy_weakner.__file__).parent.parent / "configs" / "crf_ner.cfg"


@pytest.fixture(scope="module")
def machine():
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_trainings_on_a_cluster(machine, tmp_path, monkeypatch):
    gold = tmp_path / "gold.spacy"
    write_docs(gold, [make_doc(spacy.blank("xx"), text, entities) for text, entities in SENTENCES])
    overrides = {"paths.train": str(gold), "paths.dev": str(gold), "training.max_steps": 2}
    grid = {"training.dropout": [0.1, 0.3]}
    there = train_grid(CONFIG, tmp_path / "there", grid, overrides=overrides, ray="auto")
    here = train_grid(CONFIG, tmp_path / "here", grid, overrides=overrides)
    assert [trial.trained.score for trial in there.trials] == [trial.trained.score for trial in here.trials]
    assert [trial.trained.made_from for trial in there.trials] == [trial.trained.made_from for trial in here.trials]
    again = train_grid(CONFIG, tmp_path / "there", grid, overrides=overrides, ray="auto")
    assert all(trial.trained.skipped for trial in again.trials)
    assert not list(tmp_path.rglob(".*"))
    # Two at a time on one machine: one fails, and the other, which would never end, is stopped.
    one_core_each = {"many_cores": False}
    monkeypatch.setattr(training, "connected", lambda *args, **how: connected(*args, **{**how, **one_core_each}))
    overrides["training.patience"] = 0
    with pytest.raises(WeaknerError, match=r"WK360.*train\.log"):
        train_grid(CONFIG, tmp_path / "out", {"training.max_steps": [10**6, "many"]}, overrides=overrides, ray="auto")
    assert not list(tmp_path.rglob(".*"))

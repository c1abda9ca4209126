"""NEEDLE's stages one after the other."""

import shutil

import pytest

from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.annotations.weak import get_confidence, set_source, set_weak
from spacy_weakner.project.completed import train_needle
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.rules import Settings
from spacy_weakner.project.workshop import Workshop
from spacy_weakner.stages.runtime import training

from ..util import SENTENCES, make_doc
from .util import NLP, make_facts


@pytest.fixture
def project(tmp_path, configs, trained_path, monkeypatch):
    """A workshop whose trainings all give the same small pipeline."""
    calls = []

    def fake(config, output, overrides, gpu_id, stop, threads):
        calls.append({"config": config.stem, "output": output, **overrides})
        (output / "train.log").write_text("log")
        for name in ("model-best", "model-last"):
            shutil.copytree(trained_path, output / name)

    monkeypatch.setattr(training, "_run", fake)
    corpora = Corpora(tmp_path / "corpus")
    gold, weak = [], []
    for i in range(3):
        for text, entities in SENTENCES:
            gold.append(make_doc(NLP, f"{text} {i}", entities))
            set_source(gold[-1], "gazetteer", entities[:1])
            weak.append(make_doc(NLP, f"{text} weak {i}", entities[:1], missing=[len(text.split())]))
            set_weak(weak[-1])
            set_source(weak[-1], "gazetteer", entities[:1])
    for path in (corpora.gold, corpora.dev, corpora.gold_labelled):
        write_docs(path, gold)
    write_docs(corpora.weak / "part-00000.spacy", weak)
    return Workshop(corpora, tmp_path / "training", configs, Settings(20, 40, 0.5, 0.2, 10), lang="xx", seed=3), calls


@pytest.mark.parametrize("precision", [90.0, 40.0, None])
def test_the_stages(project, trained_path, precision):
    workshop, calls = project
    made = train_needle(workshop, trained_path, make_facts(precision=precision))
    folder = workshop.models / "needle"
    assert made == folder / "finetuned" / "model-best" and made.exists()
    *folds, aware, tuned = calls
    assert len(folds) == 3 and {call["config"] for call in folds} == {"crf_ner"}
    assert {(call["training.max_steps"], call["system.seed"]) for call in calls[:3]} == {(20, 3)}
    assert (aware["config"], aware["training.max_steps"]) == ("needle.noise_aware", 40)
    assert (aware["paths.weak"], aware["paths.initial"]) == (str(folder / "completed"), str(trained_path))
    assert (tuned["config"], tuned["training.max_steps"]) == ("needle.finetune", 20)
    assert tuned["paths.initial"] == str(folder / "noise-aware" / "model-last")
    completed = list(read_docs(folder / "completed", NLP.vocab))
    assert len(completed) == 12 and all(get_confidence(doc) is not None for doc in completed)
    assert train_needle(workshop, trained_path, make_facts(precision=precision)) == made and len(calls) == 5

"""`train --members`, and `relabel soften`: what the members learn from, and what becomes of their distributions."""

import math
import os
import re
import signal
import threading
import time
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.util import load_config, load_model
from spacy.vocab import Vocab

import spacy_weakner
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.crf_ner.component import CRFNer
from spacy_weakner.errors import WeaknerError
from spacy_weakner.relabel import soft as soft_module
from spacy_weakner.relabel.soft import predict_soft_labels
from spacy_weakner.runs.train import train_members
from spacy_weakner.runtime.predictions import TagPredictor
from spacy_weakner.scratch import wanted

from ..command_line import trainings_by
from ..util import (
    SENTENCES,
    TEXTS,
    TOK2VEC,
    crf_config,
    crf_pipeline,
    distributions,
    fix_seed,
    make_doc,
    make_examples,
    train,
)

pytestmark = pytest.mark.slow

CONFIG = Path(spacy_weakner.__file__).parent.parent / "configs" / "crf_ner.cfg"
NLP = spacy.blank("xx")


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "in.spacy"
    write_docs(path, [make_doc(NLP, text, entities) for text, entities in SENTENCES])
    return path


@pytest.fixture
def trainings(monkeypatch):
    """`spacy train` in this process, as a list of what it was called with. `make` makes the pipelines."""

    class Calls(list):
        @staticmethod
        def make(seed):
            return crf_pipeline(seed=seed)

    calls = Calls()

    def fake(config, output, overrides, gpu_id):
        calls.append({"output": wanted(output), "gpu_id": gpu_id, **overrides})
        (output / "train.log").write_text("log")
        nlp = calls.make(overrides["system.seed"])
        train(nlp, make_examples(nlp), steps=3)
        nlp.to_disk(output / "model-last")

    trainings_by(fake, monkeypatch)
    return calls


def run(tmp_path, **settings):
    output = tmp_path / "soft.spacy"
    component = settings.pop("component", None)
    overrides = {"paths.train": str(tmp_path / "in.spacy"), **settings.pop("overrides", {})}
    members = train_members(CONFIG, tmp_path / "out", overrides=overrides, **{"members": 2, **settings})
    report = predict_soft_labels(tmp_path / "in.spacy", output, [tmp_path / "out"], component=component)
    return members, report, list(read_docs(output, Vocab()))


def by_hand(folder, texts):
    """Per text what each member says, asked one by one."""
    result = []
    for model in sorted(folder.glob("member-*/model-last")):
        nlp = load_model(model)
        pipe = nlp.get_pipe("crf_ner")
        result.append([distributions(pipe, [make_doc(nlp, text, annotated=False)])[0] for text in texts])
    return list(zip(*result, strict=True))


# Trainings


def test_members_differ_by_their_seed(tmp_path, corpus, trainings):
    members, _, _ = run(tmp_path, members=3, seed=5, overrides={"training.max_steps": 7}, gpu_id=-1)
    folders = [tmp_path / "out" / f"member-{n}" for n in range(3)]
    assert [member.output for member in members] == [call["output"] for call in trainings] == folders
    assert [call["system.seed"] for call in trainings] == [call["training.seed"] for call in trainings] == [5, 6, 7]
    for call in trainings:
        assert call["paths.train"] == call["paths.dev"] == str(corpus)
        assert call["training.max_steps"] == 7 and call["training.patience"] == 0 and call["gpu_id"] == -1
    expected = by_hand(tmp_path / "out", TEXTS)
    assert all(not numpy.allclose(rows[0], rows[1]) for rows in expected)


def test_overrides_come_first(tmp_path, corpus, trainings):
    overrides = {"paths.train": str(corpus), "paths.dev": "b", "training.patience": 3}
    run(tmp_path, members=1, overrides=overrides)
    assert overrides.items() <= trainings[0].items()


def test_the_number_of_passes_decides_on_the_updates(tmp_path, corpus, trainings):
    n_words = sum(len(doc) for doc in read_docs(corpus, Vocab()))
    overrides = {"training.batcher.size": 10}
    run(tmp_path, passes=2, overrides=overrides)
    run(tmp_path, passes=2, overrides={**overrides, "training.eval_frequency": 3})
    updates = 2 * math.ceil(n_words / 10)
    assert [call["training.max_steps"] for call in trainings] == [updates] * 4
    assert [call["training.eval_frequency"] for call in trainings] == [updates, updates, 3, 3]
    with pytest.raises(WeaknerError, match=r"WK331.*'training.max_steps'"):
        run(tmp_path, passes=2, overrides={"training.max_steps": 3})


def test_a_config_may_name_its_dev(tmp_path, corpus, trainings):
    config = tmp_path / "c.cfg"
    config.write_text(CONFIG.read_text().replace("dev = null", 'dev = "gold.spacy"'))
    train_members(config, tmp_path / "out", members=1, overrides={"paths.train": str(corpus)})
    assert "paths.dev" not in trainings[0] and trainings[0]["training.patience"] == 0


@pytest.mark.parametrize("key", ["system.seed", "training.seed"])
def test_seeds_cannot_be_the_same(tmp_path, corpus, trainings, key):
    with pytest.raises(WeaknerError, match=rf"WK331.*{key}"):
        run(tmp_path, overrides={key: 1})
    assert not trainings


def test_what_is_finished_is_skipped(tmp_path, corpus, trainings, monkeypatch):
    members, first, docs = run(tmp_path)
    assert [member.skipped for member in members] == [False, False] and first.skipped == 0
    with monkeypatch.context() as patched:
        # Nothing is left to do for the members.
        patched.setattr(soft_module, "TagPredictor", None)
        members, again, _ = run(tmp_path)
    assert [member.skipped for member in members] == [True, True] and again.skipped == 1
    assert replace(again, skipped=0) == first and len(trainings) == 2
    members, more, other = run(tmp_path, members=3)
    assert [member.skipped for member in members] == [True, True, False] and more.skipped == 0
    assert not numpy.allclose(*(weak.get_soft_labels(found[0]).probabilities for found in (docs, other)))


def test_whatever_they_are_made_from_makes_them_anew(tmp_path, corpus, trainings):
    run(tmp_path)
    assert not any(member.skipped for member in run(tmp_path, overrides={"training.dropout": 0.3})[0])
    write_docs(corpus, [make_doc(NLP, "Bob", [(0, 1, "PER")])])
    members, _, docs = run(tmp_path, overrides={"training.dropout": 0.3})
    assert not any(member.skipped for member in members) and [doc.text for doc in docs] == ["Bob"]


# Soft labels


def test_soft_labels_are_the_mean(tmp_path, corpus, trainings):
    _, report, docs = run(tmp_path, members=3)
    expected = [numpy.stack(rows) for rows in by_hand(tmp_path / "out", TEXTS)]
    agreed, deviations = [], []
    for doc, rows in zip(docs, expected, strict=True):
        soft = weak.get_soft_labels(doc)
        assert soft.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER") and soft.scheme == "BIO"
        assert soft.probabilities.dtype == "float32"
        assert numpy.allclose(soft.probabilities, sum(rows) / 3, atol=1e-5)
        assert numpy.allclose(soft.probabilities.sum(axis=1), 1.0, atol=1e-5)
        for token in range(len(doc)):
            agreed.append(len({int(rows[k, token].argmax()) for k in range(3)}) == 1)
            deviations.append(numpy.std([1.0 - rows[k, token, 0] for k in range(3)]))
    assert (report.docs, report.tokens) == (4, len(agreed))
    assert report.agreement == pytest.approx(numpy.mean(agreed))
    assert 0.0 < report.deviation == pytest.approx(numpy.mean(deviations), abs=1e-5)


def test_docs_stay_as_they_are(tmp_path, trainings):
    doc = make_doc(NLP, "Anna went to New York", [(0, 1, "LOC")], missing=[1])
    weak.set_source(doc, "terms", [(0, 1, "LOC")], [0.5], reliability=0.9)
    weak.set_weak(doc)
    weak.set_id(doc, "x")
    weak.set_confidence(doc, 0.5, "token")
    weak.set_soft_labels(doc, weak.TagDistributions(("O",), "IO", numpy.ones((5, 1), dtype="float32")))
    doc[0].tag_ = "NNP"
    write_docs(tmp_path / "in.spacy", [doc, make_doc(NLP, ""), make_doc(NLP, doc.text, annotated=False)])
    _, _, (found, empty, bare) = run(tmp_path)
    assert weak.doc_entities(found) == [(0, 1, "LOC")] and [t.ent_iob for t in found] == [3, 0, 2, 2, 2]
    assert weak.group_entities(found, "weak:terms") == [(0, 1, "LOC")] and weak.group_scores(found, "weak:terms")
    assert weak.is_weak(found) and weak.get_id(found) == "x" and weak.get_reliability(found, "terms") == 0.9
    assert (weak.get_confidence(found), weak.get_confidence_unit(found)) == (0.5, "token")
    assert found[0].tag_ == "NNP" and found.text == doc.text
    assert list(found.spans) == ["weak:terms"]
    # What it was annotated with is nothing that the members see.
    soft = weak.get_soft_labels(found)
    assert numpy.array_equal(soft.probabilities, weak.get_soft_labels(bare).probabilities)
    assert not bare.has_annotation("ENT_IOB") and weak.is_weak(bare)
    assert len(empty) == 0 and weak.get_soft_labels(empty).probabilities.shape == (0, 5)


def test_shards_keep_their_names(tmp_path, trainings):
    for n, (text, entities) in enumerate(SENTENCES[:2]):
        write_docs(tmp_path / "in" / f"{n}.spacy", [make_doc(NLP, text, entities)])
    overrides = {"paths.train": str(tmp_path / "in")}
    train_members(CONFIG, tmp_path / "out", members=1, overrides=overrides)
    report = predict_soft_labels(tmp_path / "in", tmp_path / "soft", [tmp_path / "out"])
    assert [file_.name for file_ in sorted((tmp_path / "soft").glob("*.spacy"))] == ["0.spacy", "1.spacy"]
    assert (report.docs, report.agreement, report.deviation) == (2, 1.0, 0.0)
    write_docs(tmp_path / "soft" / "1.spacy", [])
    assert predict_soft_labels(tmp_path / "in", tmp_path / "soft", [tmp_path / "out"]).skipped == 1


def test_components_before_it_are_run(tmp_path, corpus, trainings):
    def make(seed):
        fix_seed(seed)
        nlp = spacy.blank("xx")
        nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
        listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "tok2vec"}
        nlp.add_pipe("crf_ner", config=crf_config(listener))
        nlp.initialize(lambda: make_examples(nlp))
        return nlp

    trainings.make = make
    _, _, docs = run(tmp_path, members=1)
    nlp = load_model(tmp_path / "out" / "member-0" / "model-last")
    doc = nlp.get_pipe("tok2vec")(make_doc(nlp, TEXTS[0], annotated=False))
    expected = distributions(nlp.get_pipe("crf_ner"), [doc])[0]
    assert numpy.allclose(weak.get_soft_labels(docs[0]).probabilities, expected, atol=1e-5)


# Members that do not fit


@pytest.mark.parametrize("component, pattern", [(None, "scores tags"), ("ner", "named 'ner'")])
def test_members_without_distributions(tmp_path, corpus, trainings, component, pattern):
    def make(seed):
        nlp = spacy.blank("xx")
        nlp.add_pipe("ner")
        nlp.initialize(lambda: make_examples(nlp))
        return nlp

    trainings.make = make
    with pytest.raises(WeaknerError, match=rf"WK341.*member-0.*{pattern}.*components: ner"):
        run(tmp_path, members=1, component=component)
    assert not (tmp_path / "soft.spacy").exists()


@pytest.mark.parametrize("different", [{"scheme": "IOBES"}, {"labels": ["LOC", "ORG", "PER"]}], ids=str)
def test_members_with_different_tags(tmp_path, corpus, trainings, different):
    def make(seed):
        fix_seed(seed)
        nlp = spacy.blank("xx")
        settings = different if seed == 1 else {}
        pipe = nlp.add_pipe("crf_ner", config=crf_config(scheme=settings.get("scheme", "BIO")))
        for label in settings.get("labels", ["LOC", "PER"]):
            pipe.add_label(label)
        nlp.initialize(lambda: make_examples(nlp))
        return nlp

    trainings.make = make
    with pytest.raises(WeaknerError, match=r"WK430.*member-1.*member-0"):
        run(tmp_path)
    assert not (tmp_path / "soft.spacy").exists()


def test_tags_in_another_order(tmp_path, corpus, trainings, monkeypatch):
    _, _, docs = run(tmp_path)
    soft = [weak.get_soft_labels(doc) for doc in docs]

    class Reversed(TagPredictor):
        def __init__(self, model, component):
            super().__init__(model, component)
            self.reverse = "member-1" in self.model

        @property
        def labels(self):
            return super().labels[::-1] if self.reverse else super().labels

        def distributions(self, docs):
            return [rows[:, ::-1] if self.reverse else rows for rows in super().distributions(docs)]

    monkeypatch.setattr(soft_module, "TagPredictor", Reversed)
    (tmp_path / "soft.spacy").unlink()
    _, _, docs = run(tmp_path)
    for doc, (labels, _, probabilities) in zip(docs, soft, strict=True):
        assert weak.get_soft_labels(doc).labels == labels
        assert numpy.array_equal(weak.get_soft_labels(doc).probabilities, probabilities)


def test_probabilities_that_are_no_numbers(tmp_path, corpus, trainings, monkeypatch):
    score_tags = CRFNer.score_tags

    def broken(self, docs):
        return [(path, rows * numpy.nan) for path, rows in score_tags(self, docs)]

    monkeypatch.setattr(CRFNer, "score_tags", broken)
    with pytest.raises(WeaknerError, match=r"WK343.*Anna went.*member-0"):
        run(tmp_path)


# Input and output


def test_the_corpus_is_no_output(tmp_path, corpus, trainings):
    with pytest.raises(WeaknerError, match="WK304"):
        train_members(CONFIG, corpus, overrides={"paths.train": str(corpus)})
    assert not trainings


@pytest.mark.parametrize("content", ["[", "1", '["none/model-last"]'])
def test_a_damaged_list_of_members(tmp_path, corpus, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "members.json").write_text(content)
    with pytest.raises(WeaknerError, match=r"WK(206|100).*train --members"):
        predict_soft_labels(corpus, tmp_path / "soft.spacy", [tmp_path / "out"])


def test_members_of_an_interrupted_run_are_none(tmp_path, corpus, trainings, monkeypatch):
    run(tmp_path)

    def fail(*args):
        raise WeaknerError("stopped")

    trainings_by(fail, monkeypatch)
    with pytest.raises(WeaknerError, match="stopped"):
        run(tmp_path, seed=5)
    assert not (tmp_path / "out" / "members.json").exists()


# Processes


def test_ctrl_c_ends_all_trainings(tmp_path, corpus):
    logs = [tmp_path / "out" / f"member-{n}" / "train.log" for n in range(2)]

    def interrupt():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not all(map(is_training, logs)):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, members=3, processes=2, overrides={"training.max_steps": 10**6})
    thread.join()
    assert all(map(is_training, logs)) and not active_children()
    assert not list((tmp_path / "out").rglob("trained.json")) and not list(tmp_path.rglob(".*"))


def is_training(log):
    """True if it has been evaluated once."""
    return log.exists() and re.search(r"^ +0 +0 ", log.read_text(), re.MULTILINE) is not None


@pytest.mark.slow
@pytest.mark.long
def test_several_processes_give_the_same(tmp_path, corpus, monkeypatch, request):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    config = load_config(CONFIG)
    config["components"]["crf_ner"]["model"]["tok2vec"] = TOK2VEC
    config["nlp"]["lang"] = "xx"
    config.to_disk(tmp_path / "small.cfg")

    def run(name, **settings):
        output = tmp_path / name
        overrides = {"training.max_steps": 5, "paths.train": str(corpus)}
        train_members(tmp_path / "small.cfg", output, overrides=overrides, **settings)
        predict_soft_labels(corpus, output / "soft.spacy", [output])
        return [weak.get_soft_labels(doc).probabilities for doc in read_docs(output / "soft.spacy", Vocab())]

    together = run("two", members=2, processes=2)
    # The second of them, alone, and in this process.
    request.getfixturevalue("trained_here")
    alone = run("one", members=1, seed=1)
    for soft, rows, of_second in zip(together, by_hand(tmp_path / "two", TEXTS), alone, strict=True):
        assert numpy.allclose(soft, sum(rows) / 2, atol=1e-5) and not numpy.allclose(*rows)
        assert numpy.allclose(rows[1], of_second, atol=1e-6)

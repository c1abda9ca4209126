"""Trainings in processes of their own: what is skipped, what is done again, folds and sweeps."""

import errno
import json
import os
import signal
import warnings
from contextlib import contextmanager, nullcontext
from multiprocessing import active_children
from pathlib import Path

import pytest
import spacy
import wasabi
from spacy.util import load_config, load_model
from spacy.vocab import Vocab

import spacy_weakner
from spacy_weakner.calibration.confidence import calibrate_confidence
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runs import inputs, training
from spacy_weakner.runs import train as module
from spacy_weakner.runs.train import read_folds, train_folds, train_grid
from spacy_weakner.runs.training import Trained, Training, train_all
from spacy_weakner.scratch import wanted

from ..cli.util import invoke
from ..command_line import PoolHere, trainings_by
from ..util import SEED, SENTENCES, TOK2VEC, make_doc

pytestmark = pytest.mark.slow

CONFIG = Path(spacy_weakner.__file__).parent.parent / "configs" / "crf_ner.cfg"
NLP = spacy.blank("xx")
SCORES = "[training]\n\n[training.score_weights]\nents_f = 1.0\nspeed = null\n"


@pytest.fixture
def trainings(monkeypatch):
    """`spacy train` as a list of what it was called with; scores grow with the number of steps."""
    calls = []

    def fake(config, output, overrides, gpu_id):
        calls.append({"config": config, "output": wanted(output), "gpu_id": gpu_id, **overrides})
        (output / "train.log").write_text("log")
        for name in ("model-best", "model-last"):
            (output / name).mkdir()
            (output / name / "meta.json").write_text(
                json.dumps({"performance": {"ents_f": overrides.get("training.max_steps", 0) / 100}})
            )
            (output / name / "config.cfg").write_text(SCORES)

    trainings_by(fake, monkeypatch)
    return calls


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.spacy"
    write_docs(path, [make_doc(NLP, f"{text} {i}", entities) for i in range(5) for text, entities in SENTENCES])
    return path


def paths(gold):
    return {"paths.train": str(gold), "paths.dev": str(gold)}


def train_one(config, output, overrides):
    return train_all([Training(config, output, overrides)])[0]


# One training


def test_a_finished_training_is_skipped(tmp_path, gold, trainings):
    first = train_one(CONFIG, tmp_path / "a", {**paths(gold), "training.max_steps": 30})
    again = train_one(CONFIG, tmp_path / "a", {**paths(gold), "training.max_steps": 30})
    assert len(trainings) == 1
    assert (first.skipped, again.skipped) == (False, True)
    assert first.score == again.score == pytest.approx(0.3)
    report = json.loads((tmp_path / "a" / "trained.json").read_text())["report"]
    assert report["corpora"]["paths.train"]["sentences"] == 5 * len(SENTENCES)


def test_whatever_it_is_made_from_makes_it_anew(tmp_path, gold, trainings):
    config = tmp_path / "c.cfg"
    config.write_text(CONFIG.read_text())

    def train(**more):
        return train_one(config, tmp_path / "a", {**paths(gold), **more}).skipped

    assert [train(), train()] == [False, True]
    assert [train(**{"training.max_steps": 3}), train(**{"training.max_steps": 3})] == [False, True]
    write_docs(gold, [make_doc(NLP, "Bob", [(0, 1, "PER")])])
    assert train(**{"training.max_steps": 3}) is False
    config.write_text(CONFIG.read_text().replace("dropout = 0.2", "dropout = 0.3"))
    assert train(**{"training.max_steps": 3}) is False


def test_files_that_any_setting_names_count(tmp_path, gold, trainings):
    pretrained = tmp_path / "pretrained.bin"
    skipped = []
    for contents in ("a", "b", "b"):
        pretrained.write_text(contents)
        overrides = {**paths(gold), "initialize.init_tok2vec": str(pretrained)}
        skipped.append(train_one(CONFIG, tmp_path / "a", overrides).skipped)
    assert skipped == [False, False, True]


def test_an_interrupted_training_begins_again(tmp_path, gold, trainings):
    train_one(CONFIG, tmp_path / "a", paths(gold))
    (tmp_path / "a" / "trained.json").unlink()
    (tmp_path / "a" / "model-best" / "old").touch()
    assert train_one(CONFIG, tmp_path / "a", paths(gold)).skipped is False
    assert not (tmp_path / "a" / "model-best" / "old").exists()
    (tmp_path / "a" / "trained.json").write_text("{")
    assert train_one(CONFIG, tmp_path / "a", paths(gold)).skipped is False


def test_folders_of_others_are_not_touched(tmp_path, gold, trainings):
    (tmp_path / "a" / "model-best").mkdir(parents=True)
    with pytest.raises(WeaknerError, match="WK300"):
        train_one(CONFIG, tmp_path / "a", paths(gold))
    with pytest.raises(WeaknerError, match="WK100"):
        train_one(tmp_path / "none.cfg", tmp_path / "b", paths(gold))
    assert not trainings
    # Nor are those of earlier trainings, until there are new ones.
    train_one(CONFIG, tmp_path / "b", paths(gold))
    anew = [Training(CONFIG, tmp_path / name, {**paths(gold), "training.max_steps": 7}) for name in ("b", "a")]
    with pytest.raises(WeaknerError, match="WK300"):
        train_all(anew)
    assert (tmp_path / "b" / "model-last").exists() and train_one(CONFIG, tmp_path / "b", paths(gold)).skipped


@pytest.mark.parametrize("steps, shares", [(80, [0.0, 0.0, 0.0, 0.25]), (0, [0.0] * 4)])
def test_a_training_tells_how_far_it_has_come(tmp_path, gold, monkeypatch, steps, shares):
    table = "E    #       LOSS CRF_NER  ENTS_F  SCORE\n---  ------  ------------  ------  ------\n"
    rows = ["  0       0          9.54    0.00    0.00\n", "  3      20          2.03   50.00    0.50\n"]
    seen = []

    class Bar:
        done = 0.0

        def update(self, n):
            self.done += n
            seen.append(self.done)

    class Pool(PoolHere):
        def each(self, function, arguments, names, on_poll):
            for text in ("ℹ Using CPU\n10 20 30 things", table, *rows):
                with (tmp_path / "a" / "train.log").open("a", encoding="utf-8") as file_:
                    file_.write(text)
                on_poll()
            yield from super().each(function, arguments, names, on_poll)

    trainings_by(lambda config, output, *_: (output / "model-last").mkdir(), monkeypatch)
    monkeypatch.setattr(training, "processes", lambda n, **_: nullcontext(Pool()))
    monkeypatch.setattr(training, "Progress", {None: lambda **_: nullcontext(Bar())})
    for expected in ([*shares, 1.0, 1.0], [1.0]):
        train_one(CONFIG, tmp_path / "a", {**paths(gold), "training.max_steps": steps})
        assert seen == expected
        seen.clear()


@pytest.mark.parametrize("options", ["", "--members 2", "--folds 2", "--grid training.max_steps=1,2"])
def test_warnings_of_trainings_are_shown_once(tmp_path, gold, trainings, monkeypatch, options):
    run = training._run

    def warns(gpu_id, job):
        made = run(gpu_id, job)
        (job.output / "train.log").write_text("a.py:3: UserWarning: [WK903] Too short.\n  warn(\n" * 2)
        return made

    monkeypatch.setattr(training, "_run", warns)
    for _ in range(2):  # also if they are finished
        result = invoke("train", CONFIG, tmp_path / "out", *options.split(), "--paths.train", gold)
        assert result.exit_code == 0, result.output
        assert result.output.count("[WK903] Too short.\n") == 1


def test_a_process_shows_the_warnings_of_each_training(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy.cli.train.train", lambda *_, **__: warnings.warn("[WK903]", stacklevel=1))
    (tmp_path / "train.log").touch()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(2):
            training._run(-1, Training(CONFIG, tmp_path, {}))
    assert len(shown) == 2


@pytest.mark.parametrize("gpu_id, error", [(99, "WK432.*99"), (-2, "WK005.*gpu_id")])
def test_a_gpu_that_is_not_there(tmp_path, gold, trainings, gpu_id, error):
    with pytest.raises(WeaknerError, match=error):
        train_all([Training(CONFIG, tmp_path / "a", paths(gold))], gpu_id=gpu_id)
    assert not trainings and not (tmp_path / "a").exists()


# Several trainings


@pytest.mark.parametrize(
    "processes, n, expected",
    # What is alone has all cores.
    [(1, 2, (1, None)), (2, 2, (2, 4)), (3, 3, (3, 2)), (20, 20, (20, 1)), (4, 1, (1, None)), (4, 2, (2, 4))],
)
def test_trainings_share_the_cores(tmp_path, gold, trainings, monkeypatch, processes, n, expected):
    monkeypatch.setattr(training.os, "cpu_count", lambda: 8)
    seen = []
    monkeypatch.setattr(training, "processes", lambda n, threads: seen.append((n, threads)) or nullcontext(PoolHere()))
    jobs = [Training(CONFIG, tmp_path / str(i), paths(gold)) for i in range(n)]
    assert [member.output.name for member in train_all(jobs, processes=processes)] == [str(i) for i in range(n)]
    assert seen == [expected]


# On a cluster


class Cluster(PoolHere):
    """One that does last things first."""

    def each(self, function, arguments, names, on_poll):
        for n in reversed(range(len(arguments))):
            yield n, function(arguments[n])


@pytest.fixture
def connections(monkeypatch):
    found = []

    @contextmanager
    def connected(address, folder, *, gpus, many_cores):
        assert many_cores and folder.is_dir()
        found.append((address, gpus))
        yield Cluster()

    monkeypatch.setattr(training, "connected", connected)
    monkeypatch.setattr(training, "require", lambda *names, **extras: None)
    return found


def test_folds_are_trained_on_a_cluster(tmp_path, gold, trainings, connections):
    here = train_folds(CONFIG, gold, tmp_path / "here", folds=3)
    there = train_folds(CONFIG, gold, tmp_path / "there", folds=3, ray="auto")
    assert [fold.docs for fold in here] == [fold.docs for fold in there]
    assert [fold.model for fold in there] == [tmp_path / "there" / f"model-{n}" / "model-last" for n in (1, 2, 3)]
    assert all(fold.skipped for fold in train_folds(CONFIG, gold, tmp_path / "there", folds=3, ray="auto"))
    assert len(trainings) == 6 and connections == [("auto", 0)]
    assert not list(tmp_path.rglob(".*"))


def test_one_gpu_each(tmp_path, gold, trainings, connections):
    jobs = [Training(CONFIG, tmp_path / "a", paths(gold))]
    (member,) = train_all(jobs, ray="h:1", gpu_id=3)
    assert trainings[0]["gpu_id"] == 0 and member == Trained(tmp_path / "a", member.score, False, member.made_from)
    assert connections == [("h:1", 1)]


def test_a_training_that_fails_ends_all(tmp_path, gold, trainings, connections, monkeypatch):
    stopped = []

    def fails(*_):
        raise WeaknerError("of no use")

    @contextmanager
    def connected(address, folder, **_):
        try:
            yield Cluster()
        finally:
            stopped.append(folder.is_dir())

    monkeypatch.setattr(training, "connected", connected)
    jobs = [Training(CONFIG, tmp_path / name, paths(gold)) for name in "ab"]
    trainings_by(fails, monkeypatch)
    with pytest.raises(WeaknerError, match="of no use"):
        train_all(jobs, ray="auto")
    assert stopped == [True] and not trainings


def test_a_finished_crossfit_survives_a_wrong_option(tmp_path, gold, trainings, connections):
    train_folds(CONFIG, gold, tmp_path / "out", folds=2)
    with pytest.raises(WeaknerError, match="WK331"):
        train_folds(CONFIG, gold, tmp_path / "out", folds=2, ray="auto", processes=2)
    assert len(read_folds(tmp_path / "out")) == 2


def test_settings_of_a_cluster(tmp_path, gold, trainings, connections):
    with pytest.raises(WeaknerError, match="WK331"):
        train_all([Training(CONFIG, tmp_path / "a", paths(gold))], ray="auto", processes=2)
    with pytest.raises(WeaknerError, match="WK100"):
        train_all([Training(tmp_path / "none.cfg", tmp_path / "a", paths(gold))], ray="auto")
    assert not trainings and not connections


# Folds


def test_every_sentence_is_held_out_once(tmp_path, gold, trainings):
    folds = train_folds(CONFIG, gold, tmp_path / "out", folds=3, overrides={"training.max_steps": 7}, seed=1)
    held_out = [[doc.text for doc in read_docs(fold.corpus, Vocab())] for fold in folds]
    everything = sorted(doc.text for doc in read_docs(gold, Vocab()))
    assert sorted(text for fold in held_out for text in fold) == everything
    assert [fold.docs for fold in folds] == [7, 7, 6]
    for call, texts in zip(trainings, held_out, strict=True):
        rest = [doc.text for doc in read_docs(call["paths.train"], Vocab())]
        assert sorted([*rest, *texts]) == everything
        # Nothing may be chosen by what is held out.
        assert call["paths.dev"] == call["paths.train"] and call["training.patience"] == 0
        assert call["training.max_steps"] == 7
    assert {fold.model.name for fold in folds} == {"model-last"}
    assert all(
        fold.skipped
        for fold in train_folds(CONFIG, gold, tmp_path / "out", folds=3, overrides={"training.max_steps": 7}, seed=1)
    )


def test_folds_are_found_again(tmp_path, gold, trainings):
    folds = train_folds(CONFIG, gold, tmp_path / "out", folds=2)
    assert read_folds(tmp_path / "out") == [(str(fold.model), fold.corpus) for fold in folds]
    for text in ("", "{}x", '[{"model": 1}]', "[3]"):
        (tmp_path / "out" / "folds.json").write_text(text)
        with pytest.raises(WeaknerError, match=r"WK206.*folds\.json"):
            read_folds(tmp_path / "out")
    with pytest.raises(WeaknerError, match=r"WK100.*train --folds"):
        read_folds(tmp_path)


def test_labels_in_one_sentence_alone(tmp_path, trainings):
    docs = [make_doc(NLP, f"sentence {i}", [(0, 1, "X")] if i == 0 else []) for i in range(9)]
    write_docs(tmp_path / "gold.spacy", docs)
    with pytest.raises(WeaknerError, match=r"WK361.*gold\.spacy"):
        train_folds(CONFIG, tmp_path / "gold.spacy", tmp_path / "out", folds=3)
    assert not trainings and not (tmp_path / "out").exists()


def test_gold_that_comes_by_another_way_is_refused(tmp_path, gold, trainings):
    strong_weak = CONFIG.parent / "crf_ner.strong_weak.cfg"
    for config, overrides in (
        (strong_weak, {"paths.strong": str(gold)}),
        (CONFIG, {"paths.train": str(gold)}),
        (CONFIG, {"corpora.train.path": str(gold)}),
    ):
        with pytest.raises(WeaknerError, match="WK364"):
            train_folds(config, gold, tmp_path / "out", folds=2, overrides=overrides)
    assert not trainings
    # The config may name the gold where each fold is put.
    config = tmp_path / "own.cfg"
    config.write_text(CONFIG.read_text().replace("train = null", f'train = "{gold.as_posix()}"'))
    assert len(train_folds(config, gold, tmp_path / "out", folds=2)) == 2


def test_folds_of_an_interrupted_run_are_none(tmp_path, gold, trainings, monkeypatch):
    train_folds(CONFIG, gold, tmp_path / "out", folds=3)

    def fail(config, output, overrides, gpu_id):
        raise WeaknerError("stopped")

    trainings_by(fail, monkeypatch)
    with pytest.raises(WeaknerError, match="stopped"):
        train_folds(CONFIG, gold, tmp_path / "out", folds=3, seed=5)
    with pytest.raises(WeaknerError, match="WK100"):
        read_folds(tmp_path / "out")


def test_folds_that_were_changed_since(tmp_path, gold, trainings):
    found = train_folds(CONFIG, gold, tmp_path / "out", folds=3)
    write_docs(found[0].corpus, list(read_docs(gold, Vocab())))
    with pytest.raises(WeaknerError, match="WK367"):
        read_folds(tmp_path / "out")


def test_the_index_tells_one_run_from_another(tmp_path, gold, trainings):
    train_folds(CONFIG, gold, tmp_path / "out", folds=2)
    first = (tmp_path / "out" / "folds.json").read_text()
    train_folds(CONFIG, gold, tmp_path / "out", folds=2, overrides={"training.max_steps": 7})
    assert (tmp_path / "out" / "folds.json").read_text() != first


def test_other_gold_chooses_the_checkpoint(tmp_path, gold, trainings):
    write_docs(tmp_path / "dev.spacy", [make_doc(NLP, "Bob", [(0, 1, "PER")])])
    folds = train_folds(CONFIG, gold, tmp_path / "out", folds=2, dev=tmp_path / "dev.spacy")
    assert {fold.model.name for fold in folds} == {"model-best"}
    assert {call["paths.dev"] for call in trainings} == {str(tmp_path / "dev.spacy")}
    # The gold itself would let the fold that is held out choose.
    for dev in (gold, gold.parent):
        with pytest.raises(WeaknerError, match=r"WK364.*paths\.dev"):
            train_folds(CONFIG, gold, tmp_path / "out", folds=2, dev=dev)


def test_too_few_sentences_for_the_folds(tmp_path, gold, trainings):
    with pytest.raises(WeaknerError, match=r"WK361.*20 sentences.*21 folds"):
        train_folds(CONFIG, gold, tmp_path / "out", folds=21)
    with pytest.raises(WeaknerError, match=r"WK005.*folds"):
        train_folds(CONFIG, gold, tmp_path / "out", folds=1)
    assert not (tmp_path / "out").exists()


# Sweeps


def test_the_best_of_all_combinations(tmp_path, gold, trainings):
    grid = {"training.max_steps": [10, 30, 20], "training.dropout": [0.1, 0.2]}
    report = train_grid(CONFIG, tmp_path / "out", grid, overrides=paths(gold))
    assert len(trainings) == len(report.trials) == 6
    assert report.best.settings == {"training.max_steps": 30, "training.dropout": 0.1}
    assert report.model == tmp_path / "out" / "model-best"
    assert json.loads((report.model / "meta.json").read_text())["performance"]["ents_f"] == 0.3
    rows = json.loads((tmp_path / "out" / "grid.json").read_text())["scores"]
    assert [row["score"] for row in rows] == pytest.approx([0.1, 0.1, 0.3, 0.3, 0.2, 0.2])
    assert [row["best"] for row in rows].index(True) == 2
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    again = train_grid(CONFIG, tmp_path / "out", {**grid, "training.max_steps": [10, 30, 40]}, overrides=paths(gold))
    assert len(trainings) == 8 and again.best.settings["training.max_steps"] == 40
    assert json.loads((report.model / "meta.json").read_text())["performance"]["ents_f"] == 0.4


def test_a_grid_goes_on_where_the_copy_of_the_best_failed(tmp_path, gold, trainings, monkeypatch):
    grid = {"training.max_steps": [10, 30]}
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(module, "write_text", full_disk)
        train_grid(CONFIG, tmp_path / "out", grid, overrides=paths(gold))
    assert train_grid(CONFIG, tmp_path / "out", grid, overrides=paths(gold)).best.settings["training.max_steps"] == 30
    assert len(trainings) == 2


def full_disk(*args):
    raise OSError("full")


def test_settings_whose_last_names_are_the_same(tmp_path, gold, trainings):
    grid = {"system.seed": [1], "training.seed": ["a/b", "a_b"]}
    train_grid(CONFIG, tmp_path / "out", grid, overrides=paths(gold))
    folders = [call["output"] for call in trainings]
    assert {folder.parent for folder in folders} == {tmp_path / "out"} and len({*folders}) == 2


def test_names_of_folders_are_never_too_long(tmp_path, gold, trainings):
    grid = {"paths.vectors": ["x" * 300, "x" * 301]}
    train_grid(CONFIG, tmp_path / "out", grid, overrides=paths(gold))
    assert len({call["output"] for call in trainings}) == 2


def test_pipelines_of_others_are_not_replaced(tmp_path, gold, trainings):
    (tmp_path / "out" / "model-best").mkdir(parents=True)
    with pytest.raises(WeaknerError, match="WK300"):
        train_grid(CONFIG, tmp_path / "out", {"training.max_steps": [1]}, overrides=paths(gold))
    assert not trainings


def test_settings_that_the_config_does_not_have(tmp_path, gold, trainings):
    with pytest.raises(WeaknerError, match=r"WK364.*max_stepz"):
        train_grid(CONFIG, tmp_path / "out", {"training.max_stepz": [1]}, overrides=paths(gold))
    with pytest.raises(WeaknerError, match=r"WK108.*nowhere"):
        train_one(CONFIG, tmp_path / "a", {**paths(gold), "nowhere.max_steps": 1})


def test_unusable_grids(tmp_path, gold, trainings):
    for grid in ({}, {"training.max_steps": []}):
        with pytest.raises(WeaknerError, match=r"WK005.*grid"):
            train_grid(CONFIG, tmp_path / "out", grid)


def test_nothing_was_evaluated(tmp_path, gold, monkeypatch):
    def fake(config, output, overrides, gpu_id):
        (output / "train.log").touch()
        (output / "model-last").mkdir()

    trainings_by(fake, monkeypatch)
    with pytest.raises(WeaknerError, match="WK362"):
        train_grid(CONFIG, tmp_path / "out", {"training.max_steps": [1]}, overrides=paths(gold))


# Real trainings


@pytest.mark.slow
@pytest.mark.usefixtures("trained_here")
def test_folds_are_calibrated_together(tmp_path, gold):
    config = load_config(CONFIG)
    config["components"]["crf_ner"]["model"]["tok2vec"] = TOK2VEC
    config["training"]["batcher"]["size"] = 20
    config.to_disk(tmp_path / "small.cfg")
    overrides = {"training.max_steps": 20, "training.eval_frequency": 100, "nlp.lang": "xx", "system.seed": SEED}
    folds = train_folds(tmp_path / "small.cfg", gold, tmp_path / "out", folds=2, overrides=overrides)
    assert len(folds) == 2
    report = calibrate_confidence(read_folds(tmp_path / "out"))
    right = 0
    for fold in folds:
        nlp = load_model(fold.model)
        assert nlp.get_pipe("crf_ner").labels == ("LOC", "PER")
        for doc in read_docs(fold.corpus, nlp.vocab):
            right += weak.doc_entities(nlp(make_doc(nlp, doc.text, annotated=False))) == weak.doc_entities(doc)
    assert report.sentences == 20 and report.accuracy == pytest.approx(right / 20)


@pytest.mark.slow
def test_what_a_process_trained_before_changes_nothing(tmp_path, gold):
    overrides = {**paths(gold), "training.max_steps": 2, "training.eval_frequency": 1}
    others = {**overrides, "system.seed": 7}
    trainings = [Training(CONFIG, tmp_path / "a", others), Training(CONFIG, tmp_path / "b", overrides)]
    train_all(trainings, processes=1)
    train_one(CONFIG, tmp_path / "c", overrides)
    a, b, c = (
        {path.name: path.read_bytes() for path in sorted((tmp_path / name / "model-last" / "crf_ner").iterdir())}
        for name in "abc"
    )
    assert a != b and b == c
    logs = [(tmp_path / name / "train.log").read_text() for name in "abc"]
    assert all(log.count("Training pipeline") == 1 for log in logs)
    # A log names the folder of the result, not the hidden one that the training wrote to.
    assert all(str(tmp_path / name / "model-last") in log for name, log in zip("abc", logs, strict=True))


@pytest.mark.slow
def test_a_failing_training_shows_its_log_and_ends_the_others(tmp_path, gold):
    endless = Training(CONFIG, tmp_path / "b", {**paths(gold), "training.max_steps": 10**6, "training.patience": 0})
    fails = Training(CONFIG, tmp_path / "a", {**paths(gold), "components.crf_ner.scheme": "nosuch"})
    with pytest.raises(WeaknerError, match=r"^\[WK005\].*nosuch"):
        train_all([fails, endless], processes=2)
    # An error of the system that is none of the disk.
    sourced = Training(CONFIG, tmp_path / "c", {**paths(gold), "components.crf_ner": {"source": "nosuch_pipeline"}})
    with pytest.raises(WeaknerError, match=r"(?s)WK360.*nosuch_pipeline"):
        train_all([sourced])
    assert not active_children() and not list(tmp_path.rglob("trained.json")) and not list(tmp_path.rglob(".*"))
    assert "nosuch" in (tmp_path / "a" / "train.log").read_text()


def test_errors_of_users_are_their_own_message(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise WeaknerError("[WK100] Not found: nope.spacy. Check the path.")

    monkeypatch.setattr("spacy.cli.train.train", fail)
    (tmp_path / "train.log").touch()
    with pytest.raises(WeaknerError, match=r"^\[WK100\] Not found: nope"):
        training._run(-1, Training(CONFIG, tmp_path, {}))


def test_settings_keep_their_types(tmp_path, monkeypatch):
    given = {"paths.train": "2024", "paths.dev": "true", "training.max_steps": 3, "training.seed": None}
    found = []
    monkeypatch.setattr("spacy.cli.train.train", lambda *_, overrides, **__: found.append(overrides))
    (tmp_path / "train.log").touch()
    training._run(-1, Training(CONFIG, tmp_path, given))
    assert found == [given]


@pytest.mark.parametrize("before", [None, "yes"])
def test_logs_have_no_colors(tmp_path, monkeypatch, before):
    monkeypatch.delenv("ANSI_COLORS_DISABLED", raising=False)
    if before is not None:
        monkeypatch.setenv("ANSI_COLORS_DISABLED", before)
    monkeypatch.setattr(wasabi.msg, "show_color", True)
    found = []
    monkeypatch.setattr("spacy.cli.train.train", lambda *_, **__: found.append(wasabi.Printer(no_print=True).good("x")))
    (tmp_path / "train.log").touch()
    training._run(-1, Training(CONFIG, tmp_path, {}))
    assert os.environ.get("ANSI_COLORS_DISABLED") == before
    assert "\x1b" not in "".join(map(str, found))


def test_a_full_disk_ends_a_training_with_one_line(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(training, "_spacy_train", full)
    (tmp_path / "member-0").mkdir()
    (tmp_path / "member-0" / "train.log").touch()
    with pytest.raises(WeaknerError, match=r"WK785.*member-0 could not be written: No space left"):
        training._run(-1, Training(CONFIG, tmp_path / "member-0", {}))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_killed_run_still_writes_never_reaches_a_member(tmp_path, monkeypatch):
    config = tmp_path / "c.cfg"
    config.write_text("[training]\nmax_steps = 1\n")
    late = []

    def fake(config, output, overrides, gpu_id):
        assert output != tmp_path / "out" / "a" and wanted(output) == tmp_path / "out" / "a"
        (output / "model-last").mkdir()
        (output / "model-last" / "weights").write_text("half")
        if os.getpid() != pytest_process:
            (tmp_path / "late").write_text(str(output))
            os.kill(os.getpid(), signal.SIGKILL)
        late.append(Path((tmp_path / "late").read_text()))
        (output / "model-last" / "weights").write_text("whole")

    pytest_process = os.getpid()
    trainings_by(fake, monkeypatch)
    child = os.fork()
    if not child:
        train_one(config, tmp_path / "out" / "a", {})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (tmp_path / "out" / "a" / "model-last").exists()
    assert not train_one(config, tmp_path / "out" / "a", {}).skipped
    # The folder that a training of the killed run may still write to is gone, and was never that of the member.
    assert not late[0].exists() and late[0] != tmp_path / "out" / "a"
    assert train_one(config, tmp_path / "out" / "a", {}).skipped
    assert (tmp_path / "out" / "a" / "model-last" / "weights").read_text() == "whole"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]


def test_no_processes():
    with pytest.raises(WeaknerError, match=r"WK005.*processes"):
        train_all([], processes=0)


@pytest.mark.parametrize("how", ["override", "absolute", "config", "in the folder", "its folder", "through a variable"])
def test_gold_that_the_config_reads_by_itself_is_not_held_out(tmp_path, gold, trainings, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    relative, config, overrides, given = gold.relative_to(tmp_path), CONFIG, {}, gold.relative_to(tmp_path)
    if how == "override":
        overrides = {"initialize.init_tok2vec": str(relative)}
    elif how == "absolute":
        overrides = {"initialize.init_tok2vec": str(gold)}
    elif how == "its folder":
        overrides = {"corpora.dev.path": "."}
    elif how == "in the folder":
        (tmp_path / "many").mkdir()
        write_docs(tmp_path / "many" / "a.spacy", read_docs(gold, NLP.vocab))
        overrides, given = {"initialize.init_tok2vec": "many/a.spacy"}, tmp_path / "many"
    else:
        config = tmp_path / "c.cfg"
        value = str(gold) if how == "config" else "${paths.mine}"
        text = CONFIG.read_text().replace("[paths]", f'[paths]\nmine = "{relative}"', 1)
        config.write_text(f"{text}\n[corpora.other]\npath = {json.dumps(value) if how == 'config' else value}\n")
    with pytest.raises(WeaknerError, match="WK364"):
        train_folds(config, given, tmp_path / "out", folds=2, overrides=overrides)
    assert not trainings


def test_a_value_of_the_config_does_not_walk_the_disk(tmp_path, gold, trainings, monkeypatch):
    seen = []
    monkeypatch.setattr(inputs, "hash_path", lambda path: seen.append(str(path)) or "x")
    model = tmp_path / "bert"
    model.mkdir()
    (model / "config.json").write_text("{}")
    others: dict = {"nlp.tokenizer.sign": "/", "paths.root": "/"}
    others |= {"initialize.vectors": str(model), "initialize.init_tok2vec": str(tmp_path)}
    overrides = {**paths(gold), **others}
    values, resolved = (read(CONFIG, overrides) for read in (training.flat_config, training.resolved_config))
    training._made_from(values, resolved, inputs.Inputs())
    assert sorted(seen) == sorted([str(gold), str(model)])


def test_a_config_without_paths_is_trained(tmp_path, trainings):
    config = tmp_path / "c.cfg"
    config.write_text("[training]\nmax_steps = 1\n")
    assert not train_one(config, tmp_path / "out", {}).skipped
    assert train_one(config, tmp_path / "out", {}).skipped

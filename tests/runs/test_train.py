"""One training, for a number of passes over its corpus."""

import math

import pytest
import spacy

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runs.config import corpus_path
from spacy_weakner.runs.train import train

from ..command_line import trainings_by
from ..util import make_doc

NLP = spacy.blank("xx")
CONFIG = """
[paths]
train = null

[training]
max_steps = 900
eval_frequency = 100
max_epochs = {epochs}

[training.batcher]
@batchers = "spacy.batch_by_words.v1"
size = 10
"""


@pytest.fixture
def calls(monkeypatch):
    made = []

    def fake(config, output, overrides, gpu_id):
        made.append(dict(overrides))
        (output / "model-last").mkdir()
        (output / "train.log").write_text("log")

    trainings_by(fake, monkeypatch)
    return made


@pytest.fixture
def files(tmp_path):
    write_docs(
        tmp_path / "in.spacy", [make_doc(NLP, text) for text in ("one two three", "four") * 8]
    )  # 32 words, four batches
    (tmp_path / "c.cfg").write_text(CONFIG.format(epochs=0))
    return {"config": tmp_path / "c.cfg", "output": tmp_path / "out"}, {"paths.train": str(tmp_path / "in.spacy")}


def test_passes_become_updates(files, calls):
    given, paths = files
    assert not train(**given, passes=2.5, overrides=paths).skipped
    steps = {"max_steps": 10, "eval_frequency": 10, "patience": 0, "max_epochs": 0}
    assert calls == [{**paths, **{f"training.{name}": value for name, value in steps.items()}}]
    assert train(**given, passes=2.5, overrides=paths).skipped and len(calls) == 1
    # A part of a batch is a whole update, too, and there is at least one.
    for passes, size, updates in ((1.5, 10, 6), (0.1, 1000, 1), (5, 1000, 5)):
        train(**given, passes=passes, overrides={**paths, "training.batcher.size": size})
        assert calls.pop()["training.max_steps"] == updates
    train(**given, passes=1, overrides={**paths, "training.eval_frequency": 3})
    assert (calls[1]["training.max_steps"], calls[1]["training.eval_frequency"]) == (4, 3)


def test_passes_keep_the_shares_of_renewals_and_warm_up(files, calls):
    given, paths = files
    interval, warmup = "training.before_update.interval", "training.optimizer.learn_rate.warmup_steps"
    sections = "[training.before_update]\ninterval = 300\n[training.optimizer]\n[training.optimizer.learn_rate]\n"
    given["config"].write_text(f"{CONFIG.format(epochs=0)}\n{sections}warmup_steps = 90\n")
    for passes, overrides, expected in (
        (5, {}, (7, 2)),  # 20 updates instead of 900
        (0.1, {}, (1, 1)),
        (5, {interval: 0, warmup: 30}, (0, 30)),
        (5, {"training.before_update": None, "training.optimizer.learn_rate": 0.1}, (None, None)),
    ):
        train(**given, passes=passes, overrides={**paths, **overrides})
        assert tuple(map(calls.pop().get, (interval, warmup))) == expected
    train(**given, passes=5, overrides={**paths, "training.patience": 8})
    assert calls[0]["training.patience"] == 8


def test_passes_without_a_learning_rate_are_refused(files, calls):
    given, paths = files
    optimizer = '\n[training.optimizer]\n@optimizers = "Adam.v1"\nlearn_rate = 0.0\n'
    given["config"].write_text(CONFIG.format(epochs=0) + optimizer)
    with pytest.raises(WeaknerError, match=r"WK364.*learn_rate.*of 0"):
        train(**given, passes=2, overrides=paths)
    assert not calls


def test_without_passes_the_config_decides(files, calls):
    given, paths = files
    train(**given, overrides=paths)
    assert calls == [paths]


def test_passes_come_before_the_epochs_of_the_config(files, calls):
    given, paths = files
    given["config"].write_text(CONFIG.format(epochs=3))
    train(**given, passes=5, overrides=paths)
    assert (calls[0]["training.max_steps"], calls[0]["training.max_epochs"]) == (20, 0)


def test_a_corpus_that_is_named_by_a_variable(files, calls, tmp_path):
    given, _ = files
    named = CONFIG.format(epochs=0).replace("train = null", 'train = "${vars.folder}/in.spacy"\ndev = null')
    given["config"].write_text(f'[vars]\nfolder = "{tmp_path.as_posix()}"\n{named}')
    assert [train(**given, passes=1).skipped for _ in range(2)] == [False, True]
    assert calls[0]["training.max_steps"] == 4
    assert corpus_path(given["config"], {"paths.dev": "${paths.train}"}, "paths.dev") == tmp_path / "in.spacy"
    write_docs(tmp_path / "in.spacy", [make_doc(NLP, "other words")] * 20)
    assert not train(**given).skipped


def test_settings_that_spacy_would_ignore(files, calls):
    given, paths = files
    for key in ("training.max_stps", "system.sed"):
        with pytest.raises(WeaknerError, match=f"WK364.*{key}"):
            train(**given, overrides={**paths, key: 2})
    # spaCy has this one, though the config does not.
    train(**given, overrides={**paths, "training.accumulate_gradient": 2})
    assert len(calls) == 1


def test_a_stream_has_no_epochs(files, calls):
    given, paths = files
    given["config"].write_text(CONFIG.format(epochs=-1))
    train(**given, passes=1, overrides=paths)
    assert "training.max_epochs" not in calls[0]


@pytest.mark.parametrize(
    "passes, overrides, message",
    [
        *((passes, {}, "WK005.*passes") for passes in (0, -1, math.inf, math.nan)),
        (2, {"training.batcher.@batchers": "spacy.batch_by_sequence.v1"}, "WK364.*by_sequence"),
        (2, {"training.batcher.size": {"@schedules": "compounding.v1"}}, "WK364.*training.batcher.size 1000"),
        (2, {"training.max_steps": 3}, "WK331.*max_steps"),
        (2, {"training.max_epochs": 3}, "WK331.*max_epochs"),
        (2, {"paths.train": None}, "WK364.*--paths.train"),
        (2, {"paths.train": "nowhere.spacy"}, "nowhere.spacy"),
    ],
)
def test_errors_come_before_the_training(files, calls, passes, overrides, message):
    given, paths = files
    with pytest.raises(WeaknerError, match=message):
        train(**given, passes=passes, overrides={**paths, **overrides})
    assert not calls
    assert not given["output"].exists()

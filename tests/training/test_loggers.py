"""The log of a training as JSON lines."""

import io
import json

import pytest
import spacy
from spacy.training.loggers import console_logger

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import GOLD_GROUP, set_group
from spacy_weakner.training.loggers import make_statistics_logger

from ..util import SENTENCES, loop_config, make_doc, run_loop


class Counter:
    """A component that counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self, doc):
        return doc

    def training_statistics(self):
        self.asked += 1
        return {"asked": float(self.asked)}


@pytest.fixture
def nlp():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    return nlp


def info(step=2, **changes):
    return {"step": step, "epoch": 1, "score": 0.5, "losses": {"a": 1.5, "b": 0}, "other": object(), **changes}


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def spy_logger(calls):
    def setup(nlp, *streams, **named):
        calls.append(("setup", streams, named))
        return lambda info: calls.append(("log", info)), lambda: calls.append(("close",))

    return setup


def run(tmp_path, name, settings):
    logger = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
    training = {
        "max_steps": 6,
        "eval_frequency": 2,
        "batcher": {"@batchers": "spacy.batch_by_sequence.v1", "size": 4, "get_length": None},
        "before_update": {"@callbacks": "spacy_weakner.TrainingClock.v1", "total_steps": 6},
        "logger": {
            "@loggers": "spacy_weakner.StatisticsLogger.v1",
            "path": str(tmp_path / "logs" / "rows.jsonl"),
            "logger": logger,
        },
    }
    config, docs = loop_config(tmp_path, {name: settings}, training=training), []
    for text, entities in SENTENCES:
        doc = make_doc(spacy.blank("xx"), text, entities[:1])
        set_group(doc, GOLD_GROUP, entities)
        docs.append(doc)
    write_docs(tmp_path / "a.spacy", docs)
    _, printed = run_loop(config)
    return read(tmp_path / "logs" / "rows.jsonl"), printed


def sampling(name):
    return {"sampler": {"@misc": f"spacy_weakner.{name}.v1"}}


@pytest.mark.parametrize("sampler", ["AllNegatives", "UniformNegativeSampler", "WeightedNegativeSampler"])
def test_rows_at_each_evaluation_with_losses_and_statistics(tmp_path, sampler):
    rows, printed = run(tmp_path, "span_ner", sampling(sampler))
    assert [row["step"] for row in rows] == [0, 2, 4, 6]
    assert all({*row} == {"step", "epoch", "score", "losses", "span_ner"} for row in rows)
    assert all(row["losses"]["span_ner"] > 0 and 0 <= row["score"] <= 1 for row in rows)
    assert all({*row["span_ner"]} == {"negatives", "missampling_rate", "uncertainty"} for row in rows)
    assert all(row["span_ner"]["negatives"] > 0 for row in rows)
    assert "LOSS SPAN_NER" in printed


def test_statistics_are_those_since_the_last_row(tmp_path):
    rows, _ = run(tmp_path, "span_ner", sampling("AllNegatives"))
    # All four sentences in every step: 15 + 10 + 10 + 1 spans, of which three are shown and two hidden.
    assert [row["span_ner"]["negatives"] for row in rows] == [33, 66, 66, 66]
    assert [row["span_ner"]["missampling_rate"] for row in rows] == pytest.approx([2 / 33] * 4)


def test_with_a_component_without_statistics(tmp_path):
    rows, printed = run(tmp_path, "crf_ner", {})
    assert [row["step"] for row in rows] == [0, 2, 4, 6]
    assert all({*row} == {"step", "epoch", "score", "losses"} for row in rows)
    assert "LOSS CRF_NER" in printed


def test_steps_without_an_evaluation_write_and_read_nothing(nlp, tmp_path):
    counter = Counter()
    nlp._components.append(("counter", counter))
    log, close = make_statistics_logger(tmp_path / "rows.jsonl", spy_logger([]))(nlp)
    for given in (None, info(2), None, None, info(4), None):
        log(given)
    close()
    assert read(tmp_path / "rows.jsonl") == [
        {"step": step, "epoch": 1, "score": 0.5, "losses": {"a": 1.5, "b": 0.0}, "counter": {"asked": asked}}
        for step, asked in ((2, 1.0), (4, 2.0))
    ]


def test_rows_can_be_read_while_the_training_runs(nlp, tmp_path):
    log, close = make_statistics_logger(tmp_path / "rows.jsonl", spy_logger([]))(nlp)
    log(info(2))
    assert [row["step"] for row in read(tmp_path / "rows.jsonl")] == [2]
    close()


def test_the_logger_inside_gets_everything(nlp, tmp_path):
    calls, out = [], io.StringIO()
    log, close = make_statistics_logger(tmp_path / "rows.jsonl", spy_logger(calls))(nlp, out, stderr=out)
    given = info()
    log(None)
    log(given)
    close()
    assert calls == [("setup", (out,), {"stderr": out}), ("log", None), ("log", given), ("close",)]


def test_folders_are_made_and_an_earlier_file_is_replaced(nlp, tmp_path):
    path = tmp_path / "a" / "b" / "rows.jsonl"
    for step in (1, 2):
        log, close = make_statistics_logger(path, console_logger())(nlp, io.StringIO(), io.StringIO())
        log(None)
        close()
        log, close = make_statistics_logger(path, spy_logger([]))(nlp)
        log(info(step))
        close()
    assert [row["step"] for row in read(path)] == [2]

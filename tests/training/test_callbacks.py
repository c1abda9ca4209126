"""Several callbacks in one section."""

import pytest
import spacy
from confection import Config

from spacy_weakner.joint.plateau import ReduceOnPlateau
from spacy_weakner.training.callbacks import Callbacks
from spacy_weakner.training.clock import TrainingClock

from ..util import loop_config, run_loop

CONFIG = """
[it]
@callbacks = "spacy_weakner.Callbacks.v1"

[it.*.second]
@callbacks = "spacy_weakner.TrainingClock.v1"
total_steps = 4

[it.*.first]
@callbacks = "spacy_weakner.ReduceOnPlateau.v1"
"""


@pytest.mark.parametrize("config", [Config().from_str(CONFIG), Config().from_str(Config().from_str(CONFIG).to_str())])
def test_callbacks_keep_the_order_of_the_config(config):
    made = spacy.registry.resolve(config)["it"]
    assert [type(callback) for callback in made.callbacks] == [TrainingClock, ReduceOnPlateau]


def test_each_gets_the_pipeline_that_the_one_before_returned():
    one, other, calls = spacy.blank("xx"), spacy.blank("en"), []

    def replace(nlp, *more):
        calls.append((nlp, *more))
        return other

    def keep(nlp, *more):
        calls.append((nlp, *more))

    both = Callbacks(keep, replace, keep)
    assert both(one) is other
    assert calls == [(one,), (one,), (other,)]
    assert both(one, {"step": 1}) is other
    assert calls[3:] == [(one, {"step": 1}), (one, {"step": 1}), (other, {"step": 1})]
    assert Callbacks()(one) is one


def test_the_clock_and_the_plateau_in_one_training(tmp_path, monkeypatch):
    ticks, scores = [], []
    monkeypatch.setattr(ReduceOnPlateau, "report", lambda self, score: scores.append(score))
    monkeypatch.setattr("spacy_weakner.heads.head.TrainableHead.tick", lambda self, tick: ticks.append(tick.step))
    training = {
        "max_steps": 4,
        "eval_frequency": 1,
        "score_weights": {"ents_f": 1.0},
        "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.001},
        "before_update": {
            "@callbacks": "spacy_weakner.Callbacks.v1",
            "*": {
                "clock": {"@callbacks": "spacy_weakner.TrainingClock.v1", "total_steps": 4},
                "plateau": {"@callbacks": "spacy_weakner.ReduceOnPlateau.v1"},
            },
        },
    }
    run_loop(loop_config(tmp_path, {"crf_ner": {}}, training=training))
    assert ticks == [0, 1, 2, 3, 4] and scores

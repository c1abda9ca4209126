"""The learning rate follows the score on dev."""

from types import SimpleNamespace

import pytest
import spacy
from thinc.api import Adam, warmup_linear

from spacy_weakner.errors import WeaknerError
from spacy_weakner.joint.plateau import ReduceOnPlateau

from ..util import crf_pipeline, loop_config, make_examples, run_loop


class Loop:
    """What spaCy's loop does, with given scores in the place of evaluations."""

    def __init__(self, learn_rate=0.8, **settings):
        self.nlp, self.step, self.epoch = crf_pipeline(), 0, 0
        self.examples = make_examples(self.nlp)
        self.optimizer = Adam(learn_rate)
        self.plateau = ReduceOnPlateau(**settings)

    def update(self):
        self.plateau(self.nlp, {"step": self.step, "epoch": self.epoch})
        self.nlp.update(self.examples, sgd=False)
        self.nlp.get_pipe("crf_ner").finish_update(self.optimizer)
        self.step += 1

    def evaluate(self, score, name="ents_f"):
        self.update()
        self.nlp.meta["performance"] = {name: score, "ents_per_type": {}}

    def rates(self, scores):
        """The learning rate after each of some epochs with one evaluation."""
        found = []
        for score in scores:
            self.evaluate(score)
            self.epoch += 1
            self.update()
            found.append(self.optimizer.learn_rate)
        return found


def test_the_rate_is_halved_at_the_fourth_evaluation_without_a_better_score():
    assert Loop().rates([0.5, 0.5, 0.4, 0.5, 0.3, 0.3]) == [0.8, 0.8, 0.8, 0.8, 0.4, 0.4]


def test_a_better_score_begins_the_count_anew():
    scores = [0.5, 0.4, 0.4, 0.4, 0.6, 0.4, 0.4, 0.4, 0.4, 0.4]
    assert Loop().rates(scores) == [0.8] * 8 + [0.4] * 2


def test_what_a_model_hits_that_has_learned_nothing_does_not_count():
    assert Loop(patience=0).rates([0.003, 0.0, 0.002, 0.0, 0.5, 0.5]) == [0.8] * 5 + [0.4]


def test_after_a_cut_as_many_have_to_pass_again():
    assert Loop().rates([0.5] + [0.4] * 8) == [0.8] * 4 + [0.4] * 4 + [0.2]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"patience": 0}, [0.8, 0.4, 0.2, 0.1]),
        ({"patience": 1, "factor": 0.25}, [0.8, 0.8, 0.2, 0.2]),
        ({"patience": 0, "min_rate": 0.3}, [0.8, 0.4, 0.0, 0.0]),
    ],
)
def test_settings(settings, expected):
    assert Loop(**settings).rates([0.5] * 4) == pytest.approx(expected)


def test_another_score():
    loop = Loop(score="cats_score", patience=0)
    for loop.epoch in range(2):
        loop.evaluate(0.1, "cats_score")
    loop.epoch = 2
    loop.update()
    assert loop.optimizer.learn_rate == 0.4


def simulate(n_sentences, eval_frequency=7, max_epochs=100):
    """The epoch in which the rate reaches 0, if scores rise for 30 epochs; one batch has 32 sentences."""
    hooks = []
    pipe = SimpleNamespace(on_next_update=hooks.append)
    nlp = SimpleNamespace(pipeline=[("crf_ner", pipe)], meta={}, config={"training": {"max_epochs": max_epochs}})
    plateau, optimizer, n_batches = ReduceOnPlateau(), Adam(0.001), -(-n_sentences // 32)
    for step in range(100 * n_batches):
        plateau(nlp, {"step": step, "epoch": step // n_batches if max_epochs >= 0 else 0})
        if step == 0:
            hooks.pop()(optimizer)
        if optimizer.learn_rate == 0.0:
            return step // n_batches
        if step % eval_frequency == 0:
            nlp.meta["performance"] = {"ents_f": min(0.6, 0.1 + step / n_batches / 60)}
    raise AssertionError("never")


@pytest.mark.parametrize("n_sentences, eval_frequency", [(1000, 7), (1000, 32), (3000, 7), (3000, 94), (10_000, 100)])
def test_the_schedule_does_not_depend_on_the_amount_of_gold(n_sentences, eval_frequency):
    assert simulate(200) == 58  # 30 epochs of better scores, and 7 times 4 without
    assert abs(simulate(n_sentences, eval_frequency) - simulate(200)) <= 1


def test_of_a_stream_all_scores_count():
    # It has one epoch, as far as spaCy knows.
    assert simulate(3000, max_epochs=-1) < 35


def test_scores_of_one_epoch_count_once():
    loop = Loop(patience=0)
    for score in [0.5, 0.4, 0.3, 0.2]:
        loop.evaluate(score)
    loop.update()
    assert loop.optimizer.learn_rate == 0.8


def test_steps_between_evaluations_do_not_count():
    loop = Loop(patience=0)
    loop.evaluate(0.5)
    for _ in range(5):
        loop.update()
    assert loop.optimizer.learn_rate == 0.8


def test_scores_of_an_earlier_training_do_not_count():
    loop = Loop(patience=0)
    loop.nlp.meta["performance"] = {"ents_f": 1.0}
    assert loop.rates([0.5, 0.6]) == [0.8, 0.8]


def test_a_new_training_begins_anew():
    loop = Loop(patience=0)
    loop.rates([0.5, 0.4])
    loop.step, loop.epoch, loop.optimizer = 0, 0, Adam(0.8)
    assert loop.rates([0.1, 0.2, 0.2]) == [0.8, 0.8, 0.4]


# What cannot be


@pytest.mark.parametrize("performance", [{"cats_score": 1.0, "ents_per_type": {}}, {"ents_f": None}])
def test_a_score_that_is_not_there(performance):
    loop = Loop()
    loop.update()
    loop.nlp.meta["performance"] = performance
    with pytest.raises(ValueError, match=r"'ents_f'.*score_weights"):
        loop.update()


def test_a_learning_rate_that_follows_a_schedule():
    loop = Loop()
    loop.optimizer = Adam(warmup_linear(0.1, 2, 10))
    with pytest.raises(ValueError, match=r"schedule.*'learn_rate' .* to a number"):
        loop.update()


def test_no_component_that_knows_the_optimizer():
    nlp, plateau = spacy.blank("xx"), ReduceOnPlateau()
    plateau(nlp, {"step": 0, "epoch": 0})
    nlp.meta["performance"] = {"ents_f": 0.5}
    with pytest.raises(ValueError, match=r"no component"):
        plateau(nlp, {"step": 1, "epoch": 0})


@pytest.mark.parametrize("settings", [{"factor": 1.5}, {"factor": -1.0}, {"patience": -1}, {"min_rate": -1.0}])
def test_settings_that_cannot_be(settings):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{next(iter(settings))}'"):
        ReduceOnPlateau(**settings)


# In spaCy's own loop


@pytest.mark.parametrize(
    "settings, expected",
    [
        # Nothing is learned at such rates, so that no score is better than the first.
        ({"patience": 0}, [1e-12, 5e-13, 2.5e-13]),
        ({"patience": 1}, [1e-12, 1e-12, 5e-13]),
        ({"patience": 0, "min_rate": 4e-13}, [1e-12, 5e-13, 0.0]),
    ],
)
def test_in_a_training(tmp_path, monkeypatch, settings, expected):
    rates = []
    report = ReduceOnPlateau.report

    def spy(self, score):
        report(self, score)
        rates.append(self.optimizer.learn_rate)

    monkeypatch.setattr(ReduceOnPlateau, "report", spy)
    training = {
        "max_steps": 6,
        "eval_frequency": 2,
        "score_weights": {"ents_f": 1.0},
        "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 1e-12, "L2": 0.0},
        "before_update": {"@callbacks": "spacy_weakner.ReduceOnPlateau.v1", "factor": 0.5, **settings},
    }
    run_loop(loop_config(tmp_path, {"crf_ner": {}}, training=training))
    assert rates == pytest.approx(expected)

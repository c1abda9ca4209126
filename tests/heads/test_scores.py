"""Scores of an evaluation of heads of entities, and those of entities."""

import numpy
import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import log_softmax

from ..util import ENTITY_HEADS, GOLD, TEXTS, distributions, entities_of, loss_with, make_example, make_examples, raw
from .util import TALKATIVE, examples, stir


@pytest.fixture(scope="module", params=ENTITY_HEADS)
def head(request):
    return request.param


def test_the_scorer_is_used(trained):
    scores = trained.evaluate(make_examples(trained))
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == (1.0, 1.0, 1.0)
    assert {*scores["ents_per_type"]} == {"LOC", "PER"}


def test_false_entities_of_sentences_without_any_count(trained):
    scores = trained.evaluate([make_example(trained, "Bob"), make_example(trained, TEXTS[1], GOLD[1])])
    assert (scores["ents_p"], scores["ents_r"]) == (pytest.approx(2 / 3), 1.0)


def test_scores_are_probabilities(load, head):
    nlp = load(**TALKATIVE[head])
    for text, gold in zip(TEXTS, GOLD, strict=True):
        scores = [ent._.weakner_score for ent in nlp(raw(nlp, text)).ents]
        assert len(scores) == len(gold)
        assert all(type(score) is float and 0.5 < score <= 1.0 for score in scores)


def test_temperature_changes_scores_but_not_entities(load, head):
    nlp = load(**TALKATIVE[head])
    before = [ent._.weakner_score for ent in nlp(raw(nlp, TEXTS[0])).ents]
    nlp.get_pipe(head).set_temperature(10.0)
    after = [ent._.weakner_score for ent in nlp(raw(nlp, TEXTS[0])).ents]
    assert max(after) < min(before)
    assert entities_of(nlp, TEXTS) == GOLD


@pytest.mark.parametrize("temperature", [0.05, 0.5, 2.0, 20.0])
def test_temperature_changes_no_entity_of_an_untrained_head(nlp, ner, head, temperature):
    stir(nlp, head)
    texts = ["Anna went to New York and back again", "Bob Smith likes Paris more than Rome", "a b c d e f g"]
    before = entities_of(nlp, texts)
    ner.set_temperature(temperature)
    assert entities_of(nlp, texts) == before
    assert any(before)


# The bias: what is added to the scores of "O" in prediction


UNSEEN = ["Anna went to New York and back again", "Bob Smith likes Paris more than Rome", "a b c d e f g", "Rome", ""]
# More than any score of these models.
ALL = 1000.0


def test_far_above_zero_nothing_is_found_and_zero_changes_nothing(trained, head):
    for bias, expected in ((ALL, [[] for _ in TEXTS]), (0.0, GOLD)):
        trained.get_pipe(head).set_bias(bias)
        assert entities_of(trained, TEXTS) == expected


def test_far_below_zero_every_token_is_in_an_entity(nlp, ner, head):
    stir(nlp, head)
    ner.set_bias(-ALL)
    assert all(token.ent_type for doc in nlp.pipe(UNSEEN) for token in doc)


def test_what_would_be_found_is_what_is_found(nlp, ner, head):
    stir(nlp, head)
    ner.set_bias(0.25)
    biases = [-3.0, -0.5, 0.0, 0.5, 3.0]
    found = ner.entities_under([nlp.make_doc(text) for text in UNSEEN], biases)
    assert ner.bias == 0.25
    for i, bias in enumerate(biases):
        ner.set_bias(bias)
        assert [own[i] for own in found] == entities_of(nlp, UNSEEN)
    assert len({str([own[i] for own in found]) for i in range(len(biases))}) > 1


def test_it_is_no_part_of_the_training(nlp, ner, head):
    stir(nlp, head)
    batch = examples(nlp)
    outputs = ner.model.predict(ner.model_inputs([eg.predicted for eg in batch]))

    def learn():
        numpy.random.seed(0)
        loss, gradient = loss_with(ner, batch, outputs)
        return loss, [ner.model.ops.to_numpy(own).copy() for own in gradient]

    before, slope = learn()
    ner.set_bias(2.0)
    after, same_slope = learn()
    assert after == before
    assert all(map(numpy.array_equal, slope, same_slope))


def test_scores_are_still_probabilities_of_what_is_said(load, head):
    """Less is believed of entities under a bias against them; temperatures cool the biased scores."""
    nlp = load(**TALKATIVE[head])
    before = [ent._.weakner_score for ent in nlp(raw(nlp, TEXTS[0])).ents]
    nlp.get_pipe(head).set_bias(0.5)
    after = [ent._.weakner_score for ent in nlp(raw(nlp, TEXTS[0])).ents]
    assert all(0.0 < new < old <= 1.0 for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("bias", [float("nan"), float("inf"), float("-inf"), 1e39])
def test_it_must_be_a_number(ner, bias):
    with pytest.raises(WeaknerError, match=r"WK005.*bias"):
        ner.set_bias(bias)
    assert ner.bias == 0.0


def test_initializing_forgets_what_was_calibrated(trained, head):
    ner = trained.get_pipe(head)
    ner.set_bias(5.0)
    ner.set_temperature(3.0)
    batch = examples(trained)
    ner.initialize(lambda: batch, nlp=trained)
    assert (ner.bias, ner.temperature) == (0.0, 1.0)


@pytest.mark.parametrize(
    "damage", [{"bias": "x"}, {"bias": None}, {"bias": "inf"}, {"temperature": 0}, {"temperature": [1]}]
)
def test_damaged_calibration_is_refused(trained, head, damage):
    ner = trained.get_pipe(head)
    ner.cfg.update(damage)
    stored = ner.to_bytes()
    ner.cfg.update({"bias": 0.0, "temperature": 1.0})
    with pytest.raises(WeaknerError, match=rf"WK800.*{head}"):
        ner.from_bytes(stored)


def test_pipelines_of_older_versions_have_none(trained, head):
    ner = trained.get_pipe(head)
    del ner.cfg["bias"]
    stored = ner.to_bytes()
    ner.set_bias(0.0)
    ner.from_bytes(stored)
    assert ner.bias == 0.0


def test_it_is_added_to_the_score_of_outside(trained, head, monkeypatch):
    ner, doc = trained.get_pipe(head), trained.make_doc(TEXTS[0])
    ner.set_bias(0.75)
    (outputs,) = ner.model.predict(ner.model_inputs([doc]))
    if head == "span_ner":
        scores = ner.model.get_ref("head").predict((outputs, numpy.asarray([[0, 1]])))
        scores[:, 0] += 0.75
        expected = numpy.exp(log_softmax(scores))[0, 1:]
        found = {entity: score for entity, score in ner.score_candidates([doc])[0] if entity[:2] == (0, 1)}
        for label, probability in zip(ner.labels, expected, strict=True):
            assert found.get((0, 1, label), 0.0) == pytest.approx(probability if probability >= 0.05 else 0.0, abs=1e-5)
    elif head == "token_ner":
        outside = 1.0 / (1.0 + numpy.exp(outputs[:, 0] - 0.75))
        assert distributions(ner, [doc])[0][:, 0] == pytest.approx(outside, abs=1e-5)
    elif head == "mrc_ner":  # which has no such score: log-odds of starts and ends lose as much
        biased = ner.decode([doc], [outputs])
        scores = ner._scores([outputs])
        monkeypatch.setattr(ner, "_scores", lambda vectors: [own - 0.75 for own in scores])
        ner.set_bias(0.0)
        assert ner.decode([doc], [outputs]) == biased
    else:
        shifted = numpy.array(outputs)
        shifted[:, 0] += 0.75
        biased = ner.decode([doc], [outputs])
        ner.set_bias(0.0)
        assert ner.decode([doc], [shifted]) == biased

"""Scores of an evaluation of heads of entities, and those of entities."""

import pytest

from ..util import ENTITY_HEADS, GOLD, TEXTS, entities_of, make_example, make_examples, raw
from .util import TALKATIVE, stir


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


@pytest.mark.parametrize("temperature", [0.05, 20.0])
def test_temperature_changes_no_entity_of_an_untrained_head(nlp, ner, head, temperature):
    stir(nlp, head)
    texts = ["Anna went to New York and back again", "Bob Smith likes Paris more than Rome", "a b c d e f g"]
    before = entities_of(nlp, texts)
    ner.set_temperature(temperature)
    assert entities_of(nlp, texts) == before
    assert any(before)

"""What is trained, how long and with which settings."""

import pytest

from spacy_weakner.evaluation.terms.label_warnings import HARMFUL_PRECISION
from spacy_weakner.project.rules import PACES, choose_candidates, choose_settings

from .util import make_facts

LEARNED = {"gold alone": True, "linear with list": True, "transformer with list": True, "weak alone": True}
LISTED = {"term list": True, **LEARNED}
EVERYTHING = {**LISTED, "list and head": True}
LINEAR = {name: True for name in EVERYTHING if name != "transformer with list"}
BARE = {"gold alone": True, "transformer": True, "weak alone": True}


@pytest.mark.parametrize(
    "changes, wanted",
    [
        ({}, EVERYTHING),
        ({"lists": 0}, BARE),
        ({"lists": 3}, EVERYTHING),
        ({"size": "linear"}, LINEAR),
        ({"size": "linear", "lists": 0}, {"gold alone": True, "weak alone": True}),
        ({"size": "linear-static"}, LINEAR),
        ({"weak": False}, {**LISTED, "weak alone": False}),
        ({"text": 0}, {**LISTED, "weak alone": False}),
        ({"precision": HARMFUL_PRECISION - 0.1}, {**LISTED, "weak alone": False}),
        ({"precision": HARMFUL_PRECISION}, EVERYTHING),
        ({"precision": None}, EVERYTHING),
        ({"gold": 0}, {"term list": True, "weak alone": True, "list and head": True}),
        ({"gold": 0, "lists": 0}, {"weak alone": True}),
        ({"gold": 0, "weak": False}, {"term list": True}),
        ({"gold": 0, "weak": False, "lists": 0}, {}),
    ],
)
def test_candidates(changes, wanted):
    rules = choose_candidates(make_facts(**changes))
    assert {rule.name: rule.trained for rule in rules} == wanted
    assert all(rule.why for rule in rules)


@pytest.mark.parametrize("size", PACES)
def test_steps_grow_with_the_corpus_between_floor_and_ceiling(size):
    pace = PACES[size]
    ceiling = int(10 * 60 * pace.words_per_second / 1000)
    gold, mixed = [], []
    for words in (0, 100, 10**4, 10**5, 10**6, 10**9):
        settings, _ = choose_settings(make_facts(size=size, gold_words=words, text_words=words), 1000, 10)
        gold.append(settings.gold_steps)
        mixed.append(settings.text_steps)
    for steps, floor in ((gold, pace.gold_steps), (mixed, pace.text_steps)):
        assert steps == sorted(steps)
        assert steps[0] == min(floor, ceiling) and steps[-1] == ceiling
    assert settings.evaluations == pace.evaluations


def test_less_time_is_fewer_steps():
    steps = [choose_settings(make_facts(text_words=10**7), 1000, minutes)[0].text_steps for minutes in (0, 1, 2, 30)]
    assert steps == sorted(steps) and steps[0] == 1 and 2 * steps[1] == steps[2]


def test_the_more_a_list_finds_the_more_is_outside():
    def value(recall, **changes):
        return choose_settings(make_facts(recall=recall, **changes), 1000, 10)[0].negative_rate

    values = [value(float(x)) for x in range(0, 101, 5)]
    assert values == sorted(values)
    assert value(50.0) == value(0.0) == value(None) == 0.2 and value(80.0) == value(100.0) == 0.6
    assert value(65.0) == pytest.approx(0.4, abs=0.001)
    # Nobody knows better.
    assert value(None, gold=0) == 0.5


def test_notes_say_how_often_the_text_is_seen():
    _, notes = choose_settings(make_facts(gold_words=1000, text_words=20_000), 100, 10)
    assert notes[0] == "gold: 200 updates, 20 passes over 1,000 words"
    assert notes[1] == "text: 400 updates, 2.0 passes over 20,000 words"
    _, notes = choose_settings(make_facts(text_words=10**9), 100, 3)
    assert "limited to about 3 minutes" in notes[1] and "less than one" in notes[1] and "never used" in notes[1]


def test_notes_are_about_what_there_is():
    _, notes = choose_settings(make_facts(weak=False, text=0), 100, 10)
    assert len(notes) == 1 and notes[0].startswith("gold: ")
    _, notes = choose_settings(make_facts(gold=0), 100, 10)
    assert notes[0].startswith("text") and not any("gold" in note for note in notes)
    # A linear CRF is trained until it converges.
    _, notes = choose_settings(make_facts(size="linear"), 100, 10)
    assert notes == ["share of the missing tokens that are taken as 'O': 0.33"]

"""What is trained, how long, on which encoders and with which settings."""

import pytest

from spacy_weakner.evaluation.terms.label_warnings import HARMFUL_PRECISION
from spacy_weakner.project.rules import (
    F1,
    LINEAR_TEXTS,
    SIZES,
    SPEED,
    TOO_FEW,
    TRAINED,
    choose_candidates,
    choose_settings,
    combines_gold_alone,
    gold_size,
    head_with_lists,
    selects_for_speed,
    weak_size,
)

from .util import make_facts

LISTED = {"term list": True, "gold alone": True, "frozen with list": True, "weak alone": True}
EVERYTHING = {**LISTED, "list and head": True}
LINEAR = {name.replace("frozen", "linear"): True for name in EVERYTHING}
BARE = {"gold alone": True, "weak alone": True}


@pytest.mark.parametrize(
    "changes, wanted",
    [
        ({}, EVERYTHING),
        ({"lists": 0}, BARE),
        ({"lists": 3}, EVERYTHING),
        ({"size": "gpu"}, EVERYTHING),
        ({"size": "frozen"}, EVERYTHING),
        ({"size": "frozen", "lists": 0}, BARE),
        ({"size": "linear"}, LINEAR),
        ({"size": "linear", "lists": 0}, BARE),
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


@pytest.mark.parametrize(
    "changes, prefer, precision, is_fast",
    [
        ({}, SPEED, None, True),
        ({}, F1, None, True),
        ({}, F1, 0.9, False),
        ({"gold": TOO_FEW}, F1, None, False),
        ({"gold": 0}, F1, None, False),
        ({"size": "linear"}, F1, None, False),
        ({"text": 0}, F1, None, False),
        ({"chosen_by": "dev"}, F1, None, False),
    ],
)
def test_when_speed_decides(changes, prefer, precision, is_fast):
    facts = make_facts(**{"gold": TOO_FEW - 1, "size": "frozen", "chosen_by": "cross-validation", **changes})
    assert selects_for_speed(facts, prefer, precision) is is_fast


@pytest.mark.parametrize("size", SIZES)
def test_all_heads_on_gold_have_one_size(size):
    """A Transformer is trained on the text or not at all."""
    is_linear = size.startswith("linear")
    assert gold_size(size) == (size if is_linear else "frozen")
    assert weak_size(size) == ("linear" if size == "frozen" else size)
    assert head_with_lists(size) == ("linear with list" if is_linear else "frozen with list")
    assert combines_gold_alone(make_facts(size=size)) != is_linear
    assert combines_gold_alone(make_facts(size=size, lists=0)) and combines_gold_alone(
        make_facts(size=size, collected=True)
    )
    why = {rule.name: rule.why for rule in choose_candidates(make_facts(size=size))}
    assert ("frozen Transformer" in why["gold alone"]) != is_linear


def test_a_transformer_without_labels_to_learn_stays_as_it_is():
    for changes in ({"collected": True}, {"precision": HARMFUL_PRECISION - 1}, {"weak": False}):
        settings, notes = choose_settings(make_facts(size="transformer", **changes))
        assert settings.text_steps == 0 and "not trained" in notes[0]


def test_a_transformer_is_trained_on_weak_labels_alone():
    for size in SIZES:
        assert choose_settings(make_facts(size=size))[0].text_steps == TRAINED.get(size, 0)
        assert choose_settings(make_facts(size=size, weak=False, text=0))[0].text_steps == 0
    # More text is not read more often.
    assert choose_settings(make_facts(text=10**6)) == choose_settings(make_facts())


def test_the_more_a_list_finds_the_more_is_outside():
    def value(recall, **changes):
        return choose_settings(make_facts(recall=recall, **changes))[0].negative_rate

    values = [value(float(x)) for x in range(0, 101, 5)]
    assert values == sorted(values)
    assert value(50.0) == value(0.0) == value(None) == 0.2 and value(80.0) == value(100.0) == 0.6
    assert value(65.0) == pytest.approx(0.4, abs=0.001)
    # Nobody knows better.
    assert value(None, gold=0) == 0.5


def test_notes_are_about_what_there_is():
    rate = "share of the missing tokens that are taken as 'O': 0.33"
    _, notes = choose_settings(make_facts())
    assert notes == [
        f"text: the Transformer is trained on the weak labels in {TRAINED['transformer']} updates, and then frozen",
        rate,
    ]
    for size in SIZES:
        assert choose_settings(make_facts(size=size, weak=False, text=0))[1] == []
    # A linear CRF is trained until it converges, on what stays in memory.
    for size in ("linear", "linear-static", "frozen"):
        assert choose_settings(make_facts(size=size, text=LINEAR_TEXTS))[1] == [rate]
        _, (text, _) = choose_settings(make_facts(size=size, text=12345))
        assert text == "text: the linear CRF learns from the first 5,000 of 12,345 sentences"

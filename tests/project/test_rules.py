"""What is trained, how long, on which encoders and with which settings."""

import pytest

from spacy_weakner.evaluation.terms.label_warnings import HARMFUL_PRECISION
from spacy_weakner.project.rules import (
    LINEAR_TEXTS,
    SIZES,
    TRAINED,
    choose_candidates,
    choose_settings,
    gold_sizes,
    heads_on_gold,
    weak_size,
)

from .util import make_facts

LEARNED = {"gold alone": True, "linear with list": True, "frozen with list": True, "weak alone": True}
LISTED = {"term list": True, **LEARNED}
EVERYTHING = {**LISTED, "list and head": True}
LINEAR = {name: True for name in EVERYTHING if name != "frozen with list"}
BARE = {"gold alone": True, "linear": True, "weak alone": True}


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


@pytest.mark.parametrize("size", SIZES)
def test_a_transformer_is_shared_by_all_heads_but_one(size):
    """There is a linear CRF in any case; a Transformer is trained on the text or not at all."""
    alone = {"linear-static": "linear-static"}.get(size, "linear")
    frozen = [] if size.startswith("linear") else ["frozen"]
    assert gold_sizes(size) == [alone, *frozen]
    assert weak_size(size) == (size if size in TRAINED else alone)
    # All of them read the list where there is one; without it, the head that they share with "gold alone" is not needed
    # twice.
    assert heads_on_gold(make_facts(size=size)) == {
        alone: "linear with list",
        **dict.fromkeys(frozen, "frozen with list"),
    }
    assert heads_on_gold(make_facts(size=size, lists=0)) == ({"linear": "linear"} if frozen else {})
    why = {rule.name: rule.why for rule in choose_candidates(make_facts(size=size))}
    assert ("frozen Transformer" in why["gold alone"]) == bool(frozen)


def test_a_transformer_is_trained_on_weak_labels_alone():
    for size in SIZES:
        assert choose_settings(make_facts(size=size))[0].text_steps == TRAINED.get(size, 0)
        assert choose_settings(make_facts(size=size, weak=False, text=0))[0].text_steps == 0
    # More text is not read more often.
    assert choose_settings(make_facts(text=10**6, text_words=10**8)) == choose_settings(make_facts())


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

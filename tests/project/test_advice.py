"""The learning curve, and what would help most next."""

import pytest

from spacy_weakner.project.advice import advise
from spacy_weakner.project.curve import next_gain

from .util import make_facts

PIECES = "A Transformer's vectors of word pieces in the linear CRF"


def curve(*f1):
    return [{"sentences": 25.0 * 2**i, "f1": value} for i, value in enumerate(f1)]


@pytest.mark.parametrize(
    "f1, gain",
    [
        ((), None),
        ((50.0, 60.0), None),
        ((40.0, 60.0, 70.0), 9.0),
        ((40.0, 60.0, 60.0), 6.0),
        ((40.0, 60.0, 50.0), 3.0),
        ((60.0, 50.0, 60.0), 0.0),
        ((60.0, 50.0, 40.0), 0.0),
        ((40.0, 50.0, 70.0), 9.0),
        ((0.0, 40.0, 60.0, 70.0), 13.8),
    ],
)
def test_the_next_gain(f1, gain):
    assert next_gain(curve(*f1)) == (None if gain is None else pytest.approx(gain))


def first(facts, points=(), proposal=None, best=60.0, listed=0.0):
    texts = advise(facts, list(points), proposal, {"list": listed}, {"model": best})
    return [text.split(":")[0].split(" (")[0] for text in texts]


def test_the_most_helpful_comes_first():
    facts = make_facts(size="linear", recall=40.0)
    assert first(facts, curve(40.0, 60.0, 80.0))[0] == "More gold"
    assert first(facts, curve(49.0, 50.0, 51.0)) == ["More terms", PIECES, "More gold"]
    proposal = {"before": {"f1": 60.0}, "after": {"f1": 72.0}}
    assert first(facts, curve(49.0, 50.0, 51.0), proposal)[0] == "A cleaner term list"
    assert first(make_facts(gold=0))[0] == "Gold"


def test_nobody_is_told_what_he_has():
    for size in ("linear-static", "transformer", "gpu"):
        assert not any("Transformer" in text for text in first(make_facts(size=size)))
    assert any("term list" in text for text in first(make_facts(weak=False)))
    # Where next to nothing is missing, a Transformer brings next to nothing.
    assert first(make_facts(size="linear"), curve(97.0, 98.0, 99.0), best=99.0)[-1] == PIECES


def test_figures_are_named():
    (text, *_) = advise(make_facts(), curve(40.0, 60.0, 80.0), None, {}, {"gold alone": 80.0})
    assert "40.0 with 25, 60.0 with 50, 80.0 with 100 sentences" in text and "12.0 points" in text
    (text, *_) = advise(make_facts(size="gpu"), [], None, {}, {})
    assert "100 sentences are too few" in text


def test_what_cannot_pass_the_list_comes_last():
    proposal = {"before": {"f1": 84.0}, "after": {"f1": 85.0}}
    points = curve(20.0, 30.0, 40.0)
    # A cleaner list lifts what is packaged only as far as it is ahead.
    assert first(make_facts(), points, proposal, best=84.0)[-1] == "A cleaner term list"
    assert first(make_facts(), points, proposal, best=40.0, listed=84.0)[0] == "A cleaner term list"
    texts = advise(make_facts(), points, proposal, {"list": 84.0}, {"gold alone": 40.0})
    assert any("not enough to pass the term list" in text for text in texts)


def test_more_gold_comes_with_the_command_that_chooses_it():
    facts = make_facts(gold=100, text=50)
    texts = advise(facts, [], None, {}, {"gold alone": 50.0}, "spacy weakner suggest TEXT")
    assert sum(text.endswith("Which sentences: spacy weakner suggest TEXT") for text in texts) == 1

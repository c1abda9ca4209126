"""The learning curve, and what would help most next."""

import numpy
import pytest

from spacy_weakner.project.recommendations import Curve, make_curve, recommend

from .util import make_facts

FROZEN = "A frozen Transformer"
NOTHING = Curve([])


def counts(*f1, n=100):
    """Sentences of which so many percent are right, with one entity each."""
    right = numpy.asarray([[1, 0, 0]] * n), numpy.asarray([[0, 1, 1]] * n)
    return numpy.stack([numpy.where(numpy.arange(n)[:, None] < value, *right) for value in f1])


def curve(*f1):
    return make_curve([25.0 * 2**i for i in range(len(f1))], counts(*f1))


@pytest.mark.parametrize(
    "f1, gain",
    [
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
def test_what_twice_as_much_gold_may_bring(f1, gain):
    found = curve(*f1)
    assert [point["f1"] for point in found.points] == list(f1)
    assert found.gain == (None if gain is None else pytest.approx(gain))
    assert found.gain is None or found.low < found.high


def test_no_gain_exceeds_what_is_left():
    found = curve(60.0, 80.0, 99.0)
    assert max(found.gain, found.low, found.high) <= 1.0
    # Nor what is left to the best candidate.
    facts = make_facts(weak=False)
    assert first(facts, curve(40.0, 60.0, 80.0), best=99.0)[0].startswith("A term list")


def test_the_interval_is_that_of_the_same_sentences():
    # All sizes are scored on the same sentences, so that what they have in common does not widen it.
    paired = make_curve([25, 50, 100], counts(40, 60, 80))
    shuffled = counts(40, 60, 80)
    rng = numpy.random.default_rng(0)
    unpaired = numpy.stack([row[rng.permutation(len(row))] for row in shuffled])
    loose = make_curve([25, 50, 100], unpaired)
    assert loose.gain == pytest.approx(paired.gain)
    assert paired.high - paired.low < loose.high - loose.low


def first(facts, found=NOTHING, best=60.0, listed=0.0):
    texts = recommend(facts, found, {"list": listed}, {"model": best})
    return [text.split(":")[0].split(" (")[0] for text in texts]


def test_the_most_helpful_comes_first():
    facts = make_facts(size="linear")
    assert first(facts, curve(40.0, 60.0, 80.0))[0] == "More gold"
    assert first(facts, curve(49.0, 50.0, 51.0)) == [FROZEN, "More gold"]
    assert first(make_facts(gold=0))[0] == "Gold"


@pytest.mark.parametrize("best, room", [(60.0, None), (79.9, None), (99.5, "0.5")])
def test_how_little_room_is_left(best, room):
    """Gold alone may gain more than the best candidate can."""
    texts = recommend(make_facts(), curve(40.0, 60.0, 80.0), {}, {"model": best})
    (text,) = [text for text in texts if text.startswith("More gold")]
    assert (f"F1 {best}, can gain at most {room}" in text) == (room is not None) and ("at most" in text) == bool(room)


def test_nobody_is_told_what_he_has():
    for size in ("linear-static", "frozen", "transformer", "gpu"):
        assert not any("Transformer" in text for text in first(make_facts(size=size)))
    assert any("term list" in text for text in first(make_facts(weak=False)))
    # Where next to nothing is missing, a Transformer brings next to nothing.
    assert first(make_facts(size="linear"), curve(97.0, 98.0, 99.0), best=99.0)[-1] == FROZEN


def test_figures_and_commands_are_named():
    found = curve(40.0, 60.0, 80.0)
    (text, *_) = recommend(make_facts(), found, {}, {"gold alone": 80.0})
    assert "40.0 with 25, 60.0 with 50, 80.0 with 100 sentences" in text and "12.0 points" in text
    assert f"{found.low:.1f} to {found.high:.1f}" in text
    (text, *_) = recommend(make_facts(size="gpu"), NOTHING, {}, {})
    assert "100 sentences are too few" in text
    texts = recommend(make_facts(), curve(20.0, 30.0, 40.0), {"list": 84.0}, {"gold alone": 40.0})
    assert any("not enough to exceed the term list" in text for text in texts)
    facts = make_facts(gold=100, text=50)
    texts = recommend(facts, NOTHING, {"list": 40.0}, {"x": 50.0}, "suggest TEXT next.jsonl")
    assert sum(text.endswith("To choose sentences: suggest TEXT next.jsonl") for text in texts) == 1


def test_what_the_evidence_refutes_is_not_recommended():
    # More terms bring less than as many gold sentences, and nothing to what is packaged (terms.md).
    for recall in (10.0, 33.0, 80.0):
        assert not any("term" in text.lower() for text in first(make_facts(recall=recall), curve(49.0, 50.0, 51.0)))

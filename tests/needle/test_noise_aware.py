"""The noise-aware loss: hand-computed numbers, brute force, finite differences, and what it does at the edges."""

import math

import numpy
import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.tags import MISSING
from spacy_weakner.crf.kernel import CRFParameters
from spacy_weakner.crf_ner.likelihood import CRFTarget
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood
from spacy_weakner.errors import WeaknerError
from spacy_weakner.needle.noise_aware import (
    NoiseAwareCRF,
    log_unlikelihood,
    noise_aware,
    noise_aware_slope,
)

from ..crf import brute_force
from ..crf.test_kernel import ORACLE, ORACLE_EMISSIONS
from ..crf_ner.test_losses import (
    ENTITY_TAGS,
    SCHEME,
    agrees,
    make_case,
    same_gradient,
    tag_arrays,
    with_holes,
)

LOSS = NoiseAwareCRF()
TOKEN = NoiseAwareCRF(level="token")
WEIGHTS = (0.9, 0.3, 0.6)


def targets(tags, weights):
    return [CRFTarget(t, w) for t, w in zip(tags, weights, strict=True)]


def slow_twin(parameters, emissions, tags, weight, per_token):
    """Equation 3 by summing over all tag sequences."""
    log_p = brute_force.log_z(parameters, emissions, agrees(tags)) - brute_force.log_z(parameters, emissions)
    n = sum(t != MISSING for t in tags) if per_token else 1
    p = math.exp(log_p / n)
    return n * (-weight * math.log(p) - (1 - weight) * math.log(1 - p))


# Numbers computed by hand


@pytest.mark.parametrize("weight, expected", [(0.95, 2.944347), (0.6, 1.876624), (0.2, 0.656370)])
def test_oracle(weight, expected):
    result = LOSS(ORACLE, [ORACLE_EMISSIONS], targets(tag_arrays([[1, 2, 0]]), [weight]))
    assert result.loss == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("weight, expected", [(0.95, -0.947634), (0.6, -0.581068), (0.2, -0.162137)])
def test_oracle_slope(weight, expected):
    slope = noise_aware_slope(numpy.array([3.096879]), numpy.array([weight]))
    assert -slope[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "loss, expected", [(1e-3, 6.908255), (1e-6, 13.815511), (1e-9, 20.723266), (1e-12, 27.631021), (1e-20, 46.051702)]
)
def test_oracle_unlikelihood(loss, expected):
    assert log_unlikelihood(numpy.array([loss]))[0] == pytest.approx(expected, abs=1e-5)


# Against brute force


@pytest.mark.parametrize("constrain", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("loss", [LOSS, TOKEN])
def test_equals_brute_force(loss, rate, constrain):
    parameters, emissions = make_case(constrain)
    tags = with_holes(ENTITY_TAGS, rate=rate)
    parts = [
        slow_twin(parameters, e, t, w, loss is TOKEN) if (t != MISSING).any() else 0.0
        for e, t, w in zip(emissions, tags, WEIGHTS, strict=True)
    ]
    assert loss(parameters, emissions, targets(tags, WEIGHTS)).loss == pytest.approx(numpy.mean(parts), abs=1e-8)


# What it means


def test_certain_labels_are_learned_by_the_plain_likelihood():
    parameters, emissions = make_case(constrain=True)
    tags = with_holes(ENTITY_TAGS)
    for loss in (LOSS, TOKEN):
        result = loss(parameters, emissions, targets(tags, [1.0] * 3))
        plain = CRFNegativeLogLikelihood()(parameters, emissions, targets(tags, [1.0] * 3))
        assert result.loss == pytest.approx(plain.loss)
        same_gradient(result, plain)


@pytest.mark.parametrize("weight", [0.2, 0.7])
def test_it_rests_where_the_probability_is_the_confidence(weight):
    loss, confidence = numpy.array([-math.log(weight)]), numpy.array([weight])
    assert noise_aware_slope(loss, confidence)[0] == pytest.approx(0.0, abs=1e-12)
    around = noise_aware(loss * [[0.9], [1.0], [1.1]], confidence)
    assert around[1, 0] < around[0, 0] and around[1, 0] < around[2, 0]


# Edges


@pytest.mark.parametrize("loss", [LOSS, TOKEN])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("gap", [0.0, 1.0, 40.0, 1e4])
def test_certain_models_give_finite_gradients(gap, weight, loss):
    # The model is (next to) certain of the tags, or that they are wrong.
    flat = CRFParameters(numpy.zeros(2), numpy.zeros((2, 2)), numpy.zeros(2))
    emissions = numpy.array([[gap, 0.0], [gap, 0.0]])
    for tags in ([0, 0], [1, 1]):
        result = loss(flat, [emissions], targets(tag_arrays([tags]), [weight]))
        assert math.isfinite(result.loss)
        assert all(numpy.isfinite(g).all() for g in [*result.emissions, *result.parameters])


def test_the_only_legal_sequence_teaches_nothing():
    parameters = CRFParameters(numpy.array([0.0, -numpy.inf]), numpy.zeros((2, 2)), numpy.zeros(2))
    result = LOSS(parameters, [numpy.zeros((1, 2))], targets(tag_arrays([[0]]), [0.5]))
    assert math.isfinite(result.loss)
    assert not result.emissions[0].any()


# From examples


@pytest.mark.parametrize(
    "unit, level, fits", [("token", "sentence", False), ("token", "token", True), (None, "token", True)]
)
def test_confidence_must_be_that_of_the_level(nlp_example, unit, level, fits):
    example = nlp_example
    weak.set_weak(example.reference)
    weak.set_confidence(example.reference, 0.5, unit)
    loss = NoiseAwareCRF(level=level)
    if fits:
        assert loss.encode(example, SCHEME).weight == 0.5
    else:
        with pytest.raises(WeaknerError, match=r"WK020.*--unit token.*level = sentence"):
            loss.encode(example, SCHEME)


def test_confidence_comes_from_the_doc(nlp_example):
    example = nlp_example
    weak.set_weak(example.reference)
    with pytest.raises(WeaknerError, match=r"WK023.*Paris"):
        LOSS.encode(example, SCHEME)
    weak.set_confidence(example.reference, 0.4)
    assert LOSS.encode(example, SCHEME).weight == 0.4


def test_strong_sentences_have_their_weight(nlp_example):
    assert LOSS.encode(nlp_example, SCHEME).weight == 1.0
    assert NoiseAwareCRF(strong_weight=0.95).encode(nlp_example, SCHEME).weight == 0.95


@pytest.fixture
def nlp_example():
    import spacy
    from spacy.training import Example

    nlp = spacy.blank("xx")
    return Example.from_dict(nlp.make_doc("Paris rocks"), {"entities": [(0, 5, "A")]})

"""Losses of sentences, and the callback for the gradient of their weighted sum."""

import numpy
import pytest

from spacy_weakner.corpus.tags import MISSING
from spacy_weakner.crf_ner.likelihood import CRFGradient, marginal_likelihood, sentence_losses

from ..crf import brute_force
from .test_losses import ENTITY_TAGS, SCHEME, agrees, check_finite_differences, is_zero, make_case, same_gradient
from .test_losses import with_holes as holes

WEIGHTS = numpy.array([0.7, -1.5, 2.0])


def gradient(backprop, weights):
    return CRFGradient(0.0, *backprop(weights))


@pytest.mark.parametrize("constrain", [True, False])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_losses_equal_brute_force(rate, constrain):
    parameters, emissions = make_case(constrain)
    tags = holes(ENTITY_TAGS, rate=rate)
    losses, _ = sentence_losses(parameters, emissions, tags)
    expected = [
        brute_force.log_z(parameters, e) - brute_force.log_z(parameters, e, agrees(t))
        for e, t in zip(emissions, tags, strict=True)
    ]
    brute_force.close(losses, expected)


@pytest.mark.parametrize("scale", [1.5, 60.0])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_gradient_of_the_weighted_sum(rate, scale):
    # Of the second scale, products of probabilities come near underflow.
    def weighted(parameters, emissions, tags):
        losses, backprop = sentence_losses(parameters, emissions, tags)
        return CRFGradient(float(losses @ WEIGHTS) / len(tags), *backprop(WEIGHTS))

    parameters, emissions = make_case(scale=scale)
    check_finite_differences(weighted, parameters, emissions, holes(ENTITY_TAGS, rate=rate))


@pytest.mark.parametrize("scale", [1.5, 200.0])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_the_callback_may_be_called_again(rate, scale):
    parameters, emissions = make_case(scale=scale)
    _, backprop = sentence_losses(parameters, emissions, holes(ENTITY_TAGS, rate=rate))
    first, plain, second = (gradient(backprop, weights) for weights in (WEIGHTS, None, WEIGHTS))
    same_gradient(first, second, 0.0)
    same_gradient(plain, gradient(backprop, numpy.ones(3)), 0.0)


def test_the_gradient_is_linear_in_the_weights():
    parameters, emissions = make_case()
    _, backprop = sentence_losses(parameters, emissions, holes(ENTITY_TAGS))
    parts = [gradient(backprop, weight) for weight in numpy.eye(3)]
    whole = gradient(backprop, WEIGHTS)
    for i, (own, part) in enumerate(zip(whole.emissions, parts, strict=True)):
        numpy.testing.assert_allclose(own, WEIGHTS[i] * part.emissions[i], rtol=1e-5, atol=1e-6)
    for k, own in enumerate(whole.parameters):
        expected = sum(w * part.parameters[k] for w, part in zip(WEIGHTS, parts, strict=True))
        numpy.testing.assert_allclose(own, expected, atol=1e-12)


def test_one_call_is_the_loss_and_its_callback():
    parameters, emissions = make_case()
    tags = holes(ENTITY_TAGS)
    losses, backprop = sentence_losses(parameters, emissions, tags)
    result = marginal_likelihood(parameters, emissions, tags, WEIGHTS)
    assert result.loss == pytest.approx(float(losses @ WEIGHTS) / 3)
    same_gradient(result, gradient(backprop, WEIGHTS), 0.0)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_without_annotation(weights):
    parameters, emissions = make_case()
    losses, backprop = sentence_losses(parameters, emissions, [numpy.full(len(e), MISSING) for e in emissions])
    result = gradient(backprop, weights)
    assert not losses.any() and is_zero(result)
    assert [own.shape for own in result.emissions] == [(len(e), len(SCHEME)) for e in emissions]

"""From outputs to probabilities and back."""

import math

import numpy
import pytest

from spacy_weakner.token_ner.distribution import read_scores

from ..util import numeric_gradient
from .util import joint, random_outputs


def test_a_case_by_hand():
    joint = numpy.exp(read_scores(numpy.asarray([[0.4, 2.0, 0.5, -0.5]])).joint())
    numpy.testing.assert_allclose(joint, [[0.401312, 0.458689, 0.102347, 0.037651]], atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("n_tags", [2, 3, 9])
def test_equals_the_formula(n_tags, temperature):
    outputs = random_outputs(4, n_tags)
    scores = read_scores(outputs, temperature)
    expected = numpy.asarray([joint(row / temperature) for row in outputs])
    numpy.testing.assert_allclose(numpy.exp(scores.joint()), expected, atol=1e-12)
    numpy.testing.assert_allclose(numpy.exp(scores.entity)[:, 1], expected[:, 1:].sum(axis=1), atol=1e-12)
    numpy.testing.assert_allclose(numpy.exp(scores.types), expected[:, 1:] / expected[:, 1:].sum(1, keepdims=True))
    for part in (scores.joint(), scores.entity, scores.types):
        numpy.testing.assert_allclose(numpy.exp(part).sum(axis=1), 1.0, atol=1e-12)


def test_the_best_tag_is_an_entity_only_where_it_beats_outside():
    # P(entity) is .6, but shared among three tags.
    outputs = numpy.asarray([[math.log(1.5), 0.0, 0.0, 0.0], [math.log(1.5), 5.0, 0.0, 0.0]])
    assert read_scores(outputs).joint().argmax(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("value", [1e4, -1e4])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_extreme_outputs_stay_finite(value, column):
    outputs = numpy.zeros((1, 3), dtype="float32")
    outputs[0, column] = value
    scores = read_scores(outputs)
    assert numpy.isfinite(scores.joint()).all()
    assert numpy.exp(scores.joint()).sum() == pytest.approx(1.0)
    weight = numpy.full((1, 3), 1.0)
    assert numpy.isfinite(scores.joint_gradient(weight)).all()
    # One minus a probability that is next to one is lost in it, but not in its logarithm.
    assert scores.joint().min() == pytest.approx(-1e4, rel=1e-3)


def test_outputs_are_read_in_double_precision_and_left_alone():
    outputs = random_outputs(4).astype("float32")
    before = outputs.copy()
    assert read_scores(outputs, 2.0).joint().dtype == "float64"
    assert (outputs == before).all()


def test_no_tokens():
    scores = read_scores(numpy.zeros((0, 4)))
    assert scores.joint().shape == (0, 4)
    assert scores.joint_gradient(numpy.zeros((0, 4))).shape == (0, 4)


@pytest.mark.parametrize("n_tags", [2, 5])
def test_gradient_by_finite_differences(n_tags):
    outputs, rng = random_outputs(4, n_tags), numpy.random.RandomState(1)
    entity, types = rng.normal(size=(4, 2)), rng.normal(size=(4, n_tags - 1))

    def value(moved):
        scores = read_scores(moved)
        return float((scores.entity * entity).sum() + (scores.types * types).sum())

    found = read_scores(outputs).gradient(entity, types)
    numpy.testing.assert_allclose(found, numeric_gradient(value, outputs), atol=1e-6)


@pytest.mark.parametrize("n_tags", [2, 5])
def test_joint_gradient_by_finite_differences(n_tags):
    outputs = random_outputs(4, n_tags)
    weight = numpy.random.RandomState(1).normal(size=outputs.shape)
    found = read_scores(outputs).joint_gradient(weight)
    expected = numeric_gradient(lambda moved: float((read_scores(moved).joint() * weight).sum()), outputs)
    numpy.testing.assert_allclose(found, expected, atol=1e-6)

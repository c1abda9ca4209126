"""Probabilities from the outputs of the two heads."""

import numpy
import pytest

from spacy_weakner.token_ner.distribution import read_scores

from .util import chances, check_finite_differences, outputs


def test_joint_by_hand():
    # sigmoid(b) = 0.6
    given = numpy.asarray([[numpy.log(0.6 / 0.4), 2.0, 0.5, -0.5]])
    found = numpy.exp(read_scores(given).joint())[0]
    types = numpy.exp([2.0, 0.5, -0.5]) / numpy.exp([2.0, 0.5, -0.5]).sum()
    assert found.tolist() == pytest.approx([0.4, *(0.6 * types)])


def test_joint_of_an_oracle():
    found = numpy.exp(read_scores(numpy.asarray([[0.4, 2.0, 0.5, -0.5]])).joint())[0]
    assert found.tolist() == pytest.approx([0.401312, 0.458689, 0.102347, 0.037651], abs=1e-6)


@pytest.mark.parametrize("n_tokens, n_tags", [(1, 2), (4, 5), (0, 3)])
def test_joint_by_brute_force(n_tokens, n_tags):
    given = outputs(n_tokens, n_tags)
    found = numpy.exp(read_scores(given).joint())
    numpy.testing.assert_allclose(found, numpy.asarray([chances(row) for row in given]).reshape(n_tokens, n_tags))
    numpy.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_temperature_divides_the_outputs():
    given = outputs(4, 3)
    numpy.testing.assert_allclose(read_scores(given, 2.0).joint(), read_scores(given / 2).joint())


@pytest.mark.parametrize("score", [1e4, -1e4])
@pytest.mark.parametrize("column", [0, 1])
def test_extremes_stay_finite(score, column):
    given = numpy.zeros((1, 3), dtype="float32")
    given[0, column] = score
    scores = read_scores(given)
    assert numpy.isfinite(scores.joint()).all()
    assert numpy.exp(scores.joint()).sum() == pytest.approx(1.0)
    assert numpy.isfinite(scores.joint_gradient(numpy.ones((1, 3)))).all()


def test_gradients_by_finite_differences():
    given, random = outputs(3, 4), numpy.random.RandomState(1)
    d_joint, d_entity, d_types = (random.normal(size=(3, n)) for n in (4, 2, 3))
    scores = read_scores(given)
    check_finite_differences(
        lambda at: float((d_joint * read_scores(at).joint()).sum()), scores.joint_gradient(d_joint), given
    )

    def apart(at):
        moved = read_scores(at)
        return float((d_entity * moved.entity).sum() + (d_types * moved.types).sum())

    check_finite_differences(apart, scores.gradient(d_entity, d_types), given)

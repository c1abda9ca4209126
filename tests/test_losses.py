"""Losses on probabilities."""

import numpy
import pytest

from spacy_weakner.losses import MeanSquaredError, softmax, softmax_gradient


def random_case(n_tokens, n_classes, seed=0):
    random = numpy.random.RandomState(seed)
    logits = random.normal(size=(n_tokens, n_classes)) * 2
    truths = random.dirichlet(numpy.ones(n_classes), n_tokens)
    return logits, truths


def test_mean_squared_error_by_hand():
    gradient, loss = MeanSquaredError()(
        numpy.asarray([[0.5, 0.5], [0.0, 1.0]]), numpy.asarray([[1.0, 0.0], [0.0, 1.0]])
    )
    assert loss == pytest.approx(0.25)
    assert gradient.tolist() == [[-1.0, 1.0], [0.0, 0.0]]


def test_mean_squared_error_is_bounded():
    assert MeanSquaredError()(numpy.asarray([[1.0, 0.0]]), numpy.asarray([[0.0, 1.0]]))[1] == 2.0


def test_no_tokens():
    gradient, loss = MeanSquaredError()(numpy.zeros((0, 3)), numpy.zeros((0, 3)))
    assert gradient.shape == (0, 3) and loss == 0.0


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_softmax(scale):
    logits, _ = random_case(4, 3)
    logits = logits * scale
    expected = [
        [1 / sum(numpy.exp(numpy.clip(other - own, None, 700)) for other in row) for own in row] for row in logits
    ]
    numpy.testing.assert_allclose(softmax(logits), expected, atol=1e-12)


@pytest.mark.parametrize("n_tokens, n_classes", [(1, 1), (3, 2), (5, 4)])
def test_gradient_by_finite_differences(n_tokens, n_classes):
    logits, truths = random_case(n_tokens, n_classes)
    loss = MeanSquaredError()
    probabilities = softmax(logits)
    gradient = softmax_gradient(probabilities, loss(probabilities, truths)[0])
    step = 1e-6
    for index in numpy.ndindex(*logits.shape):
        sides = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[index] += sign * step
            sides.append(loss(softmax(moved), truths)[1] * n_tokens)
        assert gradient[index] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-7)

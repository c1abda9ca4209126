import math

import numpy
import pytest

from spacy_weakner.span_ner.losses import cross_entropy, unlikelihood

LOSSES = [cross_entropy, unlikelihood]


def random_case(n=6, n_labels=4, scale=2.0):
    random = numpy.random.RandomState(0)
    return random.normal(size=(n, n_labels)) * scale, numpy.arange(n) % n_labels


def probabilities(row):
    """Softmax, one number after the other."""
    exponents = [math.exp(x) for x in row]
    return [x / sum(exponents) for x in exponents]


def test_cross_entropy_by_brute_force():
    scores, labels = random_case()
    expected = -sum(math.log(probabilities(row)[label]) for row, label in zip(scores, labels, strict=True))
    assert cross_entropy(scores, labels)[0] == pytest.approx(expected, rel=1e-12)


def test_unlikelihood_by_brute_force():
    scores, labels = random_case()
    expected = 0.0
    for row, label in zip(scores, labels, strict=True):
        p = probabilities(row)
        expected -= math.log(1 - p[label]) if label else math.log(p[0])
    assert unlikelihood(scores, labels)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_labels", [2, 4])
def test_gradients_by_finite_differences(loss, n_labels):
    scores, labels = random_case(n_labels=n_labels)
    _, gradient = loss(scores, labels)
    expected = numpy.zeros_like(scores)
    for index in numpy.ndindex(*scores.shape):
        step = numpy.zeros_like(scores)
        step[index] = 1e-6
        expected[index] = (loss(scores + step, labels)[0] - loss(scores - step, labels)[0]) / 2e-6
    numpy.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_costs_nothing(loss):
    total, gradient = loss(numpy.zeros((0, 3), dtype="float32"), numpy.zeros(0, dtype="int64"))
    assert total == 0.0
    assert type(total) is float
    assert gradient.shape == (0, 3)


def test_unlikelihood_of_outside_alone_is_the_cross_entropy():
    scores, _ = random_case()
    labels = numpy.zeros(len(scores), dtype="int64")
    ours, theirs = unlikelihood(scores, labels), cross_entropy(scores, labels)
    assert ours[0] == theirs[0]
    assert (ours[1] == theirs[1]).all()


# The score of the wrong label above all others, which are equal.
MARGINS = [0, 5, 10, 20, 30, 40, 50, 60, 100, 1000]


@pytest.mark.parametrize("margin", MARGINS)
def test_unlikelihood_where_the_wrong_label_is_certain(margin):
    scores = numpy.asarray([[0.0, 0.0, margin]], dtype="float32")
    total, gradient = unlikelihood(scores, numpy.asarray([2]))
    # -log(1 - P) = log(2 + e^margin) - log 2
    assert total == pytest.approx(margin + math.log1p(2 * math.exp(-margin)) - math.log(2), rel=1e-6)
    assert gradient.sum() == pytest.approx(0, abs=1e-6)
    p = 1 / (1 + 2 * math.exp(-margin))
    numpy.testing.assert_allclose(gradient, [[-p / 2, -p / 2, p]], atol=1e-6)


@pytest.mark.parametrize("margin", MARGINS)
def test_unlikelihood_where_the_wrong_label_is_impossible(margin):
    scores = numpy.asarray([[0.0, 0.0, -margin]], dtype="float32")
    total, gradient = unlikelihood(scores, numpy.asarray([2]))
    p = math.exp(-margin) / (2 + math.exp(-margin))
    assert total == pytest.approx(-math.log1p(-p), rel=1e-6, abs=1e-11)
    assert gradient.sum() == pytest.approx(0, abs=1e-11)
    numpy.testing.assert_allclose(gradient, [[-p / 2, -p / 2, p]], rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("margin", MARGINS)
def test_unlikelihood_where_another_label_is_certain(margin):
    scores = numpy.asarray([[0.0, margin, 0.0]], dtype="float32")
    total, gradient = unlikelihood(scores, numpy.asarray([2]))
    assert -1e-9 < total < 0.41
    assert gradient.sum() == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize("margin", MARGINS)
def test_cross_entropy_at_both_ends(margin):
    scores = numpy.asarray([[0.0, margin]], dtype="float32")
    wrong, right = (cross_entropy(scores, numpy.asarray([label])) for label in (0, 1))
    assert wrong[0] == pytest.approx(margin + math.log1p(math.exp(-margin)))
    assert right[0] == pytest.approx(math.log1p(math.exp(-margin)), abs=1e-12)
    assert wrong[1].sum() == pytest.approx(0, abs=1e-12)
    assert right[1].sum() == pytest.approx(0, abs=1e-12)

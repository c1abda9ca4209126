"""Max-pooling over the tokens of a Doc, and the linear layer."""

import math

import numpy
import pytest
from thinc.api import set_dropout_rate

from spacy_weakner.sentence_category.losses import exclusive_loss, independent_loss
from spacy_weakner.sentence_category.model import build_sentence_category

from ..encoders.sequences import random_vectors
from ..util import numeric_gradient, same

LENGTHS = pytest.mark.parametrize("lengths", [[1], [3, 1, 5], [2, 0, 2], [0, 4, 0]])


def make(lengths, empty_width=4, n=3):
    vectors = random_vectors(lengths, empty_width=empty_width)
    model = build_sentence_category(vectors.model, n)
    model.initialize(X=vectors.docs, Y=numpy.zeros((len(lengths), n), dtype="float32"))
    return model, vectors


def slow(model, arrays):
    """One number at a time."""
    linear = next(node for node in model.walk() if node.name == "linear")
    W, b = linear.get_param("W"), linear.get_param("b")
    rows = []
    for array in arrays:
        pooled = [max((row[x] for row in array), default=0.0) for x in range(W.shape[1])]
        rows.append([sum(W[k, x] * pooled[x] for x in range(W.shape[1])) + b[k] for k in range(len(b))])
    return numpy.asarray(rows)


@LENGTHS
@pytest.mark.parametrize("empty_width", [4, 0])
def test_scores(lengths, empty_width):
    """So no Doc sees the tokens of another, nor padding: all features of the first Doc may be negative."""
    model, vectors = make(lengths, empty_width)
    vectors.arrays = [-abs(array) for array in vectors.arrays]
    assert same([model.predict(vectors.docs)], [slow(model, vectors.arrays)], tolerance=1e-5)


@LENGTHS
@pytest.mark.parametrize("empty_width", [4, 0])
def test_gradients_by_finite_differences(lengths, empty_width):
    model, vectors = make(lengths, empty_width)
    scores, backprop = model.begin_update(vectors.docs)
    direction = numpy.random.RandomState(1).normal(size=scores.shape)
    backprop(direction.astype("float32"))
    for i, (given, gradient) in enumerate(zip(vectors.arrays, vectors.gradients, strict=True)):
        assert gradient.shape == given.shape

        def value(array, i=i):
            arrays = [*vectors.arrays[:i], array, *vectors.arrays[i + 1 :]]
            return float((slow(model, arrays) * direction).sum())

        if len(given):
            assert gradient.tolist() == pytest.approx(numeric_gradient(value, given.astype("float64")), abs=1e-4)


def test_of_equal_tokens_one_gets_the_gradient():
    model, vectors = make([3])
    vectors.arrays = [numpy.ones((3, 4), dtype="float32")]
    scores, backprop = model.begin_update(vectors.docs)
    backprop(numpy.ones_like(scores))
    assert [row.any() for row in vectors.gradients[0]] == [True, False, False]


@pytest.mark.parametrize("rate, alike", [(0.0, True), (0.5, False)])
def test_dropout(rate, alike):
    model, vectors = make([5, 4])
    set_dropout_rate(model, rate)
    assert same(*([model.begin_update(vectors.docs)[0]] for _ in range(2))) is alike
    assert same(*([model.predict(vectors.docs)] for _ in range(2)))


# Losses on the scores of categories, against loops and finite differences


NAN = float("nan")
SCORES = numpy.asarray([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0], [2.0, 2.0, 2.0]])
EXCLUSIVE = numpy.asarray([[0.0, 1.0, 0.0], [NAN, NAN, NAN], [1.0, 0.0, 0.0]])
INDEPENDENT = numpy.asarray([[0.0, 1.0, 1.0], [NAN, 0.25, NAN], [NAN, NAN, NAN]])


def slow_exclusive(scores, truths):
    total = 0.0
    for row, truth in zip(scores, truths, strict=True):
        if 1.0 in truth:
            total -= math.log(math.exp(row[list(truth).index(1.0)]) / sum(math.exp(s) for s in row))
    return total


def slow_independent(scores, truths):
    total = 0.0
    for score, truth in zip(scores.flat, truths.flat, strict=True):
        chance = 1 / (1 + math.exp(-score))
        if not math.isnan(truth):
            total -= truth * math.log(chance) + (1 - truth) * math.log(1 - chance)
    return total


CASES = pytest.mark.parametrize(
    "loss, slow, truths",
    [(exclusive_loss, slow_exclusive, EXCLUSIVE), (independent_loss, slow_independent, INDEPENDENT)],
)


@CASES
def test_loss_and_gradient(loss, slow, truths):
    values, gradient = loss(SCORES, truths)
    assert values.shape == (3,)
    assert values.sum() == pytest.approx(slow(SCORES, truths))
    assert gradient.tolist() == pytest.approx(numeric_gradient(lambda s: slow(s, truths), SCORES), abs=1e-6)


@CASES
def test_what_is_not_known_has_exactly_no_gradient(loss, slow, truths):
    values, gradient = loss(SCORES, truths)
    unknown = numpy.isnan(truths)
    assert not gradient[unknown].any()
    assert not values[unknown.all(axis=1)].any()


@CASES
def test_extreme_scores(loss, slow, truths):
    values, gradient = loss(SCORES * 1e4, truths)
    assert numpy.isfinite(values).all() and numpy.isfinite(gradient).all()
    assert values.max() > 1e4


@pytest.mark.parametrize("loss", [exclusive_loss, independent_loss])
def test_nothing_at_all(loss):
    values, gradient = loss(numpy.zeros((0, 2)), numpy.zeros((0, 2)))
    assert values.shape == (0,) and gradient.shape == (0, 2)

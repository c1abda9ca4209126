"""Max-pooling over the tokens of a Doc, and the linear layer."""

import numpy
import pytest
from thinc.api import set_dropout_rate

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

import math

import numpy
import pytest
from thinc.api import set_dropout_rate

from spacy_weakner.span_ner import model as scoring
from spacy_weakner.span_ner.losses import cross_entropy, unlikelihood
from spacy_weakner.span_ner.model import build_span_scorer

from ..util import fix_seed, numeric_gradient
from .util import all_spans

PARAMETERS = ("A", "B", "C", "b", "W", "c")
# Spans that share tokens, one twice, one of one token, and one token in none.
SPANS = numpy.asarray([(0, 1), (0, 3), (1, 3), (2, 3), (0, 3), (2, 5)], dtype="int64")


def make_scorer(n_labels=3, width=4, hidden=5, n_tokens=7, dtype="float32"):
    """A scorer with random parameters, biases too, and token vectors."""
    random = numpy.random.RandomState(0)
    vectors = random.normal(size=(n_tokens, width)).astype(dtype)
    model = build_span_scorer(hidden)
    model.initialize(X=(vectors, SPANS), Y=numpy.zeros((1, n_labels), dtype="float32"))
    for name in PARAMETERS:
        model.set_param(name, random.normal(size=model.get_param(name).shape).astype(dtype))
    return model, vectors


def naive_scores(model, vectors, spans):
    """tanh(W [h_i; h_j; h_i - h_j; h_i * h_j] + b) and a linear layer, with one W whose first part is free."""
    A, B, C, b, W, c = (model.get_param(name).astype("float64") for name in PARAMETERS)
    difference = numpy.random.RandomState(1).normal(size=A.shape)
    whole = numpy.concatenate([A - difference, B + difference, difference, C], axis=1)
    result = []
    for start, end in spans:
        first, last = vectors[start].astype("float64"), vectors[end - 1].astype("float64")
        hidden = numpy.tanh(whole @ numpy.concatenate([first, last, first - last, first * last]) + b)
        result.append(W @ hidden + c)
    return numpy.asarray(result)


@pytest.mark.parametrize("is_train", [True, False])
def test_equals_one_product_with_the_concatenation(is_train):
    model, vectors = make_scorer()
    spans = numpy.asarray(all_spans(len(vectors)))
    found, _ = model((vectors, spans), is_train)
    numpy.testing.assert_allclose(found, naive_scores(model, vectors, spans), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*PARAMETERS, "vectors"])
def test_gradients_by_finite_differences(name):
    model, vectors = make_scorer(dtype="float64")
    weighting = numpy.random.RandomState(2).normal(size=(len(SPANS), 3))
    _, backprop = model.begin_update((vectors, SPANS))
    by_token = backprop(weighting)
    found = by_token if name == "vectors" else model.get_grad(name)
    values = vectors if name == "vectors" else model.get_param(name).copy()

    def value(moved):
        if name != "vectors":
            model.set_param(name, moved)
        scores, _ = model.begin_update((moved if name == "vectors" else vectors, SPANS))
        return (scores * weighting).sum()

    expected = numeric_gradient(value, values, 1e-5)
    # Sums by token are float32.
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert numpy.abs(expected).max() > 0.1


@pytest.mark.parametrize("chunk", [1, 2, 5, 28, 1000])
def test_prediction_in_chunks_equals_one_go_and_training_without_dropout(monkeypatch, chunk):
    model, vectors = make_scorer()
    spans = numpy.asarray(all_spans(len(vectors)))
    whole = model.predict((vectors, spans))
    monkeypatch.setattr(scoring, "CHUNK", chunk)
    numpy.testing.assert_allclose(model.predict((vectors, spans)), whole, rtol=1e-5, atol=1e-6)
    numpy.testing.assert_allclose(model.begin_update((vectors, spans))[0], whole, rtol=1e-5, atol=1e-6)


def test_no_spans():
    model, vectors = make_scorer()
    none = numpy.zeros((0, 2), dtype="int64")
    assert model.predict((vectors, none)).shape == (0, 3)
    scores, backprop = model.begin_update((vectors, none))
    assert scores.shape == (0, 3)
    assert not backprop(scores).any()


def test_prediction_keeps_nothing_to_differentiate():
    model, vectors = make_scorer()
    _, backprop = model((vectors, SPANS), False)
    with pytest.raises(RuntimeError, match="predicting"):
        backprop(numpy.ones((len(SPANS), 3), dtype="float32"))


def test_dropout_is_on_the_vectors_and_in_training_only():
    model, vectors = make_scorer()
    before = model.predict((vectors, SPANS))
    set_dropout_rate(model, 0.9999)
    fix_seed(0)
    scores, backprop = model.begin_update((vectors, SPANS))
    b, W, c = (model.get_param(name) for name in ("b", "W", "c"))
    numpy.testing.assert_allclose(scores, numpy.tile(W @ numpy.tanh(b) + c, (len(SPANS), 1)), rtol=1e-5)
    assert not backprop(numpy.ones_like(scores)).any()
    assert (model.predict((vectors, SPANS)) == before).all()


@pytest.mark.parametrize("width", [96, 384])
def test_initial_weights_are_those_of_the_concatenation(width):
    model = build_span_scorer(64)
    vectors = numpy.zeros((2, width), dtype="float32")
    model.initialize(X=(vectors, numpy.asarray([[0, 1]])), Y=numpy.zeros((1, 3), dtype="float32"))
    bound = (6.0 / (64 + 4 * width)) ** 0.5
    assert 0.95 * bound < abs(model.get_param("C")).max() <= bound * (1 + 1e-6)
    # The sum and the difference of two parts.
    assert bound < abs(model.get_param("A")).max() <= 2 * bound and bound < abs(model.get_param("B")).max() <= 2 * bound


# Losses


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
def test_gradients_of_losses_by_finite_differences(loss, n_labels):
    scores, labels = random_case(n_labels=n_labels)
    _, gradient = loss(scores, labels)
    expected = numeric_gradient(lambda moved: loss(moved, labels)[0], scores)
    numpy.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_costs_nothing(loss):
    total, gradient = loss(numpy.zeros((0, 3), dtype="float32"), numpy.zeros(0, dtype="int64"))
    assert total == 0.0
    assert type(total) is float
    assert gradient.shape == (0, 3)


# The score of the wrong label above all others, which are equal.
MARGINS = [0, 5, 10, 20, 30, 40, 50, 60, 100, 1000]


@pytest.mark.parametrize("margin", [*MARGINS, *(-margin for margin in MARGINS)])
def test_unlikelihood_where_the_wrong_label_is_certain_or_impossible(margin):
    scores = numpy.asarray([[0.0, 0.0, margin]], dtype="float32")
    total, gradient = unlikelihood(scores, numpy.asarray([2]))
    # -log(1 - P) = log(2 + e^margin) - log 2
    assert total == pytest.approx(numpy.logaddexp(math.log(2), margin) - math.log(2), rel=1e-6, abs=1e-11)
    p = math.exp(margin - numpy.logaddexp(math.log(2), margin))
    numpy.testing.assert_allclose(gradient, [[-p / 2, -p / 2, p]], rtol=1e-6, atol=1e-6 if margin > 0 else 1e-11)


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

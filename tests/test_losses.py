"""Losses on probabilities."""

import math

import numpy
import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import (
    CategoricalCrossentropy,
    GeneralizedCrossEntropy,
    KLDivergence,
    MeanAbsoluteError,
    MeanSquaredError,
    ProbabilityLoss,
    binary_cross_entropy,
    log_softmax,
    log_softmax_gradient,
    loss_of_tokens,
    sigmoid,
)


def token_loss(name, p, y):
    """Each loss on one token, as its formula says."""
    pairs = list(zip(p, y, strict=True))
    return {
        "CategoricalCrossentropy": lambda: sum(-b * math.log(a) for a, b in pairs if b),
        "KLDivergence": lambda: sum(b * math.log(b / a) for a, b in pairs if b),
        "MeanAbsoluteError": lambda: sum(abs(a - b) for a, b in pairs) / 2,
        "MeanSquaredError": lambda: sum((a - b) ** 2 for a, b in pairs),
        "GeneralizedCrossEntropy": lambda: sum(b * (1 - a**0.7) / 0.7 for a, b in pairs),
    }[name]()


LOSSES = {
    type(loss).__name__: loss
    for loss in (
        CategoricalCrossentropy(),
        KLDivergence(),
        MeanAbsoluteError(),
        MeanSquaredError(),
        GeneralizedCrossEntropy(0.7),
    )
}
by_name = pytest.mark.parametrize("name", LOSSES)


def random_case(n_tokens, n_classes, hard=False, seed=0):
    random = numpy.random.RandomState(seed)
    logits = random.normal(size=(n_tokens, n_classes)) * 2
    soft = random.dirichlet(numpy.ones(n_classes), n_tokens)
    return logits, numpy.eye(n_classes)[soft.argmax(1)] if hard else soft


@by_name
@pytest.mark.parametrize("hard", [False, True])
def test_equals_formula(name, hard):
    logits, truths = random_case(5, 4, hard)
    values, _ = LOSSES[name](log_softmax(logits), truths)
    probabilities = numpy.exp(log_softmax(logits))
    expected = [token_loss(name, p, y) for p, y in zip(probabilities, truths, strict=True)]
    numpy.testing.assert_allclose(values, expected, atol=1e-12)


@by_name
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("n_tokens, n_classes", [(1, 1), (3, 2), (5, 4)])
def test_gradient_by_finite_differences(name, hard, n_tokens, n_classes):
    logits, truths = random_case(n_tokens, n_classes, hard)
    loss, found = LOSSES[name], log_softmax(logits)
    gradient = log_softmax_gradient(found, loss(found, truths)[1])
    step = 1e-6
    for index in numpy.ndindex(*logits.shape):
        sides = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[index] += sign * step
            sides.append(float(loss(log_softmax(moved), truths)[0].sum()))
        assert gradient[index] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-7)


@by_name
@pytest.mark.parametrize("n", [0, 3])
def test_shapes(name, n):
    truths, log_probabilities = numpy.eye(3, 2)[:n], numpy.log(numpy.full((n, 2), 0.5))
    values, gradient = loss_of_tokens(LOSSES[name], log_probabilities, truths)
    assert isinstance(LOSSES[name], ProbabilityLoss)
    assert values.shape == (n,) and gradient.shape == (n, 2)


@by_name
@pytest.mark.parametrize("right", [True, False])
def test_certainty(name, right):
    # The model is sure beyond what a float can tell.
    logits = numpy.asarray([[2000.0, 0.0, 0.0]])
    truths = numpy.asarray([[1.0, 0.0, 0.0] if right else [0.0, 1.0, 0.0]])
    values, slope = LOSSES[name](log_softmax(logits), truths)
    gradient = log_softmax_gradient(log_softmax(logits), slope)
    assert numpy.isfinite(values).all() and numpy.isfinite(gradient).all()
    if right:
        assert values[0] == 0.0 and not gradient.any()
    # Where a log-probability is minus infinity and nothing is wanted there, nothing breaks.
    values, gradient = LOSSES[name](numpy.asarray([[0.0, -numpy.inf]]), numpy.asarray([[1.0, 0.0]]))
    assert values[0] == 0.0 and numpy.isfinite(gradient).all()


def test_generalized_cross_entropy_lies_between_its_limits():
    logits, truths = random_case(6, 4, hard=True)
    found = log_softmax(logits)
    for q, limit in ((1e-9, CategoricalCrossentropy()), (0.0, CategoricalCrossentropy()), (1.0, MeanAbsoluteError())):
        near, gradient = GeneralizedCrossEntropy(q)(found, truths)
        values, slope = limit(found, truths)
        numpy.testing.assert_allclose(near, values, atol=1e-7)
        numpy.testing.assert_allclose(
            log_softmax_gradient(found, gradient), log_softmax_gradient(found, slope), atol=1e-7
        )


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_unusable_q(q):
    with pytest.raises(WeaknerError, match="q"):
        GeneralizedCrossEntropy(q)


def test_kl_divergence_is_zero_at_the_truth():
    _, truths = random_case(5, 4)
    values, slope = KLDivergence()(numpy.log(truths), truths)
    numpy.testing.assert_allclose(values, 0.0, atol=1e-15)
    numpy.testing.assert_allclose(log_softmax_gradient(numpy.log(truths), slope), 0.0, atol=1e-15)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_log_softmax_by_brute_force(temperature):
    logits, _ = random_case(4, 3)
    exponents = numpy.exp(logits / temperature)
    expected = numpy.log(exponents / exponents.sum(axis=1, keepdims=True))
    numpy.testing.assert_allclose(log_softmax(logits, temperature), expected, rtol=1e-12)
    for score in (1e4, -1e4, 1e30):
        found = log_softmax(numpy.asarray([[score, 0.0, 0.0]], dtype="float32"), temperature)
        assert numpy.isfinite(found).all()
        assert numpy.exp(found).sum() == pytest.approx(1)


# Of two classes


@pytest.mark.parametrize("truth", [0.0, 0.3, 1.0])
def test_binary_cross_entropy_by_hand(truth):
    scores = numpy.asarray([-3.0, -0.5, 0.0, 0.5, 3.0])
    chances = [1 / (1 + math.exp(-score)) for score in scores]
    values, gradient = binary_cross_entropy(scores, numpy.full(5, truth))
    expected = [-truth * math.log(p) - (1 - truth) * math.log(1 - p) for p in chances]
    numpy.testing.assert_allclose(values, expected, rtol=1e-12)
    numpy.testing.assert_allclose(gradient, [p - truth for p in chances], rtol=1e-12)


def test_binary_cross_entropy_of_the_sure():
    scores = numpy.asarray([800.0, -800.0, 40.0, 800.0], dtype="float32")
    values, gradient = binary_cross_entropy(scores, numpy.asarray([1, 0, 1, 0], dtype=bool))
    assert values.tolist() == [0.0, 0.0, pytest.approx(math.exp(-40), rel=1e-9), 800.0]
    assert gradient.tolist() == [0.0, 0.0, pytest.approx(-math.exp(-40), abs=1e-16), 1.0]
    assert sigmoid(numpy.asarray([-1000.0, 0.0, 1000.0])).tolist() == [0.0, 0.5, 1.0]
    assert sigmoid(numpy.zeros((2, 3), dtype="float32")).dtype == "float32"


@pytest.mark.parametrize(
    "loss, given",
    [
        (lambda p, y: (1.0, -y), r"returns float and \(3, 2\)"),
        (lambda p, y: (-(y * p).sum(axis=1, keepdims=True), -y), r"returns \(3, 1\) and \(3, 2\)"),
        (lambda p, y: (-(y * p).sum(axis=1), -y[0]), r"returns \(3,\) and \(2,\)"),
        (lambda p, y: -(y * p).sum(axis=1), "returns ndarray"),
        (lambda parameters, emissions, targets: None, "cannot be called with two arrays .*'targets'"),
        (0.5, "cannot be called with two arrays"),
    ],
)
def test_a_loss_of_another_form(loss, given):
    """A gradient of one row would be the same for all tokens, and nobody would know."""
    truths = numpy.eye(3, 2)
    with pytest.raises(ValueError, match=rf"{given}.*shape \(3,\)\) and the gradient \(shape \(3, 2\)"):
        loss_of_tokens(loss, numpy.log(numpy.full((3, 2), 0.5)), truths)

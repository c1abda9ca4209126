"""Losses on the scores of categories, against loops and finite differences."""

import math

import numpy
import pytest

from spacy_weakner.sentence_category.losses import exclusive_loss, independent_loss

from ..util import numeric_gradient

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

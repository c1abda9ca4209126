"""Losses on the scores of categories. Missing categories (NaN) have no loss."""

from typing import Tuple

import numpy
from numpy.typing import NDArray

from ..losses import CategoricalCrossentropy, binary_cross_entropy, log_softmax, log_softmax_gradient
from ..ty import Array


def exclusive_loss(scores: Array, truths: Array) -> Tuple[Array, Array]:
    """Compute the cross-entropy of the softmax, for sentences with one category (Kruengkrai et al. 2020, Equation 1).

    scores (Array): Shape (n, n_categories).
    truths (Array): Same shape: 1 for the category of the sentence and 0 for the others; NaN if it is missing.
    RETURNS (Tuple[Array, Array]): Loss of every sentence, shape (n,); and the gradient, in the shape of the scores.
    """
    known: NDArray[numpy.bool_] = numpy.isfinite(truths.sum(axis=1))
    log_probabilities = log_softmax(scores)
    values, slope = CategoricalCrossentropy()(log_probabilities, numpy.where(known[:, None], truths, 0.0))
    return values, numpy.where(known[:, None], log_softmax_gradient(log_probabilities, slope), 0.0)


def independent_loss(scores: Array, truths: Array) -> Tuple[Array, Array]:
    """Compute the summed cross-entropy of the sigmoids of scores, for sentences with any number of categories.

    scores (Array): Shape (n, n_categories).
    truths (Array): Same shape: probability of each category; NaN if it is missing.
    RETURNS (Tuple[Array, Array]): Loss of every sentence, shape (n,); and the gradient, in the shape of the scores.
    """
    known = ~numpy.isnan(truths)
    values, gradient = binary_cross_entropy(scores, numpy.where(known, truths, 0.0))
    return numpy.where(known, values, 0.0).sum(axis=1), numpy.where(known, gradient, 0.0)

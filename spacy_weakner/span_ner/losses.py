"""Losses of labeled spans, and of spans with labels that are known to be wrong."""

from typing import Tuple

import numpy
from numpy.typing import NDArray

from ..losses import log_softmax
from ..ty import Floats
from .targets import LabelIds


def cross_entropy(scores: NDArray, labels: LabelIds) -> Tuple[float, Floats]:
    """Compute -log P of the labels (the paper on weighted sampling, Equation 1).

    scores (NDArray): Shape (n, n_labels).
    labels (LabelIds): Shape (n,).
    RETURNS (Tuple[float, Floats]): Sum over spans, and its gradient, shape (n, n_labels).
    """
    log_probabilities = log_softmax(scores)
    rows = numpy.arange(len(labels))
    gradient = numpy.exp(log_probabilities)
    gradient[rows, labels] -= 1.0
    return -float(log_probabilities[rows, labels].sum()), gradient


def unlikelihood(scores: NDArray, labels: LabelIds) -> Tuple[float, Floats]:
    """Compute -log(1 - P) of wrong labels. For label 0, which marks a span as not an entity, it is the cross-entropy of
    "O".

    scores (NDArray): Shape (n, n_labels).
    labels (LabelIds): Shape (n,).
    RETURNS (Tuple[float, Floats]): Sum over spans, and its gradient, shape (n, n_labels).
    """
    outside = labels == 0
    gradient = numpy.zeros(scores.shape, dtype="float64")
    total, gradient[outside] = cross_entropy(scores[outside], labels[outside])
    wrong = numpy.flatnonzero(~outside)
    if not len(wrong):
        return total, gradient
    rows = numpy.arange(len(wrong))
    wrong_labels = labels[wrong]
    log_probabilities = log_softmax(scores[wrong])
    p = numpy.exp(log_probabilities[rows, wrong_labels])
    # 1 - P is the sum over the other labels, which is exact even if P is near 1.
    others = log_probabilities.copy()
    others[rows, wrong_labels] = -numpy.inf
    highest = others.max(axis=1)
    left = highest + numpy.log(numpy.exp(others - highest[:, None]).sum(axis=1))
    slope = -p[:, None] * numpy.exp(others - left[:, None])
    slope[rows, wrong_labels] = p
    gradient[wrong] = slope
    return total - float(left.sum()), gradient

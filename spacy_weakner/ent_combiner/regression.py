"""Logistic regression of candidates that compete."""

from typing import Optional

import numpy

from .competition import Competition, Floats

_STEPS = 100
_HALVINGS = 20
_TOLERANCE = 1e-6


def fit_weights(
    features: Floats, right: Floats, competition: Competition, penalty: Floats, start: Optional[Floats] = None
) -> Floats:
    """Find the weights at which what is right is most probable:

        sum over Docs of log p(the right set) - 1/2 * sum over features of penalty * weight^2

    It is concave. Each step solves a Newton system in which candidates are taken to be independent, as they are where
    they do not overlap; it is halved until it gains.

    features (Floats): Shape (n, n_features).
    right (Floats): Shape (n,): 1 for the candidates that are right, else 0.
    competition (Competition): Which candidates exclude which.
    penalty (Floats): Shape (n_features,), above 0.
    start (Optional[Floats]): Shape (n_features,): where to begin; None: at 0.
    RETURNS (Floats): Shape (n_features,).
    """
    weights = numpy.zeros(features.shape[1]) if start is None else start.copy()

    def value(weights: Floats) -> float:
        scores = features @ weights
        return float(right @ scores - competition.log_partitions(scores).sum() - 0.5 * penalty @ weights**2)

    current = value(weights)
    for _ in range(_STEPS):
        found = competition.probabilities(features @ weights)
        gradient = features.T @ (right - found) - penalty * weights
        if numpy.abs(gradient).max(initial=0.0) < _TOLERANCE * max(1.0, len(right)):
            break
        spread = found * (1.0 - found)
        hessian = features.T @ (features * spread[:, None]) + numpy.diag(penalty)
        step = numpy.linalg.solve(hessian, gradient)
        for _ in range(_HALVINGS):
            changed = value(weights + step)
            if changed > current:
                break
            step = step / 2
        else:
            break
        weights, current = weights + step, changed
    return weights

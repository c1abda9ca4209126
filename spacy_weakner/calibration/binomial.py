"""Tails of the binomial distribution, and exact bounds of a share."""

import math

_ROUNDS = 60


def upper_tail(k: int, n: int, p: float) -> float:
    """The chance of at least k successes.

    k (int): Number of successes.
    n (int): Number of trials.
    p (float): Chance of each, in [0, 1].
    RETURNS (float): P(X >= k) of a binomial X.
    """
    if k <= 0:
        return 1.0
    if k > n or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return 1.0
    # The side on which terms fall from the first one on; from there a few times the square root of n of them count.
    return _sum(k, n, p) if k > n * p else max(0.0, 1.0 - _sum(n - k + 1, n, 1.0 - p))


def lower_bound(k: int, n: int, delta: float) -> float:
    """The exact lower bound of a share (Clopper and Pearson 1934).

    k (int): Successes.
    n (int): Trials.
    delta (float): In (0, 1).
    RETURNS (float): The largest p under which at least k successes have a chance of at most delta; 0 if k is 0.
    """
    if k <= 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if upper_tail(k, n, middle) <= delta else (low, middle)
    return low


def _sum(k: int, n: int, p: float) -> float:
    """P(X >= k) where k lies above the mean, so that no term is larger than the first."""
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    term = math.exp(choose + k * math.log(p) + (n - k) * math.log1p(-p))
    odds, total = p / (1.0 - p), 0.0
    while term > total * 1e-17:
        total += term
        term *= odds * (n - k) / (k + 1)
        k += 1
    return min(1.0, total)

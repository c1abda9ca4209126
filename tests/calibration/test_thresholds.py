"""Thresholds with a guarantee, and the tails that it rests on."""

import math
from fractions import Fraction

import numpy
import pytest

from spacy_weakner.calibration.thresholds import convincing, find_threshold, fit_thresholds, lower_bound, upper_tail


def exact_tail(k, n, p):
    p = Fraction(p)
    return float(sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(max(0, k), n + 1)))


@pytest.mark.parametrize("p", [0.0, 0.001, 0.3, 0.5, 0.95, 0.999, 1.0])
def test_tails_are_exact(p):
    for n in (0, 1, 2, 7, 40):
        for k in range(-1, n + 2):
            assert upper_tail(k, n, p) == pytest.approx(exact_tail(k, n, p), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("k, n, delta", [(5, 5, 0.1), (19, 20, 0.05), (1, 30, 0.2), (90, 100, 0.1)])
def test_bounds_are_where_the_tail_is_delta(k, n, delta):
    bound = lower_bound(k, n, delta)
    assert exact_tail(k, n, bound) == pytest.approx(delta, rel=1e-6)
    assert lower_bound(0, n, delta) == 0.0
    if k == n:
        assert bound == pytest.approx(delta ** (1 / n))


def test_a_case_by_hand():
    """With 0.8 and 0.1, 11 without error are convincing (0.8 ** 11 = 0.086), 15 of 16 are not (0.141), and 19 of 20
    are (0.069)."""
    assert convincing(0.8, 0.1) == 11 and convincing(0.5, 0.25) == 2

    def find(n, *wrong):
        return find_threshold([(1 - i / 100, i not in wrong) for i in range(n)], 0.8, 0.2)

    # The sequence that begins with 11 ends at the error; the one that begins with all 20 has less to say then.
    found = find(20, 15, 19)
    assert (found.kept, found.kept_right) == (15, 15) and found.threshold == pytest.approx(0.86, abs=2e-6)
    assert found.bound == pytest.approx(0.1 ** (1 / 15)) and (found.precision, found.recall) == (1.0, 15 / 18)
    assert find(20, 15).kept == find(20, 0).kept == 20
    assert find(7).threshold is None and find(8).kept == 8
    assert find_threshold([], 0.8, 0.2) == (None, False, 0, 0, 0, 0, None, True)


def test_no_threshold_is_negative():
    assert find_threshold([(0.0, True)] * 20, 0.8, 0.2).threshold == 0.0


def test_equal_scores_go_together():
    scored = [(0.9, True)] * 30 + [(0.5, True)] * 20 + [(0.5, False)] * 30
    assert find_threshold(scored, 0.8, 0.2).kept == 30
    assert find_threshold(scored, 0.5, 0.2).kept == 80
    assert find_threshold(scored[::-1], 0.5, 0.2) == find_threshold(scored, 0.5, 0.2)
    # Of scores that hardly differ the threshold lies between.
    scored = [(0.9, True)] * 30 + [(0.9 - 1e-8, False)] * 30
    assert 0.9 - 1e-8 < find_threshold(scored, 0.8, 0.2).threshold < 0.9


def test_a_twin_by_brute_force():
    rng = numpy.random.default_rng(1)
    found = 0
    for _ in range(40):
        n = int(rng.integers(0, 160))
        scores = rng.integers(1, 40, n) / 40
        right = rng.random(n) < 0.7 + 0.3 * scores
        scored = list(zip(scores.tolist(), right.tolist(), strict=True))
        first = max(19, min(38, n // 2))  # 0.85 ** 19 <= 0.05
        later = [start for start in (n // 4, n // 2, n) if start > first]
        sequences = [(first, 0.05), *((start, 0.05 / len(later)) for start in later)] if later else [(15, 0.1)]
        accepted = []
        for start, share in sequences:
            for t in sorted(set(scores.tolist()), reverse=True):
                kept = [hit for score, hit in scored if score >= t]
                if len(kept) >= start:
                    if exact_tail(sum(kept), len(kept), 0.85) > share:
                        break
                    accepted.append(t)
        best = pytest.approx(min(accepted), abs=2e-6) if accepted else None
        assert find_threshold(scored, 0.85, 0.1).threshold == best
        found += bool(accepted)
    assert found > 10


def test_rare_labels_are_taken_together():
    sure = [(0.9, True)] * 40
    scored = {"A": sure, "B": sure[:15], "C": [], "D": sure[:10]}
    found = fit_thresholds(scored, 0.9, 0.1, 20)
    assert not found.labels["A"].pooled and found.labels["A"].entities == 40
    assert found.labels["B"] == found.labels["C"] == found.labels["D"] == found.others
    assert (
        found.others.pooled and found.others.entities == 25 and found.others.threshold == pytest.approx(0.9, abs=2e-6)
    )
    # All labels, where the rare ones are too few even together.
    assert fit_thresholds({"A": sure, "B": sure[:3]}, 0.9, 0.1).labels["B"].entities == 43
    assert fit_thresholds({"A": sure}, 0.9, 0.1).others.entities == 40


@pytest.mark.parametrize("name, chance", [("calibrated", lambda s: s), ("sure of itself", lambda s: s**2)])
def test_thresholds_promise_too_much_no_more_often_than_said(name, chance):
    """Samples of 150 entities; the true precision is that of all scores that reach the threshold."""
    rng = numpy.random.default_rng(0)
    population = numpy.sort(rng.beta(4, 1, 200_000))
    # Mean chance of all that reach a score.
    above = chance(population)[::-1].cumsum()[::-1] / numpy.arange(len(population), 0, -1)
    wanted, delta, broken, found = 0.85, 0.1, 0, 0
    for _ in range(500):
        scores = rng.choice(population, 150)
        result = find_threshold(
            list(zip(scores.tolist(), rng.random(150) < chance(scores), strict=True)), wanted, delta
        )
        if result.threshold is not None:
            found += 1
            broken += above[population.searchsorted(result.threshold)] < wanted
    assert found > 100
    assert broken <= (delta + 0.03) * 500


@pytest.mark.parametrize(
    "right, precision, kept",
    [
        # 95.2 % were measured where 95 % are wanted, on too few entities for a guarantee: all are kept.
        ([True] * 20 + [False] + [True] * 20 + [False] + [True] * 20 + [False], 0.95, 63),
        # The first ones are as precise as wanted.
        ([True] * 25 + [False] * 25, 0.95, 26),
        # None are: those with the highest lower bound.
        ([True] * 10 + [False] * 5, 0.95, 10),
        ([True, False] * 30, 0.95, 59),
        ([False] * 5, 0.95, 0),
    ],
)
def test_the_best_threshold_where_none_is_certain(right, precision, kept):
    scored = [(1.0 - i / 1000, is_right) for i, is_right in enumerate(right)]
    assert find_threshold(scored, precision, 0.01).threshold is None
    found = find_threshold(scored, precision, 0.01, strict=False)
    assert (found.kept, found.kept_right) == (kept, sum(right[:kept]))
    assert not (found.guaranteed and kept)
    assert (found.threshold is None) == (kept == 0)

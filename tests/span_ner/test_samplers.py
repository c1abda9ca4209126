"""Samplers against numbers that were computed by hand, and against frequencies."""

from itertools import combinations
from math import comb, log, sqrt

import numpy
import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.span_ner.samplers import (
    AllNegatives,
    UniformNegativeSampler,
    WeightedNegativeSampler,
    entropy,
    number_of_negatives,
    sample_without_replacement,
)
from spacy_weakner.ty import TrainingProgress

from ..util import fix_seed

DRAWS = 10000
BEGIN, END = TrainingProgress(0, 0, 0.0, n_epochs=40.0), TrainingProgress(1, 40, 1.0, n_epochs=40.0)
# Probabilities of "O" and two labels, of five spans.
Z = numpy.asarray(
    [(0.98, 0.01, 0.01), (0.8, 0.15, 0.05), (0.5, 0.4, 0.1), (0.34, 0.33, 0.33), (0.05, 0.9, 0.05)], dtype="float64"
)
UNCERTAINTY = [0.111902, 0.612869, 0.943348, 1.098513, 0.394398]
# By whether the maximum is over "O" too: v, r, e at T = sqrt(40), e at T = 1, and at T = sqrt(40) the probabilities to
# be among two that are drawn.
ORACLE = {
    True: (
        [0, 0, 0, 0, -0.85],
        [0.111902, 0.612869, 0.943348, 1.098513, 0],
        [0.186074, 0.201412, 0.212216, 0.217487, 0.182810],
        [0.117327, 0.193626, 0.269457, 0.314685, 0.104905],
        [0.376471, 0.402751, 0.420711, 0.429301, 0.370766],
    ),
    False: (
        [0.97, 0.65, 0.1, 0.01, -0.85],
        [25.384457, 33.669722, 2.022151, 1.189532, 0],
        [0.209601, 0.776828, 0.005214, 0.004571, 0.003787],
        [0.000252, 0.999748, 0, 0, 0],
        [0.942047, 0.993421, 0.024788, 0.021734, 0.018010],
    ),
}
# n, annotated entities, unlabeled ones, ratio; size; the probability to draw none that is
# unlabeled, and its bound.
THEOREM = [
    ((10, 1, 2, 0.35), 4, 0.856045, 0.508090),
    ((20, 2, 2, 0.35), 7, 0.933668, 0.670474),
    ((20, 2, 2, 0.7), 14, 0.869612, 0.340948),
    ((40, 3, 3, 0.35), 14, 0.949407, 0.772965),
]
SAMPLERS = [UniformNegativeSampler(), WeightedNegativeSampler(), WeightedNegativeSampler(include_outside=True)]


def log_z(n, n_labels=3):
    scores = numpy.random.RandomState(0).normal(size=(n, n_labels))
    return scores - numpy.log(numpy.exp(scores).sum(axis=1, keepdims=True))


def assert_frequencies(counts, probabilities, draws, errors=5):
    """Frequencies may be a few standard errors off."""
    probabilities = numpy.asarray(probabilities)
    allowed = errors * numpy.sqrt(probabilities * (1 - probabilities) / draws) + 1e-3
    assert (numpy.abs(numpy.asarray(counts) / draws - probabilities) < allowed).all()


def normalized(log_weights):
    weights = numpy.exp(log_weights - log_weights.max())
    return weights / weights.sum()


# Sizes


@pytest.mark.parametrize("case, size", [row[:2] for row in THEOREM])
def test_sizes(case, size):
    n, annotated, _, ratio = case
    candidates = n * (n + 1) // 2 - annotated
    assert number_of_negatives(n, candidates, ratio) == size
    for sampler in (UniformNegativeSampler(ratio), WeightedNegativeSampler(ratio)):
        assert len(sampler(candidates, n, log_z(candidates))) == size


@pytest.mark.parametrize(
    "n, ratio, size", [(20, 0.35, 7), (50, 1.1, 55), (45, 1.4, 63), (3, 1.1, 4), (1, 0.35, 1), (5, 0, 0)]
)
def test_rounding_errors_of_the_product_do_not_count(n, ratio, size):
    assert number_of_negatives(n, 1000, ratio) == size


@pytest.mark.parametrize("sampler", [*SAMPLERS, AllNegatives()])
@pytest.mark.parametrize("candidates", [0, 1, 3])
def test_no_more_are_drawn_than_there_are(sampler, candidates):
    found = sampler(candidates, 100, log_z(candidates))
    assert sorted(found.tolist()) == [*range(candidates)]
    assert found.dtype == "int64"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_candidate_twice(sampler):
    for candidates in range(1, 40):
        found = sampler(candidates, 30, log_z(candidates)).tolist()
        assert len({*found}) == len(found) == min(candidates, 11)
        assert {*found} <= {*range(candidates)}


# Uniform


def test_uniform_frequencies():
    counts = numpy.zeros(20)
    for _ in range(DRAWS):
        counts[UniformNegativeSampler()(20, 10)] += 1
    assert_frequencies(counts, [4 / 20] * 20, DRAWS)


@pytest.mark.parametrize("case, size, q, bound", THEOREM)
def test_theorem_1_and_the_expected_missampling_rate(case, size, q, bound):
    n, annotated, unlabeled, ratio = case
    candidates = n * (n + 1) // 2 - annotated
    sampler = UniformNegativeSampler(ratio)
    hits = numpy.asarray([(sampler(candidates, n) < unlabeled).sum() for _ in range(DRAWS)])
    exact = comb(candidates - unlabeled, size) / comb(candidates, size)
    assert exact == pytest.approx(q, abs=1e-6)
    assert bound == pytest.approx(1 - 4 * ratio * sqrt(n) / (n - 1), abs=1e-6)
    assert_frequencies([(hits == 0).sum()], [exact], DRAWS)
    assert (hits == 0).mean() > bound
    rates = hits / size
    assert rates.mean() == pytest.approx(unlabeled / candidates, abs=5 * rates.std() / sqrt(DRAWS))


# Weighted


def test_entropy():
    numpy.testing.assert_allclose(entropy(numpy.log(Z)), UNCERTAINTY, atol=1e-6)


@pytest.mark.parametrize("include_outside", [True, False])
def test_weights_by_hand(include_outside):
    v, r, early, late, _ = ORACLE[include_outside]
    sampler = WeightedNegativeSampler(include_outside=include_outside)
    numpy.testing.assert_allclose(numpy.multiply(UNCERTAINTY, (1 + numpy.asarray(v)) ** 8), r, rtol=2e-5, atol=1e-6)
    log_weights = sampler.log_weights(numpy.log(Z), END)
    numpy.testing.assert_allclose(log_weights, r, rtol=1e-6, atol=1e-6)
    numpy.testing.assert_allclose(sampler.log_weights(numpy.log(Z), BEGIN) * sqrt(40), log_weights, rtol=1e-12)
    numpy.testing.assert_allclose(normalized(log_weights), late, atol=1e-6)
    numpy.testing.assert_allclose(normalized(sampler.log_weights(numpy.log(Z), BEGIN)), early, atol=1e-6)


@pytest.mark.parametrize("include_outside", [True, False])
def test_inclusion_probabilities(include_outside):
    sampler = WeightedNegativeSampler(ratio=0.5, include_outside=include_outside)
    expected = ORACLE[include_outside][4]
    e = normalized(sampler.log_weights(numpy.log(Z), BEGIN))
    exact = [e[i] + sum(e[j] * e[i] / (1 - e[j]) for j in range(5) if j != i) for i in range(5)]
    numpy.testing.assert_allclose(exact, expected, atol=1e-6)
    counts = numpy.zeros(5)
    for _ in range(DRAWS):
        counts[sampler(5, 4, numpy.log(Z), BEGIN)] += 1
    assert_frequencies(counts, expected, DRAWS)


def test_a_draw_without_replacement_is_one_after_the_other():
    e = numpy.asarray([0.5, 0.3, 0.15, 0.05])
    counts = dict.fromkeys(combinations(range(4), 2), 0)
    for _ in range(DRAWS):
        counts[tuple(sorted(sample_without_replacement(numpy.log(e) + 100, 2).tolist()))] += 1
    expected = [e[i] * e[j] * (1 / (1 - e[i]) + 1 / (1 - e[j])) for i, j in counts]
    assert sum(expected) == pytest.approx(1)
    assert_frequencies([*counts.values()], expected, DRAWS)


@pytest.mark.parametrize(
    "n_epochs, progress, expected",
    [(40, 0.0, sqrt(40)), (40, 0.5, sqrt(20)), (40, 0.975, 1.0), (40, 1.0, 1.0), (1, 0.5, 1.0), (10, 0.2, sqrt(8))],
)
def test_temperature(n_epochs, progress, expected):
    assert WeightedNegativeSampler(n_epochs=n_epochs).temperature(TrainingProgress(0, 0, progress)) == pytest.approx(
        expected
    )
    assert WeightedNegativeSampler().temperature(TrainingProgress(0, 0, progress, n_epochs=n_epochs)) == pytest.approx(
        expected
    )


def test_without_a_number_of_epochs_it_is_that_of_the_training():
    assert WeightedNegativeSampler().temperature(TrainingProgress(0, 0, 0.0, n_epochs=0.25)) == 1.0
    assert WeightedNegativeSampler(n_epochs=9.0).temperature(TrainingProgress(0, 0, 0.0, n_epochs=100.0)) == 3.0


@pytest.mark.parametrize("sampler", SAMPLERS[1:])
def test_probabilities_zero_and_one(sampler):
    certain = numpy.asarray([(1, 0, 0), (0, 1, 0), (0.5, 0.5, 0), (0, 0.5, 0.5)], dtype="float64")
    with numpy.errstate(divide="ignore"):
        logs = numpy.log(certain)
    numpy.testing.assert_allclose(entropy(logs), [0, 0, log(2), log(2)])
    for tick in (BEGIN, END):
        assert numpy.isfinite(sampler.log_weights(logs, tick)).all()
        assert sorted(sampler(4, 100, logs, tick).tolist()) == [0, 1, 2, 3]
        assert len({*sampler(4, 6, logs, tick).tolist()}) == 3


@pytest.mark.parametrize("n_labels", [2, 3, 40])
def test_weights_beyond_the_range_of_exp(n_labels):
    sampler = WeightedNegativeSampler(ratio=1.0, exponent=100.0, n_epochs=1.0, include_outside=False)
    logs = log_z(50, n_labels)
    logs[7] = numpy.log([0.9, *[0.1 / (n_labels - 1)] * (n_labels - 1)])
    assert sampler.log_weights(logs, BEGIN).max() > 1000
    found = sampler(50, 5, logs, BEGIN).tolist()
    assert 7 in found
    assert len({*found}) == 5


# An oracle


@pytest.mark.parametrize("make", [UniformNegativeSampler, WeightedNegativeSampler])
def test_what_an_oracle_takes_for_an_entity_is_not_drawn(make):
    """Of "O" the five spans have 0.98, 0.8, 0.5, 0.34 and 0.05."""
    for exclude, left in [(0.0, 5), (0.05, 5), (0.051, 4), (0.5, 3), (0.9, 1), (1.0, 0)]:
        sampler = make(ratio=2.0, exclude=exclude)
        assert sorted(sampler(5, 4, numpy.log(Z) + 1e-12, BEGIN).tolist()) == [*range(left)]
        few = make(ratio=0.5, exclude=exclude)
        for _ in range(50):
            drawn = few(5, 4, numpy.log(Z) + 1e-12, BEGIN).tolist()
            assert len({*drawn}) == len(drawn) == min(2, left)
            assert {*drawn} <= {*range(left)}


def test_those_left_are_drawn_as_if_there_were_no_others():
    uniform, counts = UniformNegativeSampler(0.5, exclude=0.4), numpy.zeros(5)
    weighted, weighted_counts = WeightedNegativeSampler(0.25, exclude=0.4), numpy.zeros(5)
    for _ in range(DRAWS):
        counts[uniform(5, 4, numpy.log(Z))] += 1
        weighted_counts[weighted(5, 4, numpy.log(Z), BEGIN)] += 1
    assert_frequencies(counts, [2 / 3, 2 / 3, 2 / 3, 0, 0], DRAWS)
    assert_frequencies(weighted_counts, [*normalized(weighted.log_weights(numpy.log(Z[:3]), BEGIN)), 0, 0], DRAWS)


@pytest.mark.parametrize("make", [UniformNegativeSampler, WeightedNegativeSampler])
def test_without_an_oracle_nothing_can_be_excluded(make):
    with pytest.raises(ValueError, match="probabilities"):
        make(exclude=0.5)(5, 4)


# Settings


@pytest.mark.parametrize(
    "settings, name",
    [
        ({"ratio": -0.1}, "ratio"),
        ({"ratio": float("nan")}, "ratio"),
        ({"exclude": -0.1}, "exclude"),
        ({"exclude": 1.1}, "exclude"),
    ],
)
@pytest.mark.parametrize("make", [UniformNegativeSampler, WeightedNegativeSampler])
def test_settings_of_both_out_of_range(make, settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        make(**settings)


@pytest.mark.parametrize(
    "name, value", [("exponent", -1.0), ("exponent", float("nan")), ("n_epochs", 0.5), ("n_epochs", -3.0)]
)
def test_settings_of_the_weighted_one_out_of_range(name, value):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        WeightedNegativeSampler(**{name: value})


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_seed_decides(sampler):
    def draw(seed):
        fix_seed(seed)
        return [sampler(100, 20, log_z(100), BEGIN).tolist() for _ in range(3)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert draw(1)[0] != draw(1)[1]


@pytest.mark.parametrize("make", [UniformNegativeSampler, WeightedNegativeSampler])
def test_a_ratio_of_zero_draws_nothing(make):
    assert make(0.0)(5, 10, log_z(5)).tolist() == []

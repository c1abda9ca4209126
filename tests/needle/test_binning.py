"""Step functions from scores to chances: hand-computed numbers, slow twins, ties and few observations."""

import itertools
import json

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_weakner.corpus.tags import MISSING, TagScheme
from spacy_weakner.needle.binning import Steps, bin_means, histogram, isotonic
from spacy_weakner.needle.completion import UNMATCHED, apply_rule, is_broken, matched, mix_labels
from spacy_weakner.needle.confidence import Calibration, confidence, score_per_word
from spacy_weakner.ty import PathScore

SCORES = numpy.array([0.1, 0.5, 0.9, 1.2, 1.6, 2.0, 2.2, 2.5, 3.0, 3.3, 3.7, 4.1])
HITS = numpy.array([0, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1], dtype=float)


def test_oracle_means():
    steps = bin_means(SCORES, HITS, numpy.array([1.2, 2.2]))
    assert steps.values.tolist() == pytest.approx([1 / 3, 1 / 3, 5 / 6], abs=1e-5)
    assert steps.counts.tolist() == [3, 3, 6]


@pytest.mark.parametrize("score, value", [(0.0, 1 / 3), (1.2, 1 / 3), (1.4, 1 / 3), (2.2, 5 / 6), (9.9, 5 / 6)])
def test_oracle_lookup(score, value):
    assert bin_means(SCORES, HITS, numpy.array([1.2, 2.2]))(score) == pytest.approx(value)


def test_bins_hold_equal_shares():
    steps = histogram(SCORES, HITS, 4)
    assert steps.edges.tolist() == [1.2, 2.2, 3.3]
    assert steps.counts.tolist() == [3, 3, 3, 3]
    assert steps.values.tolist() == pytest.approx([1 / 3, 1 / 3, 1, 2 / 3])


def test_order_does_not_matter():
    order = numpy.random.RandomState(0).permutation(len(SCORES))
    for function in (lambda x, y: histogram(x, y, 5), isotonic):
        for a, b in zip(function(SCORES, HITS), function(SCORES[order], HITS[order]), strict=True):
            assert a.tolist() == b.tolist()


def slow_isotonic(scores, hits):
    """The best non-decreasing values, by trying every way to cut the ascending scores into pools."""
    values = sorted(set(scores))
    best = None
    for cuts in itertools.product([False, True], repeat=len(values) - 1):
        pools, pool = [], [values[0]]
        for cut, value in zip(cuts, values[1:], strict=True):
            if cut:
                pools.append(pool)
                pool = []
            pool.append(value)
        pools.append(pool)
        means = {v: numpy.mean([h for s, h in zip(scores, hits, strict=True) if s in p]) for p in pools for v in p}
        fitted = [means[v] for v in values]
        if all(a <= b + 1e-12 for a, b in itertools.pairwise(fitted)):
            error = sum((means[s] - h) ** 2 for s, h in zip(scores, hits, strict=True))
            if best is None or error < best[0] - 1e-12:
                best = (error, means)
    return best[1]


@pytest.mark.parametrize("seed", range(20))
def test_isotonic_regression_equals_its_twin(seed):
    rng = numpy.random.RandomState(seed)
    n = rng.randint(1, 9)
    scores, hits = rng.randint(0, 6, n).astype(float), rng.uniform(size=n).round(1)
    steps = isotonic(scores, hits)
    expected = slow_isotonic(scores.tolist(), hits.tolist())
    for score in scores:
        assert steps(score) == pytest.approx(expected[score])
    assert (numpy.diff(steps.values) > 0).all() and steps.counts.sum() == n


def test_scores_beyond_those_seen_belong_to_the_outermost_steps():
    steps = Steps(numpy.array([0.0]), numpy.array([0.2, 0.8]), numpy.array([1, 1]))
    assert [steps(s) for s in (-1e9, -numpy.inf, 0.0, 1e9, numpy.inf)] == [0.2, 0.2, 0.8, 0.8, 0.8]


@given(
    scores=st.lists(st.integers(-4, 4), min_size=1, max_size=60),
    n_bins=st.integers(1, 12),
    least=st.integers(1, 12),
)
def test_no_bin_is_too_small_however_scores_are_tied(scores, n_bins, least):
    x = numpy.asarray(scores, dtype="float64")
    y = (numpy.arange(len(x)) % 3 == 0).astype("float64")
    steps = histogram(x, y, n_bins, least)
    own = [[j for j, score in enumerate(x) if steps(score) == steps.values[i]] for i in range(len(steps.values))]
    assert steps.counts.sum() == len(x) and len(steps.counts) <= n_bins
    assert steps.counts.min() >= min(least, len(x))
    assert all(len(members) >= count for members, count in zip(own, steps.counts, strict=True))
    for i, (low, high) in enumerate(itertools.pairwise([-numpy.inf, *steps.edges, numpy.inf])):
        inside = (low <= x) & (x < high)
        assert inside.sum() == steps.counts[i] and steps.values[i] == pytest.approx(y[inside].mean())
    if len({*scores}) == len(scores):
        # Without ties the bins are as equal as can be.
        assert len(steps.counts) == max(1, min(n_bins, len(x) // least)) and numpy.ptp(steps.counts) <= 1


# Confidence


STEPS = bin_means(SCORES, HITS, numpy.array([1.2, 2.2]))


@pytest.mark.parametrize(
    "score, share, expected",
    [(0, 0, 0.333333), (1.4, 0.25, 0.5), (2.2, 0.5, 0.916667), (3.6, 0.2, 0.866667), (9.9, 0.9, 0.95)],
)
def test_oracle(score, share, expected):
    assert confidence(round(share * 20), 20, STEPS(score)) == pytest.approx(expected, abs=1e-5)


def test_score_per_word():
    path = PathScore(["O", "O", "B-A", "I-A"], 6.0, -2.0)
    assert score_per_word(path, "viterbi") == 1.5
    assert score_per_word(path, "log_probability") == -0.5
    calibration = Calibration("viterbi", "sentence", STEPS, {})
    assert calibration.predicted(path) == pytest.approx(1 / 3)


def test_it_can_be_stored_as_json():
    calibration = Calibration("log_probability", "token", STEPS, {"none": 71.5}, 0.25)
    stored = json.loads(json.dumps(calibration.to_json()))
    assert stored.pop("steps") == {name: values.tolist() for name, values in STEPS._asdict().items()}
    assert Calibration(**stored, steps=STEPS) == calibration


# Completion


BIO = TagScheme("BIO", ["A", "B"])


def ids(scheme, text):
    return numpy.asarray([MISSING if tag == "?" else scheme.index[tag] for tag in text.split()], dtype="int64")


@pytest.mark.parametrize(
    "weak, predicted, expected",
    [
        ("O B-A I-A O", "B-B O O B-A", "B-B B-A I-A B-A"),
        ("? B-A I-A ?", "B-B O O B-A", "B-B B-A I-A B-A"),
        ("O O", "O O", "O O"),
        ("B-A O", "B-A I-A", "B-A I-A"),
        ("O B-A", "B-B I-B", "B-B B-A"),
        ("B-A O", "B-B I-B", "B-A I-B"),
        ("", "", ""),
    ],
)
def test_equation_2(weak, predicted, expected):
    completed = apply_rule(ids(BIO, weak), ids(BIO, predicted), UNMATCHED)
    assert completed.tolist() == ids(BIO, expected).tolist()


def test_soft_completion():
    weak = numpy.asarray([MISSING, 0, 1, 2])
    predicted = numpy.asarray([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0]])
    expected = [[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    numpy.testing.assert_allclose(mix_labels(weak, predicted), expected)


def test_matched_tokens_are_those_of_weak_entities():
    assert matched(ids(BIO, "? O B-A I-A")).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    "scheme, tags, broken",
    [
        ("BIO", "B-A I-A O", False),
        ("BIO", "B-A I-B", True),
        ("BIO", "O I-A", True),
        ("BIO", "I-A", True),
        ("BIO", "", False),
        ("IOBES", "B-A E-A S-B", False),
        ("IOBES", "B-A", True),
        ("IOBES", "B-A S-A", True),
        ("IO", "I-A I-B O", False),
    ],
)
def test_broken_sequences(scheme, tags, broken):
    scheme = TagScheme(scheme, ["A", "B"])
    assert is_broken(ids(scheme, tags), scheme) == broken


@pytest.mark.parametrize(
    "weak_accuracy, cap, expected", [(1.0, 0.95, 0.8), (0.5, 0.95, 0.55), (1.0, 0.7, 0.7), (0.0, 1.0, 0.3), (1, 0, 0)]
)
def test_weak_labels_may_be_wrong(weak_accuracy, cap, expected):
    # 5 of 10 tokens are matched, and the model's tags are right with a probability of 0.6.
    assert confidence(5, 10, 0.6, weak_accuracy, cap) == pytest.approx(expected)

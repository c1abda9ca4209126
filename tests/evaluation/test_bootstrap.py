import numpy
import pytest

from spacy_weakner.evaluation import bootstrap as module
from spacy_weakner.evaluation.bootstrap import Bootstrap, Difference, resample
from spacy_weakner.scores import Counts


def make_counts(seed=0, candidates=3, sentences=40):
    return numpy.random.default_rng(seed).integers(0, 4, (candidates, sentences, 3))


def slow_resample(counts, samples, seed):
    """The same, sentence by sentence."""
    rng = numpy.random.default_rng(seed)
    n = counts.shape[1]
    result = []
    for _ in range(samples):
        drawn = rng.integers(0, n, (1, n))[0]
        result.append([[sum(int(c[i][k]) for i in drawn) for k in range(3)] for c in counts])
    return numpy.array(result)


def bounds(interval):
    return interval.low, interval.high


@pytest.mark.parametrize("chunk", [1, 40, 100, 2_000_000])
def test_resamples_equal_the_slow_twin_whatever_the_chunks(monkeypatch, chunk):
    monkeypatch.setattr(module, "_CHUNK", chunk)
    counts = make_counts()
    assert (resample(counts, 25, seed=3) == slow_resample(counts, 25, seed=3)).all()


def test_intervals_and_differences_by_hand():
    counts = make_counts()
    result = Bootstrap(counts, 60, seed=1)
    slow = slow_resample(counts, 60, seed=1)
    scores = numpy.array([[Counts(*map(int, c)).f1 for c in row] for row in slow])
    assert bounds(result.interval(2)) == pytest.approx(tuple(numpy.percentile(scores[:, 2], [2.5, 97.5])))
    difference = result.difference(0, 1, "b")
    observed = Counts(*map(int, counts[0].sum(axis=0))).f1 - Counts(*map(int, counts[1].sum(axis=0))).f1
    resampled = scores[:, 0] - scores[:, 1]
    flips = sum(1 for value in resampled if value * observed <= 0)
    assert difference.baseline == "b" and difference.f1 == pytest.approx(observed)
    assert bounds(difference) == pytest.approx(tuple(numpy.percentile(resampled, [2.5, 97.5])))
    assert difference.p == pytest.approx(min(1, 2 * (flips + 1) / 61))


def test_one_that_is_better_everywhere():
    counts = numpy.array([[[1, 0, 0]] * 10, [[0, 1, 1]] * 10])
    result = Bootstrap(counts, 99)
    assert bounds(result.interval(0)) == (100, 100)
    certain = Difference(baseline="x", f1=100, low=100, high=100, p=0.02)
    assert result.difference(0, 1, "x") == certain and certain.is_certain
    assert result.difference(1, 0, "x").f1 == -100


@pytest.mark.parametrize("low, high", [(-8.3, 0.0), (-8.3, 0.04)])
def test_nothing_is_below_zero_by_zero(low, high):
    assert "CI 0.0 to 8.3" in Difference(baseline="x", f1=-4.0, low=low, high=high, p=0.1).text()


def test_equal_candidates_do_not_differ():
    counts = make_counts(candidates=1).repeat(2, axis=0)
    assert Bootstrap(counts, 20).difference(0, 1, "x") == Difference(baseline="x", f1=0, low=0, high=0, p=1)


def test_single_intervals_overlap_where_the_paired_one_excludes_zero():
    # Sentences differ far more than the candidates, one of which is better by an entity in every fifth sentence.
    rng = numpy.random.default_rng(0)
    right = rng.integers(0, 11, 200)
    better = right + (numpy.arange(200) % 5 == 0) * (right < 10)
    counts = numpy.stack([numpy.stack([n, 10 - n, 10 - n], axis=1) for n in (better, right)])
    result = Bootstrap(counts, 500)
    first, second, difference = result.interval(0), result.interval(1), result.difference(0, 1, "x")
    assert second.high > first.low and difference.low > 0 and difference.is_certain and difference.p < 0.05


def test_seed_decides():
    counts = make_counts()
    first, again, other = (Bootstrap(counts, 50, seed) for seed in (0, 0, 1))
    assert (first.samples == again.samples).all()
    assert (first.samples != other.samples).any()


def test_empty_sentences_only():
    assert Bootstrap(numpy.zeros((1, 3, 3), dtype="int64"), 10).interval(0).text() == "0.0 to 0.0"

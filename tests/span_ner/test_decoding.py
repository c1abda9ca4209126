import random

import numpy
import pytest

from spacy_weakner.span_ner.decoding import Candidates, select

from .util import all_spans


def make(*rows):
    """Candidates from (start, end, probability)."""
    spans = numpy.asarray([row[:2] for row in rows], dtype="int64").reshape(-1, 2)
    chances = numpy.asarray([row[2] for row in rows], dtype="float64")
    return Candidates(spans, numpy.ones(len(rows), dtype="int64"), chances, numpy.log(chances))


def naive_select(candidates):
    """Look for the best of those that are left, and throw out what overlaps it, until none is left."""
    left = [*range(len(candidates.spans))]
    chosen = []
    while left:
        best = left[0]
        for i in left:
            if candidates.probabilities[i] > candidates.probabilities[best]:
                best = i
        start, end = candidates.spans[best]
        chosen.append(best)
        left = [i for i in left if candidates.spans[i][0] >= end or candidates.spans[i][1] <= start]
    return sorted(chosen, key=lambda i: candidates.spans[i][0])


@pytest.mark.parametrize("levels", [2, 1000])
@pytest.mark.parametrize("seed", range(100))
def test_equals_a_slow_twin(seed, levels):
    drawn = random.Random(seed)
    n_tokens = drawn.randint(1, 12)
    spans = all_spans(n_tokens)
    spans = drawn.sample(spans, drawn.randint(0, len(spans)))
    candidates = make(*((start, end, drawn.randint(1, levels) / levels) for start, end in spans))
    assert select(candidates, n_tokens) == naive_select(candidates)


@pytest.mark.parametrize(
    "rows, expected",
    [
        ([], []),
        ([(0, 1, 0.5)], [0]),
        ([(0, 2, 0.5), (0, 3, 0.5)], [0]),
        ([(0, 3, 0.5), (0, 2, 0.5)], [0]),
        ([(1, 2, 0.6), (0, 4, 0.9), (2, 3, 0.7)], [1]),
        ([(1, 2, 0.95), (0, 4, 0.9), (2, 3, 0.7)], [0, 2]),
        ([(0, 3, 0.8), (2, 5, 0.9)], [1]),
        ([(0, 3, 0.8), (2, 5, 0.9), (4, 6, 0.95)], [0, 2]),
        ([(3, 4, 0.5), (0, 3, 0.5)], [1, 0]),
        ([(0, 2, 1.0), (2, 4, 0.1)], [0, 1]),
    ],
    ids=["none", "one", "tie", "tie_by_order", "nested", "nested_inner", "crossing", "chain", "sorted", "adjacent"],
)
def test_cases(rows, expected):
    assert select(make(*rows), 6) == expected


def test_the_order_is_that_of_the_ranks():
    spans = numpy.asarray([[0, 2], [1, 3]])
    labels = numpy.asarray([1, 1])
    assert select(Candidates(spans, labels, numpy.asarray([1.0, 1.0]), numpy.asarray([-0.2, -0.1])), 3) == [1]

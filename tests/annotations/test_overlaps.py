"""Choosing among spans that overlap."""

import numpy
import pytest

from spacy_weakner.annotations.overlaps import without_overlaps


def brute_force(spans, ranks):
    kept = []
    for i in sorted(range(len(spans)), key=lambda i: (-ranks[i], i)):
        start, end = spans[i]
        if all(end <= spans[j][0] or spans[j][1] <= start for j in kept):
            kept.append(i)
    return sorted(kept, key=lambda i: spans[i][0])


@pytest.mark.parametrize("n_tokens", [1, 3, 8, 20])
@pytest.mark.parametrize("n_ranks", [1, 3, 1000])
def test_equals_brute_force(n_tokens, n_ranks):
    random = numpy.random.RandomState(n_tokens)
    for _ in range(30):
        starts = random.randint(n_tokens, size=random.randint(12)).tolist()
        spans = [(start, random.randint(start + 1, n_tokens + 1)) for start in starts]
        ranks = random.randint(n_ranks, size=len(spans)) / n_ranks
        assert without_overlaps(spans, ranks, n_tokens) == brute_force(spans, ranks)


@pytest.mark.parametrize(
    "spans, ranks, expected",
    [
        ([], [], []),
        ([(0, 2), (1, 3), (2, 4)], [0.5, 0.9, 0.8], [1]),
        ([(0, 2), (1, 3), (2, 4)], [0.5, 0.4, 0.3], [0, 2]),
        # Of equal ones the first.
        ([(1, 2), (0, 3), (0, 1)], [0.5, 0.5, 0.5], [2, 0]),
        ([(0, 1), (0, 1)], [0.1, 0.2], [1]),
        ([(0, 4), (1, 2)], [-1.0, -2.0], [0]),
    ],
)
def test_by_hand(spans, ranks, expected):
    assert without_overlaps(spans, ranks, 4) == expected

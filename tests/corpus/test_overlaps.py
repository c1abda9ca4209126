"""Choosing among spans that overlap."""

from itertools import combinations

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.aggregation.policies import ProposedSpan, select_spans
from spacy_weakner.corpus.overlaps import best_without_overlaps, longest_first, without_overlaps


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


# The largest sum


def without_any_overlap(spans):
    return all(one[1] <= other[0] or other[1] <= one[0] for one, other in combinations(spans, 2))


@pytest.mark.parametrize("n_tokens", [1, 2, 5, 9])
@pytest.mark.parametrize("seed", range(10))
def test_no_choice_has_a_larger_sum(n_tokens, seed):
    random = numpy.random.RandomState(seed)
    starts = random.randint(n_tokens, size=random.randint(9)).tolist()
    spans = [(start, random.randint(start + 1, n_tokens + 1)) for start in starts]
    weights = random.rand(len(spans)) - 0.1
    sums = [
        weights[list(rows)].sum()
        for n in range(len(spans) + 1)
        for rows in combinations(range(len(spans)), n)
        if without_any_overlap([spans[i] for i in rows])
    ]
    chosen = best_without_overlaps(spans, weights, n_tokens)
    assert without_any_overlap([spans[i] for i in chosen])
    assert weights[chosen].sum() == pytest.approx(max(sums))
    assert [spans[i][0] for i in chosen] == sorted(spans[i][0] for i in chosen)


@pytest.mark.parametrize(
    "spans, weights, expected",
    [
        ([], [], []),
        # Two neighbors against the span over both.
        ([(0, 3), (0, 1), (2, 3)], [0.98, 0.97, 0.96], [1, 2]),
        ([(0, 3), (0, 1), (2, 3)], [0.81, 0.18, 0.18], [0]),
        ([(0, 2), (1, 3), (2, 4)], [0.5, 0.9, 0.5], [0, 2]),
        # Of equal ones the first; nothing is gained by what weighs nothing.
        ([(0, 1), (0, 1)], [0.5, 0.5], [0]),
        ([(0, 1), (1, 2)], [0.0, 0.5], [1]),
    ],
)
def test_the_largest_sum_by_hand(spans, weights, expected):
    assert best_without_overlaps(spans, weights, 4) == expected


def test_the_longest_first_is_what_a_single_source_says_elsewhere():
    vocab, random = spacy.blank("xx").vocab, numpy.random.RandomState(0)
    for _ in range(50):
        doc = Doc(vocab, words=["x" * length for length in random.randint(1, 6, 8)])
        bounds = [(start, random.randint(start + 1, 9)) for start in random.randint(8, size=random.randint(7)).tolist()]
        spans = [Span(doc, start, end, random.choice(["A", "B"])) for start, end in bounds]
        found = [(spans[i].start, spans[i].end, spans[i].label_) for i in longest_first(spans)]
        assert found == select_spans([ProposedSpan.of(span, "one") for span in spans], "longest", ["one"])

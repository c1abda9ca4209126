"""Pairing starts and ends."""

import numpy
import pytest

from spacy_weakner.mrc_ner import decoding
from spacy_weakner.mrc_ner.decoding import MOST_PAIRS, N_ENDS_PROBABLE, most_probable, nearest_ends, pair_boundaries


def pairs_of(*given):
    return list(map(tuple, nearest_ends(*given).tolist()))


P_START = numpy.asarray([0.9, 0.05, 0.3, 0.15, 0.02])
P_END = numpy.asarray([0.05, 0.4, 0.2, 0.12, 0.6])


@pytest.mark.parametrize("threshold, expected", [(0.1, [(0, 2), (2, 3), (3, 4)]), (0.5, [(0, 5)]), (0.95, [])])
def test_by_hand(threshold, expected):
    assert pairs_of(threshold < P_START, threshold < P_END) == expected


def test_a_long_text_at_a_low_threshold():
    boundaries = numpy.ones((20_000, 1, 2), dtype=bool)
    spans = pair_boundaries(boundaries, None, N_ENDS_PROBABLE)
    assert len(spans) == 20_000 * 64 - 64 * 63 // 2
    odds = numpy.random.RandomState(0).normal(size=boundaries.shape)
    kept = most_probable(spans, odds)
    sure = 1 / (1 + numpy.exp(-odds[:, 0]))
    products = [sure[own[:, 0], 0] * sure[own[:, 1] - 1, 1] for own in (spans, kept)]
    assert len(kept) == MOST_PAIRS and products[1].min() == pytest.approx(numpy.sort(products[0])[-MOST_PAIRS])
    assert most_probable(spans[:5], odds).tolist() == spans[:5].tolist()


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 20])
def test_pairs_in_parts(monkeypatch, at_a_time):
    monkeypatch.setattr(decoding, "_PAIRS_AT_A_TIME", at_a_time)
    flags = numpy.random.RandomState(0).rand(40, 2) < 0.5
    ends = numpy.flatnonzero(flags[:, 1])
    expected = [
        (start, int(end) + 1)
        for start in numpy.flatnonzero(flags[:, 0]).tolist()
        for end in ends[ends >= start][:3]
        if end + 1 - start <= 4
    ]
    assert pairs_of(*flags.T, 4, 3) == expected


@pytest.mark.parametrize("n_ends", [1, 2, 3, 100])
@pytest.mark.parametrize("max_width", [None, 1, 4])
def test_several_ends_by_brute_force(n_ends, max_width):
    random = numpy.random.RandomState(0)
    for _ in range(30):
        boundaries = random.rand(9, 3, 2) < random.rand()
        expected = []
        for k in range(3):
            for i in numpy.flatnonzero(boundaries[:, k, 0]):
                ends = [j + 1 for j in range(i, 9) if boundaries[j, k, 1]][:n_ends]
                expected += [[i, end, k] for end in ends if max_width is None or end - i <= max_width]
        assert pair_boundaries(boundaries, max_width, n_ends).tolist() == expected

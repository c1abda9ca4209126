"""Pairing starts and ends."""

import numpy
import pytest

from spacy_weakner.mrc_ner.decoding import nearest_ends


def brute_force(starts, ends, max_width):
    found = []
    for start in range(len(starts)):
        if starts[start]:
            end = next((i for i in range(start, len(ends)) if ends[i]), None)
            if end is not None and (max_width is None or end + 1 - start <= max_width):
                found.append((start, end + 1))
    return found


@pytest.mark.parametrize("max_width", [None, 1, 2, 4, 100])
@pytest.mark.parametrize("n_tokens", [0, 1, 2, 5, 12])
def test_equals_brute_force(n_tokens, max_width):
    random = numpy.random.RandomState(n_tokens)
    for _ in range(50):
        starts, ends = (random.rand(n_tokens) < random.rand() for _ in range(2))
        assert nearest_ends(starts, ends, max_width) == brute_force(starts, ends, max_width)


P_START = numpy.asarray([0.9, 0.05, 0.3, 0.15, 0.02])
P_END = numpy.asarray([0.05, 0.4, 0.2, 0.12, 0.6])


@pytest.mark.parametrize("threshold, expected", [(0.1, [(0, 2), (2, 3), (3, 4)]), (0.5, [(0, 5)]), (0.95, [])])
def test_by_hand(threshold, expected):
    assert nearest_ends(threshold < P_START, threshold < P_END) == expected


def spans(starts, ends, max_width=None):
    flags = ([c == "x" for c in text] for text in (starts, ends))
    return nearest_ends(*map(numpy.asarray, flags), max_width)


@pytest.mark.parametrize(
    "starts, ends, expected",
    [
        ("x..", "x..", [(0, 1)]),
        ("xx.", "..x", [(0, 3), (1, 3)]),
        ("x..", ".xx", [(0, 2)]),
        # An end without a start, and a start without an end.
        ("..x", "xx.", []),
        ("x.x", ".x.", [(0, 2)]),
        ("...", "xxx", []),
        ("xxx", "...", []),
    ],
)
def test_the_nearest_end_from_each_start_on(starts, ends, expected):
    assert spans(starts, ends) == expected


@pytest.mark.parametrize(
    "max_width, expected", [(None, [(0, 4), (2, 4)]), (4, [(0, 4), (2, 4)]), (3, [(2, 4)]), (1, [])]
)
def test_what_is_too_wide_is_no_span(max_width, expected):
    assert spans("x.x..", "...x.", max_width) == expected


def test_spans_are_plain_numbers():
    assert all(type(i) is int for span in spans("x..", "..x") for i in span)

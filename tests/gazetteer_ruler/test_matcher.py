"""Looking phrases up in sequences of ids."""

import numpy
import pytest

from spacy_weakner.gazetteer_ruler.matcher import TermTable


def make_table(*phrases):
    table = TermTable()
    for key, label in phrases:
        table.add(key, label)
    return table


def find(table, ids):
    return table.find(numpy.asarray(ids, dtype="uint64"))


def naive_find(phrases, ids):
    """Every phrase at every place."""
    return sorted(
        (start, start + len(key), label)
        for key, label in set(phrases)
        for start in range(len(ids))
        if list(key) == list(ids[start : start + len(key)])
    )


@pytest.mark.parametrize("seed", range(40))
def test_find_equals_brute_force(seed):
    rng = numpy.random.RandomState(seed)
    n_values = int(rng.randint(1, 5))
    phrases = [
        (tuple(rng.randint(1, n_values + 1, size=rng.randint(1, 5)).tolist()), "ABC"[rng.randint(3)])
        for _ in range(rng.randint(1, 30))
    ]
    ids = rng.randint(1, n_values + 1, size=rng.randint(0, 25)).tolist()
    assert find(make_table(*phrases), ids) == naive_find(phrases, ids)


@pytest.mark.parametrize(
    "phrases, ids, expected",
    [
        ([], [1, 2], []),
        ([((1,), "A")], [], []),
        ([((1,), "A")], [1, 1], [(0, 1, "A"), (1, 2, "A")]),
        ([((1,), "B"), ((1,), "A")], [1], [(0, 1, "A"), (0, 1, "B")]),
        ([((1, 2), "A"), ((1,), "A"), ((2, 3), "A")], [1, 2, 3], [(0, 1, "A"), (0, 2, "A"), (1, 3, "A")]),
        # A long phrase is cut off by the end of the text, and what is left of it is a phrase too.
        ([((1, 2, 3), "A"), ((1, 2), "B")], [1, 2], [(0, 2, "B")]),
        ([((1, 1), "A")], [1, 1, 1], [(0, 2, "A"), (1, 3, "A")]),
    ],
)
def test_find(phrases, ids, expected):
    assert find(make_table(*phrases), ids) == expected


def test_ids_beyond_int64():
    big = 2**64 - 1
    assert find(make_table(((big, 1), "A")), [big, 1]) == [(0, 2, "A")]


def test_order_of_adding_does_not_matter():
    phrases = [((1,), "B"), ((1, 2), "A"), ((1,), "A"), ((2,), "C")]
    assert find(make_table(*phrases), [1, 2]) == find(make_table(*phrases[::-1]), [1, 2])


def test_adding_twice_changes_nothing():
    table = make_table(((1,), "A"), ((1,), "A"))
    assert len(table) == 1
    assert find(table, [1]) == [(0, 1, "A")]

"""The hash table against a dictionary."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.gazetteer_ruler.hash_table import HashTable

IDS = st.integers(min_value=1, max_value=2**64 - 1)
VALUES = st.integers(min_value=1, max_value=2**32 - 1)
INVERSE = pow(0x9E3779B97F4A7C15, -1, 2**64)


def ids(values):
    return numpy.asarray(values, dtype="uint64")


def ints(values):
    return numpy.asarray(values, dtype="uint32")


def colliding(n, place=0):
    """Keys that all want the same slot: their product with the multiplier begins with the same 32 bits."""
    return [((place << 32) + low) * INVERSE % 2**64 for low in range(1, n + 1)]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(IDS, VALUES), st.lists(IDS | st.just(0)))
def test_find_equals_dict(items, others):
    table = HashTable.build(ids(list(items)), ints(list(items.values())))
    keys = [*items, *others]
    assert table.find(ids(keys)).tolist() == [items.get(key, 0) for key in keys]
    assert table.is_sound(2**32 - 1)


def test_many_keys():
    keys = numpy.unique(numpy.random.RandomState(0).randint(1, 200_000, size=60_000)).astype("uint64")
    table = HashTable.build(keys)
    expected = dict(zip(keys.tolist(), range(1, len(keys) + 1), strict=True))
    every = numpy.arange(200_000, dtype="uint64")
    assert table.find(every).tolist() == [expected.get(key, 0) for key in every.tolist()]


@pytest.mark.parametrize("place", [0, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 8, 9, 100])
def test_keys_that_want_the_same_slot(n, place):
    keys, absent = colliding(n, place), colliding(2 * n, place)[n:]
    table = HashTable.build(ids(keys))
    assert len(set(table._slots(ids(keys + absent)).tolist())) == 1
    assert table.find(ids(keys)).tolist() == list(range(1, n + 1))
    assert not table.find(ids(absent)).any()


def test_colliding_keys_among_others():
    keys = colliding(20) + colliding(20, 1 << 30) + list(range(1, 500))
    table = HashTable.build(ids(keys))
    assert table.find(ids(keys[::-1])).tolist() == list(range(len(keys), 0, -1))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31, 32, 33])
def test_at_least_half_of_the_slots_are_empty(n):
    table = HashTable.build(numpy.arange(1, n + 1, dtype="uint64"))
    assert len(table.keys) >= max(8, 2 * n)
    assert numpy.count_nonzero(table.keys) == n


@pytest.mark.parametrize("step", range(8))
def test_probing_reaches_every_slot(step):
    # One free slot is left, and wherever it is, looking up another key ends there.
    keys = numpy.arange(1, 9, dtype="uint64")
    keys[step] = 0
    table = HashTable(keys, keys.astype("uint32"))
    assert not table.find(numpy.arange(100, 200, dtype="uint64")).any()


def test_empty_table_and_empty_query():
    table = HashTable.build(ids([]))
    assert table.find(ids([0, 1, 2**64 - 1])).tolist() == [0, 0, 0]
    assert table.find(ids([])).tolist() == []
    assert table.is_sound(0)


@pytest.mark.parametrize("key", [1, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_extreme_keys(key):
    table = HashTable.build(ids([key]), ints([2**32 - 1]))
    assert table.find(ids([0, key, key ^ 2])).tolist() == [0, 2**32 - 1, 0]


@pytest.mark.parametrize(
    "keys, values, highest",
    [
        ([], [], 9),
        ([0] * 8, [0] * 4, 9),
        ([0] * 6, [0] * 6, 9),
        ([1, 2, 3, 4, 5, 6, 7, 8], [1] * 8, 9),
        ([1, 2, 3, 4, 5, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0], 9),
        ([1, 0, 0, 0], [0, 0, 0, 0], 9),
        ([0, 0, 0, 0], [1, 0, 0, 0], 9),
        ([1, 0, 0, 0], [9, 0, 0, 0], 8),
    ],
)
def test_unsound(keys, values, highest):
    assert not HashTable(ids(keys), ints(values)).is_sound(highest)

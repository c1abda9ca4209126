"""Finding phrases against a search for every phrase at every place, and the hash table against a dictionary."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.array_file import ArrayFile, dump_arrays
from spacy_weakner.gazetteer_ruler.trie import HashTable, Trie

from .util import naive_find

BIG = 2**64 - 1


def make_trie(phrases, only_first=False):
    keys = [key for key, _ in phrases]
    offsets = numpy.cumsum([0, *map(len, keys)])
    ids = numpy.asarray([value for key in keys for value in key], dtype="uint64")
    labels = numpy.asarray([label for _, label in phrases], dtype="int64")
    return Trie.build(ids, offsets, labels, only_first=only_first)


def find(trie, *sequences):
    """The matches in each sequence, all of them looked up together."""
    flat = [value for sequence in sequences for value in [*sequence, 0]]
    begins = numpy.cumsum([0, *(len(sequence) + 1 for sequence in sequences)])
    found = [[] for _ in sequences]
    hits = trie.find(numpy.asarray(flat, dtype="uint64"))
    for place, length, label in zip(*(column.tolist() for column in hits), strict=True):
        i = int(numpy.searchsorted(begins, place, side="right")) - 1
        start = place - int(begins[i])
        found[i].append((start, start + length, label))
    return [sorted(rows) for rows in found]


def stored(arrays):
    return ArrayFile(dump_arrays({}, arrays), "the file")


@st.composite
def cases(draw):
    # Some are equal in the lower 32 bits; sequences have 0 where no phrase can go on.
    alphabet = st.sampled_from([1, 2, 3, BIG - 1, BIG, 1 + 2**32][: draw(st.integers(1, 6))])
    phrase = st.tuples(st.lists(alphabet, min_size=1, max_size=5).map(tuple), st.integers(0, 4))
    sequence = st.lists(alphabet | st.sampled_from([7, 0]), max_size=12)
    return draw(st.lists(phrase, max_size=25)), draw(st.lists(sequence, max_size=4))


@settings(max_examples=300, deadline=None)
@given(cases(), st.booleans())
def test_find_equals_naive_search(case, only_first):
    phrases, sequences = case
    trie = make_trie(phrases, only_first)
    expected = [naive_find(phrases, sequence, only_first) for sequence in sequences]
    assert find(trie, *sequences) == expected
    assert find(Trie.from_arrays(stored(trie.to_arrays("t")), "t", 5), *sequences) == expected
    assert [find(trie, sequence)[0] for sequence in sequences] == expected
    assert len(trie) == len({key for key, _ in phrases})
    first = {}
    for key, label in phrases:
        first.setdefault(key, label)
    assert {*trie.labels.tolist()} == ({*first.values()} if only_first else {label for _, label in phrases})


@settings(max_examples=60, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_phrases_does_not_matter(case, random):
    phrases, _ = case
    shuffled = [*phrases, *phrases[:3]]
    random.shuffle(shuffled)
    one, other = (make_trie(rows).to_arrays("t") for rows in (phrases, shuffled))
    assert dump_arrays({}, one) == dump_arrays({}, other)


def test_very_long_phrase_and_sequence():
    phrase = tuple(range(1, 5001))
    trie = make_trie([(phrase, 0), (phrase[:-1], 1), ((5000,), 2)])
    found = find(trie, [5, *phrase, 5] + [7] * 100_000 + [1, 5000], phrase[:-1])
    assert found == [[(1, 5000, 1), (1, 5001, 0), (5000, 5001, 2), (105_003, 105_004, 2)], [(0, 4999, 1)]]


# Files whose checksums are right, but whose arrays do not fit each other

PHRASES = [((1, 2, 3), 0), ((1, 2), 1), ((4,), 2), ((4,), 0)]


@pytest.mark.parametrize(
    "part, change",
    [
        ("token_numbers", lambda array: array * 9),
        ("edge_numbers", lambda array: array * 99),
        ("edge_numbers", lambda array: array * 0),
        ("offsets", lambda array: array[1:]),
        ("offsets", lambda array: array + 9),
        ("offsets", lambda array: array[::-1]),
        ("labels", lambda array: array + 3),
        ("labels", lambda array: array[1:]),
        ("labels", lambda array: array.astype("uint8")),
        ("token_keys", lambda array: array.astype("uint32")),
    ],
)
def test_indices_out_of_bounds_are_refused(part, change):
    arrays = make_trie(PHRASES).to_arrays("t")
    assert find(Trie.from_arrays(stored(arrays), "t", 3), [1, 2, 3, 4]) == [naive_find(PHRASES, [1, 2, 3, 4])]
    arrays[f"t.{part}"] = change(arrays[f"t.{part}"])
    with pytest.raises(WeaknerError, match=r"WK206.*the file"):
        Trie.from_arrays(stored(arrays), "t", 3)


# The hash table

IDS = st.integers(min_value=1, max_value=2**64 - 1)
INVERSE = pow(0x9E3779B97F4A7C15, -1, 2**64)


def ids(values):
    return numpy.asarray(values, dtype="uint64")


def colliding(n, place=0):
    """Keys that all want the same slot: their product with the multiplier begins with the same 32 bits."""
    return [((place << 32) + low) * INVERSE % 2**64 for low in range(1, n + 1)]


@settings(max_examples=200, deadline=None)
@given(st.lists(IDS, unique=True), st.lists(IDS | st.just(0)), st.integers(1, 2**31))
def test_find_equals_dict(keys, others, first):
    numbers = {key: number for number, key in enumerate(keys, start=first)}
    wanted = [*keys, *others]
    assert HashTable.build(ids(keys), first).find(ids(wanted)).tolist() == [numbers.get(key, 0) for key in wanted]


def test_many_keys():
    keys = numpy.unique(numpy.random.RandomState(0).randint(1, 200_000, size=60_000)).astype("uint64")
    table = HashTable.build(keys)
    expected = dict(zip(keys.tolist(), range(1, len(keys) + 1), strict=True))
    every = numpy.arange(200_000, dtype="uint64")
    assert table.find(every).tolist() == [expected.get(key, 0) for key in every.tolist()]
    assert HashTable.build(ids([])).find(ids([0, 1, 2**64 - 1])).tolist() == [0, 0, 0]
    assert table.find(ids([])).tolist() == []


@pytest.mark.parametrize("place", [0, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 8, 9, 100])
def test_keys_that_want_the_same_slot(n, place):
    keys, absent = colliding(n, place), colliding(2 * n, place)[n:]
    table = HashTable.build(ids(keys))
    assert len(set(table._slots(ids(keys + absent)).tolist())) == 1
    assert table.find(ids(keys)).tolist() == list(range(1, n + 1))
    assert not table.find(ids(absent)).any()
    # Among others.
    keys += [*colliding(20, 1 << 30), *range(1, 500)]
    assert HashTable.build(ids(keys)).find(ids(keys[::-1])).tolist() == list(range(len(keys), 0, -1))


@pytest.mark.parametrize("step", range(8))
def test_probing_reaches_every_slot(step):
    # One free slot is left, and wherever it is, looking up another key ends there.
    keys = numpy.arange(1, 9, dtype="uint64")
    keys[step] = 0
    table = HashTable(keys, keys.astype("uint32"))
    assert not table.find(numpy.arange(100, 200, dtype="uint64")).any()

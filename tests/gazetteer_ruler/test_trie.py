"""Finding phrases against a search for every phrase at every place."""

import copy

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.array_file import ArrayFile, dump_arrays
from spacy_weakner.gazetteer_ruler.trie import Trie

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


@st.composite
def cases(draw):
    alphabet = st.sampled_from([1, 2, 3, BIG - 1, BIG][: draw(st.integers(1, 5))])
    phrase = st.tuples(st.lists(alphabet, min_size=1, max_size=5).map(tuple), st.integers(0, 4))
    return draw(st.lists(phrase, max_size=25)), draw(st.lists(st.lists(alphabet | st.just(7), max_size=12), max_size=4))


@settings(max_examples=300, deadline=None)
@given(cases(), st.booleans())
def test_find_equals_naive_search(case, only_first):
    phrases, sequences = case
    trie = make_trie(phrases, only_first)
    expected = [naive_find(phrases, sequence, only_first) for sequence in sequences]
    assert find(trie, *sequences) == expected
    assert [find(trie, sequence)[0] for sequence in sequences] == expected
    assert len(trie) == len({key for key, _ in phrases})
    first = {}
    for key, label in phrases:
        first.setdefault(key, label)
    assert trie.labels().tolist() == sorted({*first.values()} if only_first else {label for _, label in phrases})


@settings(max_examples=60, deadline=None)
@given(cases())
def test_stored_form_finds_the_same(case):
    phrases, sequences = case
    trie = make_trie(phrases)
    file_ = ArrayFile(dump_arrays({}, trie.to_arrays("t")), "t")
    assert find(Trie.from_arrays(file_, "t"), *sequences) == find(trie, *sequences)


@settings(max_examples=60, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_phrases_does_not_matter(case, random):
    phrases, _ = case
    shuffled = [*phrases, *phrases[:3]]
    random.shuffle(shuffled)
    one, other = (make_trie(rows).to_arrays("t") for rows in (phrases, shuffled))
    assert dump_arrays({}, one) == dump_arrays({}, other)


@pytest.mark.parametrize(
    "phrases, ids, expected",
    [
        ([], [1, 2], []),
        ([((1,), 0)], [], []),
        ([((1,), 0)], [1, 1], [(0, 1, 0), (1, 2, 0)]),
        ([((1,), 1), ((1,), 0)], [1], [(0, 1, 0), (0, 1, 1)]),
        ([((1, 2), 0), ((1,), 0), ((2, 3), 0)], [1, 2, 3], [(0, 1, 0), (0, 2, 0), (1, 3, 0)]),
        # A long phrase is cut off by the end of the text, and what is left of it is a phrase too.
        ([((1, 2, 3), 0), ((1, 2), 1)], [1, 2], [(0, 2, 1)]),
        ([((1, 1), 0)], [1, 1, 1], [(0, 2, 0), (1, 3, 0)]),
        ([((1, 2), 0)], [1, 0, 2, 1, 2], [(3, 5, 0)]),
        ([((BIG, 1), 0)], [BIG, 1], [(0, 2, 0)]),
        # Equal in the lower 32 bits
        ([((1, 2), 0)], [1 + 2**32, 2], []),
    ],
)
def test_find(phrases, ids, expected):
    assert find(make_trie(phrases), ids) == [expected]


def test_phrases_do_not_reach_over_the_end_of_a_sequence():
    trie = make_trie([((1, 2), 0), ((2, 1), 1), ((1, 2, 1, 2), 2)])
    assert find(trie, [1], [2], [1, 2], [], [1, 2], [1]) == [[], [], [(0, 2, 0)], [], [(0, 2, 0)], []]


def test_no_sequences_and_empty_ones():
    trie = make_trie([((1,), 0)])
    assert find(trie) == []
    assert find(trie, [], [], []) == [[], [], []]
    assert find(make_trie([]), [], [1]) == [[], []]


def test_very_long_phrase_and_sequence():
    phrase = tuple(range(1, 5001))
    trie = make_trie([(phrase, 0), (phrase[:-1], 1), ((5000,), 2)])
    found = find(trie, [5, *phrase, 5] + [7] * 100_000 + [1, 5000], phrase[:-1])
    assert found == [[(1, 5000, 1), (1, 5001, 0), (5000, 5001, 2), (105_003, 105_004, 2)], [(0, 4999, 1)]]


def test_many_label_sets():
    phrases = [((1 + i,), label) for i in range(64) for label in range(6) if i >> label & 1]
    found = find(make_trie(phrases), range(1, 65))
    assert found == [naive_find(phrases, list(range(1, 65)))]


def test_first_label_is_that_of_the_first_phrase():
    phrases = [((1, 2), 2), ((1,), 1), ((1, 2), 0), ((1,), 0)]
    assert find(make_trie(phrases, only_first=True), [1, 2]) == [[(0, 1, 1), (0, 2, 2)]]


def test_copies_share_the_arrays():
    trie = make_trie([((1,), 0)])
    assert copy.deepcopy(trie) is trie


# Files whose checksums are right, but whose arrays lead astray

PHRASES = [((1, 2, 3), 0), ((1, 2), 1), ((4,), 2), ((4,), 0)]


def arrays_with(part, change):
    arrays = {name: array.copy() for name, array in make_trie(PHRASES).to_arrays("t").items()}
    arrays[f"t.{part}"] = change(arrays[f"t.{part}"])
    return ArrayFile(dump_arrays({}, arrays), "the file")


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def fill(array):
    array[array == 0] = numpy.arange(100, 100 + (array == 0).sum())
    return array


def put_first_used(value):
    def change(array):
        array[numpy.flatnonzero(array)[0]] = value
        return array

    return change


def test_unchanged_arrays_are_accepted():
    trie = Trie.from_arrays(arrays_with("inner", lambda array: array), "t")
    assert find(trie, [1, 2, 3, 4]) == [naive_find(PHRASES, [1, 2, 3, 4])]


@pytest.mark.parametrize(
    "part, change",
    [
        ("token_keys", fill),  # looking up another token would never end
        ("edge_keys", fill),
        ("token_keys", put(slice(None), 0)),
        ("token_keys", lambda array: array[:-1]),
        ("token_values", lambda array: array[:4]),
        ("token_values", put_first_used(9)),
        ("token_values", fill),
        ("edge_values", put_first_used(2**32 - 1)),
        ("edge_values", put_first_used(1)),  # back to the parent: round in circles
        ("roots", put(0, 1)),  # a phrase would begin behind the last token
        ("roots", put(1, 99)),
        ("roots", lambda array: array[:0]),
        ("roots", lambda array: array[:-1]),
        ("inner", lambda array: array[:0]),
        ("inner", lambda array: numpy.repeat(array, 2)),
        ("label_sets", put(1, 9)),
        ("label_sets", lambda array: array[:0]),
        ("label_sets", lambda array: array[:-1]),
        ("set_offsets", put(0, 1)),
        ("set_offsets", put(2, 5)),  # they decrease
        ("set_offsets", put(-1, 99)),
        ("set_offsets", lambda array: array[:-1]),
        ("set_offsets", lambda array: array[:0]),
        ("set_labels", lambda array: array[:-1]),
        ("roots", lambda array: array.astype("uint64")),
        ("token_keys", lambda array: array.astype("uint32")),
        ("set_labels", lambda array: array.astype("uint8")),
    ],
)
def test_arrays_that_lead_astray_are_refused(part, change):
    with pytest.raises(WeaknerError, match=r"WK210.*the file"):
        Trie.from_arrays(arrays_with(part, change), "t")

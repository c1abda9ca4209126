"""The compiled table against a search for every term at every place."""

import copy
import pickle

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.array_file import ArrayFile, dump_arrays, open_arrays
from spacy_weakner.gazetteer_ruler.columns import ColumnBuilder, TableSettings
from spacy_weakner.gazetteer_ruler.forms import has_inner_capital
from spacy_weakner.gazetteer_ruler.table import AMBIGUITY, TermTable, _sorted
from spacy_weakner.gazetteer_ruler.terms import Term
from spacy_weakner.gazetteer_ruler.trie import Hits

from .util import naive_find

SETTINGS = TableSettings(acronym_length=5, stop=[], min_length=1, ambiguity="all")
# Letters are tokens; the matched attribute ignores case.
WORD = st.text("aAbB", min_size=1, max_size=3)
TERM = st.builds(Term, st.sampled_from("XYZ"), WORD, st.just(False), st.sampled_from(["", "", "2", "1"]))


def lower(text):
    return [ord(c) for c in text.lower()]


def orth(text):
    return [ord(c) for c in text]


def make_columns(terms):
    builder = ColumnBuilder()
    for term in terms:
        values, orths = (numpy.asarray(ids(term.text), dtype="uint64") for ids in (lower, orth))
        builder.add(term, values, orths if term.exact or has_inner_capital(term.text) else None)
    return builder.columns()


def make_table(terms, **changed):
    return TermTable.build(make_columns(terms), SETTINGS._replace(**changed))


def find(table, texts):
    values = numpy.asarray([lower("".join(texts)), orth("".join(texts))], dtype="uint64").T
    matches = table.find(values if table.has_exact else values[:, 0], numpy.cumsum([0, *map(len, texts)]))
    found = [[] for _ in texts]
    concepts = list(table.concepts)
    for i, start, end, concept in zip(*(column.tolist() for column in matches), strict=True):
        found[i].append((start, end, *concepts[concept]))
    assert [[match[:3] for match in matches] for matches in found] == [sorted(m[:3] for m in ms) for ms in found]
    return found


def naive(terms, text, config):
    """The terms at every place, by the letter of the settings."""
    terms = [term for term in dict.fromkeys(terms) if len(term.text) >= config.min_length]
    terms = [term for term in terms if term.text.lower() not in config.stop]
    is_exact = [t.exact or (len(t.text) <= config.acronym_length and t.text[1:] != t.text[1:].lower()) for t in terms]
    first = config.ambiguity == "first"
    plain = [(lower(t.text), (t.label, t.id)) for t, exact in zip(terms, is_exact, strict=True) if not exact]
    exact = [(orth(t.text), (t.label, t.id)) for t, exact in zip(terms, is_exact, strict=True) if exact]
    plain, exact = naive_find(plain, lower(text), first), naive_find(exact, orth(text), first)
    if first:
        places = {place[:2] for place in exact}
        plain = [match for match in plain if match[:2] not in places]
    found = sorted({*plain, *exact})
    if config.ambiguity == "drop":
        found = [match for match in found if {m[2][0] for m in found if m[:2] == match[:2]} == {match[2][0]}]
    return sorted((start, end, label, identifier) for start, end, (label, identifier) in found)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(TERM, max_size=14),
    st.lists(st.text("aAbBc", max_size=8), max_size=4),
    st.sampled_from([0, 2, 3, 5]),
    st.lists(st.sampled_from(["a", "ab", "ba"]), max_size=1),
    st.sampled_from([1, 1, 2]),
    st.sampled_from(AMBIGUITY),
)
def test_find_equals_naive_search(terms, texts, acronym_length, stop, min_length, ambiguity):
    config = TableSettings(acronym_length, stop, min_length, ambiguity)
    table = TermTable.build(make_columns(terms), config)
    expected = [naive(terms, text, config) for text in texts]
    assert list(map(sorted, find(table, texts))) == expected
    assert [sorted(find(table, [text])[0]) for text in texts] == expected
    stored = TermTable.from_file(ArrayFile(table.to_bytes(), "x"), config)
    assert find(stored, texts) == find(table, texts)
    # With other settings the stored terms are compiled anew.
    again = TermTable.from_file(ArrayFile(make_table(terms).to_bytes(), "x"), config)
    assert again.settings == config and again.to_bytes() == table.to_bytes()
    # So are those that are added.
    more = make_columns(terms[:5]).plus(make_columns(terms[5:]))
    assert TermTable.build(more, config).to_bytes() == table.to_bytes()


def test_empty_tables():
    for table in (make_table([]), make_table([Term("X", "a")], min_length=2)):
        assert table.is_empty and not table.has_exact
        assert table.labels == []
        assert find(table, ["a", ""]) == [[], []]
        stored = TermTable.from_file(ArrayFile(table.to_bytes(), "x"), table.settings)
        assert stored.is_empty
        assert list(stored.columns.terms()) == list(table.columns.terms())
    for terms in ([Term("X", "a")], [Term("X", "AB")], [Term("Y", "a"), Term("X", "AB")]):
        table = make_table(terms)
        assert table.concepts.names == table.labels == sorted(term.label for term in terms)
        for texts in ([], [""], ["", "", ""]):
            assert find(table, texts) == [[] for _ in texts]


def test_many_labels():
    terms = [Term(f"label {i}", "ab"[i % 2] * (1 + i % 3)) for i in range(30_000)]
    table = make_table(terms)
    (found,) = find(table, ["ab"])
    assert found == sorted((i % 2, i % 2 + 1, f"label {i}", "") for i in range(30_000) if i % 3 == 0)
    assert len(make_columns(terms[:20_000]).plus(make_columns(terms[10_000:])).concepts) == 30_000


def test_long_matches_far_behind_do_not_overflow():
    columns = numpy.asarray([[2**25, 100_000, 90_000], [2**25, 70_000, 5], [2**25, 70_000, 5], [3, 1, 0]])
    hits = Hits(*columns.T)
    assert numpy.stack(_sorted(hits, 100_000), axis=1).tolist() == columns[[3, 1, 0]].tolist()


# Storage

TERMS = [Term("X", "ab"), Term("Z", "AB"), Term("Y", "ab"), Term("Z", "bba")]
TEXTS = ["abAB", "bbab", ""]


def stored_with(changes, labels=("X", "Y", "Z")):
    """A file with right checksums, but other arrays or another description; None: without an array."""
    meta, arrays = make_table(TERMS)._stored({})
    arrays = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
    return ArrayFile(dump_arrays({**meta, "labels": labels}, arrays), "the file")


def test_stored_table_is_mapped(tmp_path):
    table = make_table(TERMS)
    table.to_file(tmp_path / "table", {"more": 1})
    file_ = open_arrays(tmp_path / "table")
    assert file_.meta["more"] == 1
    loaded = TermTable.from_file(file_, table.settings)
    assert copy.deepcopy(loaded) is loaded
    for array in (loaded.plain.edges.keys, loaded.exact.labels, loaded.columns.ids.values):
        assert not array.flags.owndata and not array.flags.writeable
    for other in (loaded, pickle.loads(pickle.dumps(loaded))):  # as to another process
        assert find(other, TEXTS) == find(table, TEXTS)
        assert list(other.columns.terms()) == TERMS
        assert other.concepts.names == table.concepts.names
        assert other.to_bytes() == table.to_bytes()


def test_matching_does_not_read_the_terms():
    # They are read when they are needed, and checked then.
    data = bytearray(make_table(TERMS).to_bytes())
    data[data.index(b"bba")] ^= 1
    file_ = ArrayFile(bytes(data), "the file")
    table = TermTable.from_file(file_, SETTINGS)
    assert find(table, TEXTS) == find(make_table(TERMS), TEXTS)
    with pytest.raises(WeaknerError, match=r"WK206.*the file"):
        table.columns  # noqa: B018
    with pytest.raises(WeaknerError, match=r"WK206.*the file"):
        TermTable.from_file(file_, SETTINGS._replace(min_length=2))


@pytest.mark.parametrize("labels", [None, "XYZ", ["X", "Y", 5], ["X", "Y"], []])
def test_labels_of_another_form(labels):
    for config in (SETTINGS, SETTINGS._replace(min_length=2)):
        with pytest.raises(WeaknerError, match=r"WK206.*the file"):
            TermTable.from_file(stored_with({}, labels), config)


def test_missing_arrays():
    for name in make_table(TERMS)._stored({})[1]:
        with pytest.raises(WeaknerError, match=f"WK206.*the file.*no array '{name}'"):
            TermTable.from_file(stored_with({name: None}), SETTINGS).columns  # noqa: B018

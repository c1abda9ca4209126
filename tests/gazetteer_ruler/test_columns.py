"""Columns of terms against lists of rows."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.array_file import ArrayFile, dump_arrays
from spacy_weakner.gazetteer_ruler.columns import ColumnBuilder, TableSettings, TermColumns
from spacy_weakner.gazetteer_ruler.concepts import Concepts
from spacy_weakner.gazetteer_ruler.forms import has_inner_capital
from spacy_weakner.gazetteer_ruler.terms import Term

LABELS = ["A", "B", "Ä\0", "品牌 x", "a b\tc"]
TERM = Term("B", "x", id="3", name="three")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)
ROW = st.builds(
    Term,
    st.sampled_from(LABELS),
    TEXT | st.sampled_from(["pH", "AIDS", "aids", "品牌", "𝒳Y"]),
    st.booleans(),
    name=st.just(""),
    binding=st.just(""),
)


def ids_of(text, salt):
    """Made-up ids of a term's tokens, between none and three."""
    return numpy.asarray([ord(c) * 7 + salt for c in text[: len(text) % 4]], dtype="uint64")


def make_columns(terms, exact=True):
    builder = ColumnBuilder()
    for term in terms:
        cases = exact and (term.exact or has_inner_capital(term.text))
        builder.add(term, ids_of(term.text, 1), ids_of(term.text, 2) if cases else None)
    return builder.columns()


def rows(columns):
    """The same, as a list of rows."""
    return [
        (term, int(characters), columns.ids[i].tolist(), columns.exact[i].tolist())
        for i, (term, characters) in enumerate(zip(columns.terms(), columns.characters, strict=True))
    ]


@settings(max_examples=80, deadline=None)
@given(st.lists(ROW, max_size=15), st.booleans())
def test_builder_keeps_each_term_once_in_order(terms, exact):
    columns, expected = make_columns(terms + terms[:4], exact), []
    for term in dict.fromkeys(terms):
        cased = exact and (term.exact or has_inner_capital(term.text))
        ids = [ids_of(term.text, salt).tolist() for salt in (1, 2)]
        expected.append((term, len(term.text), ids[0], ids[1] if cased else []))
    assert rows(columns) == expected and len(columns) == len(expected)
    file_ = ArrayFile(dump_arrays({}, columns.to_arrays()), "x")
    assert rows(TermColumns.from_arrays(file_, columns.concepts)) == expected


@settings(max_examples=80, deadline=None)
@given(st.lists(ROW, max_size=10), st.lists(ROW, max_size=10), st.data())
def test_plus_and_take(terms, others, data):
    one, other = make_columns(terms), make_columns(others)
    both = one.plus(other)
    assert rows(both) == list({row[0]: row for row in rows(one) + rows(other)}.values())
    assert [term for term, *_ in rows(both)] == list(dict.fromkeys(terms + others))
    picked = sorted(data.draw(st.sets(st.integers(0, len(both) - 1)))) if len(both) else []
    taken = both.take(numpy.asarray(picked, dtype="int64"))
    assert rows(taken) == [rows(both)[i] for i in picked]


def test_terms_that_look_alike_are_kept_apart():
    terms = [Term("a", "b\0c"), Term("a\0b", "c"), Term("1 a", "b"), Term("1", "ab"), Term("a", "B"), Term("a", "b")]
    columns = make_columns(terms)
    assert list(columns.terms()) == terms and columns.unique() is columns
    assert rows(columns.plus(make_columns(terms[:2]))) == rows(columns.plus(make_columns([]))) == rows(columns)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(ROW, max_size=12),
    st.integers(0, 6),
    st.lists(st.sampled_from(["ph", "  AIDS ", "品牌", "x"]), max_size=2),
    st.integers(1, 4),
    st.booleans(),
)
def test_select(terms, acronym_length, stop, min_length, has_exact):
    columns = make_columns(terms, has_exact)
    selection = columns.select(TableSettings(acronym_length, stop, min_length, "all"))
    folded = {" ".join(text.split()).casefold() for text in stop}
    expected = {"plain": [], "exact": [], "short": [], "stop": [], "empty": []}
    for i, (term, _, ids, exact) in enumerate(rows(columns)):
        if len(term.text) < min_length:
            kind = "short"
        elif " ".join(term.text.split()).casefold() in folded:
            kind = "stop"
        elif not ids:
            kind = "empty"
        elif (term.exact or len(term.text) <= acronym_length) and exact:
            kind = "exact"
        else:
            kind = "plain"
        expected[kind].append(i)
    assert {kind: places.tolist() for kind, places in selection._asdict().items()} == expected
    assert selection.sizes() == {kind: len(places) for kind, places in expected.items()}


@pytest.mark.parametrize(
    "text, expected",
    [("AIDS", True), ("pH", True), ("Aids", False), ("aids", False), ("X", False), ("a É", True), ("", False)],
)
def test_inner_capital(text, expected):
    assert has_inner_capital(text) is expected


def test_preferred_names_are_the_first_given_or_the_first_term():
    one = make_columns([Term("A", "x", id="1"), Term("A", "y", id="1", name="given"), Term("A", "z", id="2"), TERM])
    other = make_columns([Term("A", "v", id="2", name="two"), Term("A", "w", id="1", name="later"), Term("B", "u")])
    expected = {"1": "given", "2": "z", "3": "three", "4": "", "": ""}
    assert {identifier: one.preferred_name(identifier) for identifier in expected} == expected
    both = one.plus(other)
    stored = TermColumns.from_arrays(ArrayFile(dump_arrays({}, both.to_arrays()), "x"), both.concepts)
    for columns in (both, stored):
        names = {identifier: columns.preferred_name(identifier) for identifier in expected}
        assert names == {**expected, "2": "two"}
        found = {(term.id, term.name) for term in columns.terms()}
        assert found == {("1", "given"), ("2", "two"), ("3", "three"), ("", "")}


def test_labels_without_a_name_are_refused():
    arrays = make_columns([Term("A", "pHx"), Term("B", "abc")]).to_arrays()
    with pytest.raises(WeaknerError, match=r"WK206.*the file"):
        TermColumns.from_arrays(ArrayFile(dump_arrays({}, arrays), "the file"), Concepts.of([("A", "")])[0])

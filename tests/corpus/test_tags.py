"""Tag schemes: tables, brute force, and Docs that are tokenized in two ways."""

from itertools import pairwise, product

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.tags import MISSING, SCHEMES, TagScheme
from spacy_weakner.errors import UnknownLabel, WeaknerError

from ..util import make_doc

NLP = spacy.blank("xx")
LABELS = ("LOC", "PER")
CASES = [
    ("IO", [(0, 2, "LOC"), (3, 4, "LOC")], "I-LOC I-LOC O I-LOC"),
    ("BIO", [(0, 2, "LOC"), (2, 3, "LOC"), (3, 4, "PER")], "B-LOC I-LOC B-LOC B-PER"),
    ("IOBES", [(0, 3, "LOC"), (3, 4, "PER")], "B-LOC I-LOC E-LOC S-PER"),
    ("IOBES", [(0, 2, "LOC"), (2, 4, "LOC")], "B-LOC E-LOC B-LOC E-LOC"),
    ("IO", [], "O O O O"),
    ("BIO", [], "O O O O"),
    ("IOBES", [], "O O O O"),
]


def entity_sets(n, labels):
    """All sets of entities without overlaps on n tokens."""
    if n <= 0:
        return [[]]
    result = [list(rest) for rest in entity_sets(n - 1, labels)]
    for length in range(1, n + 1):
        for rest in entity_sets(n - length, labels):
            result.extend([*rest, (n - length, n, label)] for label in labels)
    return result


def example(predicted, reference, entities, missing=()):
    """Two Docs of one text: words without a space before them begin with "+"."""
    docs = []
    for words in (predicted.split(), reference.split()):
        spaces = [not follower.startswith("+") for follower in words[1:]] + [False]
        docs.append(Doc(NLP.vocab, words=[w.lstrip("+") for w in words], spaces=spaces))
    spans = [Span(docs[1], *entity) for entity in entities]
    docs[1].set_ents(spans, missing=[docs[1][i : i + 1] for i in missing], default="outside")
    return Example(*docs)


def names(scheme, ids):
    return [None if i == MISSING else scheme.tags[i] for i in ids]


# Encoding and decoding


@pytest.mark.parametrize("name, entities, tags", CASES)
def test_by_hand(name, entities, tags):
    scheme = TagScheme(name, LABELS)
    assert names(scheme, scheme.encode(entities, numpy.ones(4, dtype=bool))) == tags.split()
    assert names(scheme, scheme.from_doc(make_doc(NLP, "a b c d", entities))) == tags.split()
    assert scheme.decode(scheme.tag_ids(tags.split())) == entities and scheme.decode([]) == []


@pytest.mark.parametrize(
    "name, tags, entities",
    [
        ("BIO", "I-LOC I-LOC O I-PER", [(0, 2, "LOC"), (3, 4, "PER")]),
        ("BIO", "B-LOC I-PER I-PER O", [(0, 1, "LOC"), (1, 3, "PER")]),
        ("IOBES", "B-LOC B-LOC O E-PER", [(0, 1, "LOC"), (1, 2, "LOC"), (3, 4, "PER")]),
        ("IOBES", "S-LOC E-LOC I-LOC I-LOC", [(0, 1, "LOC"), (1, 2, "LOC"), (2, 4, "LOC")]),
        ("IO", "I-LOC I-PER I-PER O", [(0, 1, "LOC"), (1, 3, "PER")]),
    ],
)
def test_decode_is_lenient(name, tags, entities):
    scheme = TagScheme(name, LABELS)
    assert scheme.decode(scheme.tag_ids(tags.split())) == entities


@pytest.mark.parametrize("name, merged", [("IO", [(0, 2, "LOC")]), ("BIO", None), ("IOBES", None)])
def test_adjacent_entities_of_one_type(name, merged):
    scheme = TagScheme(name, LABELS)
    entities = [(0, 1, "LOC"), (1, 2, "LOC")]
    assert scheme.decode(scheme.encode(entities, numpy.ones(2, dtype=bool))) == (merged or entities)


@st.composite
def random_entities(draw):
    n = draw(st.integers(1, 12))
    cuts = sorted(draw(st.sets(st.integers(0, n), min_size=2)))
    labels = draw(st.lists(st.sampled_from(["", *LABELS]), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
    return n, [(a, b, label) for a, b, label in zip(cuts, cuts[1:], labels, strict=False) if label]


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=50)
@given(case=random_entities())
def test_random_entities(name, case):
    n, entities = case
    scheme = TagScheme(name, LABELS)
    tags = scheme.encode(entities, numpy.ones(n, dtype=bool))
    assert scheme.decode(tags) == entities or name == "IO"


# What the scheme allows


@pytest.mark.parametrize("name, n_tokens", [("IO", 4), ("BIO", 4), ("IOBES", 3)])
def test_a_sequence_is_allowed_if_and_only_if_it_encodes_entities(name, n_tokens):
    scheme = TagScheme(name, LABELS)
    start, transitions, end = scheme.allowed_transitions()
    for n in range(1, n_tokens + 1):
        known = numpy.ones(n, dtype=bool)
        legal = {tuple(scheme.encode(entities, known).tolist()) for entities in entity_sets(n, LABELS)}
        allowed = {
            path
            for path in product(range(len(scheme)), repeat=n)
            if start[path[0]] and end[path[-1]] and all(transitions[a, b] for a, b in pairwise(path))
        }
        assert allowed == legal


@pytest.mark.parametrize("name", SCHEMES)
def test_continuations_are_the_tags_that_decode_into_one_entity(name):
    scheme = TagScheme(name, LABELS)
    found = scheme.continuations()
    for a, b in product(range(1, len(scheme)), repeat=2):
        assert found[a, b] == (len(scheme.decode([a, b])) == 1)
    assert not found[0].any() and not found[:, 0].any()


def test_tags_and_names():
    assert TagScheme("BIO", LABELS).tag_ids(["O", "B-PER", None]).tolist() == [0, 3, MISSING]
    assert TagScheme("BIO", ("Z", "A")).tags == ("O", "B-Z", "I-Z", "B-A", "I-A")
    with pytest.raises(ValueError, match=r"S-LOC.*BIO"):
        TagScheme("BIO", LABELS).tag_ids(["S-LOC"])
    with pytest.raises(WeaknerError, match=r"\[WK005\].*BILOU.*IOBES"):
        TagScheme("BILOU", LABELS)


# From Docs


@pytest.mark.parametrize("name", SCHEMES)
def test_missing_is_kept(name):
    scheme = TagScheme(name, LABELS)
    tags = scheme.from_doc(make_doc(NLP, "a b c d", [(1, 2, "PER")], missing=[0, 3])).tolist()
    assert (tags[0], tags[2], tags[3]) == (MISSING, 0, MISSING)
    assert scheme.decode(tags) == [(1, 2, "PER")]
    first = scheme.span_tags("LOC", 2)
    assert scheme.decode([*first, MISSING, *first]) == [(0, 2, "LOC"), (3, 5, "LOC")]
    assert scheme.from_doc(make_doc(NLP, "a b", annotated=False)).tolist() == [MISSING] * 2
    assert scheme.from_doc(Doc(NLP.vocab)).shape == (0,)


def test_blocked_is_outside():
    doc = make_doc(NLP, "a b c", annotated=False)
    doc.set_ents([], blocked=[doc[1:2]], default="missing")
    assert TagScheme("BIO", LABELS).from_doc(doc).tolist() == [MISSING, 0, MISSING]


# Two tokenizations

ALIGNED = [
    ("same", "New York is big", "New York is big", [(0, 2, "LOC")], (), "B-LOC I-LOC O O"),
    ("token split", "New Yor +k is big", "New York is big", [(0, 2, "LOC")], (), "B-LOC I-LOC I-LOC O O"),
    ("outside token split", "New York i +s big", "New York is big", [(0, 2, "LOC")], (), "B-LOC I-LOC O O O"),
    ("token merged", "New York isbig", "New York is +big", [(0, 2, "LOC")], (), "B-LOC I-LOC O"),
    ("tokens of an entity merged", "NewYork is big", "New +York is big", [(0, 2, "LOC")], (), "B-LOC O O"),
    ("entity inside a token", "New York-based folk", "New York +-based folk", [(1, 2, "LOC")], (), "O - O"),
    ("entity ends in a token", "New York-based folk", "New York +-based folk", [(0, 2, "LOC")], (), "- - O"),
    ("two entities in a token", "New-York", "New +- +York", [(0, 1, "LOC"), (2, 3, "PER")], (), "-"),
    ("missing token split", "New Yor +k is big", "New York is big", [], (1,), "O - - O O"),
    ("partially missing token", "New York isbig", "New York is +big", [(0, 2, "LOC")], (3,), "B-LOC I-LOC -"),
    ("all missing", "New Yor +k", "New York", [], (0, 1), "- - -"),
]
ALIGNED_IDS = [case[0] for case in ALIGNED]


@pytest.mark.parametrize("_, predicted, reference, entities, missing, expected", ALIGNED, ids=ALIGNED_IDS)
def test_two_tokenizations(_, predicted, reference, entities, missing, expected):
    scheme = TagScheme("BIO", LABELS)
    tags = names(scheme, scheme.from_example(example(predicted, reference, entities, missing)))
    assert tags == [None if tag == "-" else tag for tag in expected.split()]


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("case", ALIGNED, ids=ALIGNED_IDS)
def test_two_tokenizations_agree_with_spacy(name, case):
    _, predicted, reference, entities, missing, _ = case
    eg = example(predicted, reference, entities, missing)
    scheme = TagScheme(name, LABELS)
    tags = scheme.from_example(eg).tolist()
    aligned = eg.get_aligned_ner()
    assert [tag == MISSING for tag in tags] == [tag is None for tag in aligned]
    assert [tag == 0 for tag in tags] == [tag == "O" for tag in aligned]
    assert scheme.decode(tags) == [(s.start, s.end, s.label_) for s in eg.get_aligned_spans_y2x(eg.reference.ents)]


@pytest.mark.parametrize("predicted", ["New York is big", "New Yor +k is big"])
def test_blocked_is_outside_in_both_tokenizations(predicted):
    eg = example(predicted, "New York is big", [])
    eg.reference.set_ents([], blocked=[eg.reference[0:2]], default="missing")
    tags = TagScheme("BIO", LABELS).from_example(eg)
    assert [tag == 0 for tag in tags] == [token.idx < 8 for token in eg.predicted]


def test_a_white_space_token_of_the_prediction_alone_is_missing():
    reference = Doc(NLP.vocab, words=["a", "b"], spaces=[True, False])
    reference.set_ents([], default="missing")
    predicted = Doc(NLP.vocab, words=["a", " ", "b"], spaces=[True, False, False])
    assert TagScheme("BIO", LABELS).from_example(Example(predicted, reference)).tolist() == [MISSING] * 3


@pytest.mark.parametrize("predicted", ["New York", "New Yor +k"])
def test_an_unknown_label_is_a_key_error(predicted):
    with pytest.raises(UnknownLabel, match="ORG"):
        TagScheme("BIO", LABELS).from_example(example(predicted, "New York", [(0, 1, "ORG")]))

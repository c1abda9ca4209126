"""What an annotation says about spans, on tokens that may be others."""

import random

import pytest
import spacy

from spacy_weakner.errors import UnknownLabel, WeaknerError
from spacy_weakner.span_ner.candidates import enumerate_spans, span_index, widest, without
from spacy_weakner.span_ner.targets import read_target

from ..util import make_example
from .util import COARSER, FINER, NESTED, NESTED_TEXT, add_group, all_spans, retokenized

IDS = {"LOC": 1, "PER": 2, "ORG": 3}
NLP = spacy.blank("xx")


def rows(spans, labels):
    return [(*span, label) for span, label in zip(spans.tolist(), labels.tolist(), strict=True)]


def read(example, annotated=True, **settings):
    """Target as plain tuples: spans, wrong spans."""
    target = read_target(example, IDS, annotated, **settings)
    return rows(target.spans, target.labels), rows(target.wrong_spans, target.wrong_labels)


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize(
    "entities, tokens, expected",
    [
        ([(0, 2, "LOC"), (4, 6, "LOC")], FINER, [(0, 3, 1), (5, 9, 1)]),
        ([(0, 2, "LOC"), (4, 5, "PER")], FINER, [(0, 3, 1), (5, 8, 2)]),
        ([(1, 2, "PER")], FINER, [(1, 3, 2)]),
        ([(0, 2, "LOC"), (4, 6, "LOC")], COARSER, [(0, 2, 1), (4, 5, 1)]),
        ([(0, 2, "LOC"), (4, 5, "LOC")], COARSER, [(0, 2, 1)]),
        ([(3, 5, "LOC")], COARSER, []),
    ],
)
def test_entities_on_other_tokens(key, entities, tokens, expected):
    found, _ = read(retokenized(entities, *tokens), spans_key=key)
    assert found == expected


def test_overlapping_entities_of_a_group_on_other_tokens():
    example = retokenized([(0, 2, "LOC"), (1, 2, "PER"), (0, 4, "ORG")], *FINER)
    assert read(example, spans_key="x")[0] == [(0, 3, 1), (0, 5, 3), (1, 3, 2)]


def test_wrong_spans_on_other_tokens():
    example = retokenized([(0, 2, "LOC"), (4, 5, "LOC")], *FINER)
    add_group(example.reference, "wrong", [(1, 2, "PER"), (3, 5, "")])
    example.reference.set_ents([], default="outside")
    assert read(example, incorrect_spans_key="wrong") == ([], [(1, 3, 2), (4, 8, 0)])


def test_a_span_has_one_label():
    example = make_example(NLP, "a b")
    add_group(example.reference, "x", [(0, 1, "LOC"), (0, 1, "LOC")])
    assert read(example, spans_key="x")[0] == [(0, 1, 1)]
    add_group(example.reference, "x", [(0, 1, "PER"), (0, 1, "LOC")])
    with pytest.raises(WeaknerError, match=r"WK026.*'a'.*LOC, PER"):
        read(example, spans_key="x")


@pytest.mark.parametrize("label, left", [("PER", []), ("", []), ("LOC", [(0, 1, 2)])])
def test_what_is_known_to_be_wrong_is_not_learned_as_right(label, left):
    example = make_example(NLP, "a b", [(0, 1, "PER")])
    add_group(example.reference, "y", [(0, 1, label)])
    assert read(example, incorrect_spans_key="y")[0] == left


@pytest.mark.parametrize(
    "max_width, expected",
    [(None, [(1, 5, 3), (3, 5, 1)]), (4, [(1, 5, 3), (3, 5, 1)]), (3, [(3, 5, 1)]), (1, [])],
)
def test_what_is_too_wide_takes_no_part(max_width, expected):
    example = make_example(NLP, NESTED_TEXT)
    add_group(example.reference, "x", NESTED)
    assert read(example, spans_key="x", max_width=max_width)[0] == expected
    assert read(example, incorrect_spans_key="x", max_width=max_width)[1] == expected


def test_the_width_is_counted_in_tokens_of_the_predicted_doc():
    example = retokenized([(0, 2, "LOC")], *FINER)
    assert read(example, max_width=2)[0] == []
    assert read(example, max_width=3)[0] == [(0, 3, 1)]


@pytest.mark.parametrize(
    "label, expected", [("LOC", [(0, 2, 1)]), ("", [(0, 2, 0)]), ("DATE", [])], ids=["known", "empty", "unknown"]
)
def test_wrong_spans(label, expected):
    example = make_example(NLP, "a b c")
    add_group(example.reference, "wrong", [(0, 2, label)])
    assert read(example, incorrect_spans_key="wrong")[1] == expected
    assert read(example)[1] == []
    assert read(example, incorrect_spans_key="other")[1] == []


@pytest.mark.parametrize("key", [None, "x"])
def test_an_unknown_label_is_named(key):
    example = make_example(NLP, "Anna went", [(0, 1, "DATE")])
    add_group(example.reference, "x", [(0, 1, "DATE")])
    with pytest.raises(UnknownLabel) as error:
        read(example, spans_key=key)
    assert error.value.args == ("DATE",)


@pytest.mark.parametrize("text", ["", "a"])
def test_nothing_is_annotated(text):
    target = read_target(make_example(NLP, text), IDS, False, spans_key="x", incorrect_spans_key="y")
    assert target.n_tokens == len(text)
    assert target.annotated is False
    assert [part.shape for part in target[2:-1]] == [(0, 2), (0,), (0, 2), (0,), (0,)]
    assert {part.dtype.name for part in target[2:-1]} == {"int64"}


# Candidates


WIDTHS = [None, 1, 3, 20]
LENGTHS = range(13)


@pytest.mark.parametrize("max_width", WIDTHS)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_without_leaves_the_others_in_order(n_tokens, max_width):
    spans = all_spans(n_tokens, max_width)
    drawn = random.Random(n_tokens)
    groups = [drawn.sample(spans, len(spans) // 3) for _ in range(2)]
    left = without(len(spans), [span_index(group, n_tokens, max_width) for group in groups])
    assert [spans[i] for i in left] == [span for span in spans if span not in groups[0] + groups[1]]


@pytest.mark.parametrize("n_tokens, expected", [(0, 0), (7, 7), (1000, 1000), (4000, 250), (100_000, 10), (10**7, 10)])
def test_where_any_width_is_allowed_long_texts_have_a_bound(n_tokens, expected):
    assert widest(n_tokens) == expected


def test_a_long_text_of_any_width():
    spans = enumerate_spans(100_000)
    assert len(spans) < 1_000_000 and (spans[:, 1] - spans[:, 0]).max() == 10
    places = span_index(spans[[0, 5000, -1]].tolist(), 100_000)
    assert places.tolist() == [0, 5000, len(spans) - 1]


def test_the_enumeration_is_shared_and_cannot_be_written_to():
    spans = enumerate_spans(4, 2)
    with pytest.raises(ValueError, match="read-only"):
        spans[0] = 0

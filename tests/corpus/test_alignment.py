"""Spans of a reference on other tokens."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.alignment import copy_sources, project, span_group, unclear_tokens, unknown_tokens
from spacy_weakner.corpus.weak import group_entities, group_scores, set_source, weak_sources

from ..util import make_example

NLP = spacy.blank("xx")
WORDS = ["New", "York", "is", "in", "New-York", "State"]
ALIKE = (WORDS, [True, True, True, True, True, False])
FINER = (["New", "Yor", "k", "is", "in", "New", "-", "York", "State"], [1, 0, 1, 1, 1, 0, 0, 1, 0])
COARSER = (["New", "York", "is in", "New-York State"], [1, 1, 1, 0])


def retokenized(words, spaces, entities=(), missing=()):
    reference = Doc(NLP.vocab, words=WORDS)
    ents = [Span(reference, *entity) for entity in entities]
    reference.set_ents(ents, missing=[reference[i : i + 1] for i in missing], default="outside")
    return Example(Doc(NLP.vocab, words=words, spaces=spaces), reference)


def spans(example, *entities):
    return [Span(example.reference, *entity) for entity in entities]


@pytest.mark.parametrize(
    "tokens, given, expected, unclear",
    [
        (ALIKE, [(4, 6, "X"), (0, 2, "X")], [(0, 2, "X"), (4, 6, "X")], []),
        (FINER, [(0, 2, "X"), (4, 5, "Y")], [(0, 3, "X"), (5, 8, "Y")], []),
        # They may overlap; each comes once.
        (FINER, [(1, 2, "Y"), (0, 2, "X"), (1, 2, "Y"), (1, 2, "X")], [(0, 3, "X"), (1, 3, "X"), (1, 3, "Y")], []),
        (COARSER, [(0, 2, "X"), (4, 6, "Y")], [(0, 2, "X"), (3, 4, "Y")], []),
        (COARSER, [(0, 2, "X"), (4, 5, "Y")], [(0, 2, "X")], [3]),
        (COARSER, [(1, 3, "X"), (4, 5, "Y")], [], [1, 2, 3]),
        (COARSER, [], [], []),
    ],
)
def test_spans_on_other_tokens(tokens, given, expected, unclear):
    example = retokenized(*tokens)
    assert project(example, spans(example, *given)) == expected
    assert unclear_tokens(example, spans(example, *given)).tolist() == unclear


@pytest.mark.parametrize(
    "max_width, expected", [(None, [(0, 3, "X"), (5, 8, "Y")]), (3, [(0, 3, "X"), (5, 8, "Y")]), (2, [])]
)
def test_the_width_is_that_on_the_other_tokens(max_width, expected):
    example = retokenized(*FINER)
    given = spans(example, (0, 2, "X"), (4, 5, "Y"))
    assert project(example, given, max_width) == expected
    # What is too wide is clear all the same.
    assert not len(unclear_tokens(example, given))


@pytest.mark.parametrize(
    "tokens, missing, expected",
    [(ALIKE, [2, 5], [2, 5]), (FINER, [1, 4], [1, 2, 5, 6, 7]), (COARSER, [0], [0]), (COARSER, [2, 3], [2])],
)
def test_missing_annotation_on_other_tokens(tokens, missing, expected):
    found = unknown_tokens(retokenized(*tokens, missing=missing))
    assert found.dtype == bool and found.nonzero()[0].tolist() == expected


def test_nobody_knows_what_a_token_is_that_is_two_things():
    assert unknown_tokens(retokenized(*COARSER, missing=[2])).tolist() == [False, False, True, False]
    assert unknown_tokens(retokenized(*COARSER, [(5, 6, "X")])).tolist() == [False, False, False, True]
    assert unknown_tokens(make_example(NLP, "a b", annotated=False)).tolist() == [True, True]


def test_span_groups():
    doc = Doc(NLP.vocab, words=["a"])
    doc.spans["x"] = [Span(doc, 0, 1, "X")]
    assert [span.label_ for span in span_group(doc, "x")] == ["X"]
    assert list(span_group(doc, "y")) == list(span_group(doc, None)) == []


@pytest.mark.parametrize(
    "tokens, entities, scores",
    [
        (ALIKE, [(4, 5, "Y"), (0, 2, "X"), (1, 3, "X")], [0.5, None, 0.25]),
        (FINER, [(5, 8, "Y"), (0, 3, "X"), (1, 4, "X")], [0.5, None, 0.25]),
        (COARSER, [(0, 2, "X")], [None]),
    ],
)
def test_sources_are_copied_with_what_aligns(tokens, entities, scores):
    example = retokenized(*tokens)
    said = [(4, 5, "Y"), (0, 2, "X"), (1, 3, "X")]
    ids = {(4, 5, "Y"): ["4", "5"], (0, 2, "X"): ["0"]}
    set_source(example.reference, "llm", said, [0.5, None, 0.25], ids=ids, reliability=0.5)
    set_source(example.reference, "plain", said)
    set_source(example.reference, "silent", [])
    set_source(example.reference, "other", said)
    set_source(example.predicted, "there", [])
    set_source(example.reference, "there", said)
    copy_sources(example, ["llm", "plain", "silent", "there", "nowhere"])
    doc = example.predicted
    assert weak_sources(doc) == ["llm", "plain", "silent", "there"]
    assert group_entities(doc, "weak:llm") == group_entities(doc, "weak:plain") == entities
    assert group_scores(doc, "weak:llm") == scores and "scores" not in doc.spans["weak:plain"].attrs
    assert {score: span.kb_id_ for score, span in zip(scores, doc.spans["weak:llm"], strict=True)}.items() <= {
        0.5: "4",
        None: "0",
        0.25: "",
    }.items()
    assert len(doc.spans["weak:llm"].attrs["ids"]) == len(entities)
    assert doc.spans["weak:llm"].attrs["reliability"] == 0.5
    assert not len(doc.spans["weak:silent"]) and not len(doc.spans["weak:there"])
    assert group_scores(example.reference, "weak:llm") == [0.5, None, 0.25]

"""The component in a pipeline: labels, initialization, settings, entities that are there already. What all heads
promise is tested in `tests/heads`."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.corpus.weak import group_entities

from ..util import (
    make_doc,
    make_example,
)
from .util import NESTED, NESTED_TEXT, UNIFORM, WEIGHTED, add_group, force_scores, span_config, span_pipeline


def empty_pipe(nlp, **settings):
    return nlp.add_pipe("span_ner", config=span_config(**settings))


# Labels


def test_labels_of_the_group_that_is_learned_from():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, spans_key="x")
    example = make_example(nlp, NESTED_TEXT, [(0, 1, "PER")])
    add_group(example.reference, "x", NESTED)
    nlp.initialize(lambda: [example, make_example(nlp, "a")])
    assert ner.labels == ("LOC", "ORG")


# Settings


@pytest.mark.parametrize("sampler, weighted", [(UNIFORM, False), (WEIGHTED, True)])
def test_the_sampler_decides_whether_a_clock_is_needed(sampler, weighted):
    assert empty_pipe(spacy.blank("xx"), sampler=sampler).needs_clock is weighted


@pytest.mark.parametrize("max_width, expected", [(1, 4), (2, 7), (3, 9), (None, 10), (50, 10)])
def test_max_width_bounds_what_is_found(max_width, expected):
    nlp = span_pipeline(labels=["X"], max_width=max_width, nested=True)
    force_scores(nlp.get_pipe("span_ner").model, [0, 9])
    found = group_entities(nlp(make_doc(nlp, "a b c d", annotated=False)), "pred:span_ner")
    assert len(found) == expected
    assert max(end - start for start, end, _ in found) == min(4, max_width or 4)


# Entities that are there already


def test_candidates_do_not_touch_what_has_to_stay():
    nlp = span_pipeline(labels=["X"], nested=True)
    force_scores(nlp.get_pipe("span_ner").model, [0, 9])
    doc = make_doc(nlp, "a b c d e", annotated=False)
    doc.set_ents([Span(doc, 1, 2, "Y")], blocked=[doc[3:4]], default="missing")
    assert group_entities(nlp(doc), "pred:span_ner") == [(0, 1, "X"), (2, 3, "X"), (4, 5, "X")]

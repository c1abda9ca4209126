"""The component in a pipeline: labels, initialization, settings, entities that are there already. What all heads
promise is tested in `tests/heads`."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.corpus.weak import doc_entities, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.span_ner.component import make_span_ner
from spacy_weakner.span_ner.samplers import UniformNegativeSampler

from ..util import (
    make_doc,
    make_example,
    make_examples,
)
from .util import NESTED, NESTED_TEXT, UNIFORM, WEIGHTED, add_group, force_scores, span_config, span_pipeline


def empty_pipe(nlp, **settings):
    return nlp.add_pipe("span_ner", config=span_config(**settings))


# Labels


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"]])
def test_given_labels_keep_their_order_in_the_outputs(labels):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    assert ner.labels == tuple(labels)
    for i, label in enumerate(labels, start=1):
        force_scores(ner.model, [9.0 * (i == j) for j in range(len(labels) + 1)])
        assert doc_entities(nlp(make_doc(nlp, "a", annotated=False))) == [(0, 1, label)]


def test_labels_of_the_group_that_is_learned_from():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, spans_key="x")
    example = make_example(nlp, NESTED_TEXT, [(0, 1, "PER")])
    add_group(example.reference, "x", NESTED)
    nlp.initialize(lambda: [example, make_example(nlp, "a")])
    assert ner.labels == ("LOC", "ORG")


# Initialization


@pytest.mark.parametrize("key", [None, "x"])
def test_entities_that_are_too_wide_are_warned_about(key):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, max_width=2, spans_key=key)
    example = make_example(nlp, NESTED_TEXT, NESTED[:1])
    add_group(example.reference, "x", NESTED)
    total = 1 if key is None else 2
    message = rf"\[WK901\] 1 of the {total} entities that 'span_ner'.*max_width = 2.*widest has 4"
    with pytest.warns(UserWarning, match=message):
        ner.initialize(lambda: [example], nlp=nlp)
    assert "ORG" in ner.labels


@pytest.mark.parametrize("max_width", [None, 4, 10])
def test_entities_that_are_not_too_wide_are_not_warned_about(max_width):
    nlp = spacy.blank("xx")
    empty_pipe(nlp, max_width=max_width).initialize(lambda: [make_example(nlp, NESTED_TEXT, NESTED[:1])], nlp=nlp)


# Settings


def test_the_factory_passes_every_setting_on():
    nlp = span_pipeline()
    settings = {
        "sampler": UniformNegativeSampler(0.5),
        "max_width": 3,
        "nested": True,
        "spans_key": "x",
        "incorrect_spans_key": "y",
        "head_learn_rate": 5.0,
        "overwrite": True,
        "scorer": print,
    }
    ner = make_span_ner(nlp, "mine", model=nlp.get_pipe("span_ner").model, **settings)
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.name == "mine"


@pytest.mark.parametrize("settings", [{"max_width": 0}, {"max_width": -2}])
def test_settings_out_of_range(settings):
    (name,) = settings
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        empty_pipe(spacy.blank("xx"), **settings)


def test_hidden_width_is_that_of_the_layer():
    assert span_pipeline().get_pipe("span_ner").model.get_ref("head").get_param("A").shape == (16, 16)


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


def test_nothing_of_the_settings_is_in_the_model():
    head = span_pipeline().get_pipe("span_ner").model.get_ref("head")
    assert not any(node.attrs for node in head.walk() if node.name == "span_scorer")


def test_it_counts_what_happens():
    assert callable(span_pipeline().get_pipe("span_ner").training_statistics)

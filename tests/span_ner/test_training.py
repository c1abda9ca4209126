"""What the component learns from, and what it hands to its encoder. See `tests/heads` too."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus.overlaps import without_overlaps
from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores, set_weak
from spacy_weakner.losses import log_softmax
from spacy_weakner.span_ner.losses import cross_entropy

from ..util import (
    GOLD,
    TEXTS,
    clear_gradients,
    entities_of,
    gradients,
    make_doc,
    make_example,
    make_examples,
    raw,
    same,
    train,
)
from .util import NESTED, NESTED_TEXT, UNIFORM, add_group, all_spans, force_scores, span_config, span_pipeline

NOTHING_DRAWN = {**UNIFORM, "ratio": 0.0}


@pytest.fixture
def nlp():
    return span_pipeline()


def span_scores(nlp, text, spans):
    """The scorer's output for spans of a text."""
    model = nlp.get_pipe("span_ner").model
    (vectors,) = model.predict([make_doc(nlp, text)])
    return model.get_ref("head").predict((vectors, numpy.asarray(spans, dtype="int64")))


def span_probabilities(nlp, text, span):
    return numpy.exp(log_softmax(span_scores(nlp, text, [span])))[0]


def wrong_example(nlp, label="PER", annotated=False):
    example = make_example(nlp, "Anna went home", annotated=annotated)
    add_group(example.reference, "wrong", [(0, 1, label)])
    return example


# Value of the loss


def test_the_loss_is_the_mean_over_sentences_of_the_sum_over_spans(nlp):
    total = 0.0
    for text, gold in zip(TEXTS, GOLD, strict=True):
        spans = all_spans(len(text.split()))
        known = {(start, end): 1 + ["LOC", "PER"].index(label) for start, end, label in gold}
        labels = numpy.asarray([known.get(span, 0) for span in spans])
        total += cross_entropy(span_scores(nlp, text, spans), labels)[0]
    losses = nlp.update(make_examples(nlp), sgd=False)
    assert losses["span_ner"] == pytest.approx(total / len(TEXTS), rel=1e-5)
    assert type(losses["span_ner"]) is float


# Learning


def test_a_weak_example_without_any_annotation_teaches(nlp):
    example = make_example(nlp, "nothing here", annotated=False)
    set_weak(example.reference)
    assert nlp.update([example], sgd=False)["span_ner"] > 0


def test_entities_do_not_count_where_a_group_is_learned_from():
    with pytest.warns(UserWarning, match=r"WK902.*'x'"):
        nlp = span_pipeline(labels=["PER"], spans_key="x")
    example = make_example(nlp, "Anna went", [(0, 1, "PER")])
    assert nlp.update([example], sgd=False)["span_ner"] == 0.0
    add_group(example.reference, "x", [])
    train(nlp, [example])
    assert entities_of(nlp, ["Anna went"]) == [[]]


@pytest.mark.parametrize("max_width, negatives, positives", [(1, 4, 0), (2, 7, 0), (3, 9, 0), (4, 9, 1), (None, 9, 1)])
def test_max_width_bounds_what_is_learned_from(max_width, negatives, positives):
    nlp = span_pipeline(max_width=max_width, labels=["X"])
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, numpy.log(3)])
    losses = nlp.update([make_example(nlp, "a b c d", [(0, 4, "X")])], sgd=False)
    assert losses["span_ner"] == pytest.approx(negatives * numpy.log(4) + positives * numpy.log(4 / 3), rel=1e-5)


# Spans that are known to be wrong


@pytest.mark.parametrize("label, column, rises", [("PER", 2, False), ("LOC", 1, False), ("", 0, True)])
def test_wrong_spans_are_unlearned(label, column, rises):
    nlp = span_pipeline(sampler=NOTHING_DRAWN, incorrect_spans_key="wrong")
    before = span_probabilities(nlp, "Anna went home", (0, 1))[column]
    assert train(nlp, [wrong_example(nlp, label)], steps=10)["span_ner"] > 0
    after = span_probabilities(nlp, "Anna went home", (0, 1))[column]
    assert bool(after > before) is rises


def test_wrong_spans_of_a_batch_belong_to_their_sentences():
    nlp = span_pipeline(incorrect_spans_key="wrong")
    model = nlp.get_pipe("span_ner").model
    examples = [*make_examples(nlp)[::-1], wrong_example(nlp, annotated=True), wrong_example(nlp, "", annotated=True)]
    nlp.update(examples, sgd=False)
    whole = gradients(model)
    clear_gradients(model)
    for example in examples:
        nlp.update([example], sgd=False)
    assert same(whole, gradients(model), tolerance=1e-5)


@pytest.mark.parametrize("key", [None, "other"])
def test_wrong_spans_have_no_effect_without_their_key(key):
    nlp = span_pipeline(sampler=NOTHING_DRAWN, incorrect_spans_key=key)
    assert nlp.update([wrong_example(nlp)], sgd=False)["span_ner"] == 0.0


def test_a_span_that_is_wrong_for_one_label_is_no_candidate():
    nlp = span_pipeline(incorrect_spans_key="wrong")
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, 0, 0])
    losses = nlp.update([wrong_example(nlp, annotated=True)], sgd=False)
    assert losses["span_ner"] == pytest.approx(5 * numpy.log(3) - numpy.log(2 / 3), rel=1e-5)


def test_a_wrong_span_says_nothing_on_others_of_a_sentence_without_annotation():
    nlp = span_pipeline(incorrect_spans_key="wrong")
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, 0, 0])
    losses = nlp.update([wrong_example(nlp)], sgd=False)
    assert losses["span_ner"] == pytest.approx(-numpy.log(2 / 3), rel=1e-5)


# The component in a pipeline: labels, initialization, settings, entities that are there already. What all heads


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


# What the component writes to Docs


GROUP = "pred:span_ner"


@pytest.fixture
def nested():
    """Not trained, so it finds much, also what overlaps."""
    return span_pipeline(nested=True)


@pytest.fixture
def everything():
    """Takes every span for an entity, with the same probability."""
    nlp = span_pipeline(labels=["X"], nested=True)
    force_scores(nlp.get_pipe("span_ner").model, [0, 2])
    return nlp


def naive_candidates(nlp, text):
    """Spans whose most probable label is not "O", one at a time."""
    ner = nlp.get_pipe("span_ner")
    found = {}
    (vectors,) = ner.model.predict([raw(nlp, text)])
    for span in all_spans(len(text.split()), ner.max_width):
        scores = ner.model.get_ref("head").predict((vectors, numpy.asarray([span])))
        if label := int(scores[0].argmax()):
            probability = numpy.exp(log_softmax(scores, ner.temperature))[0, label]
            found[(*span, ner.labels[label - 1])] = probability
    return found


# Scores


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("text", TEXTS)
def test_candidates_are_all_spans_that_are_rather_an_entity_than_not(nested, text, temperature):
    nested.get_pipe("span_ner").cfg["temperature"] = temperature
    expected = naive_candidates(nested, text)
    doc = nested(raw(nested, text))
    found = dict(zip(group_entities(doc, GROUP), group_scores(doc, GROUP), strict=True))
    assert found == pytest.approx(expected, rel=1e-4)
    assert {*doc_entities(doc)} <= {*found}
    assert [ent._.weakner_score for ent in doc.ents] == [found[entity] for entity in doc_entities(doc)]


def test_the_most_probable_spans_win(nested):
    for text in TEXTS:
        doc = nested(raw(nested, text))
        found, scores = group_entities(doc, "pred:span_ner"), group_scores(doc, "pred:span_ner")
        chosen = without_overlaps([entity[:2] for entity in found], numpy.asarray(scores), len(doc))
        assert doc_entities(doc) == [found[i] for i in chosen]


# Span groups


def test_overlapping_candidates_of_equal_probability(everything):
    doc = everything(raw(everything, "a b c"))
    assert [span[:2] for span in group_entities(doc, GROUP)] == all_spans(3)
    assert group_scores(doc, GROUP) == pytest.approx([1 / (1 + numpy.exp(-2))] * 6)
    assert doc_entities(doc) == [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]


# Docs of all kinds


@pytest.mark.parametrize(
    "words, expected",
    [
        ([" ", "a", "b"], [(1, 2), (1, 3), (2, 3)]),
        (["a", "\n", " "], [(0, 1)]),
        ([" ", "\n"], []),
        (["a", " ", "b"], [(0, 1), (0, 3), (2, 3)]),
    ],
)
def test_entities_do_not_begin_or_end_with_white_space(everything, words, expected):
    (doc,) = everything.pipe([Doc(everything.vocab, words=words)])
    assert [span[:2] for span in group_entities(doc, GROUP)] == expected


def test_a_long_doc(everything):
    doc = everything(raw(everything, "Anna went to New York " * 120))
    assert len(doc) == 600
    found = [(start, end) for start, end, _ in group_entities(doc, GROUP)]
    assert found == all_spans(600, everything.get_pipe("span_ner").max_width)
    assert doc_entities(doc) == [(i, i + 1, "X") for i in range(600)]

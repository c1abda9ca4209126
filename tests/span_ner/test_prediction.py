"""What the component writes to Docs."""

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.corpus.overlaps import without_overlaps
from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores
from spacy_weakner.span_ner.losses import log_softmax

from ..util import TEXTS, raw
from .util import all_spans, force_scores, span_pipeline

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


def test_the_middle_of_a_long_doc_repeats_itself(nested):
    # The encoder sees a token and its neighbors, so every sentence but the first and the last is the same to it.
    ner = nested.get_pipe("span_ner")
    ner.model.get_ref("head").set_param("c", numpy.asarray([-9, 0, 0], dtype="float32"))
    found = group_entities(nested(raw(nested, "Anna went to New York " * 120)), GROUP)
    assert len(found) == len(all_spans(600, ner.max_width))
    inner = [[(end - start, label) for start, end, label in found if i <= start < i + 5] for i in range(5, 580, 5)]
    assert all(own == inner[0] for own in inner)

"""What sources say of spans."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus.weak import set_source, set_weak
from spacy_weakner.losses import log_softmax
from spacy_weakner.sources.features import SourceFeatureSettings, set_weights
from spacy_weakner.sources.initial import InitialWeight
from spacy_weakner.sources.matches import read_matches
from spacy_weakner.span_ner.candidates import enumerate_spans
from spacy_weakner.span_ner.source_features import (
    SpansOfDocs,
    build_span_features,
    span_features,
    starting_span_weights,
)

from ..sources.features_util import said_examples, source_pipeline
from ..sources.test_features import LABELS, TERMS, own_reading, random_docs
from ..util import all_zero, numeric_gradient

DOCS = [doc for doc in random_docs(40) if len(doc)]
OFFSETS = numpy.cumsum([0, *map(len, DOCS)])
# Some come twice, as in updates.
SPANS = numpy.concatenate(
    [enumerate_spans(len(doc)) + offset for doc, offset in zip(DOCS, OFFSETS, strict=False)] + [[[0, 1], [0, 1]]]
)


def slow_features(doc, span):
    """The features of a span of a Doc, as the docstring of the layer has them."""
    n = len(LABELS)
    row = numpy.zeros(2 * n + 7)
    if TERMS not in doc.spans:
        return row
    group, kept = doc.spans[TERMS], own_reading(doc, TERMS)
    own = [entity for entity in kept if entity[:2] == span]
    if own:
        row[2 * n + 1 + min(4, span[1] - span[0])] = 1.0
    if not any(entity[0] < span[1] and span[0] < entity[1] for entity in kept):
        row[2 * n] = 1.0
    elif not own:
        row[-1] = 1.0
    elif own[0][2] not in LABELS:
        row[2 * n + 1] = 1.0
    for match, score in zip(group, group.attrs["scores"], strict=True):
        entity = (match.start, match.end, match.label_)
        in_reading = entity in kept
        if in_reading:
            kept.remove(entity)
        if entity[:2] == span and entity[2] in LABELS:
            row[LABELS.index(entity[2]) + (0 if in_reading else n)] += 1.0 if score is None else score
    return row


def slow_rows():
    rows = []
    for start, end in SPANS.tolist():
        i = int(numpy.searchsorted(OFFSETS, start, side="right")) - 1
        rows.append(slow_features(DOCS[i], (start - OFFSETS[i], end - OFFSETS[i])))
    return numpy.stack(rows)


def layer(n_outputs=3):
    made = build_span_features(SourceFeatureSettings(["terms"], 4.0, 0.0))
    made.initialize(Y=numpy.zeros((1, n_outputs), dtype="float32"))
    set_weights(made, LABELS, numpy.random.RandomState(0).normal(size=(11, n_outputs)))
    return made


def test_features_are_those_of_a_slow_twin():
    rows, features, values = span_features(read_matches(DOCS, "terms", LABELS, [False] * len(DOCS)), 2, SPANS)
    found = numpy.zeros((len(SPANS), 11))
    numpy.add.at(found, (rows, features), values)
    assert found.any(axis=0).all() and numpy.array_equal(found, slow_rows())


def test_scores_and_gradient():
    made, rows = layer(), slow_rows()
    scores, backprop = made.begin_update(SpansOfDocs(DOCS, SPANS))
    assert numpy.allclose(scores, rows @ made.get_param("W"), atol=1e-5)
    wanted = numpy.random.RandomState(1).normal(size=scores.shape).astype("float32")
    backprop(wanted)
    expected = numeric_gradient(
        lambda weights: ((rows @ weights) * wanted).sum(), made.get_param("W").astype("float64")
    )
    assert numpy.abs(made.get_grad("W") - expected).max() < 1e-4


def test_a_phrase_with_two_labels_starts_as_the_first():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "b"])
    set_source(doc, "terms", [(0, 2, "PER"), (0, 2, "LOC")])
    made = layer()
    set_weights(made, LABELS, starting_span_weights(2, [InitialWeight(numpy.array([4.0, 4.0]), 4.0)]))
    found = made.predict(SpansOfDocs([doc], enumerate_spans(2)))
    assert found.tolist() == [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [4.0, 0.0, 0.0]]


@pytest.mark.parametrize("weak", [False, True])
def test_weighted_sampling_sees_what_the_update_sees(weak):
    nlp = source_pipeline("span_ner", "terms", dropout=0.0)
    ner = nlp.get_pipe("span_ner")
    examples = said_examples(nlp, "terms")[:2]
    docs = [example.predicted for example in examples]
    for doc in docs:
        set_weak(doc, weak)
    vectors = ner.model.predict(docs)
    candidates = [enumerate_spans(len(doc)) for doc in docs]
    found = numpy.concatenate(ner._score_candidates(vectors, candidates, docs))
    assert all_zero([found - numpy.log(1 / 3)]) == weak
    visible = log_softmax(ner._score(docs, vectors, candidates))
    assert numpy.array_equal(found, visible) == (not weak)


def test_nested_and_overlapping_matches():
    nlp = source_pipeline("span_ner", "terms")
    ner = nlp.get_pipe("span_ner")
    ner.nested = True
    doc = said_examples(nlp, "terms")[1].predicted
    ner.set_annotations([doc], ner.predict([doc]))
    assert [(span.start, span.end, span.label_) for span in doc.spans["pred:span_ner"]] == own_reading(doc, TERMS)

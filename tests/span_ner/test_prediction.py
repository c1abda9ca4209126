"""What the component writes to Docs."""

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.annotations.weak import doc_entities, group_entities, group_scores
from spacy_weakner.span_ner import scoring
from spacy_weakner.span_ner.decoding import select
from spacy_weakner.span_ner.losses import log_softmax

from ..util import TEXTS, entities_of, make_doc, make_examples, train
from .util import GOLD, all_spans, force_scores, span_pipeline

GROUP = "pred:span_ner"


@pytest.fixture
def trained():
    nlp = span_pipeline()
    train(nlp, make_examples(nlp))
    return nlp


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


def raw(nlp, text):
    return make_doc(nlp, text, annotated=False)


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


def test_some_of_these_candidates_overlap(nested):
    assert any(len(naive_candidates(nested, text)) > len(nested(raw(nested, text)).ents) for text in TEXTS)


def test_scores_are_probabilities(trained):
    for text, gold in zip(TEXTS, GOLD, strict=True):
        scores = [ent._.weakner_score for ent in trained(raw(trained, text)).ents]
        assert len(scores) == len(gold)
        assert all(type(score) is float and 0.5 < score <= 1.0 for score in scores)


def test_temperature_changes_scores_but_not_entities(trained):
    before = [ent._.weakner_score for ent in trained(raw(trained, TEXTS[0])).ents]
    trained.get_pipe("span_ner").cfg["temperature"] = 10.0
    after = [ent._.weakner_score for ent in trained(raw(trained, TEXTS[0])).ents]
    assert max(after) < min(before)
    assert entities_of(trained, TEXTS) == GOLD


def test_the_most_probable_spans_win(nested):
    ner = nested.get_pipe("span_ner")
    for text in TEXTS:
        doc = raw(nested, text)
        (candidates,) = ner._classify([doc], ner.model.predict([doc]))
        chosen = [ner._entities(candidates, [i])[0] for i in select(candidates, len(doc))]
        assert doc_entities(nested(doc)) == chosen


# Span groups


def test_candidates_are_not_written_unless_asked_for(trained):
    assert dict(trained(raw(trained, TEXTS[0])).spans) == {}


def test_overlapping_candidates_of_equal_probability(everything):
    doc = everything(raw(everything, "a b c"))
    assert [span[:2] for span in group_entities(doc, GROUP)] == all_spans(3)
    assert group_scores(doc, GROUP) == pytest.approx([1 / (1 + numpy.exp(-2))] * 6)
    assert doc_entities(doc) == [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]


@pytest.mark.parametrize("words", [[], [" "], ["a"]])
def test_the_group_is_written_even_if_it_is_empty(everything, words):
    force_scores(everything.get_pipe("span_ner").model, [9, 0])
    (doc,) = everything.pipe([Doc(everything.vocab, words=words)])
    assert GROUP in doc.spans
    assert group_scores(doc, GROUP) == []


def test_the_group_has_the_name_of_the_component(everything):
    everything.rename_pipe("span_ner", "mine")
    everything.get_pipe("mine").name = "mine"
    assert "pred:mine" in everything("a").spans


# Docs of all kinds


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["", "Bob", ""], [" "], ["\n\n", "Bob"], ["Bob"], ["  \n "]])
def test_small_docs(trained, texts):
    docs = list(trained.pipe(texts))
    assert [doc_entities(doc) for doc in docs] == [[(0, 1, "PER")] if text == "Bob" else [] for text in texts]


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


def test_a_long_doc(trained):
    text = "Anna went to New York " * 120
    doc = trained(raw(trained, text))
    assert len(doc) == 600
    assert len(doc.ents) >= 120
    assert all(len(ent) <= 10 for ent in doc.ents)


def test_pipe_is_one_by_one_in_any_order_and_batch_size(nested):
    texts = [*TEXTS, "", "Anna likes Paris", "York", " ", "Bob " * 30]

    def run(texts, size):
        result = {}
        for doc in nested.pipe(texts, batch_size=size):
            scores = [ent._.weakner_score for ent in doc.ents] + group_scores(doc, GROUP)
            result[doc.text] = (doc_entities(doc), group_entities(doc, GROUP), [round(score, 4) for score in scores])
        return result

    expected = {text: run([text], 1)[text] for text in texts}
    assert any(entities for entities, _, _ in expected.values())
    assert run(texts, 100) == run(texts, 2) == run(texts[::-1], 3) == expected


def test_chunks_do_not_change_what_is_found(nested, monkeypatch):
    before = [nested.get_pipe("span_ner").predict([raw(nested, text)])[0] for text in TEXTS]
    monkeypatch.setattr(scoring, "CHUNK", 3)
    after = nested.get_pipe("span_ner").predict([raw(nested, text) for text in TEXTS])
    for one, other in zip(before, after, strict=True):
        assert (one.entities, one.candidates) == (other.entities, other.candidates)
        assert one.candidate_scores == pytest.approx(other.candidate_scores, rel=1e-4)


def test_predict_does_not_touch_the_docs(nested):
    docs = [raw(nested, text) for text in TEXTS]
    predictions = nested.get_pipe("span_ner").predict(iter(docs))
    assert len(predictions) == len(docs)
    assert not any(doc.has_annotation("ENT_IOB") or doc.spans for doc in docs)


def test_tokens_outside_entities_are_outside(trained):
    assert "".join(token.ent_iob_ for token in trained(raw(trained, TEXTS[0]))) == "BOOBI"


def test_dropout_is_off_in_prediction(nested):
    ner = nested.get_pipe("span_ner")
    before = ner.predict([raw(nested, TEXTS[0])])[0].candidate_scores
    ner.update(make_examples(nested), drop=0.9)
    assert ner.predict([raw(nested, TEXTS[0])])[0].candidate_scores == before

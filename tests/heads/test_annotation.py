"""What heads of entities write to Docs, and entities that are there already."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores
from spacy_weakner.heads import head as base

from ..util import ENTITY_HEADS, TEXTS, raw, train
from .util import CATEGORY, TALKATIVE, pipeline, stir

entity_heads = pytest.mark.parametrize("head", ENTITY_HEADS)


@pytest.mark.parametrize("head", [CATEGORY])
def test_predicting_categories_does_not_touch_the_docs(load, head):
    nlp = load()
    docs, expected = [raw(nlp, text) for text in TEXTS], [nlp(raw(nlp, text)) for text in TEXTS]
    for doc in docs:
        doc.cats = {"mine": 0.5}
    predictions = nlp.get_pipe(head).predict(iter(docs))
    assert all(doc.cats == {"mine": 0.5} for doc in docs)
    nlp.get_pipe(head).set_annotations(docs, predictions)
    assert [doc.cats for doc in docs] == [pytest.approx({"mine": 0.5, **doc.cats}, abs=1e-5) for doc in expected]
    assert not any(doc.has_annotation("ENT_IOB") for doc in docs)


# Prediction


def test_candidates_are_off_by_default(trained):
    assert dict(trained(raw(trained, TEXTS[0])).spans) == {}


@pytest.mark.parametrize("head", ["crf_ner", "span_ner", "mrc_ner"])
def test_the_group_of_candidates_has_the_name_of_the_component_and_may_be_empty(load, head):
    nlp = load(**TALKATIVE[head])
    for text in ("", " ", "nothing here at all"):
        assert group_scores(nlp(text), f"pred:{head}") == [] and f"pred:{head}" in nlp(text).spans
    nlp.rename_pipe(head, "mine")
    nlp.get_pipe("mine").name = "mine"
    assert "pred:mine" in nlp("Bob").spans


@pytest.mark.parametrize("head", [CATEGORY])
@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["", "Bob", ""], [" "], ["\n\n", "Bob"], ["Bob"], ["  \n "]])
def test_categories_of_small_docs(load, texts):
    docs = list(load().pipe(texts))
    assert [sum(doc.cats.values()) for doc in docs] == pytest.approx([1.0 if text.strip() else 0.0 for text in texts])
    assert all({*doc.cats} == {"LOC", "PER"} and not doc.ents for doc in docs)


@pytest.mark.parametrize("padded_tokens", [12, 2000])
def test_pipe_is_one_by_one_in_any_order_and_batch_size(head, monkeypatch, padded_tokens):
    monkeypatch.setattr(base, "PADDED_TOKENS", padded_tokens)
    # Untrained heads find more.
    nlp, group = stir(pipeline(head, **TALKATIVE[head]), head), f"pred:{head}"
    texts = [*TEXTS, "", "Anna likes Paris", "York", " ", "Bob " * 30]

    def run(texts, size):
        result = {}
        for doc in nlp.pipe(texts, batch_size=size):
            scores = [ent._.weakner_score for ent in doc.ents] + group_scores(doc, group) + list(doc.cats.values())
            result[doc.text] = (doc_entities(doc), group_entities(doc, group), [round(score, 4) for score in scores])
        return result

    expected = {text: run([text], 1)[text] for text in texts}
    assert any(scores for _, _, scores in expected.values())
    assert run(texts, 100) == run(texts, 2) == run(texts[::-1], 3) == expected


@entity_heads
def test_two_threads_may_predict(load, head):
    """Predictions, also under other biases, change nothing that they share."""
    nlp = stir(load(**TALKATIVE[head]), head)
    ner, docs = nlp.get_pipe(head), [raw(nlp, text) for text in [*TEXTS, "Anna likes Paris", "Bob " * 30]]
    before = {**ner.cfg}

    def predict(n):
        return ner.predict(docs) if n % 2 else ner.entities_under(docs, [-2.0, 0.0, 2.0])

    expected = [predict(0), predict(1)]
    with ThreadPoolExecutor(2) as executor:
        assert list(executor.map(predict, range(12))) == expected * 6
    assert ner.cfg == before


# Tokens


@entity_heads
def test_two_tokenizations_in_training(head, nlp):
    predicted = Doc(nlp.vocab, words=["New", "Yor", "k", "ishere"], spaces=[True, False, True, False])
    reference = Doc(nlp.vocab, words=["New", "York", "is", "here"], spaces=[True, True, False, False])
    reference.set_ents([Span(reference, 0, 2, "LOC")], default="outside")
    train(nlp, [Example(predicted, reference)])
    assert doc_entities(nlp.get_pipe(head)(predicted.copy())) == [(0, 3, "LOC")]

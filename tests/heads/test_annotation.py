"""What heads of entities write to Docs, and entities that are there already."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores
from spacy_weakner.heads import head as base

from ..util import ENTITY_HEADS, TEXTS, iob, raw, train
from .util import CATEGORY, TALKATIVE, pipeline, stir

entity_heads = pytest.mark.parametrize("head", ENTITY_HEADS)


SMALL = [[], [""], ["", ""], ["", "Bob", ""], [" "], ["\n\n", "Bob"], ["Bob"], ["  \n "]]


def test_predict_does_not_touch_the_docs(load, head):
    nlp = load(**TALKATIVE[head])
    docs, expected = [raw(nlp, text) for text in TEXTS], [nlp(raw(nlp, text)) for text in TEXTS]
    for doc in docs:
        doc.cats = {"mine": 0.5}
    predictions = nlp.get_pipe(head).predict(iter(docs))
    assert not any(doc.has_annotation("ENT_IOB") or doc.spans or len(doc.cats) > 1 for doc in docs)
    nlp.get_pipe(head).set_annotations(docs, predictions)
    assert list(map(doc_entities, docs)) == list(map(doc_entities, expected))
    assert [doc.cats for doc in docs] == [pytest.approx({"mine": 0.5, **doc.cats}, abs=1e-5) for doc in expected]
    assert iob(docs[0]) == ("-----" if head == CATEGORY else "BOOBI")


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


@entity_heads
@pytest.mark.parametrize("talkative", [False, True])
def test_candidates_instead_of_entities(load, head, talkative):
    settings, group = TALKATIVE[head] if talkative else {}, f"pred:{head}"
    nlp, writer = load(**settings, annotate_ents=False), load(**settings)
    for text in TEXTS:
        doc, written = nlp(text), writer(text)
        expected = group_entities(written, group) if group in written.spans else doc_entities(written)
        assert group_entities(doc, group) == expected and not doc.has_annotation("ENT_IOB")
        assert all(0.0 <= score <= 1.0 for score in group_scores(doc, group))
        # What stands in the Doc already suppresses no candidate: nothing is written over it.
        preset = nlp.make_doc(text)
        preset.set_ents([Span(preset, 0, 1, "OTHER")])
        assert group_entities(nlp(preset), group) == expected and doc_entities(preset) == [(0, 1, "OTHER")]
        examples = [Example(nlp.make_doc(text), written)]
        assert "ents_f" in writer.evaluate(examples) and "ents_f" not in nlp.evaluate(examples)


@pytest.mark.parametrize("talkative", [False, True])
def test_small_docs(load, head, talkative):
    nlp = load(**(TALKATIVE[head] if talkative else {}))
    for texts in SMALL:
        docs, found = list(nlp.pipe(texts)), [(0, 1, "PER")] * (head != CATEGORY)
        assert [doc_entities(doc) for doc in docs] == [found if text == "Bob" else [] for text in texts]
        totals = [1.0 if text.strip() and head == CATEGORY else 0.0 for text in texts]
        assert [sum(doc.cats.values()) for doc in docs] == pytest.approx(totals)
        assert all({*doc.cats} == ({"LOC", "PER"} if head == CATEGORY else set()) for doc in docs)


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

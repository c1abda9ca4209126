"""What goes to the encoder and back, its own or a shared one."""

from copy import deepcopy

import numpy
import pytest
import spacy

from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads import head as base

from ..util import (
    LISTENING_HEADS,
    QUERIES,
    TEXTS,
    all_zero,
    clear_gradients,
    gradients,
    gradients_with_and_without,
    make_doc,
    raw,
    recorded_head,
    same,
    shared_examples,
    shared_pipeline,
    train,
)
from .util import CATEGORY, answers, example, examples, gold_of

listening = pytest.mark.parametrize("head", LISTENING_HEADS)


def questions(head):
    """What the encoder reads beside the texts."""
    return list(QUERIES.values()) if head == "mrc_ner" else []


def shapes(head, lengths, empty_width=4):
    lengths = [*lengths, *(len(question.split()) for question in questions(head))]
    return [(n, 4 if n else empty_width) for n in lengths]


def test_backpropagates_when_there_is_nothing_to_learn(head, nlp):
    ner, recorder = recorded_head(nlp, head)
    ner.update([example(nlp, "Anna went", annotated=False)])
    assert len(recorder.gradients) == 1
    assert all_zero(recorder.gradients[0])
    assert [g.shape for g in recorder.gradients[0]] == shapes(head, [2])


def test_one_forward_and_backward_pass_over_all_docs_in_order(head, nlp):
    ner, recorder = recorded_head(nlp, head)
    batch = [example(nlp, ""), *examples(nlp)]
    ner.update(batch)
    (read,) = recorder.docs
    docs, asked = read[: len(batch)], read[len(batch) :]
    assert docs == [eg.predicted for eg in batch] and [doc.text.strip() for doc in asked] == questions(head)
    assert [[g.shape for g in call] for call in recorder.gradients] == [shapes(head, map(len, docs))]
    assert not all_zero(recorder.gradients[0])


@pytest.mark.parametrize("texts", [["", "a b"], ["a", "", "b c", ""]])
def test_encoders_with_another_width_for_empty_docs(head, nlp, texts):
    ner, recorder = recorded_head(nlp, head, empty_width=0)
    lengths = [len(text.split()) for text in texts]
    docs = [make_doc(nlp, text) for text in texts]
    if head != CATEGORY:
        assert [len(own) for own in ner.token_outputs(docs)] == lengths
    assert len(ner.predict(docs)) == len(texts)
    ner.update([example(nlp, text) for text in texts])
    assert [g.shape for g in recorder.gradients[0]] == shapes(head, lengths, empty_width=0)


# A shared encoder


@listening
@pytest.mark.parametrize("last", [True, False])
def test_an_idle_listener_leaves_the_encoder_to_the_others(head, last):
    nlp = shared_pipeline(("tagger", head) if last else (head, "tagger"))
    encoder, silent = nlp.get_pipe("tok2vec").model, shared_examples(nlp, annotated=False)
    train(nlp, shared_examples(nlp, annotated=True), steps=2)  # the tagger begins with zeros
    together, alone = gradients_with_and_without(nlp, head, encoder, silent)
    assert not all_zero(together)
    assert same(together, alone, tolerance=1e-6)


@listening
@pytest.mark.parametrize("last", [True, False])
def test_a_listener_that_learns_adds_to_the_encoder(head, last):
    nlp = shared_pipeline(("tagger", head) if last else (head, "tagger"))
    encoder = nlp.get_pipe("tok2vec").model
    found = []
    for annotated in (False, True):
        clear_gradients(encoder)
        nlp.update(shared_examples(nlp, annotated), sgd=False)
        found.append(gradients(encoder))
    assert not same(*found, tolerance=1e-6)


@listening
def test_a_listener_trains_and_returns_from_disk(head, tmp_path):
    nlp = shared_pipeline(("tagger", head))
    train(nlp, shared_examples(nlp, annotated=True), steps=80)
    nlp.to_disk(tmp_path)
    assert answers(head, nlp, TEXTS) == gold_of(head)
    assert answers(head, spacy.load(tmp_path), ["", *TEXTS]) == [*answers(head, nlp, [""]), *gold_of(head)]


@listening
@pytest.mark.parametrize("texts", [[""], ["", "Bob", "", "Anna went to York", ""], ["\n", "Bob"]])
def test_empty_docs_with_a_listener(head, texts):
    nlp = shared_pipeline(("tagger", head))
    losses = nlp.update([example(nlp, text) for text in texts])
    assert numpy.isfinite(losses[head])
    assert len(list(nlp.pipe(texts))) == len(texts)


@listening
def test_listeners_can_be_replaced(head):
    nlp = shared_pipeline((head,))
    train(nlp, examples(nlp))
    nlp.replace_listeners("tok2vec", head, ["model.tok2vec"])
    nlp.remove_pipe("tok2vec")
    assert answers(head, nlp, TEXTS) == gold_of(head)
    assert train(nlp, examples(nlp), steps=1)[head] < 1


# What functions of the model's outputs are given


@pytest.mark.parametrize("padded_tokens", [1, 6, 1000])
def test_each_doc_comes_with_what_belongs_to_it(nlp, ner, monkeypatch, padded_tokens):
    monkeypatch.setattr(base, "PADDED_TOKENS", padded_tokens)
    texts, groups = ["a b c", "d", "", "e f", "g h i", ""], []

    def look(docs, outputs, texts, numbers):
        groups.append(len(docs))
        assert len(docs) == len(outputs) == len(texts) == len(numbers)
        return [(doc.text, text, n) for doc, text, n in zip(docs, texts, numbers, strict=True)]

    docs = (raw(nlp, text) for text in texts)
    found = ner.map_outputs(docs, look, "nothing", texts, range(6))
    assert found == [(text, text, i) if text else "nothing" for i, text in enumerate(texts)]
    assert groups == {1: [1, 1, 1, 1], 6: [2, 2], 1000: [4]}[padded_tokens]


def test_another_model_is_run(nlp, ner):
    teacher, docs = deepcopy(ner.model), [raw(nlp, "a b")]
    for node in teacher.walk():
        for name in node.param_names:
            if node.has_param(name):
                node.set_param(name, node.get_param(name) + 1.0)
    own, other = (ner.map_outputs(docs, lambda _, outputs: list(outputs), None, model=m)[0] for m in (None, teacher))
    assert own.shape == other.shape and (own != other).any()


@pytest.mark.parametrize("head", LISTENING_HEADS)
def test_a_shared_encoder_that_has_not_run(head):
    """Without the encoder, spaCy's listener gives zeros; a head says so."""
    nlp = shared_pipeline([head])
    docs = [nlp.make_doc("Anna went to Paris"), nlp.make_doc("")]
    for run in (nlp.get_pipe(head).predict, lambda docs: [nlp.get_pipe(head)(doc) for doc in docs]):
        with pytest.raises(WeaknerError, match=rf"WK009.*'{head}'"):
            run(docs)
    with nlp.select_pipes(disable="tok2vec"), pytest.raises(WeaknerError, match="WK009"):
        nlp("Anna went to Paris")
    if head != CATEGORY:
        with pytest.raises(WeaknerError, match="WK009"):
            nlp.get_pipe(head).held_out_loss(examples(nlp))
    assert nlp.get_pipe(head).predict(docs[1:])
    # The vectors of another encoder do not count.
    docs[0].tensor = numpy.zeros((len(docs[0]), 7), dtype="float32")
    with pytest.raises(WeaknerError, match="WK009"):
        nlp.get_pipe(head).predict(docs)

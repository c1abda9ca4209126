"""Initialisation: examples, outputs, seeds."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.errors import WeaknerError

from ..util import fix_seed, head_config, head_pipeline, make_doc, make_example, make_examples, same, train, weights
from .util import empty_pipeline


@pytest.mark.parametrize(
    "get_examples", [lambda: None, lambda: [], lambda: ["text"], lambda: [Doc(spacy.blank("xx").vocab)], []]
)
def test_get_examples_of_wrong_shapes(head, get_examples):
    nlp, ner = empty_pipeline(head)
    with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
        ner.initialize(get_examples, nlp=nlp, labels=["X"])


def test_get_examples_may_be_a_generator(head):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: (eg for eg in make_examples(nlp)), nlp=nlp)
    assert ner.is_initialized


@pytest.mark.parametrize("texts", [[""], ["", "a b"]])
def test_initialisation_with_empty_docs(head, texts):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: [make_example(nlp, text) for text in texts], nlp=nlp, labels=["X"])
    docs = [make_doc(nlp, "a b")]
    assert [len(scores) for scores in ner.token_outputs(docs)] == [2]
    assert len(ner.predict(docs)) == 1


def with_outputs(head, n_outputs):
    nlp = spacy.blank("xx")
    config = head_config(head)
    return nlp, nlp.add_pipe(head, config={**config, "model": {**config["model"], "nO": n_outputs}})


def test_the_number_of_outputs_may_be_given(head, ner):
    nlp, other = with_outputs(head, ner.n_outputs)
    assert not other.is_initialized
    nlp.initialize(lambda: make_examples(nlp))
    assert other.is_initialized and other.labels == ner.labels


def test_a_wrong_number_of_outputs(head, ner):
    nlp, _ = with_outputs(head, ner.n_outputs + 1)
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'nO' = {ner.n_outputs + 1} .*: expected {ner.n_outputs},"):
        nlp.initialize(lambda: make_examples(nlp))


def test_a_corpus_without_any_annotation_is_warned_about(head):
    nlp, ner = empty_pipeline(head)
    with pytest.warns(UserWarning, match=rf"\[WK900\].*'{head}'"):
        ner.initialize(lambda: [make_example(nlp, "a b", annotated=False)] * 2, nlp=nlp, labels=["X"])


@pytest.mark.parametrize("use", ["predict", "update", "token_outputs"])
def test_not_initialised(head, use):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    argument = [make_example(nlp, "a")] if use == "update" else [make_doc(nlp, "a")]
    with pytest.raises(WeaknerError, match=rf"\[WK008\] '{head}'"):
        getattr(ner, use)(argument)


def test_the_seed_decides_everything(head):
    runs = []
    for _ in range(2):
        nlp = head_pipeline(head, seed=3)
        fix_seed(1)
        train(nlp, make_examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe(head).model))
    assert same(*runs)


def test_another_seed_gives_other_weights(head):
    assert not same(*(weights(head_pipeline(head, seed=seed).get_pipe(head).model) for seed in (0, 1)))


def test_weights_are_float32(ner):
    assert {array.dtype for array in weights(ner.model)} == {numpy.dtype("float32")}

"""Initialization: examples, outputs, seeds."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.errors import WeaknerError

from ..util import fix_seed, head_config, make_doc, same, train, weights
from .util import CATEGORY, ONE_LABEL, begin, empty_pipeline, example, examples, needs, pipeline


def test_get_examples_of_wrong_shapes(head):
    nlp, ner = empty_pipeline(head)
    for get_examples in (lambda: None, lambda: [], lambda: ["text"], lambda: [Doc(nlp.vocab)], []):
        with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
            ner.initialize(get_examples, nlp=nlp, labels=["X"], **needs(head, "X"))


def test_get_examples_may_be_a_generator(head):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: (eg for eg in examples(nlp)), nlp=nlp, **needs(head))
    assert ner.is_initialized


@pytest.mark.parametrize("texts", [[""], ["", "a b"]])
def test_initialization_with_empty_docs(head, texts):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    ner.initialize(lambda: [example(nlp, text) for text in texts], nlp=nlp, labels=["X"], **needs(head, "X"))
    docs = [make_doc(nlp, "a b")]
    if head != CATEGORY:
        assert [len(own) for own in ner.token_outputs(docs)] == [2]
    assert len(ner.predict(docs)) == 1


def with_outputs(head, n_outputs):
    nlp = spacy.blank("xx")
    config = head_config(head)
    begin(head, nlp)
    return nlp, nlp.add_pipe(head, config={**config, "model": {**config["model"], "nO": n_outputs}})


def test_the_number_of_outputs_may_be_given(head, ner):
    nlp, other = with_outputs(head, ner.n_outputs)
    assert not other.is_initialized
    nlp.initialize(lambda: examples(nlp))
    assert other.is_initialized and other.labels == ner.labels


def test_a_wrong_number_of_outputs(head, ner):
    nlp, _ = with_outputs(head, ner.n_outputs + 1)
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'nO' = {ner.n_outputs + 1} .*: expected {ner.n_outputs},"):
        nlp.initialize(lambda: examples(nlp))


def test_a_corpus_without_any_annotation_is_warned_about(head):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    number = "WK904" if head == CATEGORY else "WK900"
    with pytest.warns(UserWarning, match=rf"\[{number}\].*'{head}'"):
        silent = [example(nlp, "a b", annotated=False)] * 2
        ner.initialize(lambda: silent, nlp=nlp, labels=["X"], **needs(head, "X"))


def test_initialization_without_examples(head):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    ner.add_label("X")
    begin(head, nlp, "X")
    nlp.initialize()
    assert ner.is_initialized and ner.labels == ("X",)


@pytest.mark.parametrize("use", ["predict", "update", "token_outputs"])
def test_not_initialized(head, use):
    use = "predict" if head == CATEGORY and use == "token_outputs" else use
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    argument = [example(nlp, "a")] if use == "update" else [make_doc(nlp, "a")]
    with pytest.raises(WeaknerError, match=rf"\[WK008\] '{head}'"):
        getattr(ner, use)(argument)


def test_the_seed_decides_everything(head):
    runs = []
    for _ in range(2):
        nlp = pipeline(head, seed=3)
        fix_seed(1)
        train(nlp, examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe(head).model))
    assert same(*runs)


def test_another_seed_gives_other_weights(head):
    assert not same(*(weights(pipeline(head, seed=seed).get_pipe(head).model) for seed in (0, 1)))


def test_weights_are_float32(ner):
    assert {array.dtype for array in weights(ner.model)} == {numpy.dtype("float32")}

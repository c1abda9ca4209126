"""Augmented sentences beside the sentences themselves."""

from unittest.mock import patch

import numpy
import pytest
from spacy.tokens import Doc
from spacy.training import Example

from spacy_weakner.corpus.weak import set_augmented
from spacy_weakner.errors import WeaknerError

from ..util import Recorder, all_zero, clear_gradients, gradients, make_example, make_examples, same, weights
from .util import HARD, ROBUST, SELF, SOFT, loss_of, spied, ticked, token_pipeline


def augmented(nlp, text="Bob runs", words=("Anna", "walks")):
    example = make_example(nlp, text, [(0, 1, "PER")])
    set_augmented(example.reference, words)
    return example


def test_augmented_sentences_are_read_in_the_same_forward_pass(nlp):
    recorder = Recorder()
    ner, spy = spied(nlp, recorder.model)
    examples = [make_example(nlp, "Anna went"), augmented(nlp), make_example(nlp, ""), augmented(nlp, "Eve", ["Ada"])]
    ner.renew(examples)
    ner.update(examples)
    (read,) = recorder.docs
    assert read[:4] == [eg.predicted for eg in examples]
    assert [[token.text for token in doc] for doc in read[4:]] == [["Anna", "walks"], ["Ada"]]
    found = spy.batches[0].augmented
    assert found.tokens.tolist() == [2, 3, 4]
    assert found.outputs.shape == (3, 3)
    assert spy.batches[0].outputs.shape == (5, 3)
    assert spy.batches[0].teacher.shape == (5, 3)
    # The gradient reaches the encoder.
    (passed,) = recorder.gradients
    linear = weights(ner.model.get_ref("head"))[0]
    for own, rows, slope in zip(passed, [2, 2, 0, 1, 2, 1], [1, 1, 1, 1, 2, 2], strict=True):
        numpy.testing.assert_allclose(own, numpy.tile(slope * linear.sum(axis=0), (rows, 1)), rtol=1e-5)


def test_augmented_sentences_without_a_gradient_pass_zeros(nlp):
    recorder = Recorder()
    ner, _ = spied(nlp, recorder.model, spy={"augmented_gradient": False})
    ner.renew([augmented(nlp)])
    ner.update([augmented(nlp)])
    (passed,) = recorder.gradients
    assert [own.shape for own in passed] == [(2, 4), (2, 4)]
    assert passed[0].any() and not passed[1].any()


def test_spaces_and_vocabulary_of_augmented_sentences_are_those_of_the_doc(nlp):
    recorder = Recorder()
    ner, _ = spied(nlp, recorder.model)
    ner.renew([augmented(nlp)])
    ner.update([augmented(nlp)])
    ((_, doc),) = recorder.docs
    assert doc.text == "Anna walks "
    assert doc.vocab is nlp.vocab


@pytest.mark.parametrize("objective", [SELF, {**SELF, "threshold": 0.3}])
def test_a_split_batch_with_augmented_sentences_gives_the_same_gradients(objective):
    nlp = token_pipeline(objective)
    examples = [make_example(nlp, "Anna went"), augmented(nlp), make_example(nlp, ""), augmented(nlp, "Eve", ["Ada"])]
    ner = ticked(nlp)
    ner.renew(examples)
    found = []
    for batches in ([examples], [[example] for example in examples], [examples[::-1]]):
        clear_gradients(ner.model)
        for batch in batches:
            nlp.update(batch, sgd=False)
        found.append(gradients(ner.model))
    assert not all_zero(found[0])
    assert same(found[0], found[1], tolerance=1e-5)
    assert same(found[0], found[2], tolerance=1e-5)


def test_augmented_sentences_add_to_what_is_learned():
    nlp = token_pipeline(SELF)
    plain, more = make_example(nlp, "Bob runs", [(0, 1, "PER")]), augmented(nlp)
    ner = ticked(nlp)
    ner.renew([plain])
    found = []
    for example in (plain, more):
        clear_gradients(ner.model)
        found.append((loss_of(nlp, [example]), gradients(ner.model.get_ref("tok2vec"))))
    assert found[1][0] > found[0][0]
    assert not same(found[0][1], found[1][1], tolerance=1e-5)


@pytest.mark.parametrize("objective", [HARD, SOFT, ROBUST])
def test_only_objectives_that_want_them_read_augmented_sentences(objective):
    nlp = token_pipeline(objective)
    ner, read = ticked(nlp), []
    ner.renew([augmented(nlp)])
    begin_update = ner.model._func

    def count(model, docs, is_train):
        read.append(len(docs))
        return begin_update(model, docs, is_train)

    with patch.object(ner.model, "_func", count):
        ner.update([augmented(nlp)])
    assert read == [1]


@pytest.mark.parametrize("words", [["Anna"], ["Anna", "walks", "far"], []])
def test_augmented_words_of_another_number(words):
    nlp = token_pipeline(SELF)
    ticked(nlp).renew(make_examples(nlp))
    with pytest.raises(WeaknerError, match=r"\[WK021\].*'Bob runs.*augmented words"):
        nlp.update([augmented(nlp, words=words)], sgd=False)


def test_augmented_words_of_other_tokens():
    nlp = token_pipeline(SELF)
    ticked(nlp).renew(make_examples(nlp))
    example = Example(Doc(nlp.vocab, words=["Bob", "ru", "ns"]), augmented(nlp).reference)
    with pytest.raises(WeaknerError, match=r"\[WK021\].*augmented words"):
        nlp.update([example], sgd=False)

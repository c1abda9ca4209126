"""What an update learns: losses, gradients, dropout, steps, sentences without annotation."""

import numpy
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.annotations.weak import doc_entities
from spacy_weakner.errors import WeaknerError

from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    head_pipeline,
    make_example,
    make_examples,
    raw,
    same,
    train,
    weights,
)
from .util import TALKATIVE, empty_pipeline


def test_it_learns(head, nlp):
    before = train(nlp, make_examples(nlp), steps=1)
    after = train(nlp, make_examples(nlp))
    assert after[head] < before[head] / 10
    assert entities_of(nlp, TEXTS) == GOLD


def test_the_loss_is_the_mean_over_sentences(head, nlp, ner):
    examples = make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    single = [ner.get_loss([eg], ner.model.predict([eg.predicted]))[0] for eg in examples]
    assert losses[head] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses[head]) is float


def test_losses_are_added_to(head, nlp, ner):
    losses = {head: 10.0, "other": 1.0}
    returned = ner.update(make_examples(nlp), losses=losses)
    assert returned is losses
    assert losses[head] > 10.0
    assert losses["other"] == 1.0


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(head, nlp, ner, texts):
    assert ner.update([make_example(nlp, text) for text in texts]) == {head: 0.0}


def test_the_loss_has_its_key_before_an_error(head, ner):
    losses = {}
    with pytest.raises(TypeError, match="E978"):
        ner.update(["no example"], losses=losses)
    assert losses == {head: 0.0}


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_loss_that_is_no_number(head, nlp, ner, value):
    examples = make_examples(nlp)[:1]
    scores = [numpy.full_like(own, value) for own in ner.model.predict([eg.predicted for eg in examples])]
    with pytest.raises(WeaknerError, match=rf"\[WK006\] .*'{head}'|\[WK007\]"):
        ner.get_loss(examples, scores)


def test_get_loss_leaves_the_scores_alone(nlp, ner):
    examples = make_examples(nlp)
    scores = ner.model.predict([eg.predicted for eg in examples])
    before = [own.copy() for own in scores]
    _, gradient = ner.get_loss(examples, scores)
    assert same(scores, before)
    assert [g.shape for g in gradient] == [own.shape for own in scores]
    assert {g.dtype.name for g in gradient} == {"float32"}


def test_update_leaves_the_examples_alone(nlp, ner):
    examples = make_examples(nlp)
    ner.update(examples)
    assert [doc_entities(eg.reference) for eg in examples] == GOLD
    assert not any(eg.predicted.has_annotation("ENT_IOB") or eg.predicted.spans for eg in examples)


def test_a_split_batch_gives_the_same_gradients(nlp, ner):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    whole = gradients(ner.model)
    clear_gradients(ner.model)
    nlp.update(examples[:1], sgd=False)
    nlp.update(examples[1:], sgd=False)
    assert not all_zero(whole)
    assert same(whole, gradients(ner.model), tolerance=1e-5)


def test_the_order_of_a_batch_does_not_matter(nlp, ner):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    forwards = gradients(ner.model)
    clear_gradients(ner.model)
    nlp.update(examples[::-1], sgd=False)
    assert same(forwards, gradients(ner.model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(nlp, ner):
    examples = make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    expected = gradients(ner.model)
    clear_gradients(ner.model)
    empty = make_example(nlp, "")
    assert nlp.update([empty, *examples, empty], sgd=False) == losses
    assert same(expected, gradients(ner.model))


@pytest.mark.parametrize("words", [["one"], [" "], ["\n", " "], ["a", "\n", "b"], []])
def test_small_docs_in_training(head, nlp, words):
    reference = Doc(nlp.vocab, words=words)
    reference.set_ents([], default="outside")
    losses = nlp.update([Example(Doc(nlp.vocab, words=words), reference)])
    assert (losses[head] > 0) is bool(words)


def test_two_tokenisations_in_training(head, nlp):
    predicted = Doc(nlp.vocab, words=["New", "Yor", "k", "ishere"], spaces=[True, False, True, False])
    reference = Doc(nlp.vocab, words=["New", "York", "is", "here"], spaces=[True, True, False, False])
    reference.set_ents([Span(reference, 0, 2, "LOC")], default="outside")
    train(nlp, [Example(predicted, reference)])
    assert doc_entities(nlp.get_pipe(head)(predicted.copy())) == [(0, 3, "LOC")]


def test_dropout_of_the_training_takes_effect(nlp, ner):
    examples = make_examples(nlp)
    found = {}
    for drop in (0.0, 0.5):
        runs = []
        for _ in range(2):
            clear_gradients(ner.model)
            ner.update(examples, drop=drop)
            runs.append(gradients(ner.model.get_ref("head")))
        found[drop] = same(*runs, tolerance=1e-6)
    assert found == {0.0: True, 0.5: False}


def test_dropout_is_off_in_prediction(head):
    nlp = head_pipeline(head, **TALKATIVE[head])
    ner, docs = nlp.get_pipe(head), [raw(nlp, text) for text in TEXTS]
    before = ner.token_outputs(docs), ner.predict(docs)
    ner.update(make_examples(nlp), drop=0.9)
    assert same(before[0], ner.token_outputs(docs))
    assert ner.predict(docs) == before[1]


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_head_learn_rate_scales_the_steps_of_the_head(head, rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = head_pipeline(head, head_learn_rate=factor)
        model = nlp.get_pipe(head).model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(make_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)
    assert not all_zero(steps[1.0][0])
    assert not all_zero(steps[1.0][1])


def test_a_learning_rate_below_zero(head):
    with pytest.raises(WeaknerError, match=r"\[WK005\].*head_learn_rate"):
        empty_pipeline(head, head_learn_rate=-1.0)


# Missing annotation


def test_a_doc_without_annotation_has_exactly_no_gradient(head, nlp, ner):
    assert nlp.update([make_example(nlp, "Anna went", annotated=False)], sgd=False) == {head: 0.0}
    assert all_zero(gradients(ner.model))


def test_a_doc_without_annotation_adds_no_gradient_to_a_batch(nlp, ner):
    examples = [make_example(nlp, "Anna went", annotated=False), *make_examples(nlp)]
    _, gradient = ner.get_loss(examples, ner.model.predict([eg.predicted for eg in examples]))
    assert all_zero(gradient[:1])
    assert not all_zero(gradient[1:2])

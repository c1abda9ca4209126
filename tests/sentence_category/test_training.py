"""What is learned: losses, gradients, steps."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_weakner.errors import WeaknerError
from spacy_weakner.sentence_category.component import SentenceCategory
from spacy_weakner.sentence_category.model import build_sentence_category

from ..util import Recorder, all_zero, clear_gradients, gradients, make_doc, same, train, weights
from .util import LABELS, MULTI, NAME, TEXTS, TITLES, best, category_example, category_examples, category_pipeline


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_it_learns(settings):
    nlp = category_pipeline(**settings)
    examples = [category_example(nlp, text, {label: float(label == c) for label in LABELS}) for text, c in TITLES]
    before = train(nlp, examples, steps=1)
    after = train(nlp, examples)
    assert after[NAME] < before[NAME] / 10
    assert [best(nlp(make_doc(nlp, text))) for text in TEXTS] == [category for _, category in TITLES]


def test_the_loss_is_the_mean_over_docs_with_a_category(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    losses = nlp.update([*examples, category_example(nlp, "anything")], sgd=False)
    single = [pipe.get_loss([eg], pipe.model.predict([eg.predicted]))[0] for eg in examples]
    assert losses[NAME] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses[NAME]) is float


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_the_weight_scales_loss_and_gradient(weight):
    found = {}
    for own in (1.0, weight):
        nlp = category_pipeline(loss_weight=own)
        losses = nlp.update(category_examples(nlp), sgd=False)
        found[own] = losses[NAME], gradients(nlp.get_pipe(NAME).model)
    assert found[weight][0] == pytest.approx(weight * found[1.0][0])
    assert same(found[weight][1], [g if g is None else weight * g for g in found[1.0][1]], tolerance=1e-5)


def test_a_split_batch_gives_the_same_gradients(nlp):
    examples, model = category_examples(nlp), nlp.get_pipe(NAME).model
    nlp.update(examples, sgd=False)
    whole = gradients(model)
    clear_gradients(model)
    nlp.update(examples[:2], sgd=False)
    nlp.update(examples[:1:-1], sgd=False)
    assert not all_zero(whole)
    assert same(whole, gradients(model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(nlp):
    examples, model = category_examples(nlp), nlp.get_pipe(NAME).model
    losses = nlp.update(examples, sgd=False)
    expected = gradients(model)
    clear_gradients(model)
    empty = category_example(nlp, "", {"garden": 1.0})
    assert nlp.update([empty, *examples, empty], sgd=False) == pytest.approx(losses)
    assert same(expected, gradients(model), tolerance=1e-6)


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(nlp, texts):
    assert nlp.get_pipe(NAME).update([category_example(nlp, text) for text in texts]) == {NAME: 0.0}


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_a_doc_without_categories_has_exactly_no_gradient(settings):
    nlp = category_pipeline(LABELS, **settings)
    assert nlp.update([category_example(nlp, "steel pan")], sgd=False) == {NAME: 0.0}
    assert all_zero(gradients(nlp.get_pipe(NAME).model))


@pytest.mark.parametrize("empty_width", [4, 0])
def test_one_pass_over_all_docs_in_order_also_if_there_is_nothing_to_learn(empty_width):
    nlp = spacy.blank("xx")
    recorder = Recorder(empty_width=empty_width)
    pipe = SentenceCategory(nlp.vocab, build_sentence_category(recorder.model))
    pipe.initialize(lambda: category_examples(nlp))
    for cats in ({}, {"garden": 1.0}):
        recorder.docs, recorder.gradients = [], []
        examples = [category_example(nlp, text, cats) for text in ("", "a b", "c")]
        pipe.update(examples)
        assert recorder.docs == [[eg.predicted for eg in examples]]
        assert [[g.shape for g in call] for call in recorder.gradients] == [[(0, empty_width), (2, 4), (1, 4)]]
        assert all_zero(recorder.gradients[0]) is not bool(cats)


def test_a_loss_that_is_no_number(nlp):
    with pytest.raises(WeaknerError, match=r"\[WK006\] .*'sentence_category'"):
        nlp.get_pipe(NAME).get_loss(category_examples(nlp)[:1], numpy.full((1, 3), numpy.nan))


def test_get_loss_leaves_the_scores_alone(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    scores = pipe.model.predict([eg.predicted for eg in examples])
    before = scores.copy()
    _, gradient = pipe.get_loss(examples, scores)
    assert same([scores], [before])
    assert (gradient.shape, gradient.dtype.name) == ((6, 3), "float32")


def test_other_tokens_than_those_of_the_reference(nlp):
    reference = category_example(nlp, "steel pan", {"kitchen": 1.0}).reference
    predicted = Doc(nlp.vocab, words=["ste", "elpan"], spaces=[False, False])
    assert nlp.update([Example(predicted, reference)], sgd=False)[NAME] > 0


@pytest.mark.parametrize("rate", [0.0, 5.0])
def test_head_learn_rate(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = category_pipeline(head_learn_rate=factor)
        model = nlp.get_pipe(NAME).model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(category_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)


def test_dropout_of_the_training_takes_effect(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    runs = []
    for _ in range(2):
        clear_gradients(pipe.model)
        pipe.update(examples, drop=0.5)
        runs.append(gradients(pipe.model.get_ref("head")))
    assert not same(*runs, tolerance=1e-6)


def test_the_optimizer_is_told_of_once(nlp):
    pipe, met = nlp.get_pipe(NAME), []
    optimizer = nlp.create_optimizer()
    pipe.on_next_update(met.append)
    nlp.update(category_examples(nlp), sgd=optimizer)
    nlp.update(category_examples(nlp), sgd=optimizer)
    assert met == [optimizer]

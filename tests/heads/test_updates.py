"""What an update learns: losses, gradients, dropout, steps, sentences without annotation."""

import numpy
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import SGD, Model

from spacy_weakner.corpus.weak import doc_entities, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads.entities import Prediction

from ..span_ner.util import NESTED, NESTED_TEXT, add_group
from ..util import (
    ENTITY_HEADS,
    GOLD,
    TEXTS,
    all_zero,
    clear_gradients,
    fix_seed,
    gradients,
    loss_with,
    raw,
    same,
    train,
    weights,
)
from .util import (
    CATEGORY,
    TALKATIVE,
    answers,
    as_lists,
    empty_pipeline,
    example,
    examples,
    gold_of,
    needs,
    outputs_of,
    pipeline,
    stir,
)


def test_it_learns(head, nlp):
    before = train(nlp, examples(nlp), steps=1)
    after = train(nlp, examples(nlp))
    assert after[head] < before[head] / 10
    assert answers(head, nlp, TEXTS) == gold_of(head)


def test_the_loss_is_the_mean_over_sentences(head, nlp, ner):
    batch = examples(nlp)
    losses = nlp.update(batch, sgd=False)
    single = [ner.batch_loss([eg])[0] for eg in batch]
    assert losses[head] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses[head]) is float


def test_losses_are_added_to(head, nlp, ner):
    losses = {head: 10.0, "other": 1.0}
    returned = ner.update(examples(nlp), losses=losses)
    assert returned is losses
    assert losses[head] > 10.0
    assert losses["other"] == 1.0


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(head, nlp, ner, texts):
    assert ner.update([example(nlp, text) for text in texts]) == {head: 0.0}


def test_the_loss_has_its_key_before_an_error(head, ner):
    losses = {}
    with pytest.raises(TypeError, match="E978"):
        ner.update(["no example"], losses=losses)
    assert losses == {head: 0.0}


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_loss_that_is_no_number(head, nlp, ner, value):
    batch = examples(nlp)[:1]
    outputs = outputs_of(ner, [eg.predicted for eg in batch])
    filled = numpy.full_like(outputs, value) if head == CATEGORY else [numpy.full_like(own, value) for own in outputs]
    with pytest.raises(WeaknerError, match=rf"\[WK006\] .*'{head}'|\[WK007\]"):
        loss_with(ner, batch, filled)


def test_the_loss_leaves_the_outputs_alone(nlp, ner):
    batch = examples(nlp)
    outputs = outputs_of(ner, [eg.predicted for eg in batch])
    before = [own.copy() for own in outputs]
    _, gradient = loss_with(ner, batch, outputs)
    assert same(outputs, before)
    assert [g.shape for g in gradient] == [own.shape for own in outputs]
    assert {g.dtype.name for g in gradient} == {"float32"}


def test_the_loss_of_a_batch_changes_no_gradient(head):
    nlp = stir(pipeline(head), head)
    ner, batch = nlp.get_pipe(head), examples(nlp)
    ner.update(batch, drop=0.5)
    before = [None if own is None else own.copy() for own in gradients(ner.model)]
    _, backprop = ner.batch_loss(batch)
    assert same(before, gradients(ner.model))
    backprop()
    assert not same(before, gradients(ner.model))


def test_gradients_of_outputs_and_of_the_head_by_finite_differences(head):
    nlp = stir(pipeline(head), head)
    ner, batch, pairs = nlp.get_pipe(head), examples(nlp), []
    outputs = outputs_of(ner, [eg.predicted for eg in batch])

    def check(array, gradient, loss):
        """Where the gradient is steepest."""
        for index in zip(*numpy.unravel_index(numpy.argsort(-abs(gradient), axis=None)[:4], array.shape), strict=True):
            sides = []
            for step in (1e-2, -2e-2, 1e-2):
                array[index] += step
                sides.append(loss())
            pairs.append((gradient[index], len(batch) * (sides[0] - sides[1]) / 2e-2))

    _, found = loss_with(ner, batch, outputs)
    for own, gradient in zip(outputs, found, strict=True):
        check(own, gradient, lambda: loss_with(ner, batch, outputs)[0])
    clear_gradients(ner.model)
    nlp.update(batch, sgd=False)
    for node in ner.model.get_ref("head").walk():
        for name in node.param_names:
            check(node.get_param(name), node.get_grad(name).copy(), lambda: ner.batch_loss(batch)[0])
    assert len(pairs) > 10
    assert [exact for exact, _ in pairs] == pytest.approx([slope for _, slope in pairs], rel=2e-2, abs=2e-3)


def test_every_layer_learns(head):
    """Layers that the base knows no reference to learn at the rate of the head."""
    steps = {}
    for rate in (1.0, 5.0):
        nlp = stir(pipeline(head, head_learn_rate=rate), head)
        model = nlp.get_pipe(head).model
        own = Model("own", lambda model, inputs, is_train: (inputs, lambda gradient: gradient), params={"w": None})
        own.set_param("w", model.ops.alloc1f(3))
        model.layers.append(own)
        own.set_grad("w", model.ops.asarray1f([1.0, 2.0, 3.0]))
        optimizer = SGD(0.1, L2=0.0, grad_clip=0.0)
        nlp.update(examples(nlp), sgd=optimizer)
        steps[rate] = own.get_param("w")
    assert same([steps[1.0]], [numpy.asarray([-0.1, -0.2, -0.3], dtype="float32")], tolerance=1e-6)
    assert same([steps[5.0]], [5.0 * steps[1.0]], tolerance=1e-6)


def test_update_leaves_the_examples_alone(nlp, ner):
    batch = examples(nlp)
    ner.update(batch)
    assert [doc_entities(eg.reference) for eg in batch] == GOLD
    assert not any(eg.predicted.has_annotation("ENT_IOB") or eg.predicted.spans or eg.predicted.cats for eg in batch)


def test_a_split_or_reordered_batch_gives_the_same_gradients(nlp, ner):
    batch = examples(nlp)
    losses = nlp.update(batch, sgd=False)
    whole = gradients(ner.model)
    clear_gradients(ner.model)
    assert nlp.update(batch[::-1], sgd=False) == pytest.approx(losses)
    assert same(whole, gradients(ner.model), tolerance=1e-5) and not all_zero(whole)
    clear_gradients(ner.model)
    nlp.update(batch[:1], sgd=False)
    nlp.update(batch[1:], sgd=False)
    assert same(whole, gradients(ner.model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(head, nlp, ner):
    batch = examples(nlp)
    losses = nlp.update(batch, sgd=False)
    expected = gradients(ner.model)
    clear_gradients(ner.model)
    empty = example(nlp, "")
    found = nlp.update([empty, *batch, empty], sgd=False)
    assert found == (pytest.approx(losses) if head == CATEGORY else losses)
    # What is summed in one product of matrices, rows of zeros included, may be rounded in another way.
    assert same(expected, gradients(ner.model), tolerance=1e-6 if head in (CATEGORY, "mrc_ner") else 0.0)


def test_small_docs_in_training(head, nlp):
    for words in (["one"], [" "], ["\n", " "], ["a", "\n", "b"], []):
        reference = Doc(nlp.vocab, words=words)
        reference.set_ents([], default="outside")
        reference.cats = {"LOC": 1.0}
        losses = nlp.update([Example(Doc(nlp.vocab, words=words), reference)])
        assert (losses[head] > 0) is any(word.strip() for word in words)


def test_dropout_of_the_training_takes_effect(nlp, ner):
    batch = examples(nlp)
    found = {}
    for drop in (0.0, 0.5):
        runs = []
        for _ in range(2):
            clear_gradients(ner.model)
            ner.update(batch, drop=drop)
            runs.append(gradients(ner.model.get_ref("head")))
        found[drop] = same(*runs, tolerance=1e-6)
    assert found == {0.0: True, 0.5: False}


def test_dropout_is_off_in_prediction(head):
    nlp = stir(pipeline(head, **TALKATIVE[head]), head)
    ner, docs = nlp.get_pipe(head), [raw(nlp, text) for text in TEXTS]
    before = [own.copy() for own in outputs_of(ner, docs)], as_lists(head, ner.predict(docs))
    ner.update(examples(nlp), drop=0.9)
    assert same(before[0], outputs_of(ner, docs))
    assert as_lists(head, ner.predict(docs)) == before[1]


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_head_learn_rate_scales_the_steps_of_the_head(head, rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = stir(pipeline(head, head_learn_rate=factor), head)
        model = nlp.get_pipe(head).model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)
    assert not all_zero(steps[1.0][0])
    assert not all_zero(steps[1.0][1])


# Missing annotation


def test_a_doc_without_annotation_has_exactly_no_gradient(head, nlp, ner):
    assert nlp.update([example(nlp, "Anna went", annotated=False)], sgd=False) == {head: 0.0}
    assert all_zero(gradients(ner.model))


def test_a_doc_without_annotation_adds_no_gradient_to_a_batch(nlp, ner):
    batch = [example(nlp, "Anna went", annotated=False), *examples(nlp)]
    _, gradient = loss_with(ner, batch, outputs_of(ner, [eg.predicted for eg in batch]))
    assert all_zero(gradient[:1])
    assert not all_zero(gradient[1:2])


@pytest.mark.parametrize("head", ENTITY_HEADS)
def test_an_entity_inside_a_token_has_exactly_no_gradient(head, nlp, ner):
    predicted = Doc(nlp.vocab, words=["Smith's"], spaces=[False])
    reference = Doc(nlp.vocab, words=["Smith", "'s"], spaces=[False, False])
    reference.set_ents([Span(reference, 0, 1, "PER")], default="outside")
    assert nlp.update([Example(predicted, reference)], sgd=False) == {head: 0.0}
    assert all_zero(gradients(ner.model))


@pytest.mark.parametrize("head", ENTITY_HEADS)
def test_held_out_examples_must_say_something(head, nlp, ner):
    with pytest.raises(WeaknerError, match=rf"\[WK025\].*'{head}'"):
        ner.held_out_loss([example(nlp, "a b", annotated=False), example(nlp, "")])


# A group of spans


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
def test_nested_entities_of_a_group_are_learned_and_nothing_else(head):
    nlp, ner = empty_pipeline(head, spans_key="x", nested=True)
    nested = example(nlp, NESTED_TEXT, [(0, 1, "DATE")])
    add_group(nested.reference, "x", NESTED)
    fix_seed()
    ner.initialize(lambda: [nested], nlp=nlp, **needs(head, "ORG", "LOC"))
    assert nlp.update([example(nlp, "Anna went", [(0, 1, "DATE")])], sgd=False) == {head: 0.0}
    assert all_zero(gradients(ner.model))
    train(nlp, [nested])
    doc = nlp(raw(nlp, NESTED_TEXT))
    assert group_entities(doc, f"pred:{head}") == group_entities(doc, "x") == NESTED
    (entity,) = doc_entities(doc)
    assert entity in NESTED
    assert nlp.evaluate([nested])["spans_x_f"] == 1.0


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
@pytest.mark.parametrize("nested", [True, False])
def test_scores_of_the_group_that_is_trained_on(head, nested):
    nlp, ner = empty_pipeline(head, spans_key="x", nested=nested)
    scored, no_group = example(nlp, NESTED_TEXT), example(nlp, NESTED_TEXT, NESTED[:1])
    add_group(scored.reference, "x", NESTED)
    # An earlier group of that name is replaced.
    add_group(scored.predicted, "x", NESTED[1:])
    ner.set_annotations([scored.predicted], [Prediction(NESTED[:1], [1.0], NESTED[:1] if nested else None, [0.5])])
    assert scored.predicted.spans["x"].attrs["scores"] == ([0.5] if nested else [1.0])
    scores = ner.score([scored, no_group])
    assert (scores["spans_x_p"], scores["spans_x_r"]) == (1.0, 1 / len(NESTED))
    assert {*scores["spans_x_per_type"]} == {label for _, _, label in NESTED}
    assert "spans_x_f" not in empty_pipeline(head, nested=nested)[1].score([scored])

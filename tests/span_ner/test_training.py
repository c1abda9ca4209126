"""What the component learns from, and what it hands to its encoder."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_weakner.annotations.weak import doc_entities, group_entities, set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import log_softmax
from spacy_weakner.span_ner.losses import cross_entropy
from spacy_weakner.span_ner.samplers import UniformNegativeSampler

from ..util import (
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    make_doc,
    make_example,
    make_examples,
    same,
    train,
    weights,
)
from .util import (
    ALL,
    GOLD,
    NESTED,
    NESTED_TEXT,
    UNIFORM,
    WEIGHTED,
    add_group,
    all_spans,
    force_scores,
    recorded_ner,
    span_config,
    span_pipeline,
)

NOTHING_DRAWN = {**UNIFORM, "ratio": 0.0}


@pytest.fixture
def nlp():
    return span_pipeline()


def span_scores(nlp, text, spans):
    """The scorer's output for spans of a text."""
    model = nlp.get_pipe("span_ner").model
    (vectors,) = model.predict([make_doc(nlp, text)])
    return model.get_ref("head").predict((vectors, numpy.asarray(spans, dtype="int64")))


def span_probabilities(nlp, text, span):
    return numpy.exp(log_softmax(span_scores(nlp, text, [span])))[0]


def wrong_example(nlp, label="PER", annotated=False):
    example = make_example(nlp, "Anna went home", annotated=annotated)
    add_group(example.reference, "wrong", [(0, 1, label)])
    return example


# Value of the loss


def test_the_loss_is_the_mean_over_sentences_of_the_sum_over_spans(nlp):
    total = 0.0
    for text, gold in zip(TEXTS, GOLD, strict=True):
        spans = all_spans(len(text.split()))
        known = {(start, end): 1 + ["LOC", "PER"].index(label) for start, end, label in gold}
        labels = numpy.asarray([known.get(span, 0) for span in spans])
        total += cross_entropy(span_scores(nlp, text, spans), labels)[0]
    losses = nlp.update(make_examples(nlp), sgd=False)
    assert losses["span_ner"] == pytest.approx(total / len(TEXTS), rel=1e-5)
    assert type(losses["span_ner"]) is float


def test_gradients_of_the_vectors_by_finite_differences(nlp):
    ner, examples = nlp.get_pipe("span_ner"), make_examples(nlp)
    vectors = [v.astype("float64") for v in ner.model.predict([eg.predicted for eg in examples])]
    for name in ("A", "B", "C", "b", "W", "c"):
        head = ner.model.get_ref("head")
        head.set_param(name, head.get_param(name).astype("float64"))
    _, found = ner.get_loss(examples, vectors)
    for i, own in enumerate(vectors):
        for index in [(0, 0), (len(own) - 1, 3), (len(own) // 2, 7)]:
            sides = []
            for sign in (1, -1):
                moved = [v.copy() for v in vectors]
                moved[i][index] += sign * 1e-4
                sides.append(len(vectors) * ner.get_loss(examples, moved)[0])
            assert found[i][index] == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-3, abs=1e-4)


def test_losses_are_added_to(nlp):
    losses = {"span_ner": 10.0, "other": 1.0}
    returned = nlp.get_pipe("span_ner").update(make_examples(nlp), losses=losses)
    assert returned is losses
    assert losses["span_ner"] > 10.0
    assert losses["other"] == 1.0


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(nlp, texts):
    losses = nlp.get_pipe("span_ner").update([make_example(nlp, text) for text in texts])
    assert losses == {"span_ner": 0.0}


def test_the_loss_has_its_key_before_an_error(nlp):
    losses = {}
    with pytest.raises(TypeError, match="E978"):
        nlp.get_pipe("span_ner").update(["no example"], losses=losses)
    assert losses == {"span_ner": 0.0}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_loss_that_is_no_number(nlp):
    with pytest.raises(WeaknerError, match=r"\[WK006\] .*'span_ner'"):
        nlp.get_pipe("span_ner").get_loss(make_examples(nlp)[:1], [numpy.full((5, 16), numpy.nan, dtype="float32")])


def test_an_unknown_label_in_training(nlp):
    with pytest.raises(WeaknerError, match=r"\[WK003\] 'span_ner'.*'ORG'.*LOC, PER"):
        nlp.update([make_example(nlp, "a b", [(0, 1, "ORG")])], sgd=False)


# Learning


@pytest.mark.parametrize("sampler", [ALL, UNIFORM, {**UNIFORM, "ratio": 1.0, "rounding": "floor_plus_one"}])
def test_it_learns(sampler):
    nlp = span_pipeline(sampler=sampler)
    before = train(nlp, make_examples(nlp), steps=1)
    after = train(nlp, make_examples(nlp), steps=80)
    assert after["span_ner"] < before["span_ner"] / 10
    assert entities_of(nlp, TEXTS) == GOLD


def test_an_example_without_entities_teaches(nlp):
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, 9, 0])
    losses = nlp.update([make_example(nlp, "nothing here")], sgd=False)
    assert losses["span_ner"] == pytest.approx(27, rel=1e-2)
    assert not all_zero(gradients(ner.model.get_ref("head")))


def test_a_weak_example_without_any_annotation_teaches(nlp):
    example = make_example(nlp, "nothing here", annotated=False)
    set_weak(example.reference)
    assert nlp.update([example], sgd=False)["span_ner"] > 0


def test_nested_entities_of_a_group_are_both_learned():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("span_ner", config=span_config(spans_key="x", nested=True))
    example = make_example(nlp, NESTED_TEXT)
    add_group(example.reference, "x", NESTED)
    fix_random_seed(0)
    nlp.initialize(lambda: [example])
    train(nlp, [example])
    doc = ner(make_doc(nlp, NESTED_TEXT, annotated=False))
    assert group_entities(doc, "pred:span_ner") == NESTED
    assert len(doc.ents) == 1
    assert doc_entities(doc)[0] in NESTED


def test_entities_do_not_count_where_a_group_is_learned_from():
    with pytest.warns(UserWarning, match=r"WK902.*'x'"):
        nlp = span_pipeline(labels=["PER"], spans_key="x")
    example = make_example(nlp, "Anna went", [(0, 1, "PER")])
    assert nlp.update([example], sgd=False)["span_ner"] == 0.0
    add_group(example.reference, "x", [])
    train(nlp, [example])
    assert entities_of(nlp, ["Anna went"]) == [[]]


@pytest.mark.parametrize("max_width, negatives, positives", [(1, 4, 0), (2, 7, 0), (3, 9, 0), (4, 9, 1), (None, 9, 1)])
def test_max_width_bounds_what_is_learned_from(max_width, negatives, positives):
    nlp = span_pipeline(max_width=max_width, labels=["X"])
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, numpy.log(3)])
    losses = nlp.update([make_example(nlp, "a b c d", [(0, 4, "X")])], sgd=False)
    assert losses["span_ner"] == pytest.approx(negatives * numpy.log(4) + positives * numpy.log(4 / 3), rel=1e-5)
    assert ner.training_statistics()["negatives"] == negatives


def test_two_tokenisations_in_training(nlp):
    predicted = Doc(nlp.vocab, words=["New", "Yor", "k", "ishere"], spaces=[True, False, True, False])
    reference = Doc(nlp.vocab, words=["New", "York", "is", "here"], spaces=[True, True, False, False])
    reference.set_ents([Span(reference, 0, 2, "LOC")], default="outside")
    train(nlp, [Example(predicted, reference)])
    assert doc_entities(nlp.get_pipe("span_ner")(predicted.copy())) == [(0, 3, "LOC")]


@pytest.mark.parametrize("words", [["one"], [" "], ["\n", " "], ["a", "\n", "b"], []])
def test_small_docs_in_training(nlp, words):
    reference = Doc(nlp.vocab, words=words)
    reference.set_ents([], default="outside")
    losses = nlp.update([Example(Doc(nlp.vocab, words=words), reference)])
    assert (losses["span_ner"] > 0) is bool(words)


@pytest.mark.parametrize("sampler", [ALL, UNIFORM])
def test_a_long_doc_in_training(sampler):
    nlp = span_pipeline(sampler=sampler)
    example = make_example(nlp, "Anna " * 600, [(599, 600, "PER")])
    assert numpy.isfinite(nlp.update([example])["span_ner"])


# Spans that are known to be wrong


@pytest.mark.parametrize("label, column, rises", [("PER", 2, False), ("LOC", 1, False), ("", 0, True)])
def test_wrong_spans_are_unlearned(label, column, rises):
    nlp = span_pipeline(sampler=NOTHING_DRAWN, incorrect_spans_key="wrong")
    before = span_probabilities(nlp, "Anna went home", (0, 1))[column]
    assert train(nlp, [wrong_example(nlp, label)], steps=10)["span_ner"] > 0
    after = span_probabilities(nlp, "Anna went home", (0, 1))[column]
    assert bool(after > before) is rises


def test_wrong_spans_of_a_batch_belong_to_their_sentences():
    nlp = span_pipeline(incorrect_spans_key="wrong")
    model = nlp.get_pipe("span_ner").model
    examples = [*make_examples(nlp)[::-1], wrong_example(nlp, annotated=True), wrong_example(nlp, "", annotated=True)]
    nlp.update(examples, sgd=False)
    whole = gradients(model)
    clear_gradients(model)
    for example in examples:
        nlp.update([example], sgd=False)
    assert same(whole, gradients(model), tolerance=1e-5)


@pytest.mark.parametrize("key", [None, "other"])
def test_wrong_spans_have_no_effect_without_their_key(key):
    nlp = span_pipeline(sampler=NOTHING_DRAWN, incorrect_spans_key=key)
    assert nlp.update([wrong_example(nlp)], sgd=False)["span_ner"] == 0.0


def test_a_span_that_is_wrong_for_one_label_is_no_candidate():
    nlp = span_pipeline(incorrect_spans_key="wrong")
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, 0, 0])
    losses = nlp.update([wrong_example(nlp, annotated=True)], sgd=False)
    assert ner.training_statistics()["negatives"] == 5
    assert losses["span_ner"] == pytest.approx(5 * numpy.log(3) - numpy.log(2 / 3), rel=1e-5)


def test_a_wrong_span_says_nothing_on_others_of_a_sentence_without_annotation():
    nlp = span_pipeline(incorrect_spans_key="wrong")
    ner = nlp.get_pipe("span_ner")
    force_scores(ner.model, [0, 0, 0])
    losses = nlp.update([wrong_example(nlp)], sgd=False)
    assert ner.training_statistics()["negatives"] == 0
    assert losses["span_ner"] == pytest.approx(-numpy.log(2 / 3), rel=1e-5)


# Missing annotation


def test_a_doc_without_annotation_has_exactly_no_gradient(nlp):
    assert nlp.update([make_example(nlp, "Anna went", annotated=False)], sgd=False) == {"span_ner": 0.0}
    assert all_zero(gradients(nlp.get_pipe("span_ner").model))


def test_a_doc_without_the_group_has_exactly_no_gradient():
    with pytest.warns(UserWarning, match=r"WK902.*'x'"):
        nlp = span_pipeline(labels=["PER"], spans_key="x")
    assert nlp.update([make_example(nlp, "Anna went", [(0, 1, "PER")])], sgd=False) == {"span_ner": 0.0}
    assert all_zero(gradients(nlp.get_pipe("span_ner").model))


def test_a_doc_without_annotation_adds_no_gradient_to_a_batch(nlp):
    ner = nlp.get_pipe("span_ner")
    examples = [make_example(nlp, "Anna went", annotated=False), *make_examples(nlp)]
    _, gradient = ner.get_loss(examples, ner.model.predict([eg.predicted for eg in examples]))
    assert all_zero(gradient[:1])
    assert not all_zero(gradient[1:2])


def test_an_entity_inside_a_token_has_exactly_no_gradient(nlp):
    predicted = Doc(nlp.vocab, words=["Smith's"], spaces=[False])
    reference = Doc(nlp.vocab, words=["Smith", "'s"], spaces=[False, False])
    reference.set_ents([Span(reference, 0, 1, "PER")], default="outside")
    assert nlp.update([Example(predicted, reference)], sgd=False) == {"span_ner": 0.0}
    assert all_zero(gradients(nlp.get_pipe("span_ner").model))


def test_backpropagates_when_there_is_nothing_to_learn(nlp):
    ner, recorder = recorded_ner(nlp)
    ner.update([make_example(nlp, "Anna went", annotated=False)])
    assert len(recorder.gradients) == 1
    assert all_zero(recorder.gradients[0])
    assert [g.shape for g in recorder.gradients[0]] == [(2, 4)]


@pytest.mark.parametrize("sampler", [None, UniformNegativeSampler()])
def test_one_forward_and_backward_pass_over_all_docs_in_order(nlp, sampler):
    ner, recorder = recorded_ner(nlp, sampler)
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    ner.update(examples)
    assert recorder.docs == [[eg.predicted for eg in examples]]
    assert [[g.shape for g in call] for call in recorder.gradients] == [[(len(eg.predicted), 4) for eg in examples]]


@pytest.mark.parametrize("texts", [["", "a b"], ["a", "", "b c", ""]])
def test_encoders_with_another_width_for_empty_docs(nlp, texts):
    ner, recorder = recorded_ner(nlp, empty_width=0)
    ner.update([make_example(nlp, text) for text in texts])
    lengths = [len(text.split()) for text in texts]
    assert [g.shape for g in recorder.gradients[0]] == [(n, 4 if n else 0) for n in lengths]
    assert len(ner.predict([make_doc(nlp, text) for text in texts])) == len(texts)


# Batches


def test_a_split_batch_gives_the_same_gradients(nlp):
    model, examples = nlp.get_pipe("span_ner").model, make_examples(nlp)
    nlp.update(examples, sgd=False)
    whole = gradients(model)
    clear_gradients(model)
    nlp.update(examples[:1], sgd=False)
    nlp.update(examples[1:], sgd=False)
    assert not all_zero(whole)
    assert same(whole, gradients(model), tolerance=1e-5)


def test_the_order_of_a_batch_does_not_matter(nlp):
    model, examples = nlp.get_pipe("span_ner").model, make_examples(nlp)
    nlp.update(examples, sgd=False)
    forwards = gradients(model)
    clear_gradients(model)
    nlp.update(examples[::-1], sgd=False)
    assert same(forwards, gradients(model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(nlp):
    model, examples = nlp.get_pipe("span_ner").model, make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    expected = gradients(model)
    clear_gradients(model)
    empty = make_example(nlp, "")
    assert nlp.update([empty, *examples, empty], sgd=False) == losses
    assert same(expected, gradients(model))


@pytest.mark.parametrize("sampler", [UNIFORM, WEIGHTED])
def test_the_seed_decides_everything(sampler):
    runs = []
    for seed in (1, 1, 2):
        nlp = span_pipeline(sampler=UNIFORM)
        nlp.get_pipe("span_ner").sampler = spacy.registry.resolve({"it": sampler})["it"]
        fix_random_seed(seed)
        train(nlp, make_examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe("span_ner").model))
    assert same(*runs[:2])
    assert not same(*runs[1:])


def test_update_leaves_examples_and_vectors_alone(nlp):
    ner, examples = nlp.get_pipe("span_ner"), make_examples(nlp)
    vectors = ner.model.predict([eg.predicted for eg in examples])
    before = [v.copy() for v in vectors]
    _, gradient = ner.get_loss(examples, vectors)
    assert same(vectors, before)
    assert {g.dtype.name for g in gradient} == {"float32"}
    nlp.update(examples)
    assert [doc_entities(eg.reference) for eg in examples] == GOLD
    assert not any(eg.predicted.has_annotation("ENT_IOB") or eg.predicted.spans for eg in examples)

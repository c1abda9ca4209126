"""What the component learns from, and what it hands to its encoder. See `tests/heads` too."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus.weak import set_weak
from spacy_weakner.losses import log_softmax
from spacy_weakner.span_ner.losses import cross_entropy

from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    fix_seed,
    gradients,
    make_doc,
    make_example,
    make_examples,
    same,
    train,
    weights,
)
from .util import (
    UNIFORM,
    WEIGHTED,
    add_group,
    all_spans,
    force_scores,
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


# Learning


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


# Batches


@pytest.mark.parametrize("sampler", [UNIFORM, WEIGHTED])
def test_the_seed_decides_everything(sampler):
    runs = []
    for seed in (1, 1, 2):
        nlp = span_pipeline(sampler=UNIFORM)
        nlp.get_pipe("span_ner").sampler = spacy.registry.resolve({"it": sampler})["it"]
        fix_seed(seed)
        train(nlp, make_examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe("span_ner").model))
    assert same(*runs[:2])
    assert not same(*runs[1:])

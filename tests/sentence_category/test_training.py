"""What is learned: losses, gradients, steps."""

import numpy
import pytest
import spacy
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example

from spacy_weakner.errors import WeaknerError

from ..util import all_zero, gradients, reload_bytes, same, shared_pipeline, train
from .util import (
    LABELS,
    MULTI,
    NAME,
    TEXTS,
    TITLES,
    category_example,
    category_examples,
    category_pipeline,
    empty_pipeline,
)


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_the_weight_scales_loss_and_gradient(weight):
    found = {}
    for own in (1.0, weight):
        nlp = category_pipeline(loss_weight=own)
        losses = nlp.update(category_examples(nlp), sgd=False)
        found[own] = losses[NAME], gradients(nlp.get_pipe(NAME).model)
    assert found[weight][0] == pytest.approx(weight * found[1.0][0])
    assert same(found[weight][1], [g if g is None else weight * g for g in found[1.0][1]], tolerance=1e-5)


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_a_doc_without_categories_has_exactly_no_gradient(settings):
    nlp = category_pipeline(LABELS, **settings)
    assert nlp.update([category_example(nlp, "steel pan")], sgd=False) == {NAME: 0.0}
    assert all_zero(gradients(nlp.get_pipe(NAME).model))


def test_other_tokens_than_those_of_the_reference(nlp):
    reference = category_example(nlp, "steel pan", {"kitchen": 1.0}).reference
    predicted = Doc(nlp.vocab, words=["ste", "elpan"], spaces=[False, False])
    assert nlp.update([Example(predicted, reference)], sgd=False)[NAME] > 0


def test_the_optimizer_is_told_of_once(nlp):
    pipe, met = nlp.get_pipe(NAME), []
    optimizer = nlp.create_optimizer()
    pipe.on_next_update(met.append)
    nlp.update(category_examples(nlp), sgd=optimizer)
    nlp.update(category_examples(nlp), sgd=optimizer)
    assert met == [optimizer]


# Labels, initialization, and the targets of examples


NAN = float("nan")


# Labels and initialization


def test_labels_that_an_example_says_not_to_have_count_too():
    nlp, pipe = empty_pipeline()
    pipe.initialize(lambda: [category_example(nlp, "pan", {"b": 1.0, "a": 0.0})] * 2, nlp=nlp)
    assert pipe.labels == ("a", "b")


def test_one_exclusive_category_is_none():
    nlp, pipe = empty_pipeline()
    with pytest.raises(WeaknerError, match=r"\[WK042\].*'a'.*exclusive_classes = false"):
        pipe.initialize(lambda: [category_example(nlp, "pan", {"a": 1.0})], nlp=nlp)
    nlp, pipe = empty_pipeline(**MULTI)
    pipe.initialize(lambda: [category_example(nlp, "pan", {"a": 1.0})], nlp=nlp)
    assert pipe.labels == ("a",)


# Targets


@pytest.mark.parametrize(
    "settings, cats, expected",
    [
        ({}, {"garden": 1.0}, [0, 1, 0]),
        ({}, {"garden": 1.0, "kitchen": 0.0, "unheard": 0.0}, [0, 1, 0]),
        ({}, {}, [NAN, NAN, NAN]),
        # That it is not one of them does not say which it is.
        ({}, {"garden": 0.0}, [NAN, NAN, NAN]),
        (MULTI, {}, [NAN, NAN, NAN]),
        (MULTI, {"garden": 1.0}, [NAN, 1, NAN]),
        (MULTI, {"garden": 0.0, "clothes": 1.0, "unheard": 0.0}, [1, 0, NAN]),
        (MULTI, {"garden": 1.0, "clothes": 1.0, "kitchen": 0.25}, [1, 1, 0.25]),
    ],
)
def test_targets(settings, cats, expected):
    nlp = category_pipeline(LABELS, **settings)
    row = nlp.get_pipe(NAME).encode_target(category_example(nlp, "a b", cats))
    assert row.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_a_doc_without_tokens_teaches_nothing(settings):
    nlp = category_pipeline(LABELS, **settings)
    row = nlp.get_pipe(NAME).encode_target(category_example(nlp, "", {"garden": 1.0}))
    assert numpy.isnan(row).all()


@pytest.mark.parametrize("cats", [{"garden": 1.0, "kitchen": 1.0}, {"garden": 0.5}, {"garden": 2.0}, {"garden": -1.0}])
def test_exclusive_categories_that_are_not(nlp, cats):
    with pytest.raises(WeaknerError, match=r"\[WK041\] 'steel pan'.*'garden'.*exclusive_classes = false"):
        nlp.update([category_example(nlp, "steel pan", cats)], sgd=False)


def test_values_that_are_no_probabilities():
    nlp = category_pipeline(LABELS, **MULTI)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*doc.cats\['garden'\].*between 0.0 and 1.0"):
        nlp.update([category_example(nlp, "pan", {"garden": 2.0})], sgd=False)


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_an_unknown_category(settings):
    nlp = category_pipeline(LABELS, **settings)
    with pytest.raises(WeaknerError, match=r"\[WK003\].*category label 'toys'.*clothes, garden, kitchen"):
        nlp.update([category_example(nlp, "doll", {"toys": 1.0})], sgd=False)


# Prediction


def test_probabilities(category_path):
    nlp = spacy.load(category_path)
    for text, category in TITLES:
        doc = nlp(text)
        assert {*doc.cats} == {*LABELS}
        assert sum(doc.cats.values()) == pytest.approx(1.0)
        assert doc.cats[category] > 0.9
        assert all(type(value) is float for value in doc.cats.values())


def test_independent_probabilities():
    nlp = category_pipeline(**MULTI)
    examples = [category_example(nlp, text, {"short": 1.0, "old": 1.0}) for text in TEXTS]
    nlp = category_pipeline(["short", "old"], **MULTI)
    train(nlp, examples)
    assert min(nlp("pan").cats.values()) > 0.9


def test_a_doc_of_white_space_has_no_category_either():
    (blank, empty, text) = shared_pipeline((NAME,)).pipe(["\n\n", "", f"{TEXTS[0]}\n"])
    assert {*blank.cats.values()} == {*empty.cats.values()} == {0.0}
    assert sum(text.cats.values()) == pytest.approx(1.0)


# Scores


def test_scores_are_those_of_textcat(category_path):
    nlp = spacy.load(category_path)
    examples = [*category_examples(nlp), category_example(nlp, "pan", {"garden": 1.0})]
    scores = nlp.evaluate(examples)
    predicted = [Example(nlp(eg.predicted), eg.reference) for eg in examples]
    expected = Scorer.score_cats(predicted, "cats", labels=LABELS, multi_label=False)
    assert {key: scores[key] for key in expected} == expected
    assert 0.5 < scores["cats_score"] < 1.0
    assert scores["cats_score_desc"] == "macro F"


def test_docs_without_a_category_do_not_count(category_path):
    nlp = spacy.load(category_path)
    examples = category_examples(nlp)
    expected = nlp.evaluate(examples)
    unknown = [category_example(nlp, "pan", {}), category_example(nlp, "bench", {"garden": 0.0})]
    found = nlp.evaluate([*examples, *unknown])
    assert {key: found[key] for key in expected if key != "speed"} == {
        key: value for key, value in expected.items() if key != "speed"
    }
    assert nlp.evaluate(unknown)["cats_micro_f"] == 0.0


def test_two_categories_and_a_positive_label():
    nlp, pipe = empty_pipeline()
    examples = [
        category_example(nlp, text, {"yes": float("pan" in text), "no": float("pan" not in text)}) for text in TEXTS
    ]
    pipe.initialize(lambda: examples, nlp=nlp, positive_label="yes")
    train(nlp, examples)
    wrong = category_example(nlp, "bench", {"yes": 1.0, "no": 0.0})
    scores = nlp.evaluate([*examples, wrong])
    assert scores["cats_score_desc"] == "F (yes)"
    assert scores["cats_score"] == pytest.approx(0.8)
    assert reload_bytes(nlp, None).evaluate([*examples, wrong])["cats_score"] == pytest.approx(0.8)


@pytest.mark.parametrize("labels, settings, positive", [("ab", {}, "c"), ("abc", {}, "a"), ("ab", MULTI, "a")])
def test_a_positive_label_that_cannot_be(labels, settings, positive):
    nlp, pipe = empty_pipeline(**settings)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'positive_label'.*two exclusive categories"):
        pipe.initialize(lambda: category_examples(nlp), nlp=nlp, labels=[*labels], positive_label=positive)


def test_scores_of_independent_categories():
    nlp = category_pipeline(**MULTI)
    examples = [category_example(nlp, text, {label: float(label == c) for label in LABELS}) for text, c in TITLES]
    train(nlp, examples)
    scores = nlp.evaluate(examples)
    assert scores["cats_score_desc"] == "macro AUC"
    assert scores["cats_score"] == scores["cats_micro_f"] == 1.0

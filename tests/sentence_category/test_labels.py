"""Labels, initialization, and the targets of examples."""

import numpy
import pytest

from spacy_weakner.errors import WeaknerError

from .util import (
    LABELS,
    MULTI,
    NAME,
    category_example,
    category_pipeline,
    empty_pipeline,
)

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

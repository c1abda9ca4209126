"""Probabilities of categories, and the scores of an evaluation."""

import pytest
import spacy
from spacy.scorer import Scorer
from spacy.training import Example

from spacy_weakner.errors import WeaknerError

from ..util import reload_bytes, train
from .util import (
    LABELS,
    MULTI,
    TEXTS,
    TITLES,
    category_example,
    category_examples,
    category_pipeline,
    empty_pipeline,
)

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

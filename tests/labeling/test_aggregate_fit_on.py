"""A label model that is fitted on one corpus and labels another."""

import random

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import aggregate

from ..aggregation.docs import NLP, make_doc


def make_docs(n, seed, names=("good", "fair", "bad")):
    """Sources that are right with falling probability."""
    rng = random.Random(seed)
    chances = dict(zip(("good", "fair", "bad"), (0.95, 0.85, 0.5), strict=True))
    docs = []
    for i in range(n):
        at = [j for j in range(0, 6, 2) if rng.random() < 0.6]
        said = {
            name: [(j, j + 1, "A" if rng.random() < chances[name] else "B") for j in at if rng.random() < 0.9]
            for name in names
        }
        docs.append(make_doc(f"a{i} b c d e f", said, complete=("good", "fair")))
    return docs


@pytest.fixture
def text(tmp_path):
    write_docs(tmp_path / "text.spacy", make_docs(80, 0))
    return tmp_path / "text.spacy"


def run(tmp_path, docs, **settings):
    write_docs(tmp_path / "test.spacy", docs)
    (tmp_path / "out.spacy").unlink(missing_ok=True)
    report = aggregate(tmp_path / "test.spacy", tmp_path / "out.spacy", method="label_model", **settings)
    return report, list(read_docs(tmp_path / "out.spacy", NLP.vocab))


def test_what_was_learned_comes_from_the_text_alone(tmp_path, text):
    whole = aggregate(text, tmp_path / "text-out.spacy", method="label_model")
    report, docs = run(tmp_path, make_docs(5, 1), fit_on=text)
    assert (report.docs, report.fitted_docs, report.source_accuracies) == (5, 80, whole.source_accuracies)
    # Each Doc is labeled as it would be alone.
    _, (first,) = run(tmp_path, make_docs(5, 1)[:1], fit_on=text)
    soft, alone = weak.get_soft_labels(docs[0]), weak.get_soft_labels(first)
    assert soft.probabilities == pytest.approx(alone.probabilities)
    # And the text itself as without the setting.
    _, again = run(tmp_path, make_docs(80, 0), fit_on=text)
    expected = read_docs(tmp_path / "text-out.spacy", NLP.vocab)
    assert [weak.doc_entities(doc) for doc in again] == [weak.doc_entities(doc) for doc in expected]


def test_sources_without_answers_are_counted(tmp_path, text):
    report, _ = run(tmp_path, make_docs(6, 1, names=("good", "bad")), fit_on=text)
    assert report.answers == {"bad": 6, "fair": 0, "good": 6} and report.unanswered == ("fair",)
    again = aggregate(tmp_path / "test.spacy", tmp_path / "out.spacy", method="label_model", fit_on=text)
    assert again.skipped == 1 and again.unanswered == ("fair",)
    report, docs = run(tmp_path, make_docs(6, 1, names=()), fit_on=text)
    assert report.unanswered == ("bad", "fair", "good") and report.unlabeled == 6
    assert not any(doc.has_annotation("ENT_IOB") for doc in docs)


def test_labels_and_sources_that_the_text_does_not_have(tmp_path, text):
    groups = {"good": [(0, 1, "A"), (2, 3, "NEW")], "fair": [(0, 1, "A")], "other": [(4, 5, "A")]}
    report, (doc,) = run(tmp_path, [make_doc("a b c d e f", groups, complete=("good", "fair"))], fit_on=text)
    assert weak.doc_entities(doc) == [(0, 1, "A")]
    assert "other" not in report.answers
    assert {accuracy.label for accuracy in report.source_accuracies} == {"A", "B"}


def test_another_text_is_another_setting(tmp_path, text):
    run(tmp_path, make_docs(6, 1), fit_on=text)
    settings = {"method": "label_model", "fit_on": text}
    assert aggregate(tmp_path / "test.spacy", tmp_path / "out.spacy", **settings).skipped == 1
    write_docs(text, make_docs(81, 0))
    report = aggregate(tmp_path / "test.spacy", tmp_path / "out.spacy", **settings)
    assert (report.skipped, report.replaced, report.fitted_docs) == (0, 1, 81)


def test_sources_are_looked_for_in_the_text(tmp_path, text):
    report, _ = run(tmp_path, make_docs(6, 1, names=("good",)), fit_on=text, sources=["fair", "good"])
    assert report.unanswered == ("fair",)
    with pytest.raises(WeaknerError, match=r"WK302.*'nobody'.*bad, fair, good"):
        run(tmp_path, make_docs(6, 1), fit_on=text, sources=["nobody"])

import re

import pytest

from spacy_weakner.checks.annotated import check_text
from spacy_weakner.checks.corpora import CheckedSentence

from .conftest import GOLD, found


def rows(*texts):
    return [{"tokens": text.split(), "ents": [[0, 1, "PER"]]} for text in texts]


SENTENCES = [f"Anna likes the number {i} very much" for i in range(60)]
OTHERS = [f"Bob was born in {i}" for i in range(60)]


@pytest.mark.parametrize(
    "option, expected",
    [("test", "test is the same as gold: 60 of 60.*meaningless"), ("dev", "dev is the same as gold")],
)
def test_the_same_file(check, option, expected):
    shuffled = rows(*(f"{text.upper()} " for text in reversed(SENTENCES)))
    (error,) = found(check(gold=rows(*SENTENCES), **{option: shuffled}), "error")
    assert error.startswith(f"--{option} ") and re.search(expected, error)
    assert f"({option}: line 1, gold: line 60)" in error


def test_annotated_documents_are_compared_by_sentences(check):
    half = len(SENTENCES) // 2
    gold = [
        {"text": f"{a}. {b}.", "ents": [[0, 4, "PER"], [len(a) + 2, len(a) + 6, "PER"]]}
        for a, b in zip(SENTENCES[:half], SENTENCES[half:], strict=True)
    ]
    gold.append({"text": "Not annotated. Not at all.", "ents": None})
    report = check(gold=gold, test=rows(*(f"{text} ." for text in SENTENCES)), text=[row["text"] for row in gold])
    errors, warnings = found(report, "error"), " ".join(found(report, "warning"))
    assert any("60 of 60 sentences (100 %) are also in gold" in error for error in errors)
    assert any("All 31 texts also occur in the gold" in error for error in errors)
    assert "2 sentences of 62 without annotation" in warnings and "from: line 31." in warnings
    assert "with entities" not in warnings and report.labels[0].counts == {"PER": 60}


def test_some_overlap_is_a_warning(check):
    report = check(gold=rows(*SENTENCES), test=rows(*OTHERS, *SENTENCES[:3]), dev=rows(*OTHERS[:2], *SENTENCES[30:40]))
    assert not found(report, "error")
    warnings = " ".join(found(report, "warning"))
    assert "3 of 63 sentences (5 %) of test are also in gold" in warnings
    assert "(test: line 61, gold: line 1)" in warnings
    assert "10 of 12 sentences (83 %) of dev are also in gold" in warnings
    assert "2 of 63 sentences (3 %) of test are also in dev" in warnings


def test_nothing_is_left_of_the_gold(check):
    (error,) = found(check(gold=rows(*SENTENCES[:9]), test=rows(*SENTENCES, *OTHERS)), "error")
    assert "9 of 120 sentences (8 %) are also in gold" in error


def test_the_same_dev_and_test_are_a_warning(check):
    report = check(gold=rows(*SENTENCES), dev=rows(*OTHERS), test=rows(*OTHERS))
    assert not found(report, "error")
    assert "test is the same as dev" in " ".join(found(report, "warning"))


def test_short_sentences_may_occur_twice(check):
    report = check(gold=rows(*SENTENCES, "Results :"), test=rows(*OTHERS, "Results :"))
    assert not found(report, "warning")
    assert "all of them are short" in " ".join(found(report, "info"))


@pytest.mark.parametrize("exact", [True, False])
def test_other_text_may_follow_a_sample(findings, exact):
    check_text(
        ["Anna slept"], exact, [CheckedSentence("line 1", "anna slept", ("anna", "slept"), [])], "--text", findings
    )
    assert ("no other text is left" in " ".join(found(findings, "error"))) == exact


def test_gold_in_the_text(check):
    report = check(gold=GOLD, text=["Anna took aspirin 7.", "Something else", "anna  took aspirin 8 ."])
    assert "2 of 60 gold sentences also occur in the text" in " ".join(found(report, "info"))

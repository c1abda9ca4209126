"""Spans and tokens against the tokenizer in use."""

import pytest

from spacy_weakner.checks.tokens import find_borders, natural_text

from .conftest import found

WORDS = "spacy_weakner.WordTokenizer.v1"
SHIFTED = [{"text": f"Anna took aspirin {i}", "ents": [[0, 4, "PER"], [11, 17, "DRUG"]]} for i in range(60)]


def test_misaligned_spans_are_an_error(check):
    report = check(gold=SHIFTED)
    (error,) = found(report, "error")
    assert "60 of 120 spans (50 %) do not begin and end at token boundaries" in error
    assert """line 1: 'spirin' (DRUG) in the tokens ["aspirin"]""" in error
    assert "and 50 more" in error and error.count("'spirin'") == 10
    assert "--misaligned drop" in error and WORDS in error
    # They are still seen as entities.
    assert report.labels[0].counts == {"PER": 60, "DRUG": 60}


@pytest.mark.parametrize("misaligned", ["drop", "expand", "contract"])
def test_misaligned_spans_that_will_be_changed_are_a_warning(check, misaligned):
    report = check({"misaligned": misaligned}, gold=SHIFTED)
    assert not found(report, "error")
    how = "their tokens become unknown" if misaligned == "drop" else "the spans are changed"
    assert f"With --misaligned {misaligned}, {how}" in found(report, "warning")[0]


def test_another_tokenizer_is_proposed(check):
    tokens = ["MK", "-", "801", "blocks", "5", "-", "HT", "receptors", "now"]
    gold = [{"tokens": [*tokens, str(i)], "ents": [[0, 1, "DRUG"], [7, 8, "GENE"]]} for i in range(60)]
    (warning,) = found(check(gold=gold), "warning")
    assert "In 60 of 60 checked sentences (100 %)" in warning
    assert "'MK - 801' as 'MK-801'" in warning
    assert "60 of 120 entities (50 %) begin or end inside its tokens" in warning
    assert f"--tokenizer {WORDS} (with it, 0 % of the sentences differ)" in warning
    assert not found(check({"tokenizer": WORDS}, gold=gold), "warning")


def test_tokens_of_which_the_tokenizer_takes_hours_are_not_split_again(check):
    report = check(gold=[{"tokens": ["(" * 100_000, "Anna"], "ents": [[1, 2, "PER"]]}])
    assert any("1 sentence with tokens that take very long to tokenize" in line for line in found(report, "info"))


def test_other_splits_without_harm_are_worth_a_note(check):
    gold = [{"tokens": ["Anna's", "cat", str(i)], "ents": [[1, 2, "PET"]]} for i in range(60)]
    report = check(gold=gold)
    assert not found(report, "warning")
    assert '"Anna\'s" as' in found(report, "info")[0] or "'Anna's' as 'Anna 's'" in found(report, "info")[0]


def test_known_spaces_are_used(check):
    gold = [
        {"tokens": ["L", "-", "dopa", str(i)], "spaces": [False, False, True, False], "ents": [[0, 3, "DRUG"]]}
        for i in range(60)
    ]
    assert not found(check(gold=gold), "warning")


@pytest.mark.parametrize(
    "words, text",
    [
        ("Anna slept .", "Anna slept."),
        ("L - dopa ( 5 mg / kg ) helps", "L-dopa (5 mg/kg) helps"),
        ("- first , second", "- first, second"),
    ],
)
def test_natural_text(words, text):
    tokens = words.split()
    assert natural_text(tokens) == text
    assert [text[a:b] for a, b in find_borders(tokens, text)] == tokens

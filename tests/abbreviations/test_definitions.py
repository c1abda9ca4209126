"""Definitions that a text gives, in all their forms, and what only looks like one."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.abbreviations.definitions import find_definitions, short_forms

NLP = spacy.blank("en")

FOUND = [
    ("He had heart failure (HF) twice.", [("HF", "heart failure")]),
    ("He had HF (heart failure) twice.", [("HF", "heart failure")]),
    ("Heart failure [HF] and acute kidney injury [AKI].", [("HF", "Heart failure"), ("AKI", "acute kidney injury")]),
    ("We gave 5-fluorouracil (5-FU).", [("5-FU", "5-fluorouracil")]),
    (
        "Acute rejection (AR; n = 4) and chronic rejection (CR, 5).",
        [("AR", "Acute rejection"), ("CR", "chronic rejection")],
    ),
    ("Myocardial infarctions (MIs) are rare.", [("MIs", "Myocardial infarctions")]),
    ("Blocked (by tumor necrosis factor (TNF)) cells.", [("TNF", "tumor necrosis factor")]),
    ("Parkinson's\ndisease (PD) was seen.", [("PD", "Parkinson's\ndisease")]),
    ("Mammalian target of rapamycin (mTOR).", [("mTOR", "Mammalian target of rapamycin")]),
    ("He had HF (heart failure) or HF (heart failure).", [("HF", "heart failure")] * 2),
    ("heart failure\n(HF) and", [("HF", "heart failure")]),
    ("HF\n( heart failure\n) and", [("HF", "heart failure")]),
    ("heart failure (\nHF\n)", [("HF", "heart failure")]),
]
NOT_FOUND = [
    "",
    "()",
    "( )",
    "(HF)",
    "(A)",
    "He had heart failure (see above).",
    "He had heart failure (10 mg).",
    "Seen in patients (n = 4).",
    "Cisplatin and etoposide (C / E).",
    "Nothing fits (XYZ).",
    "He had heart failure (HF",
    "He had heart failure) HF(.",
    "The first (in Hamburg) factor (HF).",
    "One defect (1 defect), cephalosporins (1 defect).",
    "HF is HF (HF).",
]


def found(doc):
    pairs = find_definitions(doc)
    return [(doc[slice(*pair.short)].text, doc[slice(*pair.long)].text) for pair in pairs]


@pytest.mark.parametrize("text, expected", FOUND)
def test_what_a_text_defines(text, expected):
    assert found(NLP(text)) == expected


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_no_definition(text):
    assert found(NLP(text)) == []


def test_words_apart_as_in_corpora_without_spaces():
    doc = Doc(NLP.vocab, words=["we", "gave", "5", "-", "fluorouracil", "(", "5", "-", "FU", ")", "."])
    assert found(doc) == [("5 - FU", "5 - fluorouracil")]


def test_a_long_form_stays_in_its_sentence():
    words = ["Hearts", ".", "Failure", "(", "HF", ")"]
    assert found(Doc(NLP.vocab, words=words)) == [("HF", "Hearts . Failure")]
    assert found(Doc(NLP.vocab, words=words, sent_starts=[True, False, True, *[False] * 3])) == []


@pytest.mark.parametrize("length, is_found", [(1, False), (2, True), (10, True), (11, False)])
def test_lengths(length, is_found):
    words = [f"{letter}ords" for letter in "abcdefghijk"[:length]]
    short = "ABCDEFGHIJK"[:length]
    assert found(Doc(NLP.vocab, words=[*words, "(", short, ")"])) == [(short, " ".join(words))] * is_found


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Heart failure (HF).", [("HF",), ("HFs",)]),
        ("Myocardial infarctions (MIs).", [("MIs",), ("MI",)]),
        ("Valproic acid (VPa).", [("VPa",)]),
    ],
)
def test_singular_and_plural(text, expected):
    doc = NLP(text)
    assert list(short_forms(doc, find_definitions(doc)[0])) == expected


def test_the_work_grows_with_the_text_and_no_faster():
    """Counted, not timed: how many tokens are looked at."""

    class Counted:
        def __init__(self, doc):
            self.doc, self.looked_at = doc, 0

        def __len__(self):
            return len(self.doc)

        def __iter__(self):
            return iter(self.doc)

        def __getitem__(self, key):
            self.looked_at += 1
            return self.doc[key]

    counts = []
    for n in (200, 400):
        counted = Counted(Doc(NLP.vocab, words=["( a b c )", *["(", "a", "b", "(", "c", ")", "d", ")"]] * n))
        find_definitions(counted)
        counts.append(counted.looked_at)
    assert counts[1] < 2.5 * counts[0]

"""Variants of characters and white space where they are easily forgotten."""

import json

import pytest
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import weak_group
from spacy_weakner.gazetteer_ruler.terms import Term
from spacy_weakner.labeling.label import label

from .util import make_nlp, matched

WRAPPED = [
    "high\nblood pressure",
    "so high  blood \t pressure",
    "high\n\nblood pressure",
    "it is\n\nhigh blood\r\npressure",
]


def test_acronyms_in_exact_case_have_variants_of_characters():
    found = matched(make_nlp([Term("C", "IL-2")], "en"), "IL‑2 il‑2 IL-2 Il-2")
    assert [text for text, _ in found] == ["IL‑2", "IL-2"]


def test_a_stop_list_has_variants_of_characters():
    nlp = make_nlp([Term("A", "Parkinson's"), Term("A", "x")], "en", stop=["PARKINSON’S"])
    assert matched(nlp, "Parkinson’s x") == [("x", "A")]


@pytest.mark.parametrize("ambiguity, expected", [("all", ["A", "B"]), ("first", ["B"]), ("drop", [])])
def test_of_spellings_of_two_terms_the_first_term_counts(ambiguity, expected):
    nlp = make_nlp([Term("B", "CANNOT STOP"), Term("A", "cannot stop")], "en", attr="LOWER", ambiguity=ambiguity)
    assert [found for _, found in matched(nlp, "Cannot stop")] == expected


@pytest.mark.parametrize("source", ["terms", "patterns"])
def test_raw_text_and_rows_with_offsets_give_the_same(tmp_path, source):
    rows = [{"label": "D", "pattern": "high blood pressure"}, {"label": "E", "pattern": [{"LOWER": "blood"}]}]
    (tmp_path / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for more in ({}, {"spans": []}):
        (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text, **more}) + "\n" for text in WRAPPED))
        label(tmp_path / "in.jsonl", tmp_path / "out.spacy", sources={"s": {source: str(tmp_path / "list.jsonl")}})
        docs = read_docs(tmp_path / "out.spacy", Vocab())
        spans = [span for doc in docs for span in doc.spans[weak_group("s")]]
        found.append([(" ".join(span.text.split()), span.label_) for span in spans])
        (tmp_path / "out.spacy").unlink()
    phrase, word = ("high blood pressure", "D"), ("blood", "E")
    assert found[0] == found[1] == [phrase, word, phrase, word, word, phrase, word]

"""Texts of which a tokenizer would take very long."""

import json

import pytest
import spacy
from spacy.tokenizer import Tokenizer

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.formats.reading import read_corpus
from spacy_weakner.corpus.runs import LONGEST_RUN, longest_run
from spacy_weakner.errors import WeaknerError

NLP = spacy.blank("xx")

HOSTILE = "(" * 50_000  # hours


@pytest.mark.parametrize(
    "text, expected",
    [(HOSTILE, 50_000), ("a" * 50_000, 0), ("( " * 50_000, 0), ("(" * LONGEST_RUN, 0), ("a(" * 3000, 3000)],
)
def test_longest_run(text, expected):
    assert longest_run(text, NLP) == expected


def test_other_tokenizers_have_no_limit():
    nlp = spacy.blank("xx")
    nlp.tokenizer = Tokenizer(nlp.vocab)  # splits at white space
    assert longest_run(HOSTILE, nlp) == 0


def test_such_lines_are_left_out_and_counted(tmp_path):
    rows = [{"text": HOSTILE}, {"text": "Anna came."}]
    for name, text in [("a.txt", f"{HOSTILE}\nAnna came.\n"), ("a.jsonl", "\n".join(map(json.dumps, rows)))]:
        (tmp_path / name).write_text(text)
        report = convert(tmp_path / name, tmp_path / f"{name}.spacy", lang="xx")
        assert (report.long, report.docs) == (1, 1)


def test_with_annotations_or_where_nobody_counts_they_are_errors(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": HOSTILE, "ents": []}))
    with pytest.raises(WeaknerError, match=r"WK103.*a.jsonl, line 1: 50000 .*limit is 2000"):
        convert(path, tmp_path / "a.spacy")
    path.write_text(json.dumps({"text": HOSTILE}))
    with pytest.raises(WeaknerError, match="WK103"):
        list(read_corpus(path, NLP))

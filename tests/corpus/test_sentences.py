"""Sentences of raw text, as spaCy's sentencizer has them, and texts of which a tokenizer would take very long."""

import json
import random

import pytest
import spacy
from spacy.tokenizer import Tokenizer

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.formats.reading import LONG, read_corpus
from spacy_weakner.corpus.sentences import LONGEST_RUN, SentenceSplitter, longest_run
from spacy_weakner.errors import WeaknerError

NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")
HOSTILE = "(" * 50_000  # hours
PIECES = ["word", "Anna", ".", "!", "?", "。", ",", ")", '"', "...", "a.b", "3.5", "don't", "😊", "-", " ", "..", "Dr."]


def by_sentencizer(text):
    return [[(token.text, bool(token.whitespace_)) for token in sentence] for sentence in NLP(text).sents]


def test_sentences_are_those_of_the_sentencizer():
    splitter = SentenceSplitter(NLP)
    for seed in range(300):
        rng = random.Random(seed)
        text = "".join(rng.choice(PIECES) + rng.choice(["", " "]) for _ in range(rng.randrange(25)))
        expected = [[*sentence[:-1], (sentence[-1][0], False)] for sentence in by_sentencizer(" ".join(text.split()))]
        found = [[(token.text, bool(token.whitespace_)) for token in doc] for doc in splitter.split(text)]
        assert found == expected, text


@pytest.mark.parametrize("text", ["I don't. You can't.", "I don't."])
def test_words_keep_the_norms_of_the_tokenizer(text):
    norms = [token.norm_ for doc in SentenceSplitter(NLP).split(text) for token in doc]
    assert norms == [token.norm_ for token in NLP(text)] and "not" in norms


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A heading\n\nIt goes on. So it does", ["A heading", "It goes on.", "So it does"]),
        ("\n\n one\nline \r\n \r\n two\u2029\u2029three\n\n", ["one line", "two", "three"]),
        ("one\nparagraph", ["one paragraph"]),
        ("\n\n", []),
    ],
)
def test_blank_lines_end_sentences(text, expected):
    assert [doc.text for doc in SentenceSplitter(spacy.blank("en")).split(text)] == expected


# Texts that are too long


@pytest.mark.parametrize(
    "text, expected",
    [(HOSTILE, 50_000), ("a" * 50_000, 0), ("( " * 50_000, 0), ("(" * LONGEST_RUN, 0), ("a(" * 3000, 3000)],
)
def test_longest_run(text, expected):
    nlp = spacy.blank("xx")
    assert longest_run(text, nlp) == expected
    nlp.tokenizer = Tokenizer(nlp.vocab)  # splits at white space, and has no limit
    assert longest_run(text, nlp) == 0


def test_such_lines_are_left_out_and_counted(tmp_path):
    rows = [{"text": HOSTILE}, {"text": "Anna came."}]
    for name, text in [("a.txt", f"{HOSTILE}\nAnna came.\n"), ("a.jsonl", "\n".join(map(json.dumps, rows)))]:
        (tmp_path / name).write_text(text)
        report = convert(tmp_path / name, tmp_path / f"{name}.spacy", lang="xx")
        assert (report.notes[LONG], report.docs) == (1, 1)


def test_with_annotations_or_where_nobody_counts_they_are_errors(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": HOSTILE, "ents": []}))
    with pytest.raises(WeaknerError, match=r"WK103.*a.jsonl, line 1: 50000 .*limit is 2000"):
        convert(path, tmp_path / "a.spacy")
    path.write_text(json.dumps({"text": HOSTILE}))
    with pytest.raises(WeaknerError, match="WK103"):
        list(read_corpus(path, spacy.blank("xx")))

import re

import pytest
import spacy

from spacy_weakner.checks.findings import Findings
from spacy_weakner.checks.text import read_text, tell_size
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.pipelines import RULE, add_sentences

from .conftest import found

WORDS = ["The", "patient", "took", "ten", "pills", "of", "it"]  # 7
WRAPPED = ["The patient was in a hos-", "pital for a week. Then he", "went home again."] * 4
TEXTS = [f"{' '.join(WORDS)} {i} ." for i in range(200)]  # 9 tokens


def test_the_size_of_the_text(check):
    (only,) = check({}, text=TEXTS).findings
    assert only.level == "info" and "200 texts with about 1,800 words" in only.message
    assert "one pass over them takes about 4 steps" in only.message


def test_the_size_of_large_files_is_estimated(write, nlp, findings):
    text = read_text(write("a.txt", TEXTS * 5), nlp, findings, limit=100)
    assert 950 < text.total < 1050 and not text.exact
    tell_size(text, findings)
    infos = " ".join(found(findings, "info"))
    assert re.search(r"the first 100 lines of", infos) and re.search(r"about [\d,]+ texts", infos)


def test_entities_of_texts_are_not_read(write, nlp, findings, tmp_path):
    rows = [{"text": "Anna slept", "ents": [[0, 4, "PER"]]}, {"text": "Bob too", "ents": []}, {"text": "x"}]
    read_text(write("a.jsonl", rows), nlp, findings)
    read_text(write("a.conll", ["Anna B-PER", "slept O", "", "Bob O"]), nlp, findings)
    first, second = found(findings, "warning")
    assert "texts with entities" in first and "1 of 3" in first and "1 of 2" in second and "--gold" in second


def test_all_formats(write, nlp, findings, tmp_path):
    write_docs(tmp_path / "a.spacy", [nlp("Anna slept"), nlp("Bob too")])
    write("a.txt", ["Anna slept", "", "Bob too"])
    write("a.jsonl", [{"text": "Anna slept"}, {"tokens": ["Bob", "too"], "url": "x"}])
    write("a.conll", ["Anna O", "slept O", "", "Bob O", "too O"])
    for suffix in ("txt", "jsonl", "spacy", "conll"):
        assert read_text(tmp_path / f"a.{suffix}", nlp, findings).texts == ["Anna slept", "Bob too"]
    assert len(read_text(tmp_path, nlp, findings).texts) == 8
    assert not findings.sorted()


@pytest.mark.parametrize(
    "name, content, level, expected",
    [
        ("a.txt", [], "error", "contains no text"),
        ("a.txt", "Käse\n".encode("cp1252"), "error", "WK104.*WINDOWS-1252.*iconv -f WINDOWS-1252 -t UTF-8"),
        ("a.txt", "Käse\n".encode("utf-16"), "error", "WK104.*UTF-16"),
        ("a.txt", ["one", "two\ufefftwo", "three\ufeff"], "warning", "byte order marks.*line 2, 2 lines.*sed"),
        ("a.txt", [{"text": "a"}] * 9, "error", "JSON rows.*Rename it to .jsonl"),
        ("a.txt", ["Anna B-PER", "slept O"] * 9, "error", "columns of tokens and tags.*Rename it to .conll"),
        ("a.txt", WRAPPED, "warning", "8 of 12 lines seem to continue"),
        ("a.jsonl", ["["], "error", "its JSON: not JSON"),
        (
            "a.jsonl",
            [{"text": "a"}, {"body": "b"}, {"text": 3}],
            "error",
            "line 2: the row has neither 'tokens' nor 'text', only: body",
        ),
        ("a.jsonl", [{"text": "a b", "label": [[0, 9, "X"]]}], "error", "WK742.*line 1.*codepoints"),
        (
            "a.jsonl",
            [{"text": "a b", "ents": [[0, 1, "X"], [0, 3, "Y"]]}, {"text": "c"}],
            "error",
            "line 1: ents overlap",
        ),
        ("a.data", ["a"], "error", "WK105.*or --format .if a command lacks this option, convert"),
        ("a.csv", ["a"], "error", r"WK105.*pandas\.read_csv\('a\.csv'\).*'a\.jsonl'"),
    ],
)
def test_bad_files(write, nlp, findings, name, content, level, expected):
    read_text(write(name, content), nlp, findings)
    assert re.search(expected, " ".join(found(findings, level)), re.DOTALL)


def test_names_at_line_ends_that_look_like_tags(write, nlp, findings):
    read_text(write("a.txt", ["He filed the form W-2", "She fired an M-16"] * 9), nlp, findings)
    assert not found(findings, "error")


@pytest.mark.parametrize(
    "lines", [["who is Ann", "ann is who? bob", "berlin"] * 9, ["Ann slept. Bob ran", "<user> Cid ate."] * 9]
)
def test_short_texts_and_headings_are_not_wrapped(write, nlp, findings, lines):
    read_text(write("a.txt", lines), nlp, findings)
    assert not found(findings, "warning")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Pat. klagt über Husten, Z.n. beidseitiger Pneumonie.", ["Pat.", "Z.n."]),
        ("Der Pat. Klein kam. Er klagt.", []),
        ("it was it. and it was fine", []),  # a word, in text without capitals
        ("Er kam heute? ja", []),
    ],
)
def test_abbreviations_that_end_sentences(write, nlp, findings, text, expected):
    texts = [f"{text} Nummer {i}" for i in range(3)]
    add_sentences(nlp, (), RULE, "")
    read_text(write("a.txt", texts), nlp, findings)
    told = " ".join(found(findings, "warning"))
    assert all(word in told for word in expected) and ("abbreviations" in told) == bool(expected)
    # Often enough, and not if they are known.
    for some, known in ((texts[:2], ""), (texts, "Pat., Z.n.")):
        other, none = spacy.blank("de"), Findings()
        add_sentences(other, (), RULE, known)
        read_text(write("a.txt", some), other, none)
        assert "abbreviations" not in " ".join(found(none, "warning"))

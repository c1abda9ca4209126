"""Formats of annotated files, rows that cannot be read, and what gold, dev and test must hold."""

import gzip
import re
import shutil

import pytest

from spacy_weakner.checks.corpora import read_annotated
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.formats.reading import read_corpus
from spacy_weakner.corpus.sentences import LONGEST_RUN
from spacy_weakner.errors import WeaknerError

from .conftest import GOLD, found

EMPTY = [{"tokens": ["a"], "ents": []}]
OTHERS = [{"tokens": ["Bob", "had", "insulin", str(i)], "ents": [[0, 1, "PER"], [2, 3, "DRUG"]]} for i in range(60)]


def test_nothing_is_wrong_with_good_files(check):
    report = check(
        gold=GOLD,
        dev=OTHERS,
        test=[{"tokens": ["x", *r["tokens"]], "ents": [[1, 2, "PER"], [3, 4, "DRUG"]]} for r in OTHERS],
    )
    assert found(report, "error") == found(report, "warning") == []
    assert report.errors == 0


def test_all_broken_rows_are_found_and_the_others_are_read(check):
    rows = [*GOLD, "{broken", "{", {"tokens": ["a"], "ents": [[0, 9, "PER"]]}, {"tokens": []}, *OTHERS]
    report = check(gold=rows)
    errors = found(report, "error")
    assert len(errors) == 3
    assert "gold.jsonl, line 61: not JSON" in errors[0] and "in 2 rows: lines 61, 62" in errors[0]
    assert "line 63: [0, 9" in errors[1]
    assert "line 64: 'tokens' is empty" in errors[2]
    assert report.labels[0].counts == {"PER": 120, "DRUG": 120}


CONLL = [*["Anna\tB-PER", "slept\tO", ""] * 2, "Bob\tPER", "ran\tO", "", "Eve\tB-PER", "", "x", "y\tO"]
REJECTED = {"text": "Anna", "spans": [{"start": 0, "end": 4, "label": "PER"}], "answer": "reject", "_input_hash": 1}
PRODIGY = {"text": "Anna slept", "_input_hash": 1, "_view_id": "ner_manual", "spans": [], "answer": "accept"}


ITEMS = [{"text": "Anna", "label": [[0, 4, "PER"]]}, {"text": "x", "label": [[0, "1", "X"]]}] * 2


@pytest.mark.parametrize(
    "name, lines, places, read",
    [
        ("a.jsonl", [GOLD[0], "{", {"tokens": ["a"], "ents": 1}, GOLD[1]], [2, 3], 2),
        ("a.conll", CONLL, [7, 12], 3),
        ("a.jsonl", ITEMS, [2, 4], 2),
        ("a.jsonl", ["{broken", *ITEMS, "{"], [1, 3, 5, 6], 2),
        ("a.jsonl", [PRODIGY, "{", {**PRODIGY, "_input_hash": 2, "spans": 3}], [2, 3], 1),
        ("a.jsonl", [{"tokens": ["a"], "ner_tags": ["O"]}, "{", {"tokens": ["a"], "ner_tags": ["B", "O"]}], [2, 3], 1),
    ],
)
def test_readers_of_all_formats_go_on_after_an_error(write, nlp, findings, name, lines, places, read):
    path = write(name, lines)
    corpus = read_annotated("gold", path, nlp, findings)
    assert len(corpus.sentences) == read and corpus.broken
    errors = " ".join(found(findings, "error"))
    assert all(re.search(rf"\b{place}\b", errors) for place in places) and "WK103" in errors
    # Elsewhere the same reader stops at the first.
    with pytest.raises(WeaknerError, match=f"WK103.*line {places[0]}:"):
        list(read_corpus(path, nlp))


def test_many_rows_with_one_problem_are_one_finding(check):
    rows = [{"text": f"Anna {i}", "ents": [[0, 4, {"label": f"L{i}"}]]} for i in range(30)]
    rows += [{"text": f"Anna {i}", "ents": f"names {chr(97 + i)}"} for i in range(26)]
    errors = [error for error in found(check(gold=GOLD + rows), "error") if "WK103" in error]
    assert len(errors) == 2 and "The same problem occurs in 26 rows" in " ".join(errors)


def test_texts_that_a_tokenizer_cannot_take_are_left_out(check):
    texts = ["Anna went home."] * 20 + ["(" * (LONGEST_RUN + 1), "x " * 600_000]
    report = check(text=texts, terms=["label,term", "PER,Anna"])
    (warning,) = [text for text in found(report, "warning") if "without white space" in text]
    assert "1 text" in warning and "line 21" in warning and not found(report, "error")


@pytest.mark.parametrize("name", ["a.conll", "folder"])
def test_other_large_corpora_are_read_in_part(write, nlp, findings, tmp_path, name):
    if name == "a.conll":
        write(name, ["Anna\tB-PER", ""] * 30)
    else:
        (tmp_path / name).mkdir()
        for i in range(3):
            write(f"{name}/{i}.jsonl", GOLD[:10])
    corpus = read_annotated("gold", tmp_path / name, nlp, findings, limit=20)
    assert len(corpus.sentences) == 20 and "the first 20 " in found(findings, "info")[0]


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"tokens": ["Anna"], "ner_tags": [1]}, "WK103.*--labels"),
        ({"data": {"text": "Anna"}, "annotations": []}, "None of its 3 sentences is annotated"),
        (REJECTED, "None of its 1 sentence is annotated"),
        ({"tokens": ["Anna"], "mentions": [["Anna", "PER"]]}, "lists or objects: mentions.*rename them to 'ents'"),
    ],
)
@pytest.mark.parametrize("option", ["gold", "test"])
def test_rows_of_other_tools_that_teach_nothing(check, option, row, expected):
    (error, *_) = found(check(**{option: [row] * 3}), "error")
    assert re.search(expected, error) and "FILE" not in error


def test_formats(check, write, nlp, tmp_path):
    path = write("rows.jsonl", GOLD)
    write_docs(tmp_path / "a.spacy", read_corpus(path, nlp))
    write("a.conll", [f"{token}\t{tag}" for token, tag in [("Anna", "B-PER"), ("slept", "O")]])
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    (tmp_path / "folder").mkdir()
    shutil.copy(path, tmp_path / "folder" / "b.jsonl")
    for name, n in (("a.spacy", 60), ("a.conll", 1), ("a.jsonl.gz", 60), ("folder", 60)):
        assert check(gold=tmp_path / name).labels[0].counts["PER"] == n


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("a.txt", ["Anna slept"], "plain text, which contains no entities"),
        ("a.data", ["[", '{"text": "a"}', "]"], r"WK105.*rename it to \.json"),
        ("a.tsv", ["#FORMAT=WebAnno TSV 3.3", "", "1-1\t0-4\tAnna\tPER"], r"WK371.*CoNLL 2002"),
        ("a.data", [{"text": "a"}], r"WK105.*rename it to \.json"),
        ("a.xlsx", b"PK", r"WK105.*pandas\.read_excel"),
        ("a.zip", b"PK", r"WK105.*Unpack"),
        ("nlu.yml", ["version: '3.1'"], r"WK105.*rasa data convert nlu"),
        ("bioc.xml", ["<?xml version='1.0'?>"], r"WK105.*BioC.*bconv"),
        ("bioc.json", [{"source": "", "documents": [{"passages": [{"text": "a"}]}]}], r"WK103.*BioC.*bconv"),
        ("spacy2.json", [{"id": 0, "paragraphs": []}], r"WK103.*spacy convert --converter json"),
        ("ner_dataset.csv", "Sentence #,Word,POS,Tag\nSentence: 1,São,NNP,O\n".encode("latin-1"), r"WK105.*\.conll"),
        ("train.py", ["TRAIN_DATA = []"], r"WK105.*json\.dump"),
        ("a.spacy", b"no docs", "WK206"),
        ("a.conll", ["Anna B-PER", "slept"], "WK103.*line 2"),
        ("a.jsonl", '{"text": "Zoë"}'.encode("cp1252"), "WK104.*WINDOWS-1252.*iconv"),
        ("a.jsonl", '{"text": "Zoë"}'.encode("utf-16"), "WK104.*UTF-16.*iconv -f UTF-16"),
        ("a.jsonl", b'{"text": "a\0b"}', "WK620"),
        ("a.jsonl.gz", b"not packed", "WK206"),
    ],
)
def test_unreadable_files(check, write, name, content, expected):
    errors = found(check(gold=write(name, content)), "error")
    assert len(errors) == 1 and re.search(expected, errors[0], re.DOTALL)


@pytest.mark.parametrize("option", ["text", "terms", "sources", "gold", "dev", "test"])
def test_missing_files_name_the_option(check, tmp_path, option, write):
    write("dev.csv", [])
    (error,) = found(check(**{option: tmp_path / "dve.csv"}), "error")
    assert error.startswith(f"--{option} ") and "WK100" in error and f"as --{option}; did you mean" in error
    assert "dev.csv" in error


@pytest.mark.parametrize("option", ["terms", "sources"])
def test_a_folder_is_no_file(check, tmp_path, option):
    assert re.search("is a folder", *found(check(**{option: tmp_path}), "error"))


@pytest.mark.parametrize(
    "option, rows, level, expected",
    [
        ("gold", [], "error", "is empty"),
        ("gold", EMPTY * 3, "error", r"no entity in its 3 sentences.*no label can be learned"),
        ("gold", [{"tokens": ["a"], "ents": None}] * 3, "error", "None of its 3 sentences is annotated"),
        ("gold", [*GOLD, {"tokens": ["a"]}], "warning", r"1 sentence of 61 without annotation.*line 61"),
        ("gold", [*GOLD, {**EMPTY[0], "weak": True}], "warning", "1 sentence of 61 marked as weak"),
        ("gold", GOLD[:9], "warning", "Only 9 sentences with entities"),
        ("dev", [], "error", "is empty"),
        ("dev", EMPTY * 3, "error", "no entity in its 3 sentences.*every score would be 0"),
        ("dev", [*GOLD, {"text": "a"}], "warning", r"1 sentence of 61 without annotation.*dev must be.*line 61"),
        ("test", [*GOLD, {**EMPTY[0], "weak": True}], "error", "1 sentence of 61 with weak labels only"),
        (
            "test",
            [*GOLD, {"tokens": ["a", "b"], "ents": [], "missing": [[0, 1]]}],
            "warning",
            "tokens whose labels are unknown",
        ),
        (
            "test",
            [{"tokens": ["a", "b"], "ents": [[0, 1, "X"]], "missing": [[1, 2]]}],
            "error",
            "tokens whose labels are unknown",
        ),
        (
            "gold",
            [*GOLD, {"tokens": ["a", "b"], "ents": [], "missing": [[0, 1]]}],
            "warning",
            "tokens whose labels are unknown",
        ),
        ("test", GOLD[:9], "info", "Only 18 entities"),
    ],
)
def test_what_they_must_hold(check, option, rows, level, expected):
    assert re.search(expected, "".join(found(check(**{option: rows}), level)))


def test_sentences_with_different_entities(check):
    """Neither short ones, nor those that say the same or nothing."""
    other = [{**GOLD[0], "ents": [[0, 1, "PER"]]}, GOLD[1], {**GOLD[2], "ents": None}]
    short = [{"tokens": ["No", "."], "ents": ents} for ents in ([], [[0, 1, "X"]])]
    warnings = [
        warning for warning in found(check(gold=[*GOLD, *other, *short]), "warning") if "several times" in warning
    ]
    assert len(warnings) == 1 and "1 sentence that" in warnings[0] and "(line 1, line 61)" in warnings[0]


def test_entities_with_signs_at_their_ends(check):
    rows = [
        {"tokens": ["In", "Rome", ",", "Ltd", "."], "ents": ents}
        for ents in ([[1, 3, "X"]], [[2, 4, "X"]], [[3, 5, "X"]])
    ]
    (warning,) = [warning for warning in found(check(gold=[*GOLD, *rows]), "warning") if "comma" in warning]
    assert "2 entities" in warning and "Rome ," in warning.replace("Rome,", "Rome ,")


def test_large_files_are_sampled(write, nlp, findings):
    path = write("gold.jsonl", GOLD * 5)
    corpus = read_annotated("gold", path, nlp, findings, limit=100)
    assert len(corpus.sentences) == 100
    (info,) = found(findings, "info")
    assert "the first 100 lines" in info

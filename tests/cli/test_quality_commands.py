import json

import pytest
import spacy

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import set_source
from spacy_weakner.runtime.lock import locked

from ..util import make_doc
from .util import invoke


@pytest.fixture
def data(tmp_path, monkeypatch):
    nlp = spacy.blank("xx")
    gold, weak = [], []
    for text, entities in [("Anna went to [bold]Rome", [(0, 1, "PER"), (3, 4, "LOC")]), ("Rome", [(0, 1, "LOC")])]:
        gold.append(make_doc(nlp, text, entities))
        weak.append(make_doc(nlp, text, annotated=False))
        set_source(weak[-1], "terms", [(0, 1, "PER")], [0.7])
        set_source(weak[-1], "llm", entities[-1:])
    write_docs(tmp_path / "gold.spacy", gold)
    write_docs(tmp_path / "weak.spacy", weak)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_analyze_prints_tables_and_writes_json(data):
    result = invoke("analyze", "weak.spacy", "--gold", "gold.spacy", "--output", "a.json")
    assert result.exit_code == 0, result.output
    assert "2 documents, 5 tokens" in result.output
    for title in ("Sources", "Agreement between sources", "Kinds of errors", "Recall by length", "Calibration"):
        assert title in result.output
    # A phrase that looks like markup is printed as it stands.
    assert "[bold]Rome" in result.output
    analysis = json.loads((data / "a.json").read_text())
    assert [source["name"] for source in analysis["sources"]] == ["llm", "terms"]
    assert analysis["sources"][1]["gold"]["total"]["exact"]["f1"] == 40.0


def test_labels_with_other_names(data):
    """analyze names them and both cures; convert renames the labels of the gold."""
    row = {"tokens": ["Anna", "went", "to", "[bold]Rome"], "ents": [[0, 1, "PERSON"], [3, 4, "LOC"]]}
    rows = [row, {"tokens": ["Rome"], "ents": []}]
    (data / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("convert", "other.jsonl", "other.spacy", "--lang", "xx", "--overwrite")
    invoke(*command)
    result = invoke("analyze", "weak.spacy", "--gold", "other.spacy")
    assert "'terms' has labels that do not occur in the gold" in result.output and "'llm'" not in result.output
    assert """labels = {"PER": "PERSON"}""" in result.output and "--map PERSON=PER" in result.output
    result = invoke(*command, "--map", "PERSON=PER", "--map", "LOC=LOC")
    assert result.exit_code == 0 and "PER 1" in result.output and "PERSON" not in result.output
    assert "--map" not in invoke("analyze", "weak.spacy", "--gold", "other.spacy").output
    assert "WK005" in invoke(*command, "--map", "PERSON").output


def test_analyze_without_gold_says_so(data):
    result = invoke("analyze", "weak.spacy", "--source", "llm")
    assert result.exit_code == 0, result.output
    assert "The corpus has no gold" in result.output and "Kinds of errors" not in result.output
    assert "terms" not in result.output


def test_compare_with_sources_and_baseline(data):
    candidates = ("term list=weak.spacy#terms", "model=weak.spacy#llm")
    result = invoke("evaluate", "gold.spacy", *candidates, "--baseline", "term list", "--bootstrap", "20")
    assert result.exit_code == 0, result.output
    assert "vs term list" in result.output and "F1 95 %" in result.output
    # The baseline is first, though it is worse.
    assert result.output.index("\nterm list") < result.output.index("\nmodel")
    result = invoke("evaluate", "gold.spacy", *candidates, "--bootstrap", "0")
    # Sets of labels have no speed.
    assert "F1 95 %" not in result.output and "sentences" in result.output and "words/s" not in result.output
    more = ("--optional", "llm=weak.spacy#llm", "--optional", "x=none.spacy#llm")
    result = invoke("evaluate", "gold.spacy", *candidates, *more, "--bootstrap", "0")
    assert "Left out: 'x'" in result.output and "Left out: 'llm'" not in result.output


def test_report_of_both(data):
    result = invoke("evaluate", "gold.spacy", "llm=weak.spacy#llm", "--html", "r.html", "--labels", "weak.spacy")
    assert result.exit_code == 0, result.output
    page = (data / "r.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "Weak labels" in page
    assert not list(data.glob(".*"))


@pytest.mark.parametrize(
    "args, message",
    [
        (["analyze", "none"], "[WK100]"),
        (["analyze", "gold.spacy", "--source", "x"], "[WK302]"),
        (["analyze", "weak.spacy", "--output", "."], "[WK109]"),
        (["evaluate", "gold.spacy", "a=weak.spacy#llm", "--baseline", "b"], "[WK005]"),
        (["evaluate", "gold.spacy", "a=weak.spacy#x"], "[WK409]"),
        (["evaluate", "gold.spacy", "a=gold.spacy", "--output", "gold.spacy"], "[WK304]"),
        (["evaluate", "gold.spacy", "a=weak.spacy#llm", "--output", "weak.spacy"], "[WK304]"),
        (["evaluate", "gold.spacy", "a=weak.spacy", "--html", "x.html", "--output", "./x.html"], "[WK331]"),
        (["evaluate", "gold.spacy"], "[WK401]"),
        (["evaluate", "gold.spacy", "none"], "[WK100]"),
        (["evaluate", "gold.spacy", "=weak.spacy"], "[WK401]"),
        (["evaluate", "gold.spacy", "weak.spacy", "weak.spacy"], "[WK401]"),
        (["evaluate", "gold.spacy", "a=weak.spacy", "--html", "."], "[WK109]"),
        (["analyze", "weak.spacy", "--method", "majority"], "[WK331]"),
        (["analyze", "weak.spacy", "--worst-terms", "--gold", "gold.spacy"], "[WK331]"),
    ],
)
def test_errors_are_one_line_without_traceback(data, args, message):
    result = invoke(*args)
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""


@pytest.mark.parametrize("misaligned, named, code", [("drop", True, 1), ("expand", False, 0)])
def test_dropped_spans_leave_no_test_set(tmp_path, monkeypatch, misaligned, named, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"text": "Annas hat", "ents": [[0, 4, "PER"]]}\n')
    result = invoke("convert", "a.jsonl", "a.spacy", "--misaligned", misaligned)
    assert result.exit_code == 0 and ("'evaluate' refuses" in result.output) is named
    result = invoke("evaluate", "a.spacy", "a=a.spacy", "--bootstrap", "0")
    assert result.exit_code == code and ("WK402" in result.output) is named


REPORTS = {
    "a.json": ["analyze", "weak.spacy", "--output"],
    "s.json": ["evaluate", "gold.spacy", "a=weak.spacy#llm", "--bootstrap", "0", "--output"],
    "s.html": ["evaluate", "gold.spacy", "a=weak.spacy#llm", "--bootstrap", "0", "--html"],
    "c.json": ["check", "--gold", "gold.spacy", "--output"],
    "c.txt": ["check", "--gold", "gold.spacy", "--stamp"],
    "c.svg": ["curves", "train.log"],
    "t.tex": ["table", "scores.json", "--format", "latex", "--output"],
}


@pytest.fixture
def inputs(data):
    (data / "train.log").write_text(
        "E    #       LOSS  ENTS_F  SCORE\n---  ------  ----  ------  -----\n  0     10   1.0   50.0   0.5\n"
    )
    assert invoke(*REPORTS["s.json"], "scores.json").exit_code == 0
    return data


@pytest.mark.parametrize("name", REPORTS)
def test_reports_are_replaced_and_files_of_others_are_not(inputs, name):
    path, command = inputs / name, [*REPORTS[name], name]
    path.touch()
    for _ in range(2):
        result = invoke(*command)
        assert result.exit_code == 0, result.output
        assert path.read_text()
    for text in ("mine", "# My notes on spacy_weakner", '[components.ner]\nfactory = "spacy_weakner.ner"'):
        path.write_text(text)
        assert "[WK300]" in invoke(*command).stderr and path.read_text() == text
    path.unlink()
    with locked(path):
        assert "[WK787]" in invoke(*command).stderr and not path.exists()


def test_each_report_has_a_file(inputs):
    result = invoke("check", "--gold", "gold.spacy", "--output", "same.txt", "--stamp", "./same.txt")
    assert "[WK331]" in result.stderr and not (inputs / "same.txt").exists()


def test_a_table_that_was_edited_is_not_replaced(inputs):
    command = [*REPORTS["t.tex"], "t.tex"]
    invoke(*command)
    (inputs / "t.tex").write_text((inputs / "t.tex").read_text() + "% mine\n")
    assert "[WK300]" in invoke(*command).stderr and "% mine" in (inputs / "t.tex").read_text()

import json

import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app


def invoke(*args):
    return CliRunner().invoke(app, ["label", *(str(arg) for arg in args), "--lang", "xx"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("Anna met Bob\nBob left\n")
    (tmp_path / "terms.csv").write_text("label,term\nPER,Anna\nPER,Bob\nDOG,Bob\n")
    rows = [
        {"text": "anna met bob", "ents": [["Anna", "PER"], ["Rex", "DOG"], ["met", "V"], [0, 6, "PER"]]},
        {"text": "not there", "ents": []},
        {"text": "NOT there", "ents": []},
    ]
    (tmp_path / "llm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "sources.cfg").write_text(
        '[sources.list]\nterms = "terms.csv"\n'
        '[sources.llm]\nfile = "llm.jsonl"\nlabels = {"PER": "PERSON", "DOG": "PET"}\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_line_per_source_with_what_is_not_zero(folder):
    result = invoke("in.txt", "out", "--sources", "sources.cfg")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())  # long lines are wrapped
    assert "Spans of 'list': 5 (DOG 2, PER 3)" in text
    assert (
        "Spans of 'llm': 1 (PERSON 1); labels left out: 1 (V 1); misaligned: 1; phrases not found: 1; "
        "rows of the file: 2; documents with a row: 1; documents without a row: 1; repeated rows: 1"
    ) in text
    assert "Documents without a match: 0; excluded: 0" in text
    assert "Shards that were already finished: 1" in invoke("in.txt", "out", "--sources", "sources.cfg").output


def output(*args):
    result = invoke("in.txt", "out", *args)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_answers_for_whole_texts_need_whole_texts(folder):
    (folder / "in.txt").write_text("Anna came. Bob left.\n")
    rows = [{"text": "Anna came. Bob left.", "ents": [["Anna", "PER"]]}]
    (folder / "llm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = output("--sources", "sources.cfg")
    assert "No row of 'llm' belongs to a document. Texts are split into sentences unless --sentences none" in told
    assert "No row" not in output("--sources", "sources.cfg", "--sentences", "none")
    (folder / "llm.jsonl").write_text("")
    assert "The file of 'llm' has no rows" in output("--sources", "sources.cfg", "--sentences", "none")
    (folder / "llm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "in.txt").write_text("Other texts.\n")
    told = output("--sources", "sources.cfg", "--sentences", "none")
    assert "No row of 'llm' belongs to a document. Compare their ids and texts" in told and "are split" not in told


def test_mapping_that_leaves_all_out(folder):
    (folder / "sources.cfg").write_text('[sources.list]\nterms = "terms.csv"\nlabels = {"PERSON": "P"}\n')
    told = "'list' wrote no spans, because its setting 'labels' does not contain the labels that it found: DOG, PER"
    assert told in output("--sources", "sources.cfg")
    (folder / "sources.cfg").write_text('[sources.list]\nterms = "terms.csv"\nlabels = {"PER": "P"}\n')
    assert "does not contain" not in output("--sources", "sources.cfg")


def test_a_list_that_matches_nothing(folder):
    (folder / "sources.cfg").write_text('[sources.list]\nterms = "terms.csv"\n')
    assert "No term of 'list'" not in output("--sources", "sources.cfg")
    (folder / "in.txt").write_text("Other texts.\n")
    assert "No term of 'list' occurs in these documents" in output("--sources", "sources.cfg")


def test_all_excluded(folder):
    told = "No document was written: the excluded corpora contain all of them"
    (folder / "one.txt").write_text("Bob left\n")
    assert told not in output("--sources", "sources.cfg", "--exclude", "one.txt")
    all_excluded = output("--sources", "sources.cfg", "--exclude", "in.txt")
    assert told in all_excluded and "No row" not in all_excluded


@pytest.mark.parametrize(
    "options, message",
    [
        ("--sources sources.cfg --abbreviations", "[WK331] 'abbreviations'"),
        ("--terms terms.csv --shard 3/2", "[WK005] The setting 'shard'"),
    ],
)
def test_errors_are_one_line(folder, options, message):
    result = invoke("in.txt", "out", *options.split())
    assert result.exit_code == 1
    assert result.stdout == "" and message in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (folder / "out").exists()


def test_ctrl_c_while_workers_run(folder, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("spacy_weakner.runtime.executor.processes", interrupt)
    result = invoke("in.txt", "out", "--terms", "terms.csv", "--workers", 2)
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert sorted(f.name for f in folder.iterdir()) == ["in.txt", "llm.jsonl", "sources.cfg", "terms.csv"]

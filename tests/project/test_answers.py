"""Answers of a language model that cover the text alone: nothing is known about them on the gold."""

import json
import shlex

import pytest
from typer.testing import CliRunner
from weasel.util import load_project_config

from spacy_weakner.cli.app import app
from spacy_weakner.project import fit as module
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.new import init_project

from .util import gold_rows, write_rows


def run(folder, name, monkeypatch):
    """One command of a project, in this process."""
    monkeypatch.chdir(folder)
    commands = {command["name"]: command for command in load_project_config(folder)["commands"]}
    output = ""
    for script in commands[name]["script"]:
        result = CliRunner().invoke(app, shlex.split(script)[3:])
        assert result.exit_code == 0, result.output
        output += result.output
    return output


@pytest.fixture
def files(tmp_path):
    rows = gold_rows(40, [f"s{i}" for i in range(40)])
    text = [{key: value for key, value in row.items() if key != "ents"} for row in rows[12:]]
    (tmp_path / "terms.csv").write_text("label,term\nPER,Anna\nLOC,Paris\n")
    parts = {"gold": rows[:12], "text": text, "answers": rows[12:]}
    made = {name: write_rows(tmp_path / f"{name}.jsonl", part) for name, part in parts.items()}
    return {**made, "terms": tmp_path / "terms.csv"}


@pytest.mark.parametrize("also", [(), ("terms",)])
def test_from_files_to_what_is_known(tmp_path, files, monkeypatch, also):
    folder = tmp_path / "project"
    init_project(folder, lang="xx", **{name: files[name] for name in ("gold", "text", "answers", *also)})
    for name in ("prepare", "label"):
        run(folder, name, monkeypatch)
    assert "has labeled none of the 12 gold documents" in " ".join(run(folder, "analyze", monkeypatch).split())
    corpora = Corpora(folder / "corpus")
    found = json.loads(corpora.labels.read_text())
    assert found["unanswered"] == ["answers"] and found["scores"]["docs"] == (12 if also else 0)
    analysis = module.read_analysis(corpora)
    facts = module.find_facts(corpora, module.read_preparation(corpora), analysis, len(also), "linear")
    # What nobody has looked at is not wrong.
    assert (facts.precision is None) == (not also) and facts.weak
    (learned,) = [rule for rule in module.choose_candidates(facts) if rule.name == module.WEAK_ALONE]
    assert learned.trained, learned.why
    if also:
        # Another method needs no other file.
        text = (folder / "project.yml").read_text()
        assert "method: weighted" in text
        for method in ("majority", "union", "label_model"):
            (folder / "project.yml").write_text(text.replace("method: weighted", f"method: {method}"))
            run(folder, "label", monkeypatch)
            run(folder, "analyze", monkeypatch)

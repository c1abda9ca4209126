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
    rows = gold_rows(40)
    for i, row in enumerate(rows):
        row["id"] = f"s{i}"
    (tmp_path / "terms.csv").write_text("label,term\nPER,Anna\nLOC,Paris\n")
    return {
        "gold": write_rows(tmp_path / "gold.jsonl", rows[:12]),
        "text": write_rows(
            tmp_path / "text.jsonl", [{k: v for k, v in row.items() if k != "ents"} for row in rows[12:]]
        ),
        "answers": write_rows(tmp_path / "answers.jsonl", rows[12:]),
        "terms": tmp_path / "terms.csv",
    }


@pytest.mark.parametrize("also", [(), ("terms",)])
def test_from_files_to_what_is_known(tmp_path, files, monkeypatch, also):
    folder = tmp_path / "project"
    init_project(folder, lang="xx", **{name: files[name] for name in ("gold", "text", "answers", *also)})
    for name in ("prepare", "label"):
        run(folder, name, monkeypatch)
    assert "no answers on the gold" in " ".join(run(folder, "analyze", monkeypatch).split())
    corpora = Corpora(folder / "corpus")
    found = json.loads(corpora.labels.read_text())
    assert found["unanswered"] == ["answers"] and found["scores"]["docs"] == (12 if also else 0)
    analysis = module.read_analysis(corpora)
    facts = module.find_facts(corpora, module.read_preparation(corpora), analysis, len(also), "linear")
    # What nobody has looked at is not wrong.
    assert (facts.precision is None) == (not also) and facts.weak
    (learned,) = [rule for rule in module.choose_candidates(facts) if rule.name == module.WEAK_ALONE]
    assert learned.trained, learned.why


def test_another_method_needs_no_other_file(tmp_path, files, monkeypatch):
    folder = tmp_path / "project"
    init_project(folder, lang="xx", **files)
    for name in ("prepare", "label"):
        run(folder, name, monkeypatch)
    text = (folder / "project.yml").read_text()
    assert "method: weighted" in text
    for method in ("majority", "union", "label_model"):
        (folder / "project.yml").write_text(text.replace("method: weighted", f"method: {method}"))
        run(folder, "label", monkeypatch)
        run(folder, "analyze", monkeypatch)


def test_a_changed_list_is_fitted_anew(tmp_path, files):
    folder = tmp_path / "project"
    init_project(folder, lang="xx", **files)
    commands = {command["name"]: command for command in load_project_config(folder)["commands"]}
    wanted = {"../terms.csv", "../answers.jsonl", "sources.cfg", "configs", "corpus/gold-labeled.spacy", "corpus/weak"}
    assert wanted <= set(commands["fit"]["deps"]) and {"../terms.csv", "sources.cfg"} <= set(commands["label"]["deps"])

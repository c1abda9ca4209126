"""scripts/variables.py: variables of workflows are checked and recorded, and runs are repeated with other seeds."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly

from spacy_weakner.evaluation.score_table import score_table

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("variables", ROOT / "scripts" / "variables.py")
variables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(variables)
PROJECT = srsly.read_yaml(ROOT / "project.yml")


@pytest.mark.parametrize(
    "line, workflow, given, flags",
    [
        ("python -m weasel run needle . --vars.folds 2 --vars.run mine", "needle", {"folds": 2, "run": "mine"}, []),
        ("python /x/bin/weasel run needle", "needle", {}, []),
        ("python /x/bin/weasel run needle --vars.folds=2", "needle", {"folds": 2}, []),
        (
            "python /x/bin/weasel run --force needle . --vars.gpu_id -1 --dry",
            "needle",
            {"gpu_id": -1},
            ["--force", "--dry"],
        ),
        ("python -m spacy project run needle . --vars.seeds 1", "needle", {"seeds": 1}, []),
        ("python -m pytest tests", None, None, None),
        ("python -m weasel document", None, None, None),
    ],
)
def test_the_command_line_of_weasel_is_read(line, workflow, given, flags):
    run = variables.find_run(line.split())
    assert run == (None if workflow is None else (workflow, given, flags))


def problems(workflow, given, text=""):
    scripts = variables.commands_of(PROJECT, workflow)
    used = {name for script in scripts.values() for name in variables.VARIABLE.findall(script)}
    found = variables.check_names(variables.Run(workflow, given, []), PROJECT, used)
    return found + variables.check_settings({**PROJECT["vars"], "set": text, **given}, workflow, scripts)


@pytest.mark.parametrize("workflow", PROJECT["workflows"])
def test_every_workflow_takes_what_it_uses(workflow):
    assert PROJECT["workflows"][workflow][0] == "vars"
    assert not problems(workflow, {"run": "mine", "seed": 1, "seeds": "0 1", "gold": "x.jsonl"})


@pytest.mark.parametrize(
    "workflow, name, hint",
    [("needle", "folder", "folds"), ("joint", "encoder", ""), ("joint", "folds", ""), ("roster", "rule", "")],
)
def test_misspelled_and_unused_variables_are_refused(workflow, name, hint):
    (found,) = problems(workflow, {name: 3})
    assert repr(name) in found and hint in found


@pytest.mark.parametrize(
    "workflow, text, refused, given",
    [
        ("needle", "", "", {}),
        ("needle", "needle.*:training.dropout=0.3 crf_ner:training.dropout=0.2", "", {}),
        ("joint", "joint.joint:components.sentence_category.loss_weight=2", "", {}),
        ("papers", "joint.joint:training.dropout=0.1 span_ner.*:training.dropout=0.1", "", {}),
        ("needle", "joint.joint:training.dropout=0.3", "joint.joint", {}),
        # The commands of the workflow set it.
        ("needle", "crf_ner:training.max_steps=5", "max_steps", {}),
        ("cofee", "cofee.labels:training.max_steps=5", "cofee_steps", {}),
        ("negative-sampling", "span_ner:training.patience=5", "patience", {}),
        ("stage-one-transformer", "crf_ner:training.dropout=0.3", "none", {}),
        # Only recipes that the workflow does not use have it.
        ("needle", "*:components.span_ner.sampler.ratio=0.2", "ratio", {}),
        ("needle", "crf_ner:training.dropot=0.2", "training.dropout", {}),
        ("needle", "crf_ner:training.dropout='0.2", "quot", {}),
        ("negative-sampling", "*:components.span_ner.sampler.ratio=0.2", "", {}),
        ("roster", "token_ner:training.max_steps=5", "", {}),
        ("roster", "token_ner:training.max_steps=5", "passes", {"passes": 3}),
    ],
)
def test_settings_are_those_of_recipes_of_the_workflow(workflow, text, refused, given):
    found = problems(workflow, given, text)
    assert bool(found) == bool(refused) and all(refused in problem for problem in found)


@pytest.fixture
def project(tmp_path):
    for name in ("scripts", "assets"):
        shutil.copytree(ROOT / name, tmp_path / name)
    text = (ROOT / "project.yml").read_text(encoding="utf-8")
    # Workflows that only check their variables.
    text = text.replace("  needle: [vars, code,", "  needle: [vars]\n  rest: [vars, code,")
    (tmp_path / "project.yml").write_text(text, encoding="utf-8")
    return tmp_path


def weasel(project, *words):
    program = [sys.executable, "-m", "weasel", "run", *words]
    return subprocess.run(program, cwd=project, capture_output=True, text=True)


def records(project):
    return {path.parent.name: json.loads(path.read_text()) for path in project.glob("training/*/variables.json")}


@pytest.mark.slow
def test_seeds_are_runs_of_their_own(project):
    # `needle` has only the command `vars` here, so that it uses no other variable.
    done = weasel(project, "needle", ".", "--vars.seeds", "0 1 2", "--vars.run", "mine")
    assert done.returncode == 0, done.stdout + done.stderr
    assert records(project) == {
        "mine": {"workflow": "needle", "variables": {"seed": 0, "set": ""}, "changed": []},
        **{
            f"mine-seed{n}": {"workflow": "needle", "variables": {"seed": n, "set": ""}, "changed": ["seed"]}
            for n in (1, 2)
        },
    }
    wrong = weasel(project, "needle", ".", "--vars.seeds", "3 4")
    assert wrong.returncode == 1 and "--vars.seed 3" in wrong.stderr
    wrong = weasel(project, "joint", ".", "--vars.encoder", "gpu")
    assert wrong.returncode == 1 and "'encoder'" in wrong.stderr


# Stands for trainings and their evaluation.
SCORED = """
import json, sys
from pathlib import Path
import spacy
from spacy_weakner.runs.provenance import with_provenance
training, output, folds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
spacy.blank("en").to_disk(training / "model-best")
counts = {"tp": folds, "fp": 1, "fn": 1}
scores = {"p": 50.0, "r": 50.0, "f1": 50.0, **counts, "sentences": f"{folds} 1 0;0 0 1"}
rows = [{"name": "A", **scores}, {"name": "B", **scores}]
written = with_provenance(
    rows, dict.fromkeys("AB", training / "model-best"), test=Path("project.yml"), variables=training / "variables.json"
)
output.parent.mkdir(exist_ok=True)
output.write_text(json.dumps(written))
"""


@pytest.mark.slow
def test_from_seeds_to_the_table(project, monkeypatch):
    path = project / "project.yml"
    text = path.read_text(encoding="utf-8").replace("  rest:", "  scored: [vars, score]\n  rest:")
    script = 'script: ["python scored.py ${vars.t} ${vars.m}-scored.json ${vars.folds}"]'
    path.write_text(f"{text}  - name: score\n    {script}\n", encoding="utf-8")
    (project / "scored.py").write_text(SCORED)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for words in (("mine", "--vars.seeds", "0 1"), ("mine-folds", "--vars.folds", "9")):
        done = weasel(project, "scored", ".", "--vars.run", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    table = score_table(sorted(project.glob("metrics/mine*-scored.json")), baseline="A")
    rows = [(row[:3], row[-2][:4]) for row in table.rows]
    assert table.header[:3] == ["System", "folds", "runs"] and "A [folds=3]," in table.note
    assert sorted(rows) == [
        (["A", "3", "2"], "-"),
        (["A", "9", "1"], "+15."),
        (["B", "3", "2"], "+0.0"),
        (["B", "9", "1"], "+15."),
    ]


def run_script(project, monkeypatch, words):
    monkeypatch.chdir(project)
    monkeypatch.setattr(variables, "parent_words", lambda: words.split())
    values = {"run": "demo", "seed": "0", "seeds": "", "set": ""}
    variables.main(project / "training" / "demo" / "variables.json", values)
    return records(project)["demo"]


def test_all_values_are_recorded(project, monkeypatch, capsys):
    words = "weasel run rest . --vars.cap 0.9 --vars.processes 1"
    made = run_script(project, monkeypatch, words)
    assert made["changed"] == ["cap"] and made["variables"]["cap"] == 0.9 and made["variables"]["folds"] == 3
    assert not {"run", "processes", "c", "steps", "members"} & {*made["variables"]}
    path = project / "project.yml"
    path.write_text(path.read_text(encoding="utf-8").replace("folds: 3", "folds: 5"), encoding="utf-8")
    assert run_script(project, monkeypatch, words)["variables"]["folds"] == 5
    assert "cap = 0.9" in capsys.readouterr().out


def test_an_unknown_command_line_is_said(project, monkeypatch, capsys):
    made = run_script(project, monkeypatch, "")
    assert made["variables"] is None and "neither checked nor recorded" in capsys.readouterr().out


def test_flags_are_handed_on_to_other_seeds(monkeypatch):
    seen = []
    monkeypatch.setattr(
        subprocess, "run", lambda words, **_: seen.append(words) or subprocess.CompletedProcess(words, 0)
    )
    variables.run_seeds(variables.Run("needle", {"seeds": "0 1"}, ["--force"]), ["1"], "mine")
    assert "--force" in seen[0] and "mine-seed1" in seen[0]

"""scripts/variables.py: variables of workflows are checked and recorded, and runs are repeated with other seeds."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly

ROOT = Path(__file__).parent.parent
SPEC = importlib.util.spec_from_file_location("variables", ROOT / "scripts" / "variables.py")
variables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(variables)
PROJECT = srsly.read_yaml(ROOT / "project.yml")


@pytest.mark.parametrize(
    "line, workflow, given",
    [
        ("python -m weasel run needle . --vars.folds 2 --vars.run mine", "needle", {"folds": 2, "run": "mine"}),
        ("python /x/bin/weasel run needle", "needle", {}),
        ("python /x/bin/weasel run needle --vars.folds=2", "needle", {"folds": 2}),
        ("python /x/bin/weasel run --force needle . --vars.gpu_id -1 --dry", "needle", {"gpu_id": -1}),
        ("python -m spacy project run needle . --vars.seeds 1", "needle", {"seeds": 1}),
        ("python -m pytest tests", None, None),
        ("python -m weasel document", None, None),
    ],
)
def test_the_command_line_of_weasel_is_read(line, workflow, given):
    run = variables.find_run(line.split())
    assert run == (None if workflow is None else (workflow, given))


def problems(workflow, given, text=""):
    scripts = variables.scripts_of(PROJECT, workflow)
    used = {name for script in scripts.values() for name in variables._VARIABLE.findall(script)}
    found = variables.check_names(variables.Run(workflow, given), PROJECT, used)
    return found + variables.check_settings(text, workflow, scripts)


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
    "workflow, text, refused",
    [
        ("needle", "", ""),
        ("needle", "needle.*:training.dropout=0.3 crf_ner:training.dropout=0.2", ""),
        ("joint", "joint.joint:components.sentence_category.loss_weight=2", ""),
        ("papers", "joint.joint:training.dropout=0.1 span_ner.*:training.dropout=0.1", ""),
        ("needle", "joint.joint:training.dropout=0.3", "joint.joint"),
        # The commands of the workflow set it.
        ("needle", "crf_ner:training.max_steps=5", "max_steps"),
        ("cofee", "cofee.labels:training.max_steps=5", "cofee_steps"),
        ("negative-sampling", "span_ner:training.patience=5", "patience"),
        ("stage-one-transformer", "crf_ner:training.dropout=0.3", "none"),
    ],
)
def test_settings_are_those_of_recipes_of_the_workflow(workflow, text, refused):
    found = problems(workflow, {}, text)
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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs the command line of the parent process")
def test_seeds_are_runs_of_their_own(project):
    # `needle` has only the command `vars` here, so that it uses no other variable.
    done = weasel(project, "needle", ".", "--vars.seeds", "0 1 2", "--vars.run", "mine")
    assert done.returncode == 0, done.stdout + done.stderr
    records = {path.parent.name: json.loads(path.read_text()) for path in project.glob("training/*/variables.json")}
    assert records == {
        "mine": {"workflow": "needle", "variables": {}},
        **{f"mine-seed{n}": {"workflow": "needle", "variables": {"seed": n}} for n in (1, 2)},
    }
    wrong = weasel(project, "needle", ".", "--vars.seeds", "3 4")
    assert wrong.returncode == 1 and "--vars.seed 3" in wrong.stderr
    wrong = weasel(project, "joint", ".", "--vars.encoder", "gpu")
    assert wrong.returncode == 1 and "'encoder'" in wrong.stderr

"""Variables of a generated project: those that no command uses are refused."""

import re
import subprocess
import sys

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.project.new import init_project
from spacy_weakner.project.variables import check_variables


@pytest.fixture
def project(tmp_path):
    (tmp_path / "text.txt").write_text("Anna is here.\n")
    (tmp_path / "terms.csv").write_text("label,term\nPER,Anna\n")
    return init_project(tmp_path / "p", text=tmp_path / "text.txt", terms=tmp_path / "terms.csv").folder


def add(project, line):
    path = project / "project.yml"
    path.write_text(path.read_text(encoding="utf-8").replace("\nvars:\n", f"\nvars:\n  {line}\n", 1), encoding="utf-8")


@pytest.mark.parametrize(
    "line, message",
    [
        ('gold: "../gold.jsonl"', r"made without 'gold'"),
        ('terms: "../terms.csv"', r"'terms'.*sources\.cfg"),
        ("prefr: speed", r"'prefr'.*Did you mean: prefer"),
        ("precision: 0.9", "made without 'precision'"),
    ],
)
def test_variables_that_nothing_uses(project, line, message):
    check_variables(project)
    add(project, line)
    with pytest.raises(WeaknerError, match=rf"WK696.*{message}"):
        check_variables(project)


@pytest.mark.parametrize("name, value", [("name", "my-drugs"), ("version", "new"), ("text", "null"), ("text", '""')])
def test_values_that_only_the_last_command_would_refuse(project, name, value):
    path = project / "project.yml"
    path.write_text(
        re.sub(rf"\n  {name}: .*", f"\n  {name}: {value}", path.read_text(encoding="utf-8")), encoding="utf-8"
    )
    with pytest.raises(WeaknerError, match=rf"WK005.*{name}"):
        check_variables(project)


def test_variables_of_assets_and_of_the_environment(project, monkeypatch):
    add(project, "mirror: x")
    with (project / "project.yml").open("a", encoding="utf-8") as file_:
        file_.write('\nassets:\n  - dest: a\n    url: "${vars.mirror}/a"\n')
    check_variables(project)
    monkeypatch.setenv("WEASEL_CONFIG_OVERRIDES", "--vars.prefr speed")
    with pytest.raises(WeaknerError, match=r"WK696.*'prefr'"):
        check_variables(project)


@pytest.mark.slow
@pytest.mark.parametrize("given, code", [("prefr", 1), ("prefer", 0)])
def test_the_command_line_of_weasel(project, given, code):
    command = [sys.executable, "-m", "weasel", "run", "check", str(project), f"--vars.{given}", "speed"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code and ("prefr" in done.stderr + done.stdout) is bool(code)

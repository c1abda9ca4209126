"""project.yml, configs, README and the entry points fit together."""

import re
import shlex
import subprocess
import sys
from configparser import ConfigParser
from functools import cache
from pathlib import Path

import pytest
import srsly
from spacy import util
from typer.main import get_command
from typer.testing import CliRunner
from weasel.util import load_project_config

from spacy_weakner.about import __version__
from spacy_weakner.cli.app import app

ROOT = Path(__file__).parent.parent
PROJECT = load_project_config(ROOT)
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
CONFIGS = sorted((ROOT / "configs").rglob("*.cfg"))


def _options(words: list) -> set:
    """The options of the command of `python -m spacy_weakner` that a script runs; of other programs none."""
    if words[1:3] != ["-m", "spacy_weakner"]:
        return set()
    return _options_of(*words[3 : 3 + 1 + (words[3] in ("encoder", "init", "relabel"))])


@cache
def _options_of(*names: str) -> set:
    command = get_command(app)
    for name in names:
        command = command.get_command(None, name)
    return {opt for own in command.params for opt in own.opts}


def _paths(script: str) -> list:
    script = re.sub(r"--data '[^']*'", "", script)  # names what something was made from, and reads nothing
    found = re.findall(r"(?:assets|configs|corpus|training|metrics|scripts)/[^\s'\"]+", script)
    return [path.split("=")[-1] for path in found]


# These read nothing that an earlier command makes, or are run every time.
ALWAYS = {name for name in COMMANDS if name.startswith("check")} | {"vars"}


def test_every_path_of_a_script_is_a_dep_or_an_output():
    for name, command in COMMANDS.items():
        if name in ALWAYS:
            continue
        listed = [*command.get("deps", []), *command.get("outputs", [])]
        paths = [path for script in command["script"] for path in _paths(script)]
        arguments = [path for script in command["script"] for path in _paths(script.split(" --")[0])]
        for path in paths:
            known = any(path == dep or dep.startswith(path + "/") or path.startswith(dep + "/") for dep in listed)
            # A script may read what an earlier one of the same command has written. Where a source has no answers
            # there are no weak labels of test.
            inside = (
                arguments.count(path) > 1 or "again" in path or "target" in path or path.endswith("/test-weak.spacy")
            )
            assert known or inside, f"{name}: {path}"


def test_commands_have_what_weasel_needs():
    assert {name for names in PROJECT["workflows"].values() for name in names} == set(COMMANDS)
    for name, command in COMMANDS.items():
        assert command["help"] and command["script"], name
        assert command.get("outputs") or command.get("no_skip"), name
        listed = [*command.get("deps", []), *command.get("outputs", [])]
        assert not any("${" in str(value) for value in command.values()), name
        assert not any(", " in path for path in listed), name
        assert all(not set("|&;>") & set(script) for script in command["script"]), f"{name}: no shell runs the scripts"
        # The code is one dependency.
        assert not any(path.startswith("spacy_weakner") for path in command.get("deps", [])), name
        uses = any("-m spacy" in script for script in command["script"])
        assert not uses or name in ("code", "check") or "corpus/code.txt" in command["deps"], name


@pytest.mark.parametrize("name", ["label", "label-test", "fit"])
def test_files_that_declared_sources_name_are_noticed(name):
    (stamp,) = COMMANDS["check"]["outputs"]
    assert f"--stamp {stamp}" in COMMANDS["check"]["script"][0] and stamp in COMMANDS[name]["deps"]


@pytest.mark.parametrize("workflow", PROJECT["workflows"])
def test_each_dep_is_made_before_it_is_needed(workflow):
    made = {PROJECT["vars"][key] for key in ("gold", "dev", "test", "text", "terms")} if workflow == "own" else set()
    for name in PROJECT["workflows"][workflow]:
        for dep in COMMANDS[name].get("deps", []):
            assert dep in made or (ROOT / dep).exists(), f"{name} needs {dep}"
        made.update(COMMANDS[name].get("outputs", []))


def test_own_workflow_refuses_values_of_the_demo():
    command = COMMANDS["check-vars"]["script"][0].replace("'", "").split()[2:]
    names = {"run", "gold", "dev", "test", "text", "terms"}
    program = [sys.executable, ROOT / "scripts/check_vars.py"]
    wrong = subprocess.run([*program, *command], capture_output=True, text=True)
    assert wrong.returncode == 1 and all(f"--vars.{name} " in wrong.stderr for name in names)
    own = [f"{name}=mine/{name}" for name in sorted(names)]
    assert subprocess.run([*program, *own], check=False).returncode == 0


@pytest.mark.parametrize(
    "run, gold, text, right",
    [
        ("demo", "corpus/raw/demo/gold.jsonl", "corpus/raw/demo/text.jsonl", True),
        ("mine", "corpus/raw/demo/gold.jsonl", "corpus/raw/demo/text.jsonl", True),
        ("mine", "gold.jsonl", "text.txt", True),
        # They would be trained into the folders of the demo.
        ("demo", "gold.jsonl", "text.txt", False),
        ("mine", "gold.jsonl", "corpus/raw/demo/text.jsonl", False),
    ],
)
def test_own_files_have_their_own_run(run, gold, text, right):
    program = [sys.executable, ROOT / "scripts/check_vars.py", "--demo-or-own"]
    done = subprocess.run([*program, f"run={run}", f"gold={gold}", f"text={text}"], capture_output=True, text=True)
    assert (done.returncode == 0) == right
    assert right or ("--vars.run" if run == "demo" else "--vars.text") in done.stderr


def test_whatever_can_use_a_gpu_is_told_which():
    project = load_project_config(ROOT, overrides={"vars.gpu_id": 7})
    scripts = [shlex.split(script) for command in project["commands"] for script in command["script"]]
    able = [words for words in scripts if words[2] == "spacy" or "--gpu-id" in _options(words)]
    assert len(able) > 20 and all(words[words.index("--gpu-id") + 1] == "7" for words in able)


@pytest.mark.parametrize("encoder, right", [("cnn", True), ("gpu", True), ("bilstm", False), ("linear", False)])
def test_systems_refuse_an_encoder_that_they_do_not_have(tmp_path, encoder, right):
    overrides = {"vars.encoder": encoder, "vars.t": tmp_path.as_posix()}
    commands = {each["name"]: each for each in load_project_config(ROOT, overrides=overrides)["commands"]}
    for name in ("recipes", "recipes-joint"):
        (script,) = commands[name]["script"]
        result = CliRunner().invoke(app, shlex.split(script)[3:])
        assert (result.exit_code == 0) == (right or name == "recipes-joint")
        trained = {path for each in commands.values() for script in each["script"] for path in _recipes(script, name)}
        assert trained and all((tmp_path / name / path).is_file() == (result.exit_code == 0) for path in trained)


def _recipes(script: str, folder: str) -> list:
    return re.findall(rf"/{folder}/(\S+\.cfg)", script)


@pytest.mark.parametrize("name", ["train-entities", "train-joint"])
def test_the_config_says_when_to_reduce_the_learning_rate(name):
    assert "eval_frequency" not in COMMANDS[name]["script"][0]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_configs_list_the_components_of_their_pipeline(path):
    config = util.load_config(path, interpolate=False)
    # Only where it was measured to help: the weights of Torch modules have no averages.
    has_sources = "source_features" in config["components"].get("crf_ner", {}).get("model", {})
    assert config["training"]["optimizer"]["use_averages"] is (has_sources or "span_ner" in config["components"])
    assert set(config["nlp"]["pipeline"]) == set(config["components"])


def test_the_same_version_and_pythons_are_named_everywhere():
    assert srsly.read_yaml(ROOT / "CITATION.cff")["version"] == __version__
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    found = re.findall(r"Python :: 3\.(\d+)$", setup["metadata"]["classifiers"], flags=re.M)
    first, last = int(found[0]), int(found[-1])
    assert setup["options"]["python_requires"] == f">=3.{first},<3.{last + 1}"
    for page in ("README.md", "docs/start/install.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.findall(r"Python (3\.\d+) to (3\.\d+)", text) == [(f"3.{first}", f"3.{last}")], page


def test_options_of_commands_exist():
    for command in COMMANDS.values():
        for words in map(shlex.split, command["script"]):
            if words[:3] != ["python", "-m", "spacy_weakner"] or words[3] == "train":
                continue
            given = {word for word in words if re.match(r"--[a-z]", word)}
            assert given <= _options(words), (command["name"], given - _options(words))

"""Shell blocks: commands are run, in this process where that is the same thing, or they are only read."""

import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from configparser import ConfigParser
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set
from unittest.mock import patch

import srsly
import typer
from spacy.cli import app as spacy_app
from typer.main import get_command
from weasel.util import load_project_config

from spacy_weakner.cli import entry

from .blocks import ROOT

SPACY, WEAKNER = get_command(spacy_app), get_command(entry.app)
# Programs that are run as they are, and those that are only ever shown.
TOOLS = {"ls", "cat", "head", "mkdir", "cp", "mv", "rm", "echo", "wc", "tail", "gzip", "zcat"}
SHOWN = {"pip", "pytest", "ruff", "mypy", "git", "source", ".", "export", "curl", "docker", "sbatch", "srun", "uvicorn"}
SHOWN |= {"sphinx-build", "ray", "jupyter", "jupytext", "pre-commit", "set", "py", "sudo", "tar", "vllm", "gunicorn"}
SHOWN |= {"iconv", "module", "winget", "brew", "xcode-select", "wsl"}
# Modules that `python -m` runs.
_MODULES = ("venv", "pip", "build", "benchmarks", "spacy_weakner.code_version", "spacy_weakner.project.variables")


class Command(NamedTuple):
    """One command of a block."""

    words: List[str]
    output: Optional[str]  # the file that it writes to
    variables: Dict[str, str]  # of the environment, which stand before it


def parse(text: str) -> Iterator[Command]:
    """The commands of a shell block."""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;>")
        lexer.whitespace_split = True
        words: List[str] = []
        for word in [*lexer, "&&"]:
            if word not in ("&&", ";", "|", "&"):
                words.append(word)
                continue
            if words:
                yield _command(words)
            words = []


def _command(words: List[str]) -> Command:
    variables, output = {}, None
    while words and re.match(r"^[A-Z_]+=", words[0]):
        name, _, variables_value = words[0].partition("=")
        variables[name] = variables_value
        words = words[1:]
    for sign in (">", ">>"):
        if sign in words:
            at = words.index(sign)
            words, output = words[:at], words[at + 1]
    return Command(words, output, variables)


# Reading ------------------------------------------------------------------------------------------------------------


def check(command: Command) -> None:
    """Make sure that a command and its options exist."""
    words = command.words
    if not words:
        return  # variables alone
    # Not what a reader puts in: NAME, FOLDER, ...
    words = [word for word in words if word != "..."]
    name = Path(words[0]).name or words[0]
    if "-m" in words[:6] and words[words.index("-m") + 1] == "spacy_weakner":  # python, torchrun
        _check_click(WEAKNER, words[words.index("-m") + 2 :])
    elif name in ("python", "python3", "py") and words[1:3] == ["-m", "spacy"]:
        _check_click(SPACY, words[3:])
    elif name == "spacy":
        _check_click(SPACY, words[1:])
    elif name == "weasel":
        _check_weasel(words[1:])
    elif name in ("python", "python3", "py"):
        _check_python(words[1:])
    elif name == "pip":
        _check_pip(words)
    else:
        assert name in TOOLS | SHOWN | {"cd"}, f"unknown command: {' '.join(words)}"


def _check_click(command: Any, words: List[str]) -> None:
    words = list(words)
    ours = False
    while hasattr(command, "commands"):
        ours = ours or command.name == WEAKNER.name
        options = [word for word in words if word.startswith("-")]
        if ours and "--code" in words:  # also after the command
            del words[(at := words.index("--code")) : at + 2]
        if not words or words[0] == "--help":
            return
        assert words[0] in command.commands, f"no such command: {words[0]} {options}"
        command = command.commands[words.pop(0)]
    if "--help" in words:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            context = command.make_context(command.name, words)
        except typer.BadParameter as error:
            assert "does not exist" in error.format_message(), error.format_message()
            return  # what an earlier command would have made
    for word in context.args:
        if word.startswith("--"):
            section = word[2:].split(".")[0].split("=")[0]
            sections = {"paths", "system", "nlp", "components", "corpora", "training", "initialize", "pretraining"}
            assert section in sections, f"unknown option: {word}"


def _check_weasel(words: List[str]) -> None:
    assert words[0] in ("run", "document", "assets"), words
    project = load_project_config(ROOT, interpolate=False)
    template = (ROOT / "spacy_weakner/project/templates/project.yml.jinja").read_text(encoding="utf-8")
    if words[0] == "run":
        names = {*project["workflows"], *(each["name"] for each in project["commands"])}
        assert words[1] in names or words[1] == "SYSTEM", f"no such workflow: {words[1]}"
    for word in words[1:]:
        if word.startswith("--") and word not in ("--force", "--dry"):
            name = word.removeprefix("--vars.").split("=")[0]
            known = name in project["vars"] or re.search(rf"^  {name}:", template, flags=re.M)
            assert known or name in ("gold", "dev", "test", "text"), f"no such variable: {word}"


def _check_python(words: List[str]) -> None:
    if words[0] in ("-m", "-c", "-W"):
        assert words[0] != "-m" or words[1] in _MODULES, words
        return
    script = ROOT / words[0]
    if not words[0].startswith(("benchmarks/", "scripts/", "assets/", "docs/")):
        return  # a script of the reader's
    assert script.exists(), f"no such script: {words[0]}"
    texts = [script, *sorted((ROOT / "benchmarks").glob("*.py"))] if "benchmarks/" in words[0] else [script]
    source = "".join(path.read_text(encoding="utf-8") for path in texts)
    for word in words[1:]:
        if word.startswith("--"):
            assert f'"{word.split("=")[0]}"' in source or word == "--help", f"{words[0]} has no option {word}"


def _check_pip(words: List[str]) -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    known: Set[str] = set(setup["options.extras_require"])
    for word in words:
        if (found := re.search(r"\[([\w,]+)\]", word)) and ("spacy_weakner" in word or word.startswith(".")):
            assert set(found[1].split(",")) <= known, f"unknown extra: {word}"
        if word.endswith(".txt"):
            assert (ROOT / word).exists(), word


# Running ------------------------------------------------------------------------------------------------------------


def run(command: Command, add: str = "", expected: int = 0) -> str:
    """Run a command in the working folder, with options for trainings and workflows; it ends with the expected code."""
    words = command.words
    check(command)
    if not words:
        os.environ.update(command.variables)
        return ""
    name = words[0]
    trains = words[:2] in (["spacy", "train"], ["spacy", "pretrain"], ["weasel", "run"])
    trains = trains or (words[:2] == ["spacy", "weakner"] and words[2] in ("train", "encoder"))
    if trains and add and "--passes" not in words:
        words = [*words, *(["."] if words[0] == "weasel" and len(words) == 3 else []), *shlex.split(add)]
    with patch.dict(os.environ, command.variables):
        if name == "cd":
            os.chdir(words[1])
            return ""
        if name in ("python", "python3") and words[1:3] == ["-m", "spacy_weakner"]:
            printed = _invoke(WEAKNER, words[3:], expected)
        elif name in ("python", "python3") and words[1:3] == ["-m", "spacy"]:
            printed = _invoke(SPACY, words[3:], expected)
        elif name == "spacy":
            printed = _invoke(SPACY, words[1:], expected)
        elif name == "weasel":
            printed = _weasel(words[1:])
        else:
            assert name in TOOLS or name.startswith("python"), f"{' '.join(words)} is not run: say what it needs"
            line = [sys.executable if name in ("python", "python3") else name, *words[1:]]
            done = subprocess.run(line, capture_output=True, text=True, timeout=120)
            assert done.returncode == expected, done.stdout + done.stderr
            printed = done.stdout
    if command.output is not None:
        Path(command.output).write_text(printed, encoding="utf-8")
        return ""
    return printed


def _invoke(program: Any, words: List[str], expected: int) -> str:
    printed = io.StringIO()
    code: Any = 0
    with redirect_stdout(printed), redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = program(list(words), standalone_mode=False) or 0
        except SystemExit as error:
            code = error.code or 0
    code = code if isinstance(code, int) else 0
    assert code == expected, f"{' '.join(words)} ended with {code}:\n{printed.getvalue()[-3000:]}"
    return printed.getvalue()


def _weasel(words: List[str]) -> str:
    """The commands of a workflow, in this process: each of their own would import everything anew."""
    assert words[0] == "run", words
    overrides: Dict[str, Any] = {}
    positional = []
    rest = iter(words[1:])
    for word in rest:
        if word.startswith("--"):
            overrides[word[2:]] = srsly.json_loads(value) if _is_json(value := next(rest)) else value
        else:
            positional.append(word)
    folder = Path(positional[1] if len(positional) > 1 else ".")
    project = load_project_config(folder, overrides=overrides)
    commands = {each["name"]: each for each in project["commands"]}
    printed, before = "", Path.cwd()
    os.chdir(folder)
    try:
        for name in project.get("workflows", {}).get(positional[0], [positional[0]]):
            for script in commands[name]["script"]:
                printed += run(_command(shlex.split(script)))
    finally:
        os.chdir(before)
    return printed


def _is_json(value: str) -> bool:
    try:
        srsly.json_loads(value)
    except ValueError:
        return False
    return True

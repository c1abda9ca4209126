"""The variables of a workflow. weasel ignores variables that it does not know, and passes none of them on that a
command does not name, so they are checked here: those of project.yml, and those on the command line of weasel, which
has started the command."""

import json
import os
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set

import psutil
import srsly
from packaging.version import InvalidVersion, Version
from weasel.util import parse_config_overrides

from ..errors import Errors, WeaknerError

VARIABLE = re.compile(r"\$\{vars\.(\w+)\}")
PREFIX = "vars."
# What names of packages consist of, for error messages.
IMPORTABLE = "letters from a to z, digits and underscores, beginning with a letter"
_FLAGS = ("--force", "-F", "--dry", "-D")
# What commands name only if the project was made with it, or with what it needs.
_FILES = ("text", "gold", "dev", "test")
_PARTS = (*_FILES, "transformer", "precision", "method", "columns", "spans_key")
_SOURCES = ("terms", "sources", "answers")


class Run(NamedTuple):
    """What weasel runs."""

    workflow: str
    given: Dict[str, Any]  # values of variables on the command line and in the environment
    flags: List[str]


def find_run(words: List[str]) -> Optional[Run]:
    """Parse the command line of `weasel run` or `spacy project run`; None for another one."""
    if not any(Path(word).stem == "weasel" or word == "project" for word in words) or "run" not in words:
        return None
    words = words[words.index("run") + 1 :]
    rest = [word for word in words if word not in _FLAGS]
    positional = [word for word in rest[:2] if not word.startswith("--")]
    if not positional:
        return None
    given = parse_config_overrides(rest[len(positional) :])
    return Run(positional[0], _variables(given), [word for word in words if word in _FLAGS])


def parent_words() -> List[str]:
    """Return the command line of the parent process; empty where the system does not tell it."""
    try:
        return list(psutil.Process(os.getppid()).cmdline())
    except psutil.Error:
        return []


def commands_of(project: Dict[str, Any], workflow: str) -> Dict[str, str]:
    """Return the commands of a workflow (or the one command of this name), with the variables that they consist of."""
    commands = {command["name"]: json.dumps(command) for command in project["commands"]}
    names = project["workflows"].get(workflow, [workflow])
    return {name: _resolved(commands[name], project["vars"]) for name in names}


def _resolved(text: str, values: Dict[str, Any]) -> str:
    """Add the values of composed variables: the names of the others are what is looked for."""
    for name in sorted(set(VARIABLE.findall(text))):
        if VARIABLE.search(str(values.get(name, ""))):
            text += f" {_resolved(str(values[name]), values)}"
    return text


def used_names(scripts: Iterable[str]) -> Set[str]:
    """Return the names of the variables in commands."""
    return {name for script in scripts for name in VARIABLE.findall(script)}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with similar names; "" if there are none."""
    near = get_close_matches(name, [*known], n=3, cutoff=0.5)
    return f" Did you mean: {', '.join(near)}?" if near else ""


def check_variables(folder: Path) -> None:
    """Check the variables of a project, in project.yml, on the command line and in the environment: each must be used.

    folder (Path): The folder of the project.
    RAISES (WeaknerError): If a variable is unknown or not used, the name or version of the package is invalid, or a
        path is missing.
    """
    project: Any = srsly.read_yaml(folder / "project.yml")
    run = find_run(parent_words())
    given = _variables(parse_config_overrides([])) if run is None else run.given
    rest = json.dumps({key: value for key, value in project.items() if key != "vars"})
    used = used_names([_resolved(rest, project["vars"])])
    values = {**project["vars"], **given}
    problems = [_unused(name, used) for name in values if name not in used]
    if problems:
        raise WeaknerError(Errors.WK696.format(path=folder / "project.yml", problems=" ".join(problems)))
    _check_values(values)


def _check_values(values: Dict[str, Any]) -> None:
    """Check the values that only the last command would, and paths without a value."""
    for name, check in (("name", check_name), ("version", parse_version)):
        if name in values:
            check(str(values[name]))
    for name in _FILES:
        if values.get(name, name) in (None, "", "null"):
            expected = f"a path (for a project without '{name}', make another, with 'spacy weakner init project')"
            raise WeaknerError(Errors.WK005.format(setting=f"vars.{name}", value=values[name], expected=expected))


def check_name(name: str) -> None:
    """Refuse a name that a package cannot have."""
    if not name.isidentifier() or not name.isascii():
        raise WeaknerError(Errors.WK005.format(setting="name", value=repr(name), expected=IMPORTABLE))


def parse_version(version: str) -> Version:
    """Return the version of a package; raise an error if it is none."""
    try:
        return Version(version)
    except InvalidVersion as error:
        expected = "a version like 0.1.0"
        raise WeaknerError(Errors.WK005.format(setting="version", value=repr(version), expected=expected)) from error


def _variables(given: Dict[str, Any]) -> Dict[str, Any]:
    return {key[len(PREFIX) :]: value for key, value in given.items() if key.startswith(PREFIX)}


def _unused(name: str, used: Set[str]) -> str:
    """Return why a variable is not used, and what to do."""
    if name in _SOURCES:
        return f"'{name}' is no variable: sources of labels are declared in sources.cfg."
    if name in _PARTS:
        return f"The project was made without '{name}': make another, with 'spacy weakner init project'."
    return f"Nothing uses '{name}'.{did_you_mean(name, used)}"


# Not a command: the imports that commands need take seconds.
if __name__ == "__main__":
    try:
        check_variables(Path())
    except (WeaknerError, OSError) as error:
        sys.exit(str(error))

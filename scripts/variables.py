"""Check and record the variables of a run, and run the workflow with further seeds.

weasel ignores variables that it does not know, and passes none of them on that a command does not name. So this script
reads the command line of weasel, which has started it.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Set

import srsly
from weasel.util import parse_config_overrides
from weasel.util.environment import ENV_VARS

_VARIABLE = re.compile(r"\$\{vars\.(\w+)\}")
_RECIPE = re.compile(r"/recipes(?:-joint)?/(\S+)\.cfg")
_PREFIX = "vars."
_FLAGS = ("--force", "-F", "--dry", "-D")
# They name and repeat a run, but do not change it.
_NOT_RECORDED = ("run", "seeds", "processes")
# What `train --passes` sets.
_OF_PASSES = ("training.max_steps", "training.max_epochs", "training.eval_frequency", "training.patience")


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
    variables = {key[len(_PREFIX) :]: value for key, value in given.items() if key.startswith(_PREFIX)}
    return Run(positional[0], variables, [word for word in words if word in _FLAGS])


def parent_words() -> List[str]:
    """Return the command line of the parent process; empty where it is unknown."""
    path = Path(f"/proc/{os.getppid()}/cmdline")
    if path.exists():
        return [word.decode(errors="replace") for word in path.read_bytes().split(b"\0")[:-1]]
    try:
        import psutil
    except ImportError:
        return []
    return list(psutil.Process(os.getppid()).cmdline())


def scripts_of(project: Dict[str, Any], workflow: str) -> Dict[str, str]:
    """Return the commands of a workflow (or the one command of this name), with the variables that they consist of."""
    values = project["vars"]

    def resolved(text: str) -> str:
        # Only composed variables: the names of the others are what is looked for.
        for name in sorted(set(_VARIABLE.findall(text))):
            if _VARIABLE.search(str(values.get(name, ""))):
                text += f" {resolved(str(values[name]))}"
        return text

    commands = {command["name"]: json.dumps(command) for command in project["commands"]}
    return {name: resolved(commands[name]) for name in project["workflows"].get(workflow, [workflow])}


def used_names(scripts: Dict[str, str]) -> Set[str]:
    """Return the names of the variables in commands."""
    return {name for script in scripts.values() for name in _VARIABLE.findall(script)}


def check_names(run: Run, project: Dict[str, Any], used: Set[str]) -> List[str]:
    """Find variables that do not exist, or that no command of the workflow uses."""
    found = []
    for name in run.given:
        if name not in project["vars"]:
            near = get_close_matches(name, project["vars"], n=3, cutoff=0.5)
            hint = f" Did you mean: {', '.join(near)}?" if near else ""
            found.append(f"project.yml has no variable '{name}'.{hint}")
        elif name not in used:
            found.append(f"The workflow '{run.workflow}' does not use '{name}': leave out --vars.{name}.")
    return found


def check_settings(values: Dict[str, Any], workflow: str, scripts: Dict[str, str]) -> List[str]:
    """Find values of `set` for recipes or settings that the workflow does not have, or that its commands set."""
    found = []
    recipes = {name: set(_RECIPE.findall(script)) for name, script in scripts.items()}
    every = sorted(set().union(*recipes.values()))
    try:
        items = shlex.split(str(values["set"]))
    except ValueError as error:
        return [f"set: {error} in: {values['set']}"]
    for item in items:
        pattern, _, setting = item.partition("=")[0].partition(":")
        named = {name: settings_of(name, values["encoder"]) for name in every if fnmatchcase(name, pattern)}
        able = {name for name, settings in named.items() if setting in settings}
        if not named:
            known = ", ".join(every) or "none"
            found.append(f"set: the workflow '{workflow}' has no recipe '{pattern}'. Its recipes: {known}.")
        elif not able:
            near = get_close_matches(setting, sorted(set().union(*named.values())), n=3, cutoff=0.5)
            hint = f" Did you mean: {', '.join(near)}?" if near else ""
            found.append(f"set: {', '.join(named)}: no setting '{setting}'.{hint}")
        for name in (name for name, some in recipes.items() if some & able):
            given = re.search(rf"--{re.escape(setting)} ([^\s\"]+)", scripts[name])
            if given is None and setting in _OF_PASSES:
                given = re.search(r"--passes \$\{vars\.(\w+)\}", scripts[name])
                given = given if given and values[given[1]] != "auto" else None
            if given:
                found.append(f"set: the command '{name}' overrides {setting} by {given[1]}. Leave out {item}.")
    return found


@cache
def settings_of(recipe: str, encoder: str) -> Set[str]:
    """Return the names of the settings of a recipe's config."""
    # Imported here, since it takes seconds and is rarely needed.
    from spacy_weakner.configs.compose import flatten, make_config
    from spacy_weakner.configs.recipes import find_recipe

    size = encoder if encoder in find_recipe(recipe).sizes else None
    return set(flatten(make_config(recipe, size)))


def run_seeds(run: Run, seeds: List[str], name: str) -> None:
    """Run the workflow with each of these seeds, as a run of its own."""
    for seed in seeds:
        given = {**run.given, "seeds": "", "seed": seed, "run": f"{name}-seed{seed}"}
        words = [sys.executable, "-m", "weasel", "run", run.workflow, ".", *run.flags]
        for key, value in given.items():
            words += [f"--{_PREFIX}{key}", value if isinstance(value, str) else json.dumps(value)]
        environment = {key: value for key, value in os.environ.items() if key != ENV_VARS.CONFIG_OVERRIDES}
        code = subprocess.run(words, check=False, env=environment).returncode
        if code:
            sys.exit(code)


def main(output: Path, values: Dict[str, str]) -> None:
    """Check, record and repeat a run, whose values are those of the variables run, seed, seeds and set."""
    project: Any = srsly.read_yaml("project.yml")
    run = find_run(parent_words())
    named = values["seeds"].split()
    others = [seed for seed in named if seed != values["seed"]]
    variables = None
    changed = []
    if run is not None:
        scripts = scripts_of(project, run.workflow)
        used = used_names(scripts)
        every = {**project["vars"], **run.given}
        problems = check_names(run, project, used) + check_settings(every, run.workflow, scripts)
        if named and len(others) == len(named):
            problems.append(f"'seeds' lacks the seed of this run, {values['seed']}: give also --vars.seed {named[0]}.")
        if problems:
            sys.exit("\n".join(problems))
        run_seeds(run, others, values["run"])
        # Variables that consist of others are not recorded either.
        recorded = sorted(name for name in used.difference(_NOT_RECORDED) if not _VARIABLE.search(str(every[name])))
        variables = {name: every[name] for name in recorded}
        changed = [name for name in recorded if every[name] != project["vars"][name]]
        shown = ", ".join(f"{name} = {every[name]}" for name in changed) or "as in project.yml"
        sys.stdout.write(f"Variables: {shown}\n")
    elif others:
        sys.exit("'seeds' needs the command line of weasel, which cannot be read here: pip install psutil.")
    else:
        sys.stdout.write(
            "Variables are neither checked nor recorded, since the command line of weasel cannot be read "
            "here: pip install psutil.\n"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, {"workflow": run and run.workflow, "variables": variables, "changed": changed})


if __name__ == "__main__":
    main(Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:]))  # type: ignore[arg-type]

"""Check and record the variables of a run, and run the workflow with further seeds.

See `spacy_weakner.project.variables`.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Dict, List, Set

import srsly
from weasel.util.environment import ENV_VARS

from spacy_weakner.project.variables import (
    PREFIX,
    VARIABLE,
    Run,
    commands_of,
    did_you_mean,
    find_run,
    parent_words,
    used_names,
)

_RECIPE = re.compile(r"/recipes(?:-joint)?/(\S+)\.cfg")
# They name and repeat a run, but do not change it.
_NOT_RECORDED = ("run", "seeds", "processes")
# What `train --passes` sets.
_OF_PASSES = ("training.max_steps", "training.max_epochs", "training.eval_frequency", "training.patience")


def check_names(run: Run, project: Dict[str, Any], used: Set[str]) -> List[str]:
    """Find variables that do not exist, or that no command of the workflow uses."""
    found = []
    for name in run.given:
        if name not in project["vars"]:
            found.append(f"project.yml has no variable '{name}'.{did_you_mean(name, project['vars'])}")
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
            hint = did_you_mean(setting, sorted(set().union(*named.values())))
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
            words += [f"--{PREFIX}{key}", value if isinstance(value, str) else json.dumps(value)]
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
        scripts = commands_of(project, run.workflow)
        used = used_names(scripts.values())
        every = {**project["vars"], **run.given}
        problems = check_names(run, project, used) + check_settings(every, run.workflow, scripts)
        if named and len(others) == len(named):
            problems.append(f"'seeds' lacks the seed of this run, {values['seed']}: give also --vars.seed {named[0]}.")
        if problems:
            sys.exit("\n".join(problems))
        run_seeds(run, others, values["run"])
        # Variables that consist of others are not recorded either.
        recorded = sorted(name for name in used.difference(_NOT_RECORDED) if not VARIABLE.search(str(every[name])))
        variables = {name: every[name] for name in recorded}
        changed = [name for name in recorded if every[name] != project["vars"][name]]
        shown = ", ".join(f"{name} = {every[name]}" for name in changed) or "as in project.yml"
        sys.stdout.write(f"Variables: {shown}\n")
    elif others:
        sys.exit("'seeds' needs the command line of weasel, which cannot be read here.")
    else:
        sys.stdout.write(
            "Variables are neither checked nor recorded, since the command line of weasel cannot be read here.\n"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, {"workflow": run and run.workflow, "variables": variables, "changed": changed})


if __name__ == "__main__":
    main(Path(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:]))

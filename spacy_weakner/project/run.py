"""Runs a project from Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Union

import srsly
from spacy.language import Language

from ..errors import Errors, WeaknerError, check_choice
from ..files import existing
from ..pipelines import add_sentences, load_pipeline
from .selection import SELECTION, Selection


def run_project(folder: Union[Path, str], **variables: Any) -> Language:
    """Run a project, as `weasel run all` does: commands whose inputs have not changed are skipped.

    folder (Union[Path, str]): The folder, made by `init_project`.
    **variables (Any): Values of its variables, such as `prefer="speed"`, instead of those in its `project.yml`.
    RETURNS (Language): The pipeline that was packaged.
    RAISES (WeaknerError): If there is no such project or variable, or a command fails; its message stands in the
        output.
    """
    folder = Path(folder)
    known = srsly.read_yaml(existing(folder / "project.yml", "or make the project with 'init_project'"))["vars"]
    command = [sys.executable, "-m", "weasel", "run", "all", str(folder)]
    for name, value in variables.items():
        check_choice("variable", name, known)
        command += [f"--vars.{name}", json.dumps(value)]
    code = subprocess.run(command).returncode
    if code:
        raise WeaknerError(Errors.WK688.format(folder=folder, code=code))
    selection = Selection.load(folder / "training" / SELECTION)
    nlp = load_pipeline(Path(selection.selected.path))
    add_sentences(nlp, (), selection.sentences, selection.abbreviations)
    return nlp

"""Runs a project from Python."""

import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, Tuple, Union

import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import SUFFIX, write_docs
from ..errors import Errors, WeaknerError, check_choice
from ..files import existing, write_text
from ..pipelines import add_sentences, load_pipeline
from .new import ASSETS, init_project
from .selection import SELECTION, Selection


def fit_docs(
    folder: Union[Path, str],
    *,
    text: Iterable[Union[str, Doc]] = (),
    terms: Iterable[Tuple[str, str]] = (),
    gold: Iterable[Doc] = (),
    **settings: Any,
) -> Language:
    """Train a pipeline on data in memory: write them into the folder `assets` of a new project, and run the project.

    folder (Union[Path, str]): Folder of the project; it must be empty or not exist. `run_project` runs it again.
    text (Iterable[Union[str, Doc]]): Text without labels: strings, or Docs, which may have labels of weak sources (span
        groups `weak:<source>`).
    terms (Iterable[Tuple[str, str]]): Labels and terms.
    gold (Iterable[Doc]): Docs with complete annotations.
    **settings (Any): Other parameters of `init_project`. If `lang` is not given, it is the language of the Docs.
    RETURNS (Language): The pipeline that was packaged.
    RAISES (WeaknerError): As `init_project` and `run_project`.
    """
    folder = Path(folder)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise WeaknerError(Errors.WK300.format(path=folder))
    named = ({"label": label, "term": term} for label, term in terms)
    try:
        for name, items in {"text": text, "terms": named, "gold": gold}.items():
            settings = {**_write(folder / ASSETS / name, name, items), **settings}
        init_project(folder, **settings)
    except BaseException:  # so that the same call works once its data are corrected
        shutil.rmtree(folder / ASSETS, ignore_errors=True)
        raise
    return run_project(folder)


def _write(path: Path, name: str, items: Iterable[Any]) -> Dict[str, Any]:
    """Write data into a file, if there are any. Return its path, and the language of Docs, as parameters."""
    items = iter(items)
    for first in items:
        path.parent.mkdir(parents=True, exist_ok=True)
        items = chain([first], items)
        if isinstance(first, Doc):
            path = path.with_suffix(SUFFIX)
            write_docs(path, items)
            return {name: path, "lang": first.vocab.lang}
        path = path.with_suffix(".jsonl")
        rows = ({"text": item} if isinstance(item, str) else item for item in items)
        write_text(path, "".join(f"{srsly.json_dumps(row)}\n" for row in rows))
        return {name: path}
    return {}


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

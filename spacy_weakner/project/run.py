"""Runs a project from Python."""

import json
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Set, Tuple, Union

import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import SUFFIX, write_docs
from ..errors import Errors, WeaknerError, check_choice, one_line
from ..files import atomic_path, existing, is_text
from ..pipelines import add_sentences, load_pipeline
from .new import ASSETS, init_project, missing_folders, remove_empty
from .selection import SELECTION, Selection

# What `fit_docs` takes.
_EXPECTED = {
    "text": "strings or Docs, all of one kind; files are given to 'init_project'",
    "terms": "pairs of label and term; files are given to 'init_project'",
    "gold": "Docs; files are given to 'init_project'",
}


def fit_docs(
    folder: Union[Path, str],
    *,
    text: Iterable[Union[str, Doc]] = (),
    terms: Iterable[Tuple[str, str]] = (),
    gold: Iterable[Doc] = (),
    **settings: Any,
) -> Language:
    """Train a pipeline on data in memory: write them into the folder `assets` of a new project, and run the project. If
    a command fails, the project stays: correct the data there and call `run_project`, or remove the folder.

    folder (Union[Path, str]): Folder of the project; it must be empty or not exist.
    text (Iterable[Union[str, Doc]]): Text without labels. Strings are split into sentences, Docs are taken as they are;
        these may have labels of weak sources (span groups `weak:<source>`).
    terms (Iterable[Tuple[str, str]]): Labels and terms.
    gold (Iterable[Doc]): Sentences with complete annotations: those without entities need `doc.ents = []`.
    **settings (Any): Other parameters of `init_project`, such as files for `dev` and `test`. Without `lang`, the
        language is that of the Docs; if they have another tokenizer than it, `tokenizer` is needed.
    RETURNS (Language): The pipeline that was packaged.
    RAISES (WeaknerError): If the folder is not empty, data are of a wrong type, or Docs have several languages; and as
        `init_project`, after which nothing is left, and `run_project`.
    """
    folder = Path(folder)
    new = missing_folders(folder / ASSETS)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise WeaknerError(Errors.WK300.format(path=folder))
    try:
        langs: Set[str] = set()
        for name, items in {"text": text, "terms": terms, "gold": gold}.items():
            stored = _store(name, items, folder / ASSETS, langs)
            settings.update({} if stored is None else {name: stored})
        if len(langs) > 1:
            expected = "the same language for all Docs"
            raise WeaknerError(Errors.WK005.format(setting="lang", value=", ".join(sorted(langs)), expected=expected))
        if settings.get("lang") is None and langs:
            settings["lang"] = langs.pop()
        init_project(folder, **settings)
    except BaseException:
        shutil.rmtree(folder / ASSETS, ignore_errors=True)
        remove_empty(new)
        raise
    return run_project(folder)


def _store(name: str, items: Iterable[Any], folder: Path, langs: Set[str]) -> Optional[Path]:
    """Write data into a file, if there are any; add the languages of Docs to `langs`."""
    rows = _rows(name, items, langs)
    first = next(rows, None)
    if first is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    rows = chain([first], rows)
    if isinstance(first, Doc):
        path = folder / f"{name}{SUFFIX}"
        write_docs(path, rows)
    else:
        path = folder / f"{name}.jsonl"
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file_:
            file_.writelines(f"{srsly.json_dumps(row)}\n" for row in rows)
    return path


def _rows(name: str, items: Iterable[Any], langs: Set[str]) -> Iterator[Any]:
    """Yield Docs as they are, and strings and terms as rows of JSONL; all must be of one kind."""
    if isinstance(items, (str, Path, Mapping, Doc)):
        raise _invalid(name, items)
    kinds = set()
    for item in items:
        row = _row(name, item)
        kinds.add(type(row))
        if row is None or len(kinds) > 1:
            raise _invalid(name, item)
        if isinstance(row, Doc) and row.vocab.lang:
            langs.add(row.vocab.lang)
        yield row


def _row(name: str, item: Any) -> Union[Doc, Dict[str, str], None]:
    """Return what is written of an item; None if it is of a wrong type."""
    if isinstance(item, Doc) and name != "terms":
        return item
    if name == "text" and is_text(item):
        return {"text": item}
    if name == "terms" and isinstance(item, (tuple, list)) and len(item) == 2 and all(map(is_text, item)):
        return dict(zip(("label", "term"), item, strict=True))
    return None


def _invalid(name: str, value: Any) -> WeaknerError:
    return WeaknerError(Errors.WK005.format(setting=name, value=one_line(repr(value), 60), expected=_EXPECTED[name]))


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

"""Packages a pipeline as a wheel that `pip install` takes, with what is known about it inside."""

import os
import shlex
import shutil
import subprocess
import tempfile
from keyword import iskeyword
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

import spacy
import srsly
from packaging.version import InvalidVersion, Version
from spacy.cli.package import package as spacy_package

from ..about import __title__, __version__
from ..errors import Errors, WeaknerError
from ..files import atomic_path, existing, write_text
from ..pipelines import add_sentences, load_pipeline
from ..runtime.lock import holding
from .verdict import Verdict, interval_text, scores_text

Scores = Dict[str, Any]


class Package(NamedTuple):
    """What was packaged.

    name (str): Name to give to `spacy.load`.
    wheel (Path): The file to install.
    """

    name: str
    wheel: Path


@holding("output")
def package(
    verdict: Verdict,
    output: Path,
    *,
    name: str,
    version: str = "0.1.0",
    test: Optional[Dict[str, Dict[str, Any]]] = None,
    data: Optional[Dict[str, str]] = None,
) -> Package:
    """Package the winner of a verdict.

    verdict (Verdict): The verdict.
    output (Path): Folder for the package; one of the same name and version is replaced.
    name (str): Name of the package, without the language: letters, digits and underscores.
    version (str): Its version.
    test (Optional[Dict[str, Dict[str, Any]]]): Scores on test by candidate, see `Comparison.to_json`.
    data (Optional[Dict[str, str]]): What it was made from, by what it is.
    RETURNS (Package): What was packaged.
    RAISES (WeaknerError): For a name that cannot be imported, or if the pipeline is gone.
    """
    if not name.isidentifier() or not name.isascii() or iskeyword(name):
        raise WeaknerError(Errors.WK686.format(name=name))
    try:
        version = str(Version(version))
    except InvalidVersion as error:
        expected = "a version like 0.1.0"
        raise WeaknerError(Errors.WK005.format(setting="version", value=repr(version), expected=expected)) from error
    pipeline = existing(Path(verdict.best.path), "'spacy weakner fit' makes it")
    output = Path(output)
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        nlp = load_pipeline(pipeline)
        add_sentences(nlp)
        nlp.to_disk(model)
        meta = _describe(srsly.read_json(model / "meta.json"), verdict, name, version, test or {}, data or {})
        srsly.write_json(model / "meta.json", meta)
        full = f"{meta['lang']}_{name}"
        write_text(model / "README.md", _readme(full, meta, verdict, test or {}, data or {}))
        built = Path(scratch) / "built"
        built.mkdir()
        spacy_package(model, built, create_sdist=False, create_wheel=False, force=True, silent=True)
        folder = f"{full}-{version}"
        wheel = _build_wheel(built / folder)
        # What pip takes comes last: an interrupted packaging leaves no half of a package.
        with atomic_path(output / folder) as temporary:
            shutil.copytree(built / folder, temporary, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    return Package(full, output / folder / "dist" / wheel)


def _describe(
    meta: Dict[str, Any], verdict: Verdict, name: str, version: str, test: Dict[str, Scores], data: Dict[str, str]
) -> Dict[str, Any]:
    """The pipeline's meta.json: what it was made from, and how good it is."""
    best = verdict.best
    about = {
        "candidate": best.name,
        "chosen_by": verdict.chosen_by,
        "scores": best.scores,
        "test": test.get(best.name),
        "data": data,
        "facts": verdict.facts._asdict(),
        "settings": verdict.settings._asdict(),
        "code": verdict.code,
        "versions": {"spacy": spacy.__version__, __title__: __version__},
    }
    return {
        **meta,
        "name": name,
        "version": version,
        "description": f"Named entities; '{best.name}' of {__title__}, {_one_line(best.scores, test.get(best.name))}.",
        "notes": " ".join(verdict.lines()),
        __title__: about,
    }


def _one_line(scores: Optional[Scores], test: Optional[Scores]) -> str:
    if test is not None:
        return f"on test {scores_text(test)}"
    return "never compared: there was no gold" if scores is None else f"{scores_text(scores)} where it was chosen"


def _readme(full: str, meta: Dict[str, Any], verdict: Verdict, test: Dict[str, Scores], data: Dict[str, str]) -> str:
    labels = sorted({label for labels in (meta.get("labels") or {}).values() for label in labels})
    lines = [f"# {full}", "", meta["description"], "", "```python", "import spacy", f'nlp = spacy.load("{full}")']
    lines += ['doc = nlp("...")', "print([(ent.text, ent.label_, ent._.weakner_score) for ent in doc.ents])", "```", ""]
    known = "`weakner_score` is the probability that the entity is right, or None where it is not known."
    ece = (test.get(verdict.best.name) or {}).get("ece")
    lines += [known if ece is None else f"{known} On test it is wrong by {ece:.2f} on average (calibration error).", ""]
    lines += [
        f"Labels: {', '.join(labels)}",
        "",
        "## How it was chosen",
        "",
        *(f"- {line}" for line in verdict.lines()),
    ]
    if test:
        lines += ["", "## On test, which nothing was chosen by", "", "| | P | R | F1 | 95 % |", "|---|---|---|---|---|"]
        lines += [_row(name, scores) for name, scores in test.items()]
    lines += ["", "## Made from", "", *(f"- {what}: `{path}`" for what, path in data.items())]
    lines += [f"- {note}" for note in verdict.notes]
    lines += [f"- spaCy {spacy.__version__}, {__title__} {verdict.code}"]
    if verdict.advice:
        lines += ["", "## What would help most next", "", *(f"- {text}" for text in verdict.advice)]
    return "\n".join(lines) + "\n"


def _row(name: str, scores: Scores) -> str:
    cells = [name.replace("|", "\\|"), *(f"{scores[key]:.1f}" for key in ("p", "r", "f1"))]
    cells.append(interval_text(scores) or "-")
    return f"| {' | '.join(cells)} |"


def _build_wheel(source: Path) -> str:
    # In this environment: an isolated one would fetch setuptools from the network.
    from build import BuildBackendException, ProjectBuilder

    try:
        return Path(ProjectBuilder(source, runner=_run).build("wheel", source / "dist")).name
    except (BuildBackendException, subprocess.CalledProcessError) as error:
        said = getattr(getattr(error, "exception", error), "stderr", None) or b""
        last = said.decode("utf-8", errors="replace").strip().rpartition("\n")[2]
        raise WeaknerError(Errors.WK687.format(reason=" ".join(f"{error} {last}".split()))) from error


def _run(cmd: Sequence[str], cwd: Optional[str] = None, extra_environ: Optional[Mapping[str, str]] = None) -> None:
    environment = {**os.environ, **(extra_environ or {})}
    subprocess.run(cmd, cwd=cwd, env=environment, check=True, capture_output=True)


def usage(package: Package, example: Optional[str] = None) -> List[str]:
    """How to use a package.

    package (Package): The package.
    example (Optional[str]): A text to try it on.
    RETURNS (List[str]): A command, and three lines of Python.
    """
    return [
        f"pip install --force-reinstall --no-deps {shlex.quote(str(package.wheel))}",
        "import spacy",
        f'nlp = spacy.load("{package.name}")',
        f"print([(ent.text, ent.label_) for ent in nlp({example or 'your text'!r}).ents])",
    ]

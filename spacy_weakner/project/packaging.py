"""Packages a pipeline as a wheel for `pip install`, with a description of how it was made and how good it is."""

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

import spacy
import srsly
from packaging.version import Version
from spacy.cli.package import package as spacy_package

from .._compat import unlisted_names
from ..about import __title__, __version__
from ..errors import Errors, WeaknerError, check_choice
from ..evaluation.compare import CandidateScores, ranked
from ..files import atomic_path, existing, write_text
from ..heads.factories import require_extras
from ..labeling.sources import read_sources
from ..own_code import own_code
from ..pipelines import RULE, add_sentences, load_pipeline
from ..runtime.hashes import hash_path, hash_settings
from ..runtime.lock import holding
from .layout import render_template
from .lists import LINKER
from .selection import ScoresByName, Selection
from .variables import check_name, parse_version


class Package(NamedTuple):
    """A built package."""

    name: str  # for `spacy.load`
    wheel: Path  # the file to install
    has_ids: bool = False  # True if its entities have ids of concepts
    version: str = ""


@holding("output")
def package(
    selected: Union[Selection, Path],
    output: Path,
    *,
    name: str,
    version: str = "0.1.0",
    sentences: Optional[str] = None,
    abbreviations: Optional[str] = None,
    test: Optional[ScoresByName] = None,
    data: Optional[Dict[str, str]] = None,
) -> Package:
    """Package the selected pipeline, or another one, as a wheel, with a description.

    selected (Union[Selection, Path]): The selection, or the folder of a pipeline.
    output (Path): Folder for the package, beside those of earlier versions.
    name (str): Name of the package, without the language: letters, digits and underscores.
    version (str): The lowest version of the package. If there is one with this version or a higher one that was made
        of another pipeline, the version is the next one.
    sentences (Optional[str]): How a pipeline without a component for that splits texts, as its corpora were split:
        rule, sentencizer, lines, none, or a pipeline with a senter; None: rule. That of a selection is known.
    abbreviations (Optional[str]): See `convert`.
    test (Optional[ScoresByName]): Scores on test by candidate; of a pipeline, named by its folder unless they are the
        only ones.
    data (Optional[Dict[str, str]]): Paths of the data that the pipeline was made from, by their role.
    RETURNS (Package): The package.
    RAISES (WeaknerError): If the name, version or another setting is invalid, the pipeline is missing, or the wheel
        cannot be built.
    """
    check_name(name)
    lowest = parse_version(version)
    output, test, data = Path(output), test or {}, data or {}
    if isinstance(selected, Selection):
        for setting, value in {"sentences": sentences, "abbreviations": abbreviations}.items():
            if value is not None:
                where = "with the folder of a pipeline"
                raise WeaknerError(Errors.WK331.format(setting=setting, where=where, instead=""))
        selection, best = selected, selected.best
        pipeline, contents = selected.selected_contents()
        splits = (selected.sentences, selected.abbreviations)
    else:
        selection, best = None, str(selected)
        pipeline = existing(Path(selected), "or create it with 'spacy weakner fit' or 'train'")
        contents, splits = hash_path(pipeline), (sentences or RULE, abbreviations or "")
        if abbreviations and splits[0] != RULE:
            raise WeaknerError(Errors.WK331.format(setting="abbreviations", where="with sentences = rule", instead=""))
        if len(test) == 1:
            best = next(iter(test))
        elif test:
            check_choice("candidate", best, test)
    measured = test.get(best)
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        nlp = load_pipeline(pipeline)
        add_sentences(nlp, (), *splits)
        require_extras(nlp)
        nlp.to_disk(model)
        meta = srsly.read_json(model / "meta.json")
        prefix = f"{meta['lang']}_"
        full = name if name.startswith(prefix) else prefix + name  # as spaCy does
        known = meta.get(__title__, {})  # see `calibration.seen`
        meta.update(_describe(selection, measured, data))
        meta[__title__] = {**known, **meta[__title__]}
        code = own_code()
        made_of = {"contents": [contents, *([] if code is None else [hash_path(code)])], "sentences": [*splits]}
        meta[__title__]["pipeline"] = hash_settings(made_of)
        version = _next_version(output, full, lowest, meta[__title__]["pipeline"])
        meta.update(name=name, version=version)
        srsly.write_json(model / "meta.json", meta)
        has_ids = any(pipe.startswith(LINKER) for pipe in meta["pipeline"])
        values = {
            "full": full,
            "meta": meta,
            "has_ids": has_ids,
            "ece": measured.ece if measured else None,
            "labels": sorted({label for labels in meta["labels"].values() for label in labels}),
            "selection": selection,
            "test": ranked([*test.values()], best),
            "data": data,
        }
        write_text(model / "README.md", render_template("package.md.jinja", values))
        built = Path(scratch) / "built"
        built.mkdir()
        with unlisted_names():
            spacy_package(model, built, create_sdist=False, create_wheel=False, force=True, silent=True)
        folder = f"{full}-{version}"
        if code is not None:  # not by spaCy, which would run it again, so that its names are registered twice
            shutil.copy(code, built / folder / full / "own_code.py")
            module = built / folder / full / "__init__.py"
            write_text(module, "from . import own_code\n" + module.read_text(encoding="utf-8"))
        wheel = _build_wheel(built / folder)
        # Copy only the finished package, so that an interrupted run leaves no incomplete one.
        with atomic_path(output / folder) as temporary:
            shutil.copytree(built / folder, temporary, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    return Package(full, output / folder / "dist" / wheel, has_ids, version)


def files_of_sources(declaration: Path) -> Dict[str, str]:
    """Return the files and pipelines of all declared sources, by their role."""
    found = {}
    for source in read_sources(declaration):
        for n, path in enumerate(source.files or filter(None, [source.path]), start=1):
            found[f"source {source.name}" + (f"-{n}" if n > 1 else "")] = str(path)
    return found


def _next_version(output: Path, full: str, lowest: Version, pipeline: str) -> str:
    """Return the version of the last package if it was made of the same pipeline (given by a hash), else the next."""
    made = {}
    for path in output.glob(f"{full}-*/meta.json"):
        meta = srsly.read_json(path)
        made[Version(meta["version"])] = meta.get(__title__, {}).get("pipeline")
    last = max([version for version in made if version >= lowest], default=None)
    if last is None:
        return str(lowest)
    if made[last] == pipeline:
        return str(last)
    *others, micro = last.release
    return last.base_version if last.is_prerelease else ".".join(map(str, (*others, micro + 1)))


def _describe(selection: Optional[Selection], test: Optional[CandidateScores], data: Dict[str, str]) -> Dict[str, Any]:
    """Describe in meta.json's format what the pipeline was made from, and how good it is."""
    about = {
        "test": test and test.model_dump(),
        "data": data,
        "versions": {"spacy": spacy.__version__, __title__: __version__},
    }
    if selection is None:
        measured = f"{test.text()} on test" if test else "without scores"
        return {"description": f"Named entities; a pipeline of {__title__}: {measured}.", __title__: about}
    best = selection.selected
    if test is not None:
        measured = f"{test.text()} on test"
    elif best.scores is not None:
        measured = f"{best.scores.text()} in the selection"
    else:
        measured = "without scores, since there was no gold"
    return {
        "description": f"Named entities; '{best.name}' of {__title__}: {measured}.",
        "notes": " ".join(selection.lines()),
        __title__: {
            "candidate": best.name,
            "chosen_by": selection.chosen_by,
            "scores": best.scores and best.scores.model_dump(),
            **about,
            "facts": selection.facts.model_dump(),
            "settings": selection.settings.model_dump(),
            "code": selection.code,
        },
    }


def _build_wheel(source: Path) -> str:
    # Build in this environment: an isolated one would download setuptools.
    from build import BuildBackendException, ProjectBuilder

    try:
        return Path(ProjectBuilder(source, runner=_run).build("wheel", source / "dist")).name
    except (BuildBackendException, subprocess.CalledProcessError) as error:
        output = getattr(getattr(error, "exception", error), "stderr", None) or b""
        last = output.decode("utf-8", errors="replace").strip().rpartition("\n")[2]
        raise WeaknerError(Errors.WK687.format(reason=" ".join(f"{error} {last}".split()))) from error


def _run(cmd: Sequence[str], cwd: Optional[str] = None, extra_environ: Optional[Mapping[str, str]] = None) -> None:
    environment = {**os.environ, **(extra_environ or {})}
    subprocess.run(cmd, cwd=cwd, env=environment, check=True, capture_output=True)


def usage(package: Package) -> List[str]:
    """Return how to use a package: a command, and three lines of Python."""
    what = "ent.text, ent.label_, ent.kb_id_" if package.has_ids else "ent.text, ent.label_"
    return [
        f"pip install --force-reinstall --no-deps {shlex.quote(str(package.wheel))}",
        "import spacy",
        f'nlp = spacy.load("{package.name}")',
        f"print([({what}) for ent in nlp('your text').ents])",
    ]

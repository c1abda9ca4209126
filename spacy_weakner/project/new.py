"""Writes the folder of a project: everything that `weasel run all` needs, from the package alone."""

import json
import os
import re
from itertools import islice
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..abbreviations.definitions import find_definitions
from ..configs import make_config, render_config
from ..configs.languages import language_tokenizer
from ..corpus.answers import holds_answers
from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import Reading, read_corpus
from ..corpus.weak import weak_sources
from ..errors import Errors, WeaknerError, check_choice
from ..files import existing, write_text
from ..labeling.label import TERMS_SOURCE
from ..labeling.sources import CorpusSource, Source, read_sources
from ..pipelines import blank_pipeline
from .context import ALONE, WITH_LISTS, config_name
from .layout import IMPORTABLE
from .rules import LINEAR, LINEAR_STATIC, LINEARS, PACES, linear_beside

TEMPLATES = Path(__file__).parent / "templates"
ANSWERS_SOURCE = "answers"
# Reliability of one of several sources, until it is measured.
USUAL_RELIABILITY = 0.7
SOURCES = "sources.cfg"
# Settings of a term list that users may want to change: written even where they have the default.
_SHOWN = {"terms": ("attr", "acronym_length", "min_length", "stop", "ambiguity", "reliability")}
# Rows that are searched for labels of weak sources.
_LOOKED_AT = 1000
# Definitions of abbreviations per sentence from which on short forms are looked for: abstracts have 0.05, titles none.
_DEFINITIONS = 0.01
_QUOTES = set("'\"$\\\n")


class Project(NamedTuple):
    """A written project: its folder, given files with their paths in the project, names of the sources."""

    folder: Path
    files: Dict[str, str]
    sources: List[str]


class _Declared(NamedTuple):
    name: str
    kind: str
    paths: List[str]
    settings: Dict[str, Any]


def init_project(
    folder: Path,
    *,
    text: Optional[Path] = None,
    terms: Union[Path, Sequence[Path]] = (),
    sources: Optional[Path] = None,
    answers: Optional[Path] = None,
    gold: Optional[Path] = None,
    dev: Optional[Path] = None,
    test: Optional[Path] = None,
    term_label: Optional[str] = None,
    spans_key: Optional[str] = None,
    name: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    size: Optional[str] = None,
    transformer: Optional[str] = None,
    columns: Tuple[int, int] = COLUMNS,
) -> Project:
    """Write a project.

    folder (Path): The folder; must not exist, or be empty.
    text (Optional[Path]): Text without labels: raw text, one a line, or JSONL. If its rows hold labels of weak sources
        (`weak_ents`; the first 1,000 tell), these are sources too.
    terms (Union[Path, Sequence[Path]]): A term list: CSV, TSV or JSONL with label and term (and perhaps id), plain
        text, or patterns of spaCy's rulers; and others, such as one that was reviewed (`suggest --terms`).
    sources (Optional[Path]): A file that declares sources of labels, beside the term list.
    answers (Optional[Path]): Labels of a language model or another tool, as JSONL; may be the text itself.
    gold, dev, test (Optional[Path]): Complete annotations. Dev and test are split off the gold where they are missing.
    term_label (Optional[str]): Label of terms that come without one.
    spans_key (Optional[str]): See `prepare`.
    name (Optional[str]): Name of the package; None: that of the folder.
    lang, tokenizer: See `make_config`.
    size (Optional[str]): Size of the encoder: linear, linear-static, transformer or gpu; None: linear, or with a
        Transformer linear-static.
    transformer (Optional[str]): Name or folder of a Transformer; linear-static uses its subword vectors.
    columns (Tuple[int, int]): Columns of CoNLL files that hold tokens and tags, from 1 on; -1 is the last.
    RETURNS (Project): The project.
    RAISES (WeaknerError): If a file is missing, there is nothing to learn from, the folder holds something, or there is
        no such language, tokenizer or size.
    """
    size = usual_size(transformer) if size is None else size
    check_choice("size", size, tuple(PACES))
    folder = Path(folder)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise WeaknerError(Errors.WK300.format(path=folder))
    given = {"text": text, "gold": gold, "dev": dev, "test": test}
    files = {key: _path_in(folder, existing(Path(path), f"--{key}")) for key, path in given.items() if path is not None}
    own = _own_sources(text, lang, tokenizer, columns)
    if own.names and answers is not None and text is not None and Path(answers).resolve() == Path(text).resolve():
        answers = None
    lists = [Path(terms)] if isinstance(terms, (str, Path)) else list(map(Path, terms))
    declared = _declare(folder, lists, sources, answers, text, own, term_label)
    if "gold" not in files and not ("text" in files and declared):
        raise own.error or WeaknerError(Errors.WK680.format(where=""))
    # Sources in the rows of the text can be scored only if the rows of the gold have them, too.
    scored = "gold" in files and (
        any(each.kind != CorpusSource.kind for each in declared)
        or bool({each.name for each in declared} & {*_own_sources(gold, lang, tokenizer, columns).names})
    )
    if transformer is not None and Path(transformer).is_dir():
        transformer = _path_in(folder, Path(transformer))  # commands run in the project's folder
    package = _package_name(folder.resolve().name if name is None else name, name is not None)
    values: Dict[str, Any] = {
        "name": package,
        "files": files,
        "text": "text" in files,
        "gold": "gold" in files,
        "spans_key": spans_key,
        "annotated": {"gold", "dev", "test"} & set(files),
        "sources": declared,
        "source_files": [
            path for each in declared for path in each.paths if os.path.exists(os.path.normpath(folder / path))
        ],
        "method": _method(len(declared), scored),
        "columns": "" if columns == COLUMNS else " ".join(map(str, columns)),
        "lang": lang,
        "tokenizer": tokenizer or language_tokenizer(lang)["@tokenizers"],
        "size": size,
        "transformer": transformer or (_usual_transformer() if size == LINEAR_STATIC else None),
        "pieces": size == LINEAR_STATIC,
        # Of text, for the linear heads that there are.
        "vectors": "text" in files and LINEAR in {each for _, each in _recipes(size, declared, files)},
        "processes": 1 if size == "gpu" else max(1, min(2, os.cpu_count() or 1)),
    }
    texts = {
        f"configs/{config_name(recipe, each)}": render_config(
            recipe,
            each,
            lang=lang,
            tokenizer=tokenizer,
            transformer=None if each in LINEARS else transformer,
        )
        for recipe, each in _recipes(size, declared, files)
    }
    for path in (*files.values(), *(path for each in declared for path in each.paths)):
        if _QUOTES & set(path):
            raise WeaknerError(Errors.WK689.format(path=path))
    if declared:
        texts[SOURCES] = _render("sources.cfg.jinja", values)
    texts[".gitignore"] = "/corpus/\n/training/\n/metrics/\n/packages/\nproject.lock\n"
    texts["README.md"] = _render("README.md.jinja", values)
    # Last: without it, the folder is no project. The folder itself stays: a shell may stand in it.
    texts["project.yml"] = _render("project.yml.jinja", values)
    for path, content in texts.items():
        write_text(folder / path, content)
    return Project(folder, files, [each.name for each in declared])


def usual_size(transformer: Optional[str]) -> str:
    """The default size of a project: subword vectors of a Transformer cost little."""
    return LINEAR if transformer is None else LINEAR_STATIC


def _usual_transformer() -> str:
    name: str = make_config(ALONE, "transformer")["paths"]["transformer"]
    return name


def _path_in(folder: Path, path: Path) -> str:
    """Path of a file in the project: relative, if both can be moved together."""
    target, start = path.resolve(), folder.resolve()
    if start.parent in target.parents:
        return Path(os.path.relpath(target, start)).as_posix()
    return target.as_posix()


class _Own(NamedTuple):
    """Weak sources in the first rows of a file, the error if it could not be read, and whether these rows define many
    abbreviations."""

    names: List[str]
    error: Optional[WeaknerError] = None
    abbreviations: bool = False


def _own_sources(path: Optional[Path], lang: str, tokenizer: Optional[str], columns: Tuple[int, int]) -> _Own:
    names: Set[str] = set()
    docs = definitions = 0
    if path is None:
        return _Own([])
    try:
        nlp = blank_pipeline(lang, tokenizer)
        for doc in islice(read_corpus(path, nlp, Reading(misaligned="drop", columns=columns)), _LOOKED_AT):
            names.update(weak_sources(doc))
            docs += 1
            definitions += len(find_definitions(doc))
    except WeaknerError as error:
        return _Own(sorted(names), error)
    return _Own(sorted(names), abbreviations=definitions > _DEFINITIONS * docs)


def _declare(
    folder: Path,
    terms: Sequence[Path],
    sources: Optional[Path],
    answers: Optional[Path],
    text: Optional[Path],
    there: _Own,
    term_label: Optional[str],
) -> List[_Declared]:
    found: List[Source] = [] if sources is None else read_sources(sources)
    single: Dict[str, Dict[str, Any]] = {}
    if terms:
        label = {} if term_label is None else {"term_label": term_label}
        short = {"abbreviations": True} if there.abbreviations else {}
        single[TERMS_SOURCE] = {"terms": [str(existing(path, "--terms")) for path in terms], **label, **short}
    if answers is not None:
        kind = "answers" if holds_answers(existing(Path(answers), "--answers")) else "file"
        single[ANSWERS_SOURCE] = {kind: str(answers)}
    # A declared source replaces one of the same name in the text.
    own = [name for name in there.names if name not in {*single, *(source.name for source in found)}]
    for name in own:
        if name != name.strip() or not name.isprintable() or {*name} & {*_QUOTES, "."}:
            raise WeaknerError(Errors.WK691.format(path=text, name=name))
        for source in found:
            if text is not None and Path(text).resolve() in [path.resolve() for path in source.files]:
                raise WeaknerError(Errors.WK695.format(path=text, name=name, source=source.name))
    single.update({name: {CorpusSource.kind: True} for name in own})
    if single:
        found = [*read_sources(single), *found]
    if len(found) > 1:
        # A default where gold does not measure it.
        found = [
            s if s.reliability is not None else s.model_copy(update={"reliability": USUAL_RELIABILITY}) for s in found
        ]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1:
            raise WeaknerError(Errors.WK690.format(path=sources, name=name))
    return [_Declared(source.name, source.kind, _source_paths(folder, source), _settings(source)) for source in found]


def _source_paths(folder: Path, source: Source) -> List[str]:
    if isinstance(source, CorpusSource):
        return []
    # Pipelines may be installed packages.
    paths = source.files or [Path(source.path)]
    return [_path_in(folder, path) if path.exists() else str(path) for path in paths]


def _settings(source: Source) -> Dict[str, Any]:
    """Settings that are not the default, and those that users may want to change."""
    usual = type(source)(name=source.name, path=source.path)
    shown = _SHOWN.get(source.kind, ())
    values = source.model_dump(exclude={"name", "path", "further"})
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if key in shown or value != getattr(usual, key)
    }


def _recipes(size: str, declared: List[_Declared], files: Dict[str, str]) -> List[Tuple[str, str]]:
    """Recipes and sizes of the configs that the files need."""
    found = [(ALONE, size)] if declared and "text" in files else []
    if "gold" in files:
        linear = linear_beside(size)
        found += [(ALONE, linear), (WITH_LISTS, linear), (WITH_LISTS, size)]
    return sorted({*found})


def _method(sources: int, gold: bool) -> str:
    """The best method to combine sources (docs/evidence/weak-labels.md), with gold that scores them or without."""
    if sources < 2:
        return "union"
    if gold:
        return "weighted"
    return "label_model" if sources > 2 else "union"


def _package_name(name: str, chosen: bool) -> str:
    cleaned = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    starts_well = cleaned[:1].isalpha()
    if chosen and (cleaned != name or not starts_well):
        raise WeaknerError(Errors.WK005.format(setting="name", value=repr(name), expected=IMPORTABLE))
    return cleaned if starts_well else f"project_{cleaned}".rstrip("_")


def _render(template: str, values: Dict[str, Any]) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    # jinja2's own filter escapes for HTML.
    environment.filters["tojson"] = _to_json
    # In a config, one dollar is the begin of a variable.
    environment.filters["setting"] = lambda value: _to_json(value).replace("$", "$$")
    return environment.get_template(template).render(**values)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

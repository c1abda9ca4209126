"""Writes the folder of a project, with everything that `weasel run all` needs besides the package."""

import os
import re
import shutil
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..abbreviations.definitions import find_definitions
from ..configs import make_config, render_config
from ..configs.recipes import FROZEN_TOK2VEC
from ..corpus.answers import holds_answers
from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import Reading, read_corpus
from ..corpus.language import find_language
from ..corpus.weak import weak_sources
from ..errors import Errors, WeaknerError, check_choice, one_line
from ..files import existing, write_text
from ..labeling.label import TERMS_SOURCE
from ..labeling.sources import CorpusSource, Source, read_sources
from ..pipelines import blank_pipeline, is_pipeline, tokenizer_name
from ..scratch import resolved
from .context import ALONE, config_name, student_size, used_recipes
from .layout import render_template
from .rules import FROZEN, LINEAR, LINEAR_STATIC, LINEARS, SIZES, TRAINED
from .variables import IMPORTABLE

ANSWERS_SOURCE = "answers"
# Precision of a Transformer's matrix products in training: a quarter less time on CPUs with bfloat16 units, equal F1.
CPU_PRECISION = "medium"
# Reliability of one of several sources, until it is measured.
USUAL_RELIABILITY = 0.7
SOURCES = "sources.cfg"
# Weasel's folder for data, which may be in the folder of a new project.
ASSETS = "assets"
# The pipeline that may be trained as a baseline, and the number of its updates.
NER, NER_STEPS = "ner", 2000
# Settings of a term list that users may want to change: written even if they have the default value.
_SHOWN = {"terms": ("attr", "acronym_length", "min_length", "stop", "ambiguity", "reliability")}
# Number of rows that are searched for labels of weak sources.
_LOOKED_AT = 1000
# Short forms are looked for above this number of abbreviation definitions per sentence: abstracts have 0.05, titles 0.
_DEFINITIONS = 0.01
_QUOTES = set("'\"$\\\n")


class Project(NamedTuple):
    """A written project: its folder, the given files with their paths in the project, the names of the sources, the
    language and the tokenizer (None: that of the language); what was written into the folder, and which folders are
    new, the innermost first."""

    folder: Path
    files: Dict[str, str]
    sources: List[str]
    lang: str
    tokenizer: Optional[str]
    written: List[str]
    new: List[Path]

    def remove(self) -> None:
        """Remove what was written, and nothing else."""
        for name in self.written:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        remove_empty(self.new)


class _FirstRows(NamedTuple):
    """The weak sources in the first rows of a file, an error if the file could not be read, and whether these rows
    define many abbreviations."""

    sources: List[str]
    error: Optional[WeaknerError] = None
    abbreviations: bool = False


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
    spans_key: Optional[str] = None,
    name: Optional[str] = None,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    abbreviations: str = "",
    size: Optional[str] = None,
    transformer: Optional[str] = None,
    columns: Tuple[int, int] = COLUMNS,
    baseline: Optional[str] = None,
    **settings: Any,
) -> Project:
    """Write a project.

    folder (Path): Folder of the project; it must not exist, or be empty except for a folder `assets`, which may hold
        your data.
    text (Optional[Path]): Text without labels: raw text, one per line, or JSONL. If its first 1,000 rows contain
        labels of weak sources (`weak_ents`), these are sources too.
    terms (Union[Path, Sequence[Path]]): A term list: CSV, TSV, Excel or JSONL with label and term (and perhaps id
        and synonyms), plain text, or patterns of spaCy's rulers. Several lists may be given, such as a reviewed list
        (`suggest --review-terms`).
    sources (Optional[Path]): A file that declares sources of labels besides the term list.
    answers (Optional[Path]): Labels of a language model or another tool, as JSONL; may be the same file as the text.
    gold, dev, test (Optional[Path]): Complete annotations. If dev or test is not given, it is split off the gold.
    spans_key (Optional[str]): See `prepare`.
    name (Optional[str]): Name of the package; None: that of the folder.
    lang, tokenizer, abbreviations: See `convert`.
    size (Optional[str]): Size of the encoder: linear, linear-static, frozen, transformer or gpu; None: linear;
        with a Transformer, frozen, or transformer if there is no gold.
    transformer (Optional[str]): Name or folder of a Transformer: frozen uses a layer of it, linear-static its subword
        vectors; transformer and gpu train it on the labels of the text. For frozen also a spaCy pipeline, whose
        component tok2vec is used.
    columns (Tuple[int, int]): Columns of tokens and tags in CoNLL files, counted from 1; -1 is the last.
    baseline (Optional[str]): ner: also train spaCy's ner on the gold, and score it on test beside the candidates.
    **settings (Any): Settings of the term list, such as `term_label` and `term_columns`; see `TermSource`.
    RETURNS (Project): The project.
    RAISES (WeaknerError): If a file is missing, there is nothing to learn from, the folder is not empty, or there is
        no such language, tokenizer or size, or the size cannot use the Transformer.
    """
    size = usual_size(transformer, has_gold=gold is not None) if size is None else size
    check_choice("size", size, SIZES)
    if baseline is not None:
        check_choice("baseline", baseline, [NER])
        if gold is None:
            where, instead = "with gold (--gold)", ""
            raise WeaknerError(Errors.WK331.format(setting="--baseline", where=where, instead=instead))
    if size == FROZEN and gold is None:
        expected = "linear, transformer or gpu, since heads on a frozen Transformer are trained on gold (--gold)"
        raise WeaknerError(Errors.WK005.format(setting="size", value=repr(size), expected=expected))
    folder = Path(folder)
    new = missing_folders(folder)
    if folder.is_file() or (folder.is_dir() and any(path.name != ASSETS for path in folder.iterdir())):
        raise WeaknerError(Errors.WK300.format(path=folder))
    given = {"text": text, "gold": gold, "dev": dev, "test": test}
    files = {key: _path_in(folder, existing(Path(path), f"--{key}")) for key, path in given.items() if path is not None}
    lang, tokenizer = find_language(
        (Path(path) for path in (gold, text, dev, test) if path is not None), lang, tokenizer
    )
    rows = _first_rows(text, lang, tokenizer, columns)
    if rows.sources and answers is not None and text is not None and Path(answers).resolve() == Path(text).resolve():
        answers = None
    lists = [Path(terms)] if isinstance(terms, (str, Path)) else list(map(Path, terms))
    found = _find_sources(lists, sources, answers, text, rows, settings)
    if "gold" not in files and not ("text" in files and found):
        raise rows.error or WeaknerError(Errors.WK680.format(where=""))
    # Sources in the rows of the text can be scored only if the rows of the gold have them as well.
    scored = _first_rows(gold, lang, tokenizer, columns).sources
    is_scored = any(source.kind != CorpusSource.kind or source.name in scored for source in found)
    uses_pipeline = transformer is not None and is_pipeline(transformer)
    if uses_pipeline and size != FROZEN:
        reason = f"it is a spaCy pipeline, whose encoder the size '{size}' cannot use. Give --size {FROZEN}"
        raise WeaknerError(Errors.WK353.format(name=transformer, reason=reason))
    if transformer is not None and Path(transformer).is_dir():
        transformer = _path_in(folder, Path(transformer))  # the project's commands run in its folder
    if transformer is None and size != LINEAR:
        default = size if size in TRAINED else "transformer"
        transformer = make_config(ALONE, default)["paths"]["transformer"]
    teaches = "text" in files and (size not in LINEARS if "gold" in files else size in TRAINED)
    student = student_size(None if uses_pipeline else transformer) if teaches else None
    recipes = used_recipes(size, gold="gold" in files, weak=bool(found) and "text" in files, student=student)
    declared = [_declaration(folder, source) for source in found]
    source_paths = [path for source in declared for path in source["paths"]]
    values: Dict[str, Any] = {
        "name": _package_name(folder.resolve().name if name is None else name, name is not None),
        "files": files,
        "text": "text" in files,
        "gold": "gold" in files,
        "spans_key": spans_key,
        "annotated": {"gold", "dev", "test"} & set(files),
        "sources": declared,
        "method": _method(len(declared), "gold" in files and is_scored),
        "columns": "" if columns == COLUMNS else " ".join(map(str, columns)),
        "lang": lang,
        "tokenizer": tokenizer_name(lang, tokenizer),
        "abbreviations": abbreviations,
        "size": size,
        "transformer": transformer,
        "baseline": baseline,
        "pieces": size == LINEAR_STATIC,
        # Word vectors are made from text, for linear heads.
        "vectors": "text" in files and any(recipe_size not in TRAINED for _, recipe_size in recipes),
        "processes": 1 if size == "gpu" else max(1, min(2, os.cpu_count() or 1)),
    }
    texts = {}
    for recipe, recipe_size in sorted(recipes):
        encoder = None if recipe_size in LINEARS else transformer
        precision = CPU_PRECISION if recipe_size == "transformer" else None
        encoder_size = FROZEN_TOK2VEC if uses_pipeline and recipe_size == FROZEN else recipe_size
        texts[f"configs/{config_name(recipe, recipe_size)}"] = render_config(
            recipe, encoder_size, lang=lang, tokenizer=tokenizer, transformer=encoder, precision=precision
        )
    if baseline is not None:
        texts["configs/ner.cfg"] = _ner_config(lang, tokenizer)
    named = {"spans_key": spans_key, "transformer": transformer, "abbreviations": abbreviations}
    for what, value in (*(("path", path) for path in (*files.values(), *source_paths)), *named.items()):
        if value is not None and (_QUOTES & set(value) or one_line(value) != value):
            raise WeaknerError(Errors.WK689.format(name=f"The {what} {value}"))
    if declared:
        texts[SOURCES] = render_template("sources.cfg.jinja", values)
    texts[".gitignore"] = "/corpus/\n/training/\n/metrics/\n/packages/\nproject.lock\n"
    texts["README.md"] = render_template("README.md.jinja", values)
    # Write project.yml last: without it, the folder is not a project.
    texts["project.yml"] = render_template("project.yml.jinja", values)
    written = [*dict.fromkeys(Path(path).parts[0] for path in texts)]
    project = Project(folder, files, [source.name for source in found], lang, tokenizer, written, new)
    try:
        for path, content in texts.items():
            write_text(folder / path, content)
    except BaseException:
        project.remove()
        raise
    return project


def missing_folders(folder: Path) -> List[Path]:
    """Return a folder and its parents as far as they do not exist, the innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, the innermost first; those with other files stay."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _ner_config(lang: str, tokenizer: Optional[str]) -> str:
    """Return spaCy's config of an efficient `ner`. Without dev, it is trained for a fixed number of steps."""
    from spacy.cli.init_config import init_config

    config = init_config(lang=lang, pipeline=[NER], optimize="efficiency")
    config["nlp"]["tokenizer"] = {"@tokenizers": tokenizer_name(lang, tokenizer)}
    config["training"].update({"max_steps": NER_STEPS, "eval_frequency": NER_STEPS, "patience": 0})
    return str(config.to_str())


def usual_size(transformer: Optional[str], *, has_gold: bool) -> str:
    """Return the default size of a project: with a Transformer and gold, a frozen layer of it."""
    if transformer is None:
        return LINEAR
    return FROZEN if has_gold else "transformer"


def _path_in(folder: Path, path: Path) -> str:
    """Return the path of a file for the project: relative if it is below the parent of its folder, else absolute."""
    target, start = resolved(path), resolved(folder)
    if start.parent in target.parents:
        return Path(os.path.relpath(target, start)).as_posix()
    return target.as_posix()


def _first_rows(path: Optional[Path], lang: str, tokenizer: Optional[str], columns: Tuple[int, int]) -> _FirstRows:
    names: Set[str] = set()
    docs = definitions = 0
    if path is None:
        return _FirstRows([])
    try:
        nlp = blank_pipeline(lang, tokenizer)
        for doc in islice(read_corpus(path, nlp, Reading(misaligned="drop", columns=columns)), _LOOKED_AT):
            names.update(weak_sources(doc))
            docs += 1
            definitions += len(find_definitions(doc))
    except WeaknerError as error:
        return _FirstRows(sorted(names), error)
    return _FirstRows(sorted(names), abbreviations=definitions > _DEFINITIONS * docs)


def _find_sources(
    terms: Sequence[Path],
    sources: Optional[Path],
    answers: Optional[Path],
    text: Optional[Path],
    rows: _FirstRows,
    settings: Mapping[str, Any],
) -> List[Source]:
    found: List[Source] = [] if sources is None else read_sources(sources)
    given: Dict[str, Dict[str, Any]] = {}
    if terms:
        settings = {key: value for key, value in settings.items() if value is not None}
        short = {"abbreviations": True} if rows.abbreviations else {}
        given[TERMS_SOURCE] = {"terms": [str(existing(path, "--terms")) for path in terms], **settings, **short}
    if answers is not None:
        kind = "answers" if holds_answers(existing(Path(answers), "--answers")) else "file"
        given[ANSWERS_SOURCE] = {kind: str(answers)}
    # A declared source replaces one with the same name in the text.
    in_text = [name for name in rows.sources if name not in {*given, *(source.name for source in found)}]
    declared = [(sources, source.name) for source in found if source.name not in given]
    for path, name in [*declared, *((text, name) for name in in_text)]:
        if name != name.strip() or not name.isprintable() or {*name} & {*_QUOTES, "."}:
            raise WeaknerError(Errors.WK691.format(path=path, name=name))
    for name in in_text:
        for source in found:
            if text is not None and Path(text).resolve() in [path.resolve() for path in source.files]:
                raise WeaknerError(Errors.WK695.format(path=text, name=name, source=source.name))
        given[name] = {CorpusSource.kind: True}
    if given:
        found = [*read_sources(given), *found]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1:
            raise WeaknerError(Errors.WK690.format(path=sources, name=name))
    # Used unless the reliability is measured on gold.
    usual = {"reliability": USUAL_RELIABILITY}
    is_known = [len(found) == 1 or source.reliability is not None for source in found]
    return [source if known else source.model_copy(update=usual) for source, known in zip(found, is_known, strict=True)]


def _declaration(folder: Path, source: Source) -> Dict[str, Any]:
    """Return a source for the templates, with settings that are not the default or that users may want to change."""
    # A pipeline may be an installed package, which is not a path.
    paths = [] if isinstance(source, CorpusSource) else source.files or [Path(source.path)]
    usual, shown = type(source)(name=source.name, path=source.path), _SHOWN.get(source.kind, ())
    settings = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in source.model_dump(exclude={"name", "path", "further"}).items()
        if key in shown or value != getattr(usual, key)
    }
    in_folder = [_path_in(folder, path) if path.exists() else str(path) for path in paths]
    return {"name": source.name, "kind": source.kind, "paths": in_folder, "settings": settings}


def _method(sources: int, gold: bool) -> str:
    """Return the best method to combine sources, given whether gold scores them (docs/evidence/weak-labels.md)."""
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

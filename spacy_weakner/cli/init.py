"""`spacy weakner init config` and `spacy weakner init project`"""

import shlex
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Dict, List, Mapping, Optional, Sequence, Tuple

import typer

from ..checks.check import check
from ..configs import recipes, render_config
from ..configs.compose import flatten, make_config
from ..configs.recipes import SIZES, find_recipe, reads_transformer, trains_transformer
from ..errors import Errors, WeaknerError, check_choice
from ..files import parse_value, write_text
from ..labeling.sources import TABLE_SETTINGS, TermSource
from ..project.new import SOURCES, Project, init_project, usual_size
from ..runtime.hashes import hash_file
from ..runtime.lock import locked
from ..runtime.receipts import Receipt
from ._command import Command, command
from ._util import echo, new_app, reporting, say, shared, show_table
from .check import show_report

STDOUT = "-"
# The receipt of the configs in a folder, by which changed ones are recognized.
_RECORD = ".written.json"
app = new_app("init", "Write configs, or the folder of a project.")


@app.command("config", cls=Command)
def init_config_cli(
    recipe: Annotated[
        Optional[str],
        typer.Argument(help="Name of the recipe, several separated by commas, or 'all' (default: list the recipes)"),
    ] = None,
    output: Annotated[
        str,
        typer.Argument(
            metavar="[OUT|-]",
            help="File to write, or - for stdout. A name without suffix, and several recipes or sizes: folder for "
            "RECIPE.cfg",
        ),
    ] = STDOUT,
    size: Annotated[
        Optional[str],
        typer.Option(
            help="Encoder: linear, linear-static, frozen, cnn, static, bilstm, transformer, gpu (default: the first "
            "one of the recipe). Several, separated by commas: each gets a folder in OUT"
        ),
    ] = None,
    lang: Annotated[str, typer.Option(help="Language code; xx for several languages")] = "en",
    tokenizer: Annotated[Optional[str], shared("tokenizer")] = None,
    transformer: Annotated[
        Optional[str], typer.Option(help="Name or folder of the Transformer (default: the Transformer of the size)")
    ] = None,
    precision: Annotated[
        Optional[str],
        typer.Option(help="Precision of a Transformer's matrix products: highest (default), high or medium"),
    ] = None,
    set_: Annotated[
        Optional[List[str]],
        typer.Option(
            "--set",
            help="RECIPE:SETTING=VALUE, several separated by blanks: change a setting. RECIPE may be a pattern such as "
            "'span_ner*', for all recipes that have the setting",
        ),
    ] = None,
    overwrite: Annotated[bool, shared("overwrite", "--overwrite")] = False,
) -> None:
    """Write the config of a recipe, complete and with comments, for 'spacy train'."""
    with reporting():
        if recipe is None:
            rows = [(known.name, ", ".join(known.sizes), known.help) for known in recipes()]
            show_table(("Recipe", "Sizes", "For"), rows, 3)
            return
        path = Path(output)
        is_folder = output != STDOUT and (recipe == "all" or "," in f"{recipe}{size}" or not path.suffix)
        chosen = _chosen(recipe, size) if is_folder else [(recipe, size)]
        values = _values(chosen, set_ or ())
        texts: Dict[Path, str] = {}
        for name, wanted in chosen:
            usable = wanted or find_recipe(name).sizes[0]
            # In a folder, only sizes with a Transformer take its settings.
            how: Dict[str, Any] = {
                "transformer": transformer if not is_folder or reads_transformer(usable) else None,
                "precision": precision if not is_folder or trains_transformer(usable) else None,
                "overrides": values.get((name, wanted), {}),
            }
            text = render_config(name, wanted, lang=lang, tokenizer=tokenizer, **how)
            file_ = path / (wanted if wanted and "," in str(size) else "") / f"{name}.cfg" if is_folder else path
            if output == STDOUT:
                typer.echo(text, nl=False)
                return
            if not _is_kept(file_, overwrite, is_folder, how["overrides"]):
                texts[file_] = text
        with locked(path):
            _write(texts)  # nothing is written after an error
        for (name, wanted), settings in values.items():
            place = f"{wanted}/{name}" if wanted and "," in str(size) else name
            say("info", f"{place}: {', '.join(f'{key} = {value}' for key, value in settings.items())}")
        say("good", "Config", path)


def _chosen(recipe: str, size: Optional[str]) -> List[Tuple[str, Optional[str]]]:
    """Return the recipes to write to a folder, each with its size; a named recipe without its size is an error."""
    sizes = [wanted.strip() for wanted in (size or "").split(",")]
    every = dict.fromkeys([*SIZES, *(name for known in recipes() for name in known.sizes)])
    for wanted in sizes if size else ():
        check_choice("size", wanted, every)
    chosen: List[Tuple[str, Optional[str]]] = []
    for wanted, name in product(dict.fromkeys(sizes), dict.fromkeys(_names(recipe))):
        known = find_recipe(name, None if recipe == "all" else wanted or None)
        if wanted and wanted not in known.sizes:
            say("warning", f"Not written, since it has no size '{wanted}': {name}")
        else:
            chosen.append((name, wanted or None))
    return chosen


def _values(
    chosen: Sequence[Tuple[str, Optional[str]]], given: Sequence[str]
) -> Dict[Tuple[str, Optional[str]], Dict[str, Any]]:
    """Parse RECIPE:SETTING=VALUE; return the values of settings by recipe and size."""
    values: Dict[Tuple[str, Optional[str]], Dict[str, Any]] = {}
    for text in (text for several in given for text in _split(several)):
        setting, equals, value = text.partition("=")
        pattern, colon, key = setting.partition(":")
        if not (equals and colon):
            raise _invalid(text)
        if not any(fnmatchcase(known.name, pattern) for known in recipes()):
            find_recipe(pattern)
        named = [pair for pair in chosen if fnmatchcase(pair[0], pattern)]
        if not named:
            say("warning", f"Not set, since no such recipe is written here: {text}")
        # The error is that of the first one, if none has the setting.
        able = [pair for pair in named if key in flatten(make_config(*pair))] or named[:1]
        for pair in able:
            values.setdefault(pair, {})[key] = parse_value(value)
    return values


def _split(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError as error:  # a quote that is not closed
        raise _invalid(text) from error


def _invalid(text: str) -> WeaknerError:
    expected = "RECIPE:SETTING=VALUE, and every quote closed"
    return WeaknerError(Errors.WK005.format(setting="--set", value=repr(text), expected=expected))


def _is_kept(path: Path, overwrite: bool, is_folder: bool, values: Mapping[str, Any]) -> bool:
    """Return True for a config of a folder that was changed since it was written, for which there may be no values."""
    if path.is_dir():
        raise WeaknerError(Errors.WK109.format(path=path))
    receipt = Receipt.read(path.with_name(_RECORD)) or Receipt({})
    written = receipt.files.get(path.name)
    if path.exists() and not overwrite and hash_file(path) != written:
        if written is None or not is_folder:
            how = "was not made by this command" if written is None else "was changed since it was made"
            raise WeaknerError(Errors.WK314.format(path=path, exists=how))
        if values:
            where = f"for configs that were not changed by hand, and {path} was"
            instead = ", remove this file, or write it anew (--overwrite)"
            raise WeaknerError(Errors.WK331.format(setting="--set", where=where, instead=instead))
        say("warning", f"Kept, since it was changed: {path} (--overwrite writes it anew)")
        return True
    return False


def _write(texts: Mapping[Path, str]) -> None:
    """Write configs, with a record of what was written in each folder."""
    for path, text in texts.items():
        record = path.with_name(_RECORD)
        receipt = Receipt.read(record)
        write_text(path, text)
        files = {} if receipt is None else receipt.files
        Receipt({"stage": "init config"}, {**files, path.name: hash_file(path)}).write(record)


def _names(recipe: str) -> List[str]:
    return [known.name for known in recipes()] if recipe == "all" else [name.strip() for name in recipe.split(",")]


@command(
    app,
    init_project,
    "project",
    settings={TermSource: TABLE_SETTINGS},
    terms=Annotated[Optional[List[Path]], typer.Option()],
)
def show_project(made: Project, given: Any) -> None:
    """Check the input files before anything is trained, and print which files were written."""
    sources = made.folder / SOURCES if made.sources else None
    try:
        report = check(
            text=given.text,
            sources=sources,
            gold=given.gold,
            dev=given.dev,
            test=given.test,
            lang=made.lang,
            tokenizer=made.tokenizer,
            abbreviations=given.abbreviations,
            size=given.size or usual_size(given.transformer, has_gold=given.gold is not None),
            transformer=given.transformer,
            spans_key=given.spans_key,
            columns=given.columns,
        )
        show_report(report)
    except BaseException:
        # Remove the new project, so that the same command works once the files are corrected.
        made.remove()
        say("info", "No project was written. Correct this, and run the same command again.")
        raise
    say("good", "Project", made.folder)
    for what, path in made.files.items():
        say("info", f"{what}: {path}")
    if made.sources:
        say("info", f"Sources of labels (sources.cfg): {', '.join(made.sources)}")
    echo(f"  cd {shlex.quote(str(made.folder))} && weasel run all")

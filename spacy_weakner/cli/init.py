"""`spacy weakner init config` and `spacy weakner init project`"""

import shlex
import shutil
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Dict, List, Optional, Sequence

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
from ..runtime.receipts import Receipt
from ._command import command
from ._util import echo, new_app, reporting, say, shared, show_table
from .check import show_report

STDOUT = "-"
# The receipt of a folder of configs, by which changed ones are recognized.
_RECORD = ".written.json"
app = new_app("init", "Write configs, or the folder of a project.")


@app.command("config")
def init_config_cli(
    recipe: Annotated[
        Optional[str],
        typer.Argument(help="Name of the recipe, several with commas, or 'all' (default: list the recipes)"),
    ] = None,
    output: Annotated[
        str,
        typer.Argument(
            metavar="[OUT|-]",
            help="File to write; or a folder (no suffix, or several recipes or sizes), which gets RECIPE.cfg; or - for "
            "stdout",
        ),
    ] = STDOUT,
    size: Annotated[
        Optional[str],
        typer.Option(
            help="Encoder: linear, linear-static, frozen, cnn, static, bilstm, transformer, gpu (default: the first "
            "one of the recipe); several with commas: a folder for each in OUT"
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
            help="RECIPE:SETTING=VALUE, several with blanks: another value of a setting; RECIPE may be a pattern such "
            "as 'span_ner*', for all recipes that have the setting",
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
        values = _values(_names(recipe), size, set_ or ())
        how: Dict[str, Any] = {"lang": lang, "tokenizer": tokenizer}
        encoder: Dict[str, Any] = {"transformer": transformer, "precision": precision}
        has_several = recipe == "all" or "," in f"{recipe}{size}"
        if output != STDOUT and (has_several or not path.suffix):
            sizes = [wanted.strip() for wanted in (size or "").split(",")]
            every = dict.fromkeys([*SIZES, *(name for known in recipes() for name in known.sizes)])
            for wanted in sizes if size else ():
                check_choice("size", wanted, every)
            # Nothing is written if a named recipe lacks its size.
            chosen = [
                (wanted, find_recipe(name, None if recipe == "all" else wanted or None))
                for wanted, name in product(dict.fromkeys(sizes), _names(recipe))
            ]
            for wanted, known in chosen:
                usable = wanted or known.sizes[0]
                if usable not in known.sizes:
                    say("warning", f"Not written, since it has no size '{wanted}': {known.name}")
                    continue
                # Only sizes with a Transformer take its settings.
                given: Dict[str, Any] = {"transformer": transformer} if reads_transformer(usable) else {}
                given.update({"precision": precision} if trains_transformer(usable) else {})
                folder = path / wanted if len(sizes) > 1 else path
                text = render_config(known.name, usable, **how, **given, overrides=values.get(known.name, {}))
                if not _write(folder / f"{known.name}.cfg", text, overwrite):
                    changed = folder / f"{known.name}.cfg"
                    say("warning", f"Kept, since it was changed: {changed} (--overwrite writes it anew)")
        elif output != STDOUT:
            text = render_config(recipe, size, **how, **encoder, overrides=values.get(recipe, {}))
            write_text(_new(path, overwrite), text)
        else:
            typer.echo(render_config(recipe, size, **how, **encoder, overrides=values.get(recipe, {})), nl=False)
            return
        for name, settings in values.items():
            say("info", f"{name}: {', '.join(f'{key} = {value}' for key, value in settings.items())}")
        say("good", "Config", path)


def _values(written: List[str], size: Optional[str], given: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    """Parse RECIPE:SETTING=VALUE; return the values of settings by the name of a recipe that is written."""
    values: Dict[str, Dict[str, Any]] = {}
    for text in (text for several in given for text in shlex.split(several)):
        setting, equals, value = text.partition("=")
        pattern, colon, key = setting.partition(":")
        if not (equals and colon):
            raise WeaknerError(Errors.WK005.format(setting="--set", value=repr(text), expected="RECIPE:SETTING=VALUE"))
        if not any(fnmatchcase(known.name, pattern) for known in recipes()):
            find_recipe(pattern)
        named = [name for name in written if fnmatchcase(name, pattern)]
        if not named:
            say("warning", f"Not set, since no such recipe is written here: {text}")
        sizes = {name: size if size in find_recipe(name).sizes else None for name in named}
        # The error is that of the first one, if none has the setting.
        able = [name for name in named if key in flatten(make_config(name, sizes[name]))] or named[:1]
        for name in able:
            values.setdefault(name, {})[key] = parse_value(value)
    return values


def _write(path: Path, text: str, overwrite: bool) -> bool:
    """Write a config of a folder, which records what was written; return False if it was changed since."""
    record = path.with_name(_RECORD)
    receipt = Receipt.read(record)
    written = {} if receipt is None else receipt.files
    if path.is_file() and not overwrite and path.name in written:
        if hash_file(path) != written[path.name]:
            return False
    else:
        _new(path, overwrite)
    write_text(path, text)
    Receipt({"stage": "init config"}, {**written, path.name: hash_file(path)}).write(record)
    return True


def _names(recipe: str) -> List[str]:
    return [known.name for known in recipes()] if recipe == "all" else [name.strip() for name in recipe.split(",")]


def _new(path: Path, overwrite: bool) -> Path:
    if path.exists() and (path.is_dir() or not overwrite):
        raise WeaknerError((Errors.WK109 if path.is_dir() else Errors.WK314).format(path=path, exists="exists"))
    return path


def _remember(given: Any) -> None:
    given.new = [path for path in (given.folder, *given.folder.parents) if not path.exists()]


@command(
    app,
    init_project,
    "project",
    before=_remember,
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
            size=given.size or usual_size(given.transformer, has_gold=given.gold is not None),
            transformer=given.transformer,
            spans_key=given.spans_key,
            columns=given.columns,
        )
        show_report(report)
    except BaseException:
        # Remove the new project, so that the same command works once the files are corrected.
        _remove(made.folder, given.new)
        say("info", "No project was written. Correct this, and run the same command again.")
        raise
    say("good", "Project", made.folder)
    for what, path in made.files.items():
        say("info", f"{what}: {path}")
    if made.sources:
        say("info", f"Sources of labels (sources.cfg): {', '.join(made.sources)}")
    echo(f"  cd {shlex.quote(str(made.folder))} && weasel run all")


def _remove(folder: Path, new: List[Path]) -> None:
    """Empty the folder of a project, and remove it and its parents if they are new: a shell may be in the others."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for path in new:
        path.rmdir()

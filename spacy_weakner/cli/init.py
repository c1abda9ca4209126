"""`spacy weakner init config`; what `init` can write is listed here."""

import shlex
import shutil
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Dict, List, Optional

import typer
from wasabi import msg

from ..checks.check import check
from ..configs import recipes, render_config
from ..configs.recipes import SIZES, find_recipe, sizes_of
from ..errors import Errors, WeaknerError, check_choice
from ..files import write_text
from ..project.new import SOURCES, Project, init_project, usual_size
from ._command import command
from ._util import new_app, reporting, say, shared
from .check import show_report

STDOUT = "-"
app = new_app("init", "Write what a training begins with.")


@app.command("config")
def init_config_cli(
    recipe: Annotated[
        Optional[str], typer.Argument(help="Name of the recipe, several with commas, or 'all' (default: show them)")
    ] = None,
    output: Annotated[
        str,
        typer.Argument(metavar="[OUT|-]", help="The file to write; a folder (no suffix): RECIPE.cfg in it; -: stdout"),
    ] = STDOUT,
    size: Annotated[
        Optional[str],
        typer.Option(
            help="Encoder: linear, linear-static, cnn, static, bilstm, transformer, gpu (default: the recipe's first, "
            "as for recipes in a folder that do not have it); several with commas: each in a folder of its own in OUT"
        ),
    ] = None,
    lang: Annotated[str, typer.Option(help="Code of the language; xx for several")] = "en",
    tokenizer: Annotated[Optional[str], shared("tokenizer")] = None,
    transformer: Annotated[
        Optional[str], typer.Option(help="Name or folder of the Transformer (default: the size's)")
    ] = None,
    precision: Annotated[
        Optional[str], typer.Option(help="How exactly a Transformer multiplies: highest (default), high or medium")
    ] = None,
    overwrite: Annotated[bool, shared("overwrite", "--overwrite")] = False,
) -> None:
    """Write the config of a recipe, complete and with comments, as 'spacy train' takes it."""
    with reporting():
        if recipe is None:
            rows = [(known.name, ", ".join(known.sizes), known.help) for known in recipes()]
            msg.table(rows, header=("Recipe", "Sizes", "For"), divider=True)
            return
        path = Path(output)
        how: Dict[str, Any] = {"lang": lang, "tokenizer": tokenizer}
        encoder: Dict[str, Any] = {"transformer": transformer, "precision": precision}
        if output != STDOUT and not path.suffix:
            sizes = [wanted.strip() for wanted in (size or "").split(",")]
            for wanted in sizes if size else ():
                check_choice("size", wanted, SIZES)
            for wanted, name in product(dict.fromkeys(sizes), _names(recipe)):
                known = find_recipe(name)
                usable = wanted if wanted in known.sizes else known.sizes[0]
                # A Transformer belongs to the sizes that have one.
                given = encoder if "transformer" in sizes_of(usable) else {}
                folder = path / wanted if len(sizes) > 1 else path
                write_text(_new(folder / f"{name}.cfg", overwrite), render_config(name, usable, **how, **given))
        elif output != STDOUT:
            text = render_config(recipe, size, **how, **encoder)
            write_text(_new(path, overwrite), text)
        else:
            typer.echo(render_config(recipe, size, **how, **encoder), nl=False)
            return
        say("good", "Config", path)


def _names(recipe: str) -> List[str]:
    return [known.name for known in recipes()] if recipe == "all" else [name.strip() for name in recipe.split(",")]


def _new(path: Path, overwrite: bool) -> Path:
    if path.exists() and (path.is_dir() or not overwrite):
        raise WeaknerError((Errors.WK109 if path.is_dir() else Errors.WK314).format(path=path, exists="exists"))
    return path


def _remember(given: Any) -> None:
    given.new = [path for path in (given.folder, *given.folder.parents) if not path.exists()]


@command(app, init_project, "project", before=_remember, terms=Annotated[Optional[List[Path]], typer.Option()])
def show_project(made: Project, given: Any) -> None:
    """Check the files, since what is wrong is better known before anything is trained, and print what was written."""
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
            size=given.size or usual_size(given.transformer),
            transformer=given.transformer,
            term_label=given.term_label,
            spans_key=given.spans_key,
            columns=given.columns,
        )
        show_report(report)
    except BaseException:
        # It was made here, and the same command is to work once the files are corrected.
        _remove(made.folder, given.new)
        say("info", "No project was written: correct this, and give the same command again.")
        raise
    say("good", "Project", made.folder)
    for what, path in made.files.items():
        say("info", f"{what}: {path}")
    if made.sources:
        say("info", f"Sources of labels (sources.cfg): {', '.join(made.sources)}")
    typer.echo(f"  cd {shlex.quote(str(made.folder))} && weasel run all")


def _remove(folder: Path, new: List[Path]) -> None:
    """Remove a project, and of the folder and those above it the new ones: a shell may stand in the others."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for path in new:
        path.rmdir()

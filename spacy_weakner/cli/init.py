"""`spacy weakner init config`; what `init` can write is listed here."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import Columns, Lang, Overwrite, SpansKey, Tokenizer, reporting, say

STDOUT = "-"
_Transformer = Annotated[Optional[str], typer.Option(help="Name or folder of the Transformer (default: the size's)")]
_Precision = Annotated[
    Optional[str], typer.Option(help="How exactly a Transformer multiplies: highest (default), high or medium")
]

init_app = typer.Typer(name="init", help="Write what a training begins with.", no_args_is_help=True)


@init_app.command("config")
def init_config_cli(
    recipe: Annotated[Optional[str], typer.Argument(help="Name of the recipe; --list shows them")] = None,
    output: Annotated[str, typer.Argument(metavar="[OUT|-]", help="The file to write; -: stdout")] = STDOUT,
    size: Annotated[
        Optional[str],
        typer.Option(
            help="Encoder: linear, linear-static, cnn, static, bilstm, transformer, gpu (default: the recipe's first)"
        ),
    ] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    transformer: _Transformer = None,
    precision: _Precision = None,
    overwrite: Overwrite = False,
    list_: Annotated[bool, typer.Option("--list", help="Show the recipes and their sizes")] = False,
) -> None:
    """Write the config of a recipe, complete and with comments, as 'spacy train' takes it."""
    with reporting():
        from ..configs import recipes, render_config
        from ..errors import Errors, WeaknerError
        from ..files import write_text

        if list_ or recipe is None:
            rows = [(known.name, ", ".join(known.sizes), known.help) for known in recipes()]
            msg.table(rows, header=("Recipe", "Sizes", "For"), divider=True)
            if recipe is None and not list_:
                raise typer.Exit(2)
            return
        path = Path(output)
        if output != STDOUT and path.exists() and (path.is_dir() or not overwrite):
            raise WeaknerError((Errors.WK109 if path.is_dir() else Errors.WK605).format(path=path))
        text = render_config(recipe, size, lang=lang, tokenizer=tokenizer, transformer=transformer, precision=precision)
        if output == STDOUT:
            typer.echo(text, nl=False)
        else:
            write_text(path, text)
            say("good", "Config", path)


@init_app.command("configs")
def init_configs_cli(
    folder: Annotated[Path, typer.Argument(help="Folder for the configs; those of an earlier run are replaced")],
    recipe: Annotated[Optional[List[str]], typer.Argument(help="Recipes (default: all)")] = None,
    size: Annotated[str, typer.Option(help="Encoder, where a recipe has it; else the recipe's first")] = "cnn",
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    transformer: _Transformer = None,
    precision: _Precision = None,
) -> None:
    """Write the configs of several recipes, RECIPE.cfg each, into a folder."""
    with reporting():
        from ..configs import recipes, render_config
        from ..configs.recipes import SIZES, find_recipe
        from ..errors import check_choice
        from ..files import write_text

        check_choice("size", size, SIZES)
        for name in recipe or [known.name for known in recipes()]:
            known = find_recipe(name)
            own = size if size in known.sizes else known.sizes[0]
            # A Transformer belongs to the sizes that have one, and so does what is said of it.
            given = {"transformer": transformer, "precision": precision} if own in ("transformer", "gpu") else {}
            write_text(folder / f"{name}.cfg", render_config(name, own, lang=lang, tokenizer=tokenizer, **given))
        say("good", "Configs", folder)


@init_app.command("project")
def init_project_cli(
    folder: Annotated[Path, typer.Argument(help="Folder of the project; must not exist, or be empty")],
    text: Annotated[
        Optional[Path], typer.Option(help="Text: one a line, or JSONL, perhaps with labels (weak_ents)")
    ] = None,
    terms: Annotated[Optional[Path], typer.Option(help="Term list: CSV, TSV, JSONL, TXT, patterns of a ruler")] = None,
    sources: Annotated[Optional[Path], typer.Option(help="File that declares several sources of labels")] = None,
    answers: Annotated[Optional[Path], typer.Option(help="Labels of a language model or tool, as JSONL")] = None,
    gold: Annotated[Optional[Path], typer.Option(help="Complete annotations (docs/formats.md)")] = None,
    dev: Annotated[
        Optional[Path], typer.Option(help="Annotations to choose models by (default: split off the gold)")
    ] = None,
    test: Annotated[Optional[Path], typer.Option(help="Annotations for the final scores (default: split off)")] = None,
    term_label: Annotated[Optional[str], typer.Option(help="Label of terms that come without one")] = None,
    spans_key: SpansKey = None,
    name: Annotated[Optional[str], typer.Option(help="Name of the package (default: that of the folder)")] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    size: Annotated[
        Optional[str],
        typer.Option(
            help="Encoder: linear (default), linear-static (with --transformer the default), transformer or gpu"
        ),
    ] = None,
    transformer: _Transformer = None,
    columns: Columns = (1, -1),
) -> None:
    """Write a project for your files: 'weasel run all' in it trains and packages a pipeline."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..checks.check import CheckedFiles, CheckedSettings, examine
        from ..project.new import SOURCES, init_project, usual_size
        from .check import show_report

        new = [path for path in (folder, *folder.parents) if not path.exists()]
        made = init_project(**options)
        # What is wrong is better known before anything is trained.
        files = CheckedFiles(
            text=text, sources=made.folder / SOURCES if made.sources else None, gold=gold, dev=dev, test=test
        )
        settings = CheckedSettings(
            lang=lang,
            tokenizer=tokenizer,
            size=size or usual_size(transformer),
            transformer=transformer,
            term_label=term_label,
            spans_key=spans_key,
            columns=columns,
        )
        try:
            show_report(examine(files, settings))
        except BaseException:
            # It was made here, and the same command is to work once the files are corrected.
            _remove(made.folder, new)
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

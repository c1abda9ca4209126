"""`spacy weakner init config`; what `init` can write is listed here."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import reporting

STDOUT = "-"

init_app = typer.Typer(name="init", help="Write what a training begins with.", no_args_is_help=True)


@init_app.command("config")
def init_config_cli(
    recipe: Annotated[Optional[str], typer.Argument(help="Name of the recipe; --list shows them")] = None,
    output: Annotated[str, typer.Argument(metavar="[OUT|-]", help="The file to write; -: stdout")] = STDOUT,
    size: Annotated[
        Optional[str], typer.Option(help="Encoder: cnn, bilstm, transformer or gpu (default: the recipe's first)")
    ] = None,
    lang: Annotated[str, typer.Option(help="Code of the language")] = "en",
    tokenizer: Annotated[Optional[str], typer.Option(help="Registered tokenizer (default: the language's)")] = None,
    transformer: Annotated[
        Optional[str], typer.Option(help="Name or folder of the Transformer (default: the size's)")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists")] = False,
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
        if output != STDOUT and path.exists() and (path.is_dir() or not force):
            raise WeaknerError((Errors.WK109 if path.is_dir() else Errors.WK605).format(path=path))
        text = render_config(recipe, size, lang=lang, tokenizer=tokenizer, transformer=transformer)
        if output == STDOUT:
            typer.echo(text, nl=False)
        else:
            write_text(path, text)
            msg.good("Config", path)

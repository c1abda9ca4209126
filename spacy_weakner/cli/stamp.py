"""`spacy weakner stamp`"""

from pathlib import Path
from typing import Annotated

import typer

from ..code_version import code_version
from ..files import write_text
from ._util import new_app, reporting

app = new_app()


@app.command("stamp", hidden=True)
def stamp_cli(
    output: Annotated[Path, typer.Argument(help="The text file to write")],
) -> None:
    """Write the version of the installed code to a file that workflows depend on, unless the file has it already."""
    with reporting():
        text = code_version() + "\n"
        if not output.is_file() or output.read_text(encoding="utf-8") != text:
            write_text(output, text)
        typer.echo(text, nl=False)

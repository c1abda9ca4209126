"""`spacy weakner table`"""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..errors import check_choice
from ..evaluation.score_table import FORMATS, format_table, score_table
from ..evaluation.tables import Table
from ..files import write_text
from ..runtime.output import write_receipt
from ._command import command
from ._util import REPORT, echo, new_app, only_with, say, show_table

app = new_app()


def _check(given: Any) -> None:
    check_choice("format", given.format, FORMATS, optional=True)
    only_with(given.ctx, {"format": ["output"], "": []})


@command(
    app,
    score_table,
    "table",
    before=_check,
    writes=["output"],
    format=Annotated[Optional[str], typer.Option(help=f"Format: {', '.join(FORMATS)} (default: for the terminal)")],
    output=Annotated[Optional[Path], typer.Option(help="Write the table to this file")],
)
def show(table: Table, given: Any) -> None:
    if given.format is None:
        show_table(table.header, table.rows, table.names)
        say("info", table.note)
        return
    text = format_table(table, given.format)
    if given.output is None:
        typer.echo(text, nl=False)
    else:
        write_text(given.output, text)
        write_receipt(given.output, REPORT)
        say("good", "Table", given.output)
        echo(f"  {table.note}")

"""`spacy weakner curves`"""

from typing import Any

from ..evaluation.curves import training_curves
from ..evaluation.tables import Table
from ._command import command
from ._util import new_app, say, show_table

app = new_app()


@command(app, training_curves, "curves", writes=["output"])
def show(table: Table, given: Any) -> None:
    show_table(table.header, table.rows, table.names)
    say("good", table.title, given.output)

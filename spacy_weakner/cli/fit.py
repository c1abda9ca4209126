"""`spacy weakner fit`"""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..errors import Errors, WeaknerError
from ..evaluation.tables import Table
from ..project.fit import SELECTION, fit
from ..project.mistakes import MISTAKES, mistakes_table
from ..project.overruled import overruled_table
from ..project.selection import Selection
from ._command import command
from ._util import given_text, new_app, say, show_table

app = new_app()


def _say(text: str) -> None:
    say("warning" if text.startswith("[WK9") else "info", text[0].upper() + text[1:])


def _read(given: Any) -> None:
    if given_text(given.precision) is None:
        given.precision = None
        return
    try:
        given.precision = float(given.precision)
    except ValueError:
        message = Errors.WK005.format(setting="precision", value=given.precision, expected="a number, like 0.95")
        raise WeaknerError(message) from None


@command(
    app,
    fit,
    before=_read,
    sources=Annotated[Optional[Path], typer.Option()],
    precision=Annotated[Optional[str], typer.Option()],
    say=_say,
)
def show(selection: Selection, given: Any) -> None:
    costs = selection.costs
    rows = [
        (name, *(f"{value:.1f}" for value in (scores.p, scores.r, scores.f1)), scores.bounds, *costs.get(name, ()))
        for name, scores in selection.ranked().items()
    ]
    if rows:
        corpus = "dev" if selection.chosen_by == "dev" else "gold"
        header = (f"on {corpus}", "P", "R", "F1", "F1 95 %", *(("words/s", "MB") if costs else ()))
        show_table(header, rows)
    if explained := selection.explained():
        say("info", explained)
    for heading, text in selection.answer():
        say("info", f"{heading}: {text}")
    for rule in selection.left_out:
        say("info", f"'{rule.name}' was not trained: {rule.why}.")
    if selection.precision:
        for line in selection.precision.lines():
            say("info", line)
        thresholds = selection.precision.table()
        show_table(thresholds.header, thresholds.rows)
    if selection.mistakes:
        _show(mistakes_table(selection.mistakes), given.output / MISTAKES)
    if selection.overruled:
        _show(overruled_table(selection.overruled))
    say("good", "Selection", given.output / SELECTION)


def _show(table: Table, path: Optional[Path] = None) -> None:
    say("info", table.title, path)
    show_table(table.header, table.rows, table.names)
    say("info", table.note)

"""`spacy weakner package`"""

from pathlib import Path
from typing import Annotated, Any, List, Optional

import typer

from ..evaluation.candidates import parse_candidates
from ..files import existing
from ..project.packaging import Package, files_of_sources, package, usage
from ..project.selection import SELECTION, Selection, read_test_scores
from ._command import command
from ._util import echo, new_app, say

app = new_app()


def _read(given: Any) -> None:
    if given.test is not None:
        existing(given.test, "or create it with 'spacy weakner evaluate --output'")
    given.test = read_test_scores(given.test)
    path = given.selected / SELECTION if (given.selected / SELECTION).exists() else given.selected
    given.selected = path if path.is_dir() else Selection.load(path)
    given.data = parse_candidates(given.data or ())
    if given.sources is not None:
        given.data.update(files_of_sources(given.sources))


@command(
    app,
    package,
    before=_read,
    selected=Annotated[Path, typer.Argument(help="selection.json of 'fit', or the folder of a pipeline")],
    test=Annotated[Optional[Path], typer.Option("--scores", help="Scores on test, from 'evaluate'")],
    data=Annotated[List[str], typer.Option(help="NAME=PATH: a file that the pipeline was made from")],
    sources=Annotated[Optional[Path], typer.Option(help="Declaration of the sources that the pipeline learned from")],
)
def show(made: Package, given: Any) -> None:
    if made.version != given.version:
        say("info", f"Version {made.version}: the packages of other pipelines stay")
    if isinstance(given.selected, Selection):
        say("good", f"Packaged: {given.selected.headline(given.test)}", given.selected.selected.path)
    else:
        say("good", "Packaged", given.selected)
        if len(given.test) == 1:
            ((name, scores),) = given.test.items()
            say("info", f"Scores of '{name}': {scores.text()}")
    for line in usage(made):
        echo(f"  {line}")

"""`spacy weakner package`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer

from ..evaluation.candidates import parse_candidates
from ..files import existing
from ..project.packaging import package, usage
from ..project.selection import Selection, read_test_scores
from ._util import echo, new_app, reporting, say

app = new_app()


@app.command("package")
def package_cli(
    selection: Annotated[Path, typer.Argument(help="selection.json of 'fit'")],
    output: Annotated[Path, typer.Argument(help="Folder for the package")],
    name: Annotated[str, typer.Option(help="Name of the package, without the language")],
    version: Annotated[
        str, typer.Option(help="Lowest version of the package; it goes up with each new pipeline")
    ] = "0.1.0",
    scores: Annotated[Optional[Path], typer.Option(help="Scores on test, from 'evaluate'")] = None,
    data: Annotated[
        Optional[List[str]],
        typer.Option(help="NAME=PATH: a file that the pipeline was made from, for its description (repeatable)"),
    ] = None,
) -> None:
    """Package the selected pipeline as a wheel, and show how to use it."""
    with reporting():
        if scores is not None:
            existing(scores, "or create it with 'spacy weakner evaluate --output'")
        selected, test = Selection.load(selection), read_test_scores(scores)
        made = package(selected, output, name=name, version=version, test=test, data=parse_candidates(data or ()))
        if made.version != version:
            say("info", f"Version {made.version}: the packages of other pipelines stay")
        say("good", f"Packaged: {selected.headline(test)}", selected.selected.path)
        for line in usage(made):
            echo(f"  {line}")

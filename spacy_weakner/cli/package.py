"""`spacy weakner package`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer

from ..evaluation.candidates import parse_candidates
from ..files import existing
from ..project.packaging import package, usage
from ..project.selection import SELECTION, Selection, read_test_scores
from ._util import echo, new_app, reporting, say, shared

app = new_app()


@app.command("package")
def package_cli(
    selected: Annotated[Path, typer.Argument(help="selection.json of 'fit', or the folder of a pipeline")],
    output: Annotated[Path, typer.Argument(help="Folder for the package")],
    name: Annotated[str, typer.Option(help="Name of the package, without the language")],
    version: Annotated[
        str, typer.Option(help="Lowest version of the package; each new pipeline gets a higher one")
    ] = "0.1.0",
    sentences: Annotated[
        Optional[str],
        typer.Option(
            help="With the folder of a pipeline: how it splits texts, as its corpora were split: rule (the default), "
            "sentencizer, lines, none, or a pipeline with a senter"
        ),
    ] = None,
    abbreviations: Annotated[Optional[str], shared("abbreviations")] = None,
    scores: Annotated[Optional[Path], typer.Option(help="Scores on test, from 'evaluate'")] = None,
    data: Annotated[
        Optional[List[str]],
        typer.Option(help="NAME=PATH: a file that the pipeline was made from, for its description (repeatable)"),
    ] = None,
) -> None:
    """Package the selected pipeline, or another one, as a wheel, and show how to use it."""
    with reporting():
        if scores is not None:
            existing(scores, "or create it with 'spacy weakner evaluate --output'")
        test = read_test_scores(scores)
        if (selected / SELECTION).exists():
            selected = selected / SELECTION
        made_from = selected if selected.is_dir() else Selection.load(selected)
        made = package(
            made_from,
            output,
            name=name,
            version=version,
            sentences=sentences,
            abbreviations=abbreviations,
            test=test,
            data=parse_candidates(data or ()),
        )
        if made.version != version:
            say("info", f"Version {made.version}: the packages of other pipelines stay")
        if isinstance(made_from, Selection):
            say("good", f"Packaged: {made_from.headline(test)}", made_from.selected.path)
        else:
            say("good", "Packaged", made_from)
            if len(test) == 1:
                say("info", f"Scores of '{next(iter(test))}': {next(iter(test.values())).text()}")
        for line in usage(made):
            echo(f"  {line}")

"""`spacy weakner evaluate`"""

from pathlib import Path
from typing import Annotated, Any, Dict, List, Optional

import typer
from wasabi import msg

from ..evaluation.candidates import parse_candidates
from ..evaluation.compare import compare
from ..evaluation.report import report
from ..evaluation.tables import comparison_table
from ..project.selection import Selection
from ..project.selection_report import evaluate_selection
from ._util import (
    check_json,
    new_app,
    only_with,
    reporting,
    say,
    shared,
    show_table,
    write_json,
)

app = new_app()


@app.command("evaluate")
def evaluate_cli(
    ctx: typer.Context,
    test: Annotated[
        Path, typer.Argument(help="Gold corpus: a .spacy file or a folder of them; with --selection it may be missing")
    ],
    candidates: Annotated[
        Optional[List[str]],
        typer.Argument(
            help="NAME=PATH: a pipeline, or a .spacy corpus of the test sentences with labels. "
            "NAME=PATH#SOURCE: the span group 'weak:SOURCE' of either, instead of its entities"
        ),
    ] = None,
    optional: Annotated[
        Optional[List[str]], typer.Option(help="NAME=PATH: a further candidate, left out if it is missing (repeatable)")
    ] = None,
    selection: Annotated[
        Optional[Path], typer.Option(help="selection.json of 'fit': score its candidates, and open the report with it")
    ] = None,
    output: Annotated[Optional[Path], shared("output")] = None,
    html: Annotated[Optional[Path], shared("html")] = None,
    labels: Annotated[Optional[Path], typer.Option(help="Corpus of weak labels to analyze in the report")] = None,
    title: Annotated[str, typer.Option(help="Title of the report")] = "Report",
    bootstrap: Annotated[int, shared("bootstrap")] = 1000,
    baseline: Annotated[
        Optional[str], typer.Option(help="Candidate to compare the others with (default: the best F1)")
    ] = None,
    seed: Annotated[int, shared("resampling_seed")] = 0,
    gpu_id: Annotated[int, shared("gpu_id")] = -1,
) -> None:
    """Score pipelines and labels on one test set, in one table; --html writes a report with plots and errors."""
    with reporting():
        only_with(ctx, {"html": ["selection", "labels", "title"], "": []})
        inputs = [path for path in (test, selection, labels) if path is not None]
        check_json(output, inputs)
        check_json(html, inputs)
        given = parse_candidates([*(optional or ()), *(candidates or ())])
        for name in parse_candidates(optional or ()):
            if not Path(given[name]).exists():
                msg.info(f"Left out: '{name}', since there is no {given.pop(name)}")
        how: Dict[str, Any] = {"bootstrap": bootstrap, "baseline": baseline, "seed": seed, "gpu_id": gpu_id}
        if html is None:
            rows = compare(test, given, progress=True, **how)
        elif selection is None:
            rows = report(html, test=test, candidates=given, labels=labels, title=title, progress=True, **how)
        else:
            chosen = Selection.load(selection)
            rows = evaluate_selection(chosen, test, html, labels=labels, more=given, title=title, progress=True, **how)
        if rows:
            table = comparison_table(rows)
            show_table(table.header, table.rows)
        else:
            say("info", f"{test} is no test set: the report has only the scores that the selection was made by.")
        if output is not None and rows:
            write_json(output, [row.scores().model_dump() for row in rows])
            say("good", "Scores", output)
        elif output is not None:
            output.unlink(missing_ok=True)  # those of an earlier run belong to another test set
        if html is not None:
            say("good", "Report", html)

"""`spacy weakner report`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import Baseline, Bootstrap, Gpu, ResamplingSeed, reporting


def report_cli(
    output: Annotated[Path, typer.Argument(help="The HTML file to write")],
    test: Annotated[Optional[Path], typer.Option(help="Gold corpus that candidates are compared on")] = None,
    candidate: Annotated[
        Optional[List[str]],
        typer.Option(
            help="NAME=PATH: a pipeline, or a .spacy corpus of the test sentences with labels (repeatable). "
            "NAME=PATH#SOURCE: the span group 'weak:SOURCE' of either, instead of its entities"
        ),
    ] = None,
    labels: Annotated[Optional[Path], typer.Option(help="Corpus of weak labels to analyse")] = None,
    gold: Annotated[
        Optional[Path], typer.Option(help="Corpus with gold for the sentences of LABELS (default: the gold in it)")
    ] = None,
    source: Annotated[
        Optional[List[str]], typer.Option(help="Source of LABELS to look at (repeatable; default: all)")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the report")] = "Report",
    examples: Annotated[int, typer.Option(help="Sentences with errors to show of each candidate")] = 30,
    top: Annotated[int, typer.Option(help="Number of phrases in the lists of frequent errors")] = 10,
    bootstrap: Bootstrap = 1000,
    baseline: Baseline = None,
    seed: ResamplingSeed = 0,
    gpu_id: Gpu = -1,
) -> None:
    """Write a comparison of candidates, an audit of weak labels, or both, into one HTML file."""
    options = dict(locals())
    with reporting():
        from ..quality.candidates import parse_candidates
        from ..quality.report import report

        options["candidates"] = parse_candidates(options.pop("candidate") or ())
        options["sources"] = options.pop("source") or None
        report(**options, progress=True)
        msg.good("Report", output)

"""`spacy weakner compare`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import Baseline, Bootstrap, Gpu, ResamplingSeed, check_json, reporting, show_table, write_json


def compare_cli(
    test: Annotated[Path, typer.Argument(help="Gold corpus: a .spacy file or a folder of them")],
    candidates: Annotated[
        List[str],
        typer.Argument(
            help="NAME=PATH: a pipeline, or a .spacy corpus of the test sentences with labels. "
            "NAME=PATH#SOURCE: the span group 'weak:SOURCE' of either, instead of its entities"
        ),
    ],
    optional: Annotated[
        Optional[List[str]],
        typer.Option(help="NAME=PATH: a further candidate, which is left out where there is none (repeatable)"),
    ] = None,
    output: Annotated[Optional[Path], typer.Option(help="Write the scores to this JSON file")] = None,
    bootstrap: Bootstrap = 1000,
    baseline: Baseline = None,
    seed: ResamplingSeed = 0,
    gpu_id: Gpu = -1,
) -> None:
    """Score pipelines and label sets on one test set, in one table."""
    with reporting():
        from ..quality.candidates import parse_candidates
        from ..quality.compare import compare, format_table

        check_json(output, [test])
        given = parse_candidates([*(optional or ()), *candidates])
        for name in parse_candidates(optional or ()):
            if not Path(given[name]).exists():
                msg.info(f"Left out: '{name}', since there is no {given.pop(name)}")
        rows = compare(test, given, bootstrap=bootstrap, baseline=baseline, seed=seed, gpu_id=gpu_id, progress=True)
        header, cells = format_table(rows)
        show_table(header, cells)
        if output is not None:
            write_json(output, [row.to_json() for row in rows])
            msg.good("Scores", output)

"""`spacy weakner compare`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import check_json, reporting


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
    bootstrap: Annotated[
        int, typer.Option(help="Number of resampled test sets for confidence intervals; 0: none")
    ] = 1000,
    baseline: Annotated[
        Optional[str], typer.Option(help="Candidate that the others are compared with (default: the best F1)")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling")] = 0,
    gpu_id: Annotated[int, typer.Option(help="GPU for the predictions; -1 is the CPU")] = -1,
) -> None:
    """Score pipelines and label sets on one test set, in one table."""
    with reporting():
        import srsly

        from ..files import write_text
        from ..quality.candidates import parse_candidates
        from ..quality.compare import compare, format_table

        check_json(output, [test])
        given = parse_candidates([*(optional or ()), *candidates])
        for name in parse_candidates(optional or ()):
            if not Path(given[name]).exists():
                msg.info(f"Left out: '{name}', since there is no {given.pop(name)}")
        rows = compare(
            test,
            given,
            bootstrap=bootstrap,
            baseline=baseline,
            seed=seed,
            gpu_id=gpu_id,
            progress=True,
        )
        header, cells = format_table(rows)
        msg.table(cells, header=header, divider=True, aligns=("l", *"r" * (len(header) - 1)))
        if output is not None:
            write_text(output, srsly.json_dumps([row.to_json() for row in rows], indent=2) + "\n")
            msg.good("Scores", output)

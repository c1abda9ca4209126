"""`spacy weakner verdict`"""

from pathlib import Path
from typing import Annotated, Optional

import typer

from ._util import Gpu, ResamplingSeed, check_json, reporting, say, show_table


def verdict_cli(
    verdict: Annotated[Path, typer.Argument(help="verdict.json of 'fit'")],
    corpora: Annotated[Path, typer.Argument(help="Folder of the corpora")],
    output: Annotated[Path, typer.Argument(help="The HTML file to write")],
    scores: Annotated[Optional[Path], typer.Option(help="Write the scores on test to this JSON file")] = None,
    title: Annotated[str, typer.Option(help="Title of the report")] = "Report",
    seed: ResamplingSeed = 0,
    gpu_id: Gpu = -1,
) -> None:
    """Score the candidates on test, once, and write a report that opens with the verdict."""
    with reporting():
        from ..files import check_output
        from ..project.conclude import conclude
        from ..project.verdict import Verdict
        from ..quality.compare import format_table

        check_json(scores, [verdict])
        check_output([verdict, corpora], [output, *([] if scores is None else [scores])])
        rows = conclude(
            Verdict.load(verdict), corpora, output, scores=scores, title=title, seed=seed, gpu_id=gpu_id, progress=True
        )
        if rows:
            header, cells = format_table(rows)
            show_table(("on test", *header[1:]), cells)
        else:
            say("info", "There is no test set, so that nothing is scored but what the choice was made by.")
        say("good", "Report", output)

"""`spacy weakner conformal`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Gpu, check_json, reporting, show_table, write_json


def conformal_cli(
    model: Annotated[str, typer.Argument(help="Pipeline whose entities have scores: folder or name")],
    gold: Annotated[
        Path, typer.Argument(help="Gold it was neither trained on nor chosen by: a .spacy file or a folder of them")
    ],
    precision: Annotated[float, typer.Option(help="Precision that is wanted, between 0 and 1")] = 0.95,
    delta: Annotated[float, typer.Option(help="Chance that the threshold of a label promises too much")] = 0.1,
    min_entities: Annotated[
        int, typer.Option(help="Labels of which fewer entities are predicted in the gold are taken together")
    ] = 50,
    output: Annotated[Optional[Path], typer.Option(help="Write the thresholds to this JSON file")] = None,
    apply: Annotated[
        Optional[Path], typer.Option(help="Folder for a copy of the pipeline that has the thresholds (ent_combiner)")
    ] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Find the scores from which on the entities of a pipeline are as precise as wanted, with a guarantee."""
    options = dict(locals())
    with reporting():
        from ..calibration.conformal import conformal, format_thresholds
        from ..evaluation.tables import shorten

        check_json(options.pop("output"), [gold])
        report = conformal(**options, progress=True)
        msg.good(f"Thresholds for a precision of {100 * precision:g} %, from {report.docs} documents with gold")
        header, cells = format_thresholds(report)
        show_table(header, [(shorten(line[0]), *line[1:]) for line in cells])
        pooled = [label for label, own in report.labels.items() if own.pooled]
        if pooled:
            msg.info(f"Too few entities, so taken together ('all others'): {', '.join(map(shorten, pooled))}")
        never = [label for label, own in report.labels.items() if own.threshold is None]
        if never:
            msg.warn(f"No threshold is known to be that precise: {', '.join(map(shorten, never))}")
        if report.unscored:
            msg.warn(f"Entities without a score: {report.unscored}")
        if output is not None:
            write_json(output, report.to_json())
            msg.good("Thresholds", output)
        if apply is not None:
            msg.good("Pipeline", apply)

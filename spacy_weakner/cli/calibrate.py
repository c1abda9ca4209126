"""`spacy weakner calibrate`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Gpu, Overwrite, reporting, show_table


def calibrate_cli(
    model: Annotated[str, typer.Argument(help="The pipeline: folder or name")],
    gold: Annotated[
        Path, typer.Argument(help="Gold it was neither trained on nor chosen by: a .spacy file or a folder of them")
    ],
    output_path: Annotated[Path, typer.Argument(help="Folder for the calibrated pipeline")],
    fit: Annotated[
        str,
        typer.Option(
            help="temperature: true probabilities; bias: the best F1; threshold: the wanted precision; or several, "
            "with commas"
        ),
    ],
    precision: Annotated[float, typer.Option(help="Threshold: precision that is wanted, between 0 and 1")] = 0.95,
    delta: Annotated[
        float, typer.Option(help="Threshold: probability that the threshold of a label promises too much")
    ] = 0.1,
    min_entities: Annotated[
        int, typer.Option(help="Threshold: labels of which fewer entities are predicted in the gold are taken together")
    ] = 50,
    component: Annotated[
        Optional[str], typer.Option(help="Its component (default: the one that writes the entities)")
    ] = None,
    overwrite: Overwrite = False,
    gpu_id: Gpu = -1,
) -> None:
    """Calibrate a pipeline on held-out gold: its probabilities, how readily it predicts entities, and thresholds from
    which on its entities are as precise as wanted, with a guarantee."""
    options = dict(locals())
    with reporting():
        from ..calibration.calibrate import calibrate, format_thresholds
        from ..evaluation.tables import shorten

        options["fit"] = [name.strip() for name in fit.split(",")]
        report = calibrate(**options, progress=True)
        msg.good(f"Calibrated '{report.component}'", output_path)
        for name, fitted in (("Bias", report.bias), ("Temperature", report.temperature)):
            if fitted is not None:
                what = "F1" if name == "Bias" else "loss"
                value = f"{fitted.value:+.1f}" if name == "Bias" else f"{fitted.value:.3f}"
                before, after = (f"{x:.1f}" if name == "Bias" else f"{x:.4f}" for x in (fitted.before, fitted.after))
                msg.info(f"{name}: {value} ({what} on {report.docs} documents: {before} before, {after} after)")
                if fitted.at_bound:
                    msg.warn(f"{name}: this is the end of the range that was searched")
        if report.thresholds is None:
            return
        found = report.thresholds
        msg.info(f"Thresholds for a precision of {100 * precision:g} %, from {found.docs} documents")
        header, cells = format_thresholds(found)
        show_table(header, [(shorten(line[0]), *line[1:]) for line in cells])
        pooled = [label for label, threshold in found.labels.items() if threshold.pooled]
        if pooled:
            msg.info(f"Too few entities, so taken together ('all others'): {', '.join(map(shorten, pooled))}")
        never = [label for label, threshold in found.labels.items() if threshold.threshold is None]
        if never:
            msg.warn(f"No threshold is known to be that precise: {', '.join(map(shorten, never))}")
        if found.unscored:
            msg.warn(f"Entities without a score: {found.unscored}")

"""`spacy weakner temperature`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Gpu, reporting


def temperature_cli(
    model: Annotated[str, typer.Argument(help="The pipeline: folder or name")],
    gold: Annotated[Path, typer.Argument(help="Gold it was not trained on: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="Folder for the calibrated pipeline")],
    component: Annotated[
        Optional[str], typer.Option(help="Its component (default: the head that writes the entities)")
    ] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Calibrate the probabilities of a pipeline on held-out gold. What it predicts stays the same."""
    with reporting():
        from ..calibration.temperature import fit_temperature

        report = fit_temperature(output_path, model, gold, component=component, gpu_id=gpu_id)
        msg.good(f"Temperature of '{report.component}': {report.temperature:.3f}", output_path)
        if report.at_bound:
            msg.warn("This is the end of the range that was searched: the probabilities can hardly be calibrated so")
        msg.info(f"Loss on {report.docs} sentences: {report.before:.4f} before, {report.after:.4f} after")

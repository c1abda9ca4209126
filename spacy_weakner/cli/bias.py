"""`spacy weakner bias`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Gpu, reporting


def bias_cli(
    model: Annotated[str, typer.Argument(help="The pipeline: folder or name")],
    gold: Annotated[Path, typer.Argument(help="Gold it was not trained on: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="Folder for the changed pipeline")],
    component: Annotated[
        Optional[str], typer.Option(help="Its component (default: the head that writes the entities)")
    ] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Find how readily a pipeline should give entities: what is added to the scores of "O" for the best F1 on held-out
    gold."""
    with reporting():
        from ..calibration.bias import fit_bias

        report = fit_bias(output_path, model, gold, component=component, gpu_id=gpu_id)
        msg.good(f"Bias of '{report.component}': {report.bias:+.1f}", output_path)
        if report.at_bound:
            msg.warn("This is the end of the range that was searched")
        msg.info(f"F1 on these {report.docs} sentences: {report.before:.1f} before, {report.after:.1f} after")

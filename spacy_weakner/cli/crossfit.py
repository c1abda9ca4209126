"""`spacy weakner crossfit`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Processes, TrainingGpu, TrainingRay, config_overrides, reporting


def crossfit_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of the training")],
    gold: Annotated[Path, typer.Argument(help="Gold corpus: a .spacy file or a folder of them")],
    output: Annotated[Path, typer.Argument(help="Folder for the folds and the pipelines")],
    folds: Annotated[int, typer.Option(help="Number of folds")] = 5,
    dev: Annotated[
        Optional[Path], typer.Option(help="Other gold, to choose a checkpoint by (default: the last)")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split")] = 0,
    processes: Processes = 1,
    gpu_id: TrainingGpu = -1,
    ray: TrainingRay = None,
) -> None:
    """Train on all but a fold of the gold, for every fold, for 'calibrate'. Further options override the config, as for
    'spacy train'."""
    options = dict(locals())
    with reporting():
        from ..stages.crossfit import crossfit

        overrides = config_overrides(options.pop("ctx"))
        found = crossfit(**options, overrides=overrides, progress=True)
        for fold in found:
            done = " (finished already)" if fold.skipped else ""
            msg.good(f"{fold.model}={fold.corpus}: {fold.docs} sentences{done}")

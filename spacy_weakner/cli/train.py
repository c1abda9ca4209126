"""`spacy weakner train`"""

from pathlib import Path
from typing import Annotated

import typer

from ._util import AUTO, TrainingGpu, config_overrides, number, reporting, say


def train_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of the training")],
    output: Annotated[Path, typer.Argument(help="Folder for 'model-best' and 'model-last'")],
    passes: Annotated[
        str, typer.Option(help="How often it reads the corpus paths.train; auto: as long as the config says")
    ] = AUTO,
    gpu_id: TrainingGpu = -1,
) -> None:
    """Train as 'spacy train' does, but for a number of passes over the corpus, and not again what is finished. Further
    options override the config."""
    with reporting():
        from ..stages.runtime.training import BEST, LAST
        from ..stages.train import train

        member = train(
            config,
            output,
            passes=number("passes", passes, float),
            overrides=config_overrides(ctx),
            gpu_id=gpu_id,
            progress=True,
        )
        if member.skipped:
            say("info", "Finished already")
        if member.score is not None:
            say("info", f"{BEST} was the best on dev: {100 * member.score:.2f}")
        say("good", "Pipeline", output / LAST)

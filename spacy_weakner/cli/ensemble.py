"""`spacy weakner ensemble`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import AUTO, Processes, TrainingGpu, TrainingRay, config_overrides, number, reporting, show_shards


def ensemble_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of the training, on paths.train")],
    corpus: Annotated[Path, typer.Argument(help="What to train on and to write soft labels to: .spacy file or folder")],
    output: Annotated[Path, typer.Argument(help="Folder for the pipelines")],
    corpus_output: Annotated[Path, typer.Argument(help="A .spacy file, or a folder where every shard keeps its name")],
    members: Annotated[int, typer.Option(help="Number of pipelines")] = 5,
    passes: Annotated[
        str, typer.Option(help="How often each reads the corpus; auto: as long as the config says")
    ] = AUTO,
    processes: Processes = 1,
    seed: Annotated[int, typer.Option(help="Seed of the first one; the others count on from there")] = 0,
    gpu_id: TrainingGpu = -1,
    ray: TrainingRay = None,
    component: Annotated[
        Optional[str], typer.Option(help="Their component (default: the last that gives distributions over tags)")
    ] = None,
) -> None:
    """Train one config with several seeds, and write the mean of the pipelines' distributions over tags as soft labels.
    Further options override the config, as for 'spacy train'."""
    options = dict(locals())
    with reporting():
        from ..stages.ensemble import ensemble

        overrides = config_overrides(options.pop("ctx"))
        options["passes"] = number("passes", passes, float)
        report = ensemble(**options, overrides=overrides, progress=True)
        done = sum(member.skipped for member in report.members)
        msg.good(f"{report.docs} documents", corpus_output)
        msg.info(f"Pipelines: {len(report.members)}; finished already: {done}")
        msg.info(f"Tokens: {report.tokens}; with the same most likely tag: {100 * report.agreement:.2f} %")
        msg.info(f"Mean standard deviation of P(entity) between the pipelines: {report.deviation:.4f}")
        show_shards(report.skipped, report.replaced)

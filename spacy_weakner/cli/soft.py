"""`spacy weakner relabel soft`"""

from typing import Annotated, List

import typer
from wasabi import msg

from ._util import Component, Corpus, Gpu, SameShards, reporting, show_shards


def soft_cli(
    input_path: Corpus,
    output_path: SameShards,
    models: Annotated[List[str], typer.Argument(help="Pipelines, or a folder of 'train --members'")],
    component: Component = None,
    gpu_id: Gpu = -1,
) -> None:
    """Write the tag distributions that pipelines predict as soft labels; of several pipelines the mean."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..relabel.soft import predict_soft_labels

        report = predict_soft_labels(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Tokens: {report.tokens}; with the same most likely tag: {100 * report.agreement:.2f} %")
        msg.info(f"Mean standard deviation of P(entity) between the pipelines: {report.deviation:.4f}")
        show_shards(report.skipped, report.replaced)

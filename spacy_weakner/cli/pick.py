"""`spacy weakner relabel pick`"""

from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Component, Corpus, Gpu, Ray, SameShards, Workers, listing, reporting, show_shards


def pick_cli(
    input_path: Corpus,
    output_path: SameShards,
    model: Annotated[str, typer.Argument(help="Pipeline with mrc_ner: its folder, or an installed package")],
    threshold: Annotated[float, typer.Option(help="Least probability of starts and ends of entities")] = 0.1,
    pairing: Annotated[
        Optional[str], typer.Option(help="End of an entity: nearest or probable (default: as in its config)")
    ] = None,
    union: Annotated[bool, typer.Option("--union", help="Keep the existing labels, too")] = False,
    component: Component = None,
    gpu_id: Gpu = -1,
    workers: Workers = 1,
    ray: Ray = None,
) -> None:
    """Replace the labels of a corpus by the entities that a model predicts, or add these."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..relabel.pick import pick

        report = pick(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        new = sum(report.picked.values())
        msg.info(f"Entities: {report.given} before, of which {report.kept} stay; new: {new} ({listing(report.picked)})")
        show_shards(report.skipped, report.replaced)

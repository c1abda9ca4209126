"""`spacy weakner pick`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Gpu, Ray, Workers, listing, reporting, show_shards


def pick_cli(
    input_path: Annotated[Path, typer.Argument(help="Corpus: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder where every shard keeps its name")],
    model: Annotated[str, typer.Argument(help="Pipeline with mrc_ner: its folder, or an installed package")],
    threshold: Annotated[float, typer.Option(help="Probability that starts and ends of entities must be above")] = 0.1,
    pairing: Annotated[Optional[str], typer.Option(help="nearest or probable end; default: as in its config")] = None,
    union: Annotated[bool, typer.Option("--union", help="Keep the labels that are there, beside the picked")] = False,
    component: Annotated[Optional[str], typer.Option(help="Name of the component; default: the first mrc_ner")] = None,
    gpu_id: Gpu = -1,
    workers: Workers = 1,
    ray: Ray = None,
) -> None:
    """Replace the labels of a corpus by what a model takes for entities, or add to them."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..stages.pick import pick

        report = pick(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        new = sum(report.picked.values())
        msg.info(f"Entities: {report.given} before, of which {report.kept} stay; new: {new} ({listing(report.picked)})")
        show_shards(report.skipped, report.replaced)

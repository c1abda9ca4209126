"""`spacy weakner mask`"""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

from ._util import listing, reporting, show_shards


def mask_cli(
    input_path: Annotated[Path, typer.Argument(help="Gold corpus: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder where every shard keeps its name")],
    probability: Annotated[float, typer.Option(help="Probability of each entity to be hidden")],
    unmatched: Annotated[
        str, typer.Option(help="What the tokens that are left become: outside, as in the papers, or missing")
    ] = "outside",
    seed: Annotated[int, typer.Option(help="Seed of the draws")] = 0,
) -> None:
    """Hide a share of the gold entities, for experiments on annotations with holes."""
    with reporting():
        from ..stages.mask import mask

        report = mask(input_path, output_path, probability=probability, unmatched=unmatched, seed=seed, progress=True)
        n = sum(report.hidden.values())
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Entities: {report.entities}; hidden: {n} ({listing(report.hidden)})")
        if report.without_gold:
            msg.warn(f"Documents without gold, which stay as they are: {report.without_gold}")
        show_shards(report.skipped, report.replaced)

"""`spacy weakner aggregate`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import listing, reporting


def aggregate_cli(
    input_path: Annotated[Path, typer.Argument(help="Labelled corpus: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder for shards")],
    policy: Annotated[str, typer.Option(help="For conflicts: longest, priority, majority or drop")] = "longest",
    source: Annotated[
        Optional[List[str]],
        typer.Option(help="Source to use, the most trusted first (repeatable; default: all)"),
    ] = None,
    unmatched: Annotated[str, typer.Option(help="What other tokens become: missing or outside")] = "missing",
) -> None:
    """Write doc.ents from the weak labels of a corpus; gold moves to the span group 'gold'."""
    with reporting():
        from ..stages.aggregate import aggregate

        report = aggregate(
            input_path, output_path, policy=policy, sources=source or None, unmatched=unmatched, progress=True
        )
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Entities: {listing(report.entities)} from {report.candidates} candidates")
        msg.info(f"Tokens about which nothing is known: {report.missing} of {report.tokens}")
        if report.gold:
            msg.info(f"Gold moved to the span group 'gold': {report.gold} documents")
        if report.unlabelled:
            msg.warn(f"Documents that no source has looked at: {report.unlabelled}")
        if report.skipped:
            msg.info(f"Shards that were finished already: {report.skipped}")

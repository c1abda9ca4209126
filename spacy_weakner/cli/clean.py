"""`spacy weakner relabel clean`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Component, Corpus, Gpu, SameShards, reporting, show_shards, show_table


def clean_cli(
    input_path: Corpus,
    output_path: SameShards,
    model: Annotated[
        str, typer.Argument(help="The folder of 'train --folds' on this corpus; or a pipeline trained on other data")
    ],
    component: Component = None,
    factor: Annotated[
        float, typer.Option(help="Factor of the threshold of each label: the lower, the fewer labels are suspect")
    ] = 1.0,
    entities: Annotated[bool, typer.Option(help="Clean entities")] = True,
    outside: Annotated[
        bool, typer.Option("--outside", help="Clean tokens that are 'O', and borders of entities by them")
    ] = False,
    gold: Annotated[bool, typer.Option("--gold", help="Clean documents with gold, too")] = False,
    list_path: Annotated[
        Optional[Path], typer.Option("--list", help="Write the suspect labels to this JSONL file")
    ] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Make labels missing that a model which was not trained on them confidently contradicts."""
    options = dict(locals())
    with reporting():
        from ..evaluation.tables import shorten
        from ..relabel.clean import clean

        report = clean(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        rows = []
        for kind, found in (("", report.labels), ("source ", report.sources)):
            for name, counts in sorted(found.items()):
                share = f"{100 * counts.suspect / max(1, counts.units):.1f} %"
                threshold = "-" if counts.threshold is None else f"{counts.threshold:.3f}"
                rows.append((shorten(kind + name), f"{counts.units:,}", f"{counts.suspect:,}", share, threshold))
        show_table(("", "entities", "suspect", "", "threshold"), rows)
        msg.info(f"Tokens made missing: {report.missing} of {report.tokens}")
        if report.gold:
            msg.info(f"Documents with gold, which stays (--gold cleans it, too): {report.gold}")
        if list_path is not None:
            msg.good("Suspect labels", list_path)
        show_shards(report.skipped, report.replaced)

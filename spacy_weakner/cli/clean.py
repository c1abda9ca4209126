"""`spacy weakner clean`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Gpu, reporting, show_shards, show_table


def clean_cli(
    input_path: Annotated[Path, typer.Argument(help="Corpus with labels: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder where every shard keeps its name")],
    judge: Annotated[
        str, typer.Argument(help="The folder of a 'crossfit' on this corpus; or a pipeline trained on other data")
    ],
    component: Annotated[
        Optional[str], typer.Option(help="Component to ask (default: the last that gives distributions over tags)")
    ] = None,
    factor: Annotated[float, typer.Option(help="Of the threshold of a label: the lower, the fewer are suspect")] = 1.0,
    entities: Annotated[bool, typer.Option(help="Judge entities")] = True,
    outside: Annotated[
        bool, typer.Option("--outside", help="Judge tokens that are 'O', and borders of entities by them")
    ] = False,
    gold: Annotated[bool, typer.Option("--gold", help="Clean documents with gold, too")] = False,
    list_path: Annotated[
        Optional[Path], typer.Option("--list", help="Write what was suspect to this JSONL file, to look at")
    ] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Make labels missing that a model which has not seen them confidently takes for wrong."""
    options = dict(locals())
    with reporting():
        from ..quality.tables import shorten
        from ..stages.clean import clean

        report = clean(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        rows = []
        for kind, found in (("", report.labels), ("source ", report.sources)):
            for name, own in sorted(found.items()):
                share = f"{100 * own.suspect / max(1, own.units):.1f} %"
                threshold = "-" if own.threshold is None else f"{own.threshold:.3f}"
                rows.append((shorten(kind + name), f"{own.units:,}", f"{own.suspect:,}", share, threshold))
        show_table(("", "entities", "suspect", "", "threshold"), rows)
        msg.info(f"Tokens made missing: {report.missing} of {report.tokens}")
        if report.gold:
            msg.info(f"Documents with gold, which stays (--gold cleans it, too): {report.gold}")
        if list_path is not None:
            msg.good("What was suspect", list_path)
        show_shards(report.skipped, report.replaced)

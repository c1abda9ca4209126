"""`spacy weakner analyze`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, List, Optional

import typer
from wasabi import msg

from ._util import check_json, reporting, write_json

if TYPE_CHECKING:
    from ..quality.tables import Table

# Where the output is no terminal: wide enough that no table is folded.
_PIPED_WIDTH = 160


def analyze_cli(
    corpus: Annotated[Path, typer.Argument(help="Labelled corpus: a .spacy file or a folder of them")],
    gold: Annotated[
        Optional[Path], typer.Option(help="Corpus with gold for the same sentences (default: the gold in CORPUS)")
    ] = None,
    source: Annotated[
        Optional[List[str]],
        typer.Option(help="Source to look at: a name, 'ents' or 'pred:PIPE' (repeatable; default: all)"),
    ] = None,
    output: Annotated[Optional[Path], typer.Option(help="Write the analysis to this JSON file")] = None,
    top: Annotated[int, typer.Option(help="Number of phrases in the lists of frequent errors")] = 10,
) -> None:
    """Audit weak labels: coverage, disagreement between sources and, where gold is known, their errors."""
    with reporting():
        from ..quality.analyze import analyze
        from ..quality.tables import analysis_tables
        from ..scores import as_json

        check_json(output, [corpus, *([] if gold is None else [gold])])
        analysis = analyze(corpus, gold=gold, sources=source or None, top=top, progress=True)
        msg.info(f"{analysis.docs} documents, {analysis.tokens} tokens")
        if analysis.unlabelled:
            msg.warn(f"Documents that none of the sources has looked at: {analysis.unlabelled}")
        for table in analysis_tables(analysis):
            _print(table)
        if analysis.gold is None:
            msg.warn("No gold is known here, so that nothing is said about how often the labels are right.")
        if output is not None:
            write_json(output, as_json(analysis))
            msg.good("Analysis", output)


def _print(table: "Table") -> None:
    import rich.box
    from rich.console import Console
    from rich.table import Table as RichTable

    # No markup: a phrase like "[bold]" is to be read as it stands.
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, emoji=False, highlight=False, width=_PIPED_WIDTH)
    grid = RichTable(title=table.title, title_justify="left", box=rich.box.SIMPLE_HEAD)
    for i, name in enumerate(table.header):
        grid.add_column(name, justify="left" if i < table.names else "right")
    for row in table.rows:
        grid.add_row(*row)
    console.print(grid)
    if table.note:
        console.print(table.note, soft_wrap=True)

"""`spacy weakner convert`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ..corpus.formats.names import OUTPUTS, SUFFIXES
from ._util import (
    Columns,
    Format,
    Lang,
    Overwrite,
    Ray,
    Sentences,
    SpansKey,
    Tokenizer,
    Workers,
    listing,
    reporting,
    say,
    show_shards,
)


def convert_cli(
    input_path: Annotated[
        Path, typer.Argument(help=f"File or folder: {' '.join(SUFFIXES)} (text and JSON also as .gz)")
    ],
    output_path: Annotated[Path, typer.Argument(help="A file, or a folder for .spacy shards")],
    format: Format = None,
    to: Annotated[
        Optional[str], typer.Option(help=f"Format of the output: {', '.join(OUTPUTS)} (default: its suffix tells)")
    ] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    sentences: Sentences = True,
    source: Annotated[str, typer.Option(help="Name for 'weak_ents' that are a plain list")] = "imported",
    limit: Annotated[Optional[int], typer.Option(help="Write at most so many documents")] = None,
    misaligned: Annotated[
        str, typer.Option(help="Spans of text that do not end at token borders: error, drop, expand or contract")
    ] = "error",
    offsets: Annotated[
        str, typer.Option(help="What offsets of other tools count: auto, codepoints, utf16 or graphemes")
    ] = "auto",
    labels: Annotated[
        Optional[str], typer.Option(help="Names of tags that are numbers, from 0 on, or have no type: O,B-PER,I-PER")
    ] = None,
    columns: Columns = (1, -1),
    spans_key: SpansKey = None,
    shard_size: Annotated[
        int,
        typer.Option(help="Documents per shard, if the output is a folder; with --workers or --ray lines of the input"),
    ] = 5000,
    overwrite: Overwrite = False,
    workers: Workers = 1,
    ray: Ray = None,
) -> None:
    """Convert a corpus from or to our rows, CoNLL columns, .spacy files, and the formats of annotation tools
    (docs/formats.md)."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..conversion.convert import convert

        options["labels"] = None if labels is None else [name.strip() for name in labels.split(",")]
        report = convert(**options, progress=True)
        msg.good(f"{report.docs} documents, {report.tokens} tokens", output_path)
        if report.unknown < report.docs:
            msg.info(f"Entities: {listing(report.entities)}")
        if report.unknown:
            msg.info(f"Without entity annotation: {report.unknown} documents")
        if report.weak:
            msg.info(f"Weak spans: {listing(report.weak)}")
        if report.empty:
            msg.info(f"Empty lines ignored: {report.empty}")
        if report.long:
            from ..corpus.sentences import LONGEST_RUN

            msg.warn(f"Texts left out with more than {LONGEST_RUN} signs without white space: {report.long}")
        if report.misaligned:
            msg.warn(f"Spans dropped that do not end at token borders: {report.misaligned}")
        if report.moved:
            msg.warn(f"Spans {misaligned}ed to token borders: {report.moved}")
        for remark in report.remarks:
            say("warning", remark[0].upper() + remark[1:])
        if report.lost:
            lost = ", ".join(f"{what} ({n})" for what, n in report.lost.items())
            msg.warn(f"Lost, since {output_path.name} cannot hold it: {lost}")
        show_shards(report.skipped, report.replaced)

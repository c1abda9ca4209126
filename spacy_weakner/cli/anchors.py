"""`spacy weakner anchors`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import Lang, Overwrite, ShardSize, Tokenizer, listing, reporting


def anchors_cli(
    inputs: Annotated[
        List[Path], typer.Argument(help="Files or folders: .xml (dumps) .wiki .txt .html .htm .jsonl (or .gz .bz2)")
    ],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder for .spacy shards")],
    format: Annotated[Optional[str], typer.Option(help="Format of the input: dump, wikitext, html, jsonl")] = None,
    label: Annotated[str, typer.Option(help="Label of the anchors")] = "Entity",
    min_anchors: Annotated[int, typer.Option(help="Leave out sentences with fewer anchors")] = 4,
    max_length: Annotated[int, typer.Option(help="Leave out sentences with more tokens")] = 250,
    max_page: Annotated[int, typer.Option(help="Skip pages with more characters")] = 10_000_000,
    max_seconds: Annotated[float, typer.Option(help="Skip pages that take longer to parse")] = 10.0,
    limit: Annotated[Optional[int], typer.Option(help="Stop after so many sentences")] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    shard_size: ShardSize = 5000,
    overwrite: Overwrite = False,
) -> None:
    """Make a corpus from wikis and web pages: sentences with their links as entities of one label."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..labeling.anchors.anchors import anchors

        report = anchors(**options, progress=True)
        msg.good(f"{report.docs} sentences, {report.tokens} tokens, {report.anchors} anchors", output_path)
        msg.info(f"Articles: {report.pages}; passed over: {report.redirects} redirects, {report.other} other pages")
        left_out = f"{report.few} with too few anchors, {report.long} too long, {report.duplicates} duplicates"
        msg.info(f"Sentences left out: {left_out}")
        if report.misaligned:
            msg.warn(f"Anchors dropped that do not end at token borders: {report.misaligned}")
        if report.unreadable:
            msg.warn(f"Pages skipped: {listing(report.skipped)}; the first: {report.unreadable[0]}")

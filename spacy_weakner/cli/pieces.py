"""`spacy weakner pieces`"""

from pathlib import Path
from typing import Annotated, List

import typer
from wasabi import msg

from ._util import Format, Overwrite, Tokenizer, TrainingGpu, reporting


def pieces_cli(
    inputs: Annotated[List[Path], typer.Argument(help="Corpora whose words are read: files or folders, in any format")],
    output_path: Annotated[Path, typer.Argument(help="Folder for the table")],
    model: Annotated[str, typer.Option(help="Transformer to ask: a Hugging Face folder or name")],
    width: Annotated[int, typer.Option(help="Width of the vectors, at most")] = 256,
    overwrite: Overwrite = False,
    gpu_id: TrainingGpu = -1,
    lang: Annotated[str, typer.Option(help="Language of raw text")] = "en",
    tokenizer: Tokenizer = None,
    format: Format = None,
) -> None:
    """Take vectors of word pieces from a Transformer, for the sizes 'linear-static' and 'static'."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..stages.pieces import distil_pieces

        report = distil_pieces(**options, progress=True)
        msg.good(f"{report.pieces} pieces, {report.width} numbers each", output_path)
        msg.info(f"Words of the corpora: {report.words}; fitted to {report.cut} of several pieces")
        if report.held_out:
            msg.info(
                f"Likeness to what the Transformer says of {report.held_out} words that were held out: "
                f"{report.after:.2f} ({report.before:.2f} before the vectors were fitted)"
            )

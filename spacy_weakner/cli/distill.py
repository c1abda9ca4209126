"""`spacy weakner encoder distill`"""

from pathlib import Path
from typing import Annotated, List

import typer
from wasabi import msg

from ._util import Format, Gpu, Lang, Overwrite, Tokenizer, reporting


def distill_cli(
    inputs: Annotated[List[Path], typer.Argument(help="Corpora whose words are read: files or folders of any format")],
    output_path: Annotated[Path, typer.Argument(help="Folder for the table")],
    model: Annotated[str, typer.Option(help="Transformer: a Hugging Face folder or name")],
    width: Annotated[int, typer.Option(help="Width of the vectors, at most")] = 256,
    overwrite: Overwrite = False,
    gpu_id: Gpu = -1,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    format: Format = None,
) -> None:
    """Distill a Transformer into subword vectors, for the sizes 'linear-static' and 'static'."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..encoder_tools.distill import distill

        report = distill(**options, progress=True)
        msg.good(f"{report.pieces} pieces, {report.width} numbers each", output_path)
        msg.info(f"Words of the corpora: {report.words}; fitted to {report.cut} of several pieces")
        if report.held_out:
            msg.info(
                f"Mean cosine with the Transformer's vectors of {report.held_out} held-out words: "
                f"{report.after:.2f} ({report.before:.2f} before the vectors were fitted)"
            )

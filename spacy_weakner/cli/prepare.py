"""`spacy weakner prepare`"""

from pathlib import Path
from typing import Annotated, Optional

import typer

from ._util import Columns, Lang, Misaligned, Seed, SpansKey, Tokenizer, given, reporting, say


def prepare_cli(
    output: Annotated[Path, typer.Argument(help="Folder for the corpora; those of an earlier run are replaced")],
    text: Annotated[Optional[str], typer.Option(help="Text without labels: one text a line, JSONL, or .spacy")] = None,
    gold: Annotated[Optional[str], typer.Option(help="Complete annotations (docs/formats.md)")] = None,
    dev: Annotated[
        Optional[str], typer.Option(help="Annotations to choose models by (default: split off the gold)")
    ] = None,
    test: Annotated[Optional[str], typer.Option(help="Annotations for the final scores (default: split off)")] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    misaligned: Misaligned = "error",
    columns: Columns = (1, -1),
    spans_key: SpansKey = None,
    seed: Seed = 0,
) -> None:
    """Convert text, gold, dev and test; split dev and test off the gold if they are missing. An empty option, or
    "null", counts as missing."""
    options = dict(locals())
    with reporting():
        from ..project.prepare import prepare

        options.update(text=given(text), gold=given(gold), dev=given(dev), test=given(test))
        prepared = prepare(**options, progress=True)
        counts = ", ".join(f"{name} {getattr(prepared, name):,}" for name in ("gold", "dev", "test", "text"))
        say("good", f"Sentences: {counts}", output)
        for note in prepared.notes:
            say("info", note[0].upper() + note[1:])

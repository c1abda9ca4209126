"""`spacy weakner prepare`"""

from pathlib import Path
from typing import Annotated, Optional

import typer

from ._util import Columns, Misaligned, SpansKey, Tokenizer, given, reporting, say


def prepare_cli(
    output: Annotated[Path, typer.Argument(help="Folder for the corpora; those of an earlier run are replaced")],
    text: Annotated[Optional[str], typer.Option(help="Text without labels: a line each, JSONL, or .spacy")] = None,
    gold: Annotated[Optional[str], typer.Option(help="Complete annotations (docs/formats.md)")] = None,
    dev: Annotated[Optional[str], typer.Option(help="The same, to choose by (default: split off the gold)")] = None,
    test: Annotated[Optional[str], typer.Option(help="The same, to score at the end (default: split off)")] = None,
    lang: Annotated[str, typer.Option(help="Language of the text")] = "en",
    tokenizer: Tokenizer = None,
    misaligned: Misaligned = "error",
    columns: Columns = (1, -1),
    spans_key: SpansKey = None,
    seed: Annotated[int, typer.Option(help="Seed of the split")] = 0,
) -> None:
    """Convert what there is, and split dev and test off the gold where they are not given. An empty option, or "null",
    is one that is not given."""
    options = dict(locals())
    with reporting():
        from ..project.prepare import prepare

        options.update(text=given(text), gold=given(gold), dev=given(dev), test=given(test))
        prepared = prepare(**options, progress=True)
        counts = ", ".join(f"{name} {getattr(prepared, name):,}" for name in ("gold", "dev", "test", "text"))
        say("good", f"Sentences: {counts}", output)
        for note in prepared.notes:
            say("info", note[0].upper() + note[1:])

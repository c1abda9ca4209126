"""`spacy weakner prepare`"""

from typing import Annotated, Any, Optional

import typer

from ..project.prepare import Preparation, prepare
from ._command import command
from ._util import given_path, new_app, say

app = new_app()
_File = Annotated[Optional[str], typer.Option()]


def _read(given: Any) -> None:
    for name in ("text", "gold", "dev", "test"):
        setattr(given, name, given_path(getattr(given, name)))


@command(app, prepare, before=_read, hidden=True, text=_File, gold=_File, dev=_File, test=_File)
def show(prepared: Preparation, given: Any) -> None:
    counts = ", ".join(f"{name} {getattr(prepared, name):,}" for name in ("gold", "dev", "test", "text"))
    say("good", f"Sentences: {counts}", given.output)
    for note in prepared.notes:
        say("info", note[0].upper() + note[1:])

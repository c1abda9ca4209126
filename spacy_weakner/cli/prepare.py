"""`spacy weakner prepare`"""

from typing import Any

from ..project.prepare import Preparation, prepare
from ._command import command
from ._util import new_app, say

app = new_app()


@command(app, prepare, hidden=True)
def show(prepared: Preparation, given: Any) -> None:
    counts = ", ".join(f"{name} {getattr(prepared, name):,}" for name in ("gold", "dev", "test", "text"))
    say("good", f"Sentences: {counts}", given.output)
    for note in prepared.notes:
        say("info", note[0].upper() + note[1:])

"""`spacy train` in a process that `child.start` has started."""

import os
import re
import sys
from pathlib import Path
from typing import Any, Callable, Sequence

from ...scratch import DISK_ERRORS, disk_error
from .child import FAILED


def main(arguments: Sequence[str], tell: Callable[[object], None]) -> int:
    """Run a command of spaCy.

    arguments (Sequence[str]): What is made, for messages, and the command.
    tell (Callable[[object], None]): Tells the parent an error.
    RETURNS (int): The exit code.
    """
    from spacy.cli import setup_cli

    sys.argv = ["spacy", *arguments[1:]]
    if not _may_need_transformers(arguments):
        _without_transformers()
    try:
        setup_cli()
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        tell(disk_error(Path(arguments[0]), error))
        os._exit(FAILED)  # without a last try to write to the log
    return 0


def _may_need_transformers(arguments: Sequence[str]) -> bool:
    """Whether a config names a Transformer, or another pipeline, which may have one."""
    files = [Path(argument) for argument in arguments if argument.endswith(".cfg")]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file()]
    values = [*arguments, *(value for text in texts for value in re.findall(r'"([^"]*)"', text))]
    if any(os.path.isfile(os.path.join(value, "config.cfg")) for value in values if value):
        return True
    return any("transformer" in text.lower() or re.search(r"^source *=", text, re.M) for text in (*arguments, *texts))


def _without_transformers() -> None:
    """spaCy loads the factories of all installed packages for every pipeline: that of spacy-transformers takes longer
    than a linear CRF."""
    from spacy import registry

    factories: Any = getattr(registry, "_entry_point_factories", None)
    points = getattr(factories, "_get_entry_points", None)
    if points is not None:
        others = [point for point in points() if not point.value.startswith("spacy_transformers.")]
        factories._get_entry_points = lambda: others

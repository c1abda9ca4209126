"""`spacy train` in a process that `child.start` has started."""

import os
import sys
from pathlib import Path
from typing import Callable, Sequence

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
    try:
        setup_cli()
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        tell(disk_error(Path(arguments[0]), error))
        os._exit(FAILED)  # without a last try to write to the log
    return 0

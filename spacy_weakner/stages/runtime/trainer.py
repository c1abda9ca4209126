"""`spacy train` that ends when the process that has started it does: `python -m spacy_weakner.stages.runtime.trainer
OUTPUT train CONFIG --output ...`
"""

import os
import sys
from pathlib import Path
from typing import List

from ...scratch import DISK_ERRORS, disk_error
from .child import FAILED, begin


def main(output: Path, arguments: List[str]) -> None:
    """Run a command of spaCy.

    output (Path): What is made, for messages.
    arguments (List[str]): The command.
    """
    tell = begin()
    # This takes seconds, in which the parent is watched already.
    from spacy.cli import setup_cli

    sys.argv = ["spacy", *arguments]
    try:
        setup_cli()
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        tell(disk_error(output, error))
        os._exit(FAILED)  # without a last try to write to the log


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""What is fuzzed, and how a command is run on it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Callable, Dict, List

from typer.main import get_command

from spacy_weakner.cli._util import reporting
from spacy_weakner.cli.app import app

from .mutators import mutate

Files = Dict[str, bytes]
Mutator = Callable[[Random, bytes], bytes]
OUT = "out"  # whatever begins with it is output


@dataclass(frozen=True)
class Kind:
    """What is fuzzed.

    name (str): Its name.
    target (str): The file that is damaged.
    run (Callable[[Path], None]): Works in a folder with the files; raises `typer.Exit`, or leaves its code, as the
        command line does.
    files (Callable[[], Files]): Valid files by path.
    mutator (Mutator): Damages the file.
    kept (bool): Whether output that is there before may stay after an error.
    to (str): The format in which the output has to be readable again, if it is no `.spacy` file.
    """

    name: str
    target: str
    run: Callable[[Path], Any]
    files: Callable[[], Files] = field(repr=False)
    mutator: Mutator = mutate
    kept: bool = False
    to: str = ""


def command(*arguments: str) -> Callable[[Path], Any]:
    """A command of the command line; arguments that name files are those of the folder."""

    language = () if arguments[0] == "aggregate" else ("--lang", "xx")  # which starts at once

    def run(folder: Path) -> Any:
        found = [str(folder / word[1:]) if word.startswith("@") else word for word in (*arguments, *language)]
        return get_command(app)(found, standalone_mode=False)

    return run


def function(call: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """A function whose errors are told as a command would."""

    def run(folder: Path) -> None:
        with reporting():
            call(folder)

    return run


def text(**files: str) -> Callable[[], Files]:
    """Files of texts; "__" in a name stands for the dot."""
    return lambda: {name.replace("__", "."): value.encode() for name, value in files.items()}


def jsonl(rows: List[Dict[str, Any]]) -> str:
    """Rows as lines."""
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n"

"""What is fuzzed, how a command is run on it, and a corpus of rows, and the same as a `.spacy` file."""

import json
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, List

import spacy
import srsly
from typer.main import get_command

from spacy_weakner.cli._util import reporting
from spacy_weakner.cli.app import app
from spacy_weakner.corpus.docbin import write_docs
from tests.util import doc_from_row

from .mutators import mutate, mutate_binary, mutate_json

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


ROWS: List[Dict[str, Any]] = [
    {"id": "s1", "tokens": ["New", "York", "rocks", "."], "ents": [[0, 2, "CITY"]], "cats": {"TRAVEL": 1.0}},
    {
        "tokens": ["Anna", "took", "aspirin"],
        "spaces": [True, True, False],
        "ents": [[0, 1, "PER"]],
        "missing": [[2, 3]],
    },
    {"text": "Bob met Anna in Paris.", "ents": [{"start": 0, "end": 3, "label": "PER"}, [16, 21, "CITY"]]},
    {"tokens": ["aspirin", "helps"], "weak_ents": {"terms": [[0, 1, "DRUG", 0.7]], "other": None}, "ents": None},
    {"tokens": ["Anna", "x"], "weak": True, "confidence": 0.5, "ents": [], "gold": [[0, 1, "PER"]], "gold_missing": []},
    {"text": "Only text here. Two sentences."},
]


@cache
def gold() -> bytes:
    """The rows as a `.spacy` file."""
    nlp = spacy.blank("xx")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.spacy"
        write_docs(path, [doc_from_row(row, nlp) for row in ROWS])
        return path.read_bytes()


def inside_spacy(random: Random, data: bytes) -> bytes:
    """A `.spacy` file with sound compression and wrong contents."""
    message = srsly.msgpack_loads(zlib.decompress(data))
    if random.random() < 0.3:
        return zlib.compress(mutate_binary(random, zlib.decompress(data)))
    for _ in range(random.choice([1, 1, 3])):
        message = mutate_json(random, message)
    try:
        return zlib.compress(srsly.msgpack_dumps(message))
    except (ValueError, TypeError, OverflowError, UnicodeError):
        return data

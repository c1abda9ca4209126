"""Pages that are run from the first block to the last, as a reader does."""

import ast
import io
import json
import re
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Dict, List, Optional

import spacy
import srsly

from spacy_weakner.corpus.formats.reading import read_corpus
from spacy_weakner.corpus.jsonl import KEYS

from . import commands
from .blocks import Block, read_blocks
from .settings import check_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def run_page(page: Path, transformer: Path) -> int:
    """Run the blocks of a page in the working folder."""
    names: Dict[str, Any] = {"__name__": "__main__"}
    printed, done = "", 0
    for block in read_blocks(page):
        if not block.runs:
            continue
        try:
            printed = run_block(block, names, printed, transformer)
        except Exception as error:
            raise AssertionError(f"{block}: {type(error).__name__}: {error}\n{block.text}") from error
        done += 1
    return done


def run_block(block: Block, names: Dict[str, Any], printed: str, transformer: Path) -> str:
    """Run a block."""
    if "output" in block.marks:
        missed = first_missed(block.text, printed)
        assert missed is None, f"it did not print {missed!r}, but\n{printed}"
        return printed
    if "file" in block.marks:
        path = Path(block.marks["file"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    if block.language == "python":
        return run_python(block, names)
    if block.language == "shell":
        return run_shell(block)
    if block.language == "ini":
        check_settings(block, transformer)
    elif block.language == "json":
        check_json(block)
    elif block.language == "yaml":
        srsly.yaml_loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    return ""


def first_missed(shown: str, printed: str) -> Optional[str]:
    """The first part of what is shown that was not printed after the others; `...` stands for anything, and blanks
    count as one. None: all was printed."""
    rest = " ".join(re.sub("\x1b\\[[\\d;]*m", "", printed).split())
    for part in shown.split("..."):
        wanted = " ".join(part.split())
        if wanted:
            _, found, rest = rest.partition(wanted)
            if not found:
                return wanted
    return None


def run_python(block: Block, names: Dict[str, Any]) -> str:
    """Run, or only compile, a block of Python."""
    tree = ast.parse(block.text)
    if "needs" in block.marks:
        return ""
    output = io.StringIO()
    with redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, str(block), "exec"), names)
    return output.getvalue()


def run_shell(block: Block) -> str:
    """Run, or only check, the commands of a block."""
    given: List[commands.Command] = list(commands.parse(block.text))
    assert given, "no command"
    if "needs" in block.marks:
        for command in given:
            commands.check(command)
        return ""
    printed = ""
    for i, command in enumerate(given):
        expected = int(block.marks.get("exit", 0)) if i == len(given) - 1 else 0
        printed += commands.run(command, block.marks.get("add", ""), expected)
    return printed


def check_json(block: Block) -> None:
    """Parse a block of JSON, and read it if it looks like rows of our own."""
    try:
        values = [json.loads(block.text)]
    except json.JSONDecodeError:
        values = [json.loads(line) for line in block.text.splitlines()]
    own = all(isinstance(row, dict) and {"tokens", "text"} & set(row) and set(row) <= KEYS for row in values)
    # Phrases in the place of offsets are answers of a source.
    if own and not any(isinstance(ent[0], str) for row in values for ent in row.get("ents") or ()):
        path = Path("block.jsonl")
        path.write_text("".join(f"{json.dumps(row)}\n" for row in values), encoding="utf-8")
        assert len(list(read_corpus(path, spacy.blank("en"), format="jsonl"))) == len(values)

"""Rows of answers of language models, as `ask` writes them and `label` reads them, one per request:

    {"key": "5f0c…", "asked": "1c9d2f60", "model": "small", "sample": 0, "text": "Anna met Bob",
     "ents": [{"text": "Anna", "label": "PER"}], "answer": "…", "tokens_in": 90, "tokens_out": 21}

- "key": what tells the request from all others: text, prompt and sample number;
- "asked": names the prompt: that without the text, model, labels and settings;
- "ents": what the answer names, as phrases or as [start, end, label] in characters; null if it could not be read, so
  that nobody has looked at the text;
- "others": [phrase, label] of what is no label that was asked for;
- "answer": the answer as it came;
- "tokens_in", "tokens_out": what is paid for; "estimated": true if the server did not count;
- "cut": the limit of tokens at which the answer broke off.
"""

from itertools import islice
from pathlib import Path
from typing import Any, Mapping

from ..errors import WeaknerError
from ..files import read_lines
from .counts import RowError
from .jsonl import parse_row

KEY, ASKED = "key", "asked"


def is_answer(row: Mapping[str, Any]) -> bool:
    """True if a row is one of `ask`."""
    return isinstance(row.get(KEY), str) and isinstance(row.get(ASKED), str)


def is_torn(line: bytes) -> bool:
    """True if a killed process has left the last line of a file unfinished: it does not end, and is no row."""
    if not line or line.endswith(b"\n"):
        return False
    try:
        parse_row(line.decode("utf-8"))
    except (RowError, UnicodeDecodeError):
        return True
    return False


def holds_answers(path: Path) -> bool:
    """True if a file is one of `ask`: its first row tells."""
    try:
        return any(is_answer(parse_row(line)) for line in islice(read_lines(path), 1))
    except (RowError, WeaknerError):
        return False

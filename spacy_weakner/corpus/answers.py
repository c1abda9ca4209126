"""Rows with the answers of language models, one per request, as `ask` writes and `label` reads them:

    {"key": "5f0c…", "asked": "1c9d2f60", "model": "small", "sample": 0, "text": "Anna met Bob",
     "ents": [{"text": "Anna", "label": "PER"}], "answer": "…", "tokens_in": 90, "tokens_out": 21}

- "key": identifies the request: text, prompt and sample number;
- "asked": identifies the prompt: the request without the text, with model, labels and settings;
- "ents": the mentions in the answer, as phrases or as [start, end, label] in characters; null if the answer could not
  be parsed, so that the source abstains;
- "others": [phrase, label] of mentions whose label was not requested;
- "answer": the unparsed answer;
- "tokens_in", "tokens_out": the billed tokens; "estimated": true if the server did not count them;
- "cut": the token limit at which the answer was cut off.
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
    """Return True if `ask` wrote the row."""
    return isinstance(row.get(KEY), str) and isinstance(row.get(ASKED), str)


def is_torn(line: bytes) -> bool:
    """Return True if a killed process left the last line of a file unfinished: it has no line end and is not a row."""
    if not line or line.endswith(b"\n"):
        return False
    try:
        parse_row(line.decode("utf-8"))
    except (RowError, UnicodeDecodeError):
        return True
    return False


def holds_answers(path: Path) -> bool:
    """Return True if `ask` wrote the file, judged by its first row."""
    try:
        return any(is_answer(parse_row(line)) for line in islice(read_lines(path), 1))
    except (RowError, WeaknerError):
        return False

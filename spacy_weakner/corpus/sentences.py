"""When two sentences are the same, whatever their case and white space, and which white space parts them."""

import re
from itertools import accumulate
from typing import List

_SPACE = re.compile(r"\s+")


def sentence_key(text: str) -> str:
    """What makes sentences equal: the text without case and white space."""
    return "".join(text.casefold().split())


def is_blank_line(space: str) -> bool:
    """RETURNS (bool): True if a run of white space holds a blank line, which no sentence and no phrase goes over."""
    return len(f"{space}x".splitlines()) > 2


def paragraph_starts(text: str) -> List[int]:
    """Where paragraphs begin in a text once its runs of white space are one blank each.

    text (str): The text.
    RETURNS (List[int]): The first character of each paragraph but the first, ascending.
    """
    text = text.strip()
    blank = [run for run in _SPACE.finditer(text) if is_blank_line(run[0])]
    ends = [0, *(run.end() for run in blank)]
    return list(
        accumulate(len(" ".join(text[a : run.start()].split())) + 1 for a, run in zip(ends, blank, strict=False))
    )

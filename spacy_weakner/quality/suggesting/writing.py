"""Writing what is suggested."""

from collections import Counter
from pathlib import Path
from typing import Iterable, NamedTuple, Optional

from spacy.tokens import Doc

from ...annotations.corpus import SUFFIX, write_docs
from ...annotations.jsonl import write_jsonl
from ...errors import Errors, WeaknerError, check_choice

_WRITERS = {SUFFIX: write_docs, ".jsonl": write_jsonl}


class Written(NamedTuple):
    """What was written.

    docs (int): Documents.
    lost (Counter[str]): What the format could not say, in words.
    """

    docs: int
    lost: "Counter[str]"


def check_format(path: Path, to: Optional[str] = None) -> None:
    """Check before the work that its result can be written.

    path (Path): The file.
    to (Optional[str]): Name of the format; None: the ending tells.
    RAISES (WeaknerError): If it cannot.
    """
    if to is not None:
        check_choice("to", to, [suffix[1:] for suffix in _WRITERS])
    if path.suffix not in _WRITERS or to not in (None, path.suffix[1:]):
        expected = f"a file that ends in {' or '.join(_WRITERS)}" if to is None else f"a file that ends in .{to}"
        raise WeaknerError(Errors.WK305.format(path=path, expected=expected))


def write_corpus(path: Path, docs: Iterable[Doc], to: Optional[str] = None) -> Written:
    """Write a corpus, whole or not at all.

    path (Path): The file.
    docs (Iterable[Doc]): What to write.
    to (Optional[str]): Name of the format; None: the ending tells.
    RETURNS (Written): How much was written, and what was lost.
    RAISES (WeaknerError): If the format cannot be told.
    """
    check_format(path, to)
    return Written(_WRITERS[path.suffix](path, docs), Counter())

"""Reading and writing JSONL files, one Doc per row. The layout of a row is described in `rows`."""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Errors, WeaknerError
from ..files import atomic_path, parse_json, read_lines
from .foreign import with_names
from .rows import DEFAULT_SOURCE, Row, RowCounts, RowError, doc_from_row, row_from_doc, show


@contextmanager
def at_line(path: Path, line: int, unit: str = "line") -> Iterator[None]:
    """Turn a `RowError` into an error that names the file and the line.

    path (Path): The file.
    line (int): The line, counted from 1.
    unit (str): What is counted, where it is no lines.
    """
    try:
        yield
    except RowError as error:
        reason = with_names(str(error), path)
        raise WeaknerError(Errors.WK103.format(path=path, unit=unit, line=line, reason=reason)) from error
    except UnicodeEncodeError as error:
        reason = f"half of a surrogate pair in a string ({error.reason})"
        raise WeaknerError(Errors.WK103.format(path=path, unit=unit, line=line, reason=reason)) from error


def read_rows(path: Path, lines: Optional[Iterable[Tuple[int, str]]] = None) -> Iterator[Tuple[int, Row]]:
    """Stream the rows of a JSONL file; blank lines are skipped.

    path (Path): The file; `.gz` is unpacked.
    lines (Optional[Iterable[Tuple[int, str]]]): The lines with their numbers, if they have been read already.
    YIELDS (Tuple[int, Row]): Line number from 1, and the row.
    RAISES (WeaknerError): If a line is not a JSON object.
    """
    for number, line in enumerate(read_lines(path), start=1) if lines is None else lines:
        if not line.strip():
            continue
        with at_line(path, number):
            row = parse_row(line)
        yield number, row


def parse_row(line: str) -> Row:
    """Parse one line.

    line (str): The line.
    RETURNS (Row): The row.
    RAISES (RowError): If it is not a JSON object.
    """
    row = parse_value(line)
    if not isinstance(row, dict):
        raise RowError(f"expected a JSON object, got {show(row)}")
    return row


def parse_value(line: str) -> Any:
    """Parse any JSON.

    line (str): The text.
    RETURNS (Any): Its value.
    RAISES (RowError): If it is not JSON.
    """
    with json_errors():
        return parse_json(line, parse_constant=refuse_constant)


@contextmanager
def json_errors() -> Iterator[None]:
    """Say what is wrong with JSON."""
    try:
        yield
    except RecursionError as error:
        raise RowError("nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f" (column {error.colno})" if error.doc else ""
        raise RowError(f"not JSON: {error.msg}{place}") from error
    except WeaknerError:
        raise
    except ValueError as error:  # Python refuses to read integers of thousands of digits
        raise RowError("a number has too many digits") from error


def refuse_constant(name: str) -> float:
    """Refuse NaN and the like, which are no JSON."""
    raise RowError(f"not JSON: {name} is not a number")


def read_jsonl(
    path: Path,
    nlp: Language,
    *,
    source: str = DEFAULT_SOURCE,
    misaligned: str = "error",
    counts: Optional[RowCounts] = None,
) -> Iterator[Doc]:
    """Stream the Docs of a JSONL file.

    path (Path): The file; `.gz` is unpacked.
    nlp (Language): Its vocabulary is used, and its tokenizer for rows with "text".
    source (str): Name of the weak source of "weak_ents" that are a plain list.
    misaligned (str): What to do with spans of "text" rows that do not end at token borders: "error", "drop", "expand"
        or "contract".
    counts (Optional[RowCounts]): Where to count.
    YIELDS (Doc): One Doc per row.
    RAISES (WeaknerError): For anything malformed, with file, line and reason.
    """
    for number, row in read_rows(path):
        with at_line(path, number):
            doc = doc_from_row(row, nlp, source=source, misaligned=misaligned, counts=counts)
        yield doc


def write_jsonl(path: Path, docs: Iterable[Doc]) -> int:
    """Write a JSONL file, whole or not at all. Docs without visible tokens are left out.

    path (Path): The file.
    docs (Iterable[Doc]): What to write.
    RETURNS (int): The number of rows.
    """
    n = 0
    with atomic_path(Path(path)) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file_:
        for doc in docs:
            row = row_from_doc(doc)
            if row["tokens"]:
                file_.write(json.dumps(row, ensure_ascii=False) + "\n")
                n += 1
    return n

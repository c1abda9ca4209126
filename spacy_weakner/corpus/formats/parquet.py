"""Parquet files, as datasets of Hugging Face are stored. Names of tags stand in the metadata of their schema."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.tokens import Doc

from ...errors import Errors, WeaknerError
from ...files import existing, parse_json
from ..foreign import TAGS
from ..rows import RowError, show
from ..tags import OUTSIDE
from .huggingface import NER_TAGS, write
from .location import ROW, Place, at
from .tags import UNKNOWN, is_tag_names, tag_names

_KEY = b"huggingface"
_ROWS = 1000


def read_table(path: Path, named: bool = True) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Stream the rows of a file.

    path (Path): The file.
    named (bool): Whether numbers of tags become the names that the file has for them.
    YIELDS (Tuple[int, Dict[str, Any]]): Number from 1, and the row.
    RAISES (WeaknerError): If pyarrow is not installed, or the file is damaged.
    """
    parquet = _parquet()
    import pyarrow

    number = 0
    try:
        with parquet.ParquetFile(existing(path)) as file_:
            names = _names(path, file_.schema_arrow.metadata or {}) if named else {}
            for batch in file_.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, _with_names(path, number, row, names)
    # Sizes that a damaged file gives can be beyond all memory, and its strings no UTF-8.
    except (pyarrow.ArrowException, OSError, MemoryError, UnicodeDecodeError, OverflowError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise WeaknerError(Errors.WK745.format(path=path, reason=reason)) from error


def write_table(path: Path, docs: Iterable[Doc], lost: "Counter[str]") -> int:
    """Write a file, with the names of the tags in its metadata. Docs without visible tokens are left out.

    path (Path): The file.
    docs (Iterable[Doc]): What to write.
    lost (Counter[str]): Counts what cannot be said.
    RETURNS (int): The number of rows.
    """
    parquet = _parquet()
    import pyarrow

    schema = pyarrow.schema(
        [
            ("id", pyarrow.string()),
            ("tokens", pyarrow.list_(pyarrow.string())),
            (NER_TAGS, pyarrow.list_(pyarrow.int64())),
        ]
    )
    # Which tags there are is known at the end, where the file takes its metadata. (A stored schema would hide them.)
    numbers: Dict[Optional[str], int] = {None: UNKNOWN[0], OUTSIDE: 0}
    n = 0
    with parquet.ParquetWriter(path, schema, store_schema=False) as writer:
        for rows in _batches(docs, lost):
            for row in rows:
                for tag in row[NER_TAGS]:
                    _number(tag, numbers)
                row[NER_TAGS] = [numbers[tag] for tag in row[NER_TAGS]]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            n += len(rows)
        names = [tag for tag in numbers if tag is not None]
        writer.add_key_value_metadata({_KEY: json.dumps({"info": {"features": _features(names)}}).encode()})
    return n


def _number(tag: Optional[str], numbers: Dict[Optional[str], int]) -> None:
    if tag not in numbers and tag is not None:
        # B and I of a type stand together, as in most datasets.
        for prefix in "BI":
            numbers.setdefault(f"{prefix}{tag[1:]}", len(numbers) - 1)


def _batches(docs: Iterable[Doc], lost: "Counter[str]") -> Iterator[List[Dict[str, Any]]]:
    rows: List[Dict[str, Any]] = []
    for doc in docs:
        rows.extend(row for row in write(doc, lost) if row["tokens"])
        if len(rows) >= _ROWS:
            yield rows
            rows = []
    yield rows


def _features(names: List[str]) -> Dict[str, Any]:
    text = {"dtype": "string", "_type": "Value"}
    return {
        "id": text,
        "tokens": {"feature": text, "_type": "List"},
        NER_TAGS: {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "List"},
    }


def _names(path: Path, metadata: Dict[bytes, bytes]) -> Dict[str, Tuple[str, ...]]:
    """Names of the tags of each column that has them."""
    found: Dict[str, Tuple[str, ...]] = {}
    try:
        features = parse_json(metadata.get(_KEY, b"{}")).get("info", {}).get("features", {})
        for column in TAGS:
            feature = features.get(column)
            inner = feature.get("feature") if isinstance(feature, dict) else None
            if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and is_tag_names(inner["names"]):
                found[column] = tag_names(tuple(inner["names"]))
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        reason = f"the metadata '{_KEY.decode()}' of its schema: {error}"
        raise WeaknerError(Errors.WK745.format(path=path, reason=reason)) from error
    return found


def _with_names(path: Path, number: int, row: Dict[str, Any], names: Dict[str, Tuple[str, ...]]) -> Dict[str, Any]:
    for column, tags in names.items():
        values = row.get(column)
        if isinstance(values, list):  # what is none is refused where the row is read
            with at(path, Place(ROW, number)):
                row[column] = [_name(value, column, tags) for value in values]
    return row


def _name(value: Any, column: str, tags: Tuple[str, ...]) -> Optional[str]:
    if value is None or value in UNKNOWN:
        return None
    if type(value) is not int or not 0 <= value < len(tags):
        raise RowError(f"'{column}' holds the number {show(value)}, which has no name (there are {len(tags)})")
    return tags[value]


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise WeaknerError(Errors.WK744) from error
    return parquet

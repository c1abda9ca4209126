"""Datasets of Hugging Face, and AutoTrain: `{"tokens": [...], "ner_tags": [...]}` with a tag for every token. Rows of
JSON hold numbers, whose names are given by the user, or the names themselves; Parquet files hold the names in the
metadata of their schema. -100, -1 and null are missing."""

import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.tokens import Doc

from ...errors import Errors, WeaknerError
from ...files import existing, parse_json
from ..conll import bio_tags, check_tag, decode_tags, is_readable
from ..counts import RowError, at_line, show
from ..foreign import TAGS, find_tags
from ..jsonl import row_from_doc
from ..records import BLANK_TOKENS, Mark, Record, a_list, is_blank
from ..tags import OUTSIDE, TAG, UNTYPED
from .records import Context, Tool, an_object

NER_TAGS = "ner_tags"
# Missing tags: in labels of Transformers, and in ClassLabel.
UNKNOWN = (-100, -1)
# What datasets hold about tokens beside entities.
_COLUMNS = ("tokens", "spaces", "pos", "pos_tags", "chunk_tags", "lemmas", "upos", "xpos", "feats")
_METADATA = b"huggingface"
_BATCH = 1000  # rows of Parquet files


def read(row: Any, context: Context) -> Record:
    """Read a row."""
    row = an_object(row, "a row")
    if not isinstance(row.get("tokens"), list):
        raise RowError(f"no tokens: expected a list under 'tokens', got {show(row)}")
    tokens = row["tokens"]
    key = find_tags(row) or next((key for key in TAGS if key in row), None)
    record = Record(tokens=tokens, id=row.get("id") or None)
    context.note_unknown(row, {*_COLUMNS, key})
    if key is None or row[key] is None:
        return record
    values = a_list(row[key], key)
    if len(values) != len(tokens):
        raise RowError(f"{len(tokens)} tokens, but {len(values)} tags under '{key}'")
    names = tag_names(context.labels)
    tags = [_tag(value, names) for token, value in zip(tokens, values, strict=True) if not is_blank(token)]
    context.counts.notes.update({BLANK_TOKENS: len(tokens) - len(tags)} if len(tags) < len(tokens) else {})
    record.tokens = [token for token in tokens if not is_blank(token)]
    record.ents = [Mark(*entity) for entity in decode_tags(tags)]
    record.missing = [(i, i + 1) for i, tag in enumerate(tags) if tag is None]
    return record


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Make a row, with names of tags: null is missing."""
    row = row_from_doc(doc)
    tags = bio_tags(len(row["tokens"]), row["ents"], row.get("missing", []))
    yield {
        "id": row.get("id", ""),
        "tokens": row["tokens"],
        NER_TAGS: [None if tag == "-" else _written(tag) for tag in tags],
    }


def _written(tag: str) -> str:
    # Such as those with line breaks.
    if not is_readable(tag):
        raise RowError(f"'{tag}' could not be read back as a tag: rename the label")
    return tag


def _tag(value: Any, names: Tuple[str, ...]) -> Optional[str]:
    if value is None or value in UNKNOWN:
        return None
    if type(value) is int:
        if not names:
            raise RowError("tags are numbers without names: give the names, like --labels O,B-PER,I-PER")
        if value >= len(names) or value < 0:
            raise RowError(f"the tag {value} has no name: there are {len(names)}, from 0 to {len(names) - 1}")
        return check_tag(names[value])
    if not isinstance(value, str):
        raise RowError(f"a tag must be a number or a string, got {show(value)}")
    return check_tag(value, names)


@lru_cache(maxsize=16)
def tag_names(names: Tuple[str, ...]) -> Tuple[str, ...]:
    """Names as tags: where no one of them has a prefix, they are types, and neighbors of one type are one entity."""
    types = [name for name in names if name != OUTSIDE]
    if all(map(UNTYPED.fullmatch, types)):
        return names
    if not any(map(TAG.fullmatch, types)):
        return tuple(name if name == OUTSIDE else f"I-{name}" for name in names)
    return tuple(name if name == OUTSIDE else check_tag(name) for name in names)


# Parquet


def read_table(path: Path, named: bool = True) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Stream the rows of a file."""
    parquet = _parquet()
    import pyarrow

    number = 0
    try:
        with parquet.ParquetFile(existing(path)) as file_:
            names = _names(path, file_.schema_arrow.metadata or {}) if named else {}
            for batch in file_.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield number, _with_names(path, number, row, names)
    # Sizes that a damaged file gives can be beyond all memory, and its strings no UTF-8.
    except (pyarrow.ArrowException, OSError, MemoryError, UnicodeDecodeError, OverflowError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure="Write it again")) from error


def write_table(path: Path, docs: Iterable[Doc], lost: "Counter[str]") -> int:
    """Write a file, with the names of the tags in its metadata. Docs without visible tokens are left out."""
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
        writer.add_key_value_metadata({_METADATA: json.dumps({"info": {"features": _features(names)}}).encode()})
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
        if len(rows) >= _BATCH:
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
        features = parse_json(metadata.get(_METADATA, b"{}")).get("info", {}).get("features", {})
        for column in TAGS:
            feature = features.get(column)
            inner = feature.get("feature") if isinstance(feature, dict) else None
            if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and OUTSIDE in inner["names"]:
                found[column] = tag_names(tuple(inner["names"]))
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        reason = f"the metadata '{_METADATA.decode()}' of its schema: {error}"
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure="Write it again")) from error
    return found


def _with_names(path: Path, number: int, row: Dict[str, Any], names: Dict[str, Tuple[str, ...]]) -> Dict[str, Any]:
    for column, tags in names.items():
        values = row.get(column)
        if isinstance(values, list):  # what is none is refused where the row is read
            with at_line(path, f"row {number}"):
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
        raise WeaknerError(Errors.WK350.format(package="pyarrow", extra="parquet")) from error
    return parquet


HUGGINGFACE = Tool(read, write=write)

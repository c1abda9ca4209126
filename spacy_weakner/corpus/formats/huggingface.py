"""Hugging Face datasets, and AutoTrain: `{"tokens": [...], "ner_tags": [...]}` with one tag per token. JSON rows hold
tag names, or numbers whose names the user gives; Parquet files hold the names in the metadata of their schema. -100, -1
and null are missing. Rows with a text instead of tokens, and without lists, are raw text."""

import re
from collections import Counter
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple

from spacy.tokens import Doc

from ...errors import Errors, WeaknerError, require
from ...files import existing, parse_json
from ..conll import bio_tags, check_tag, decode_tags, is_readable
from ..counts import RowCounts, RowError, show_value
from ..foreign import TAGS, find_tags
from ..records import BLANK_TOKENS, Mark, Record, a_list, an_object, is_blank, record_of
from ..tags import OUTSIDE, TAG, UNTYPED

PARQUET = ".parquet"
# Missing tags: -100 in labels of transformers, -1 in ClassLabel.
UNKNOWN = (-100, -1)
# Columns of datasets about tokens, other than entities.
_COLUMNS = ("tokens", "spaces", "pos", "pos_tags", "chunk_tags", "lemmas", "upos", "xpos", "feats")
# Tokens of tokenizers of transformers, which are no words.
_PIECE = re.compile(r"##\w|[▁Ġ]|\[(CLS|SEP|PAD)\]$|</?s>$")
PIECES = "rows whose tokens are word pieces or special tokens ('##na', '[CLS]'), read as words: join them, or drop them"
_METADATA = b"huggingface"
_BATCH = 1000  # rows of Parquet files


def read(row: Any, counts: RowCounts, labels: Tuple[str, ...] = (), column: Optional[str] = None) -> Record:
    row = an_object(row, "a row")
    identifier = None if row.get("id") == "" else row.get("id")
    tokens = row.get("tokens")
    has_lists = any(isinstance(value, (list, dict)) for value in row.values())
    if tokens is None and isinstance(row.get("text"), str) and not has_lists:
        return Record(text=row["text"], id=identifier)
    if not isinstance(tokens, list):
        raise RowError(f"no tokens: expected a list under 'tokens' (or only a 'text'), got {show_value(row)}")
    key = column if column in row else find_tags(row) or next((key for key in TAGS if key in row), None)
    record = Record(tokens=tokens, id=identifier)
    counts.note(PIECES, any(isinstance(token, str) and _PIECE.match(token) for token in tokens))
    counts.note_unknown(row, {*_COLUMNS, key})
    if key is None or row[key] is None:
        return record
    values = a_list(row[key], key)
    if len(values) != len(tokens):
        raise RowError(f"{len(tokens)} tokens, but {len(values)} tags under '{key}'")
    names = tag_names(labels)
    tags = [_tag(value, names) for token, value in zip(tokens, values, strict=True) if not is_blank(token)]
    counts.note(BLANK_TOKENS, len(tokens) - len(tags))
    record.tokens = [token for token in tokens if not is_blank(token)]
    record.ents = [Mark(*entity) for entity in decode_tags(tags)]
    record.missing = [(i, i + 1) for i, tag in enumerate(tags) if tag is None]
    return record


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Yield the row of a Doc, with tag names; null is missing."""
    record = record_of(doc, in_tokens=True)
    tags = [None if tag == "-" else tag for tag in bio_tags(record)]
    for tag in filter(None, tags):
        if not is_readable(tag):  # such as tags with line breaks
            raise RowError(f"'{tag}' could not be read back as a tag: rename the label")
    yield {"id": record.id or "", "tokens": record.tokens, "ner_tags": tags}


def _tag(value: Any, names: Tuple[str, ...]) -> Optional[str]:
    if value is None or value in UNKNOWN:
        return None
    if type(value) is int:
        if not names:
            raise RowError(
                "tags are numbers without names. Give the names, from 0 on: "
                "spacy weakner convert FILE NEW --labels O,B-PER,I-PER"
            )
        if value >= len(names) or value < 0:
            raise RowError(f"the tag {value} has no name: there are {len(names)} names, from 0 to {len(names) - 1}")
        return check_tag(names[value])
    if not isinstance(value, str):
        raise RowError(f"a tag must be a whole number (1, not 1.0) or a string, got {show_value(value)}")
    return check_tag(value, names)


@lru_cache(maxsize=16)
def tag_names(names: Tuple[str, ...]) -> Tuple[str, ...]:
    """Return names as tags. Without prefixes, names are types, and neighboring tokens of one type are one entity."""
    types = [name for name in names if name != OUTSIDE]
    if all(map(UNTYPED.fullmatch, types)):
        return names
    if not any(map(TAG.fullmatch, types)):
        return tuple(name if name == OUTSIDE else f"I-{name}" for name in names)
    return tuple(name if name == OUTSIDE else check_tag(name) for name in names)


# Parquet


def read_rows(path: Path) -> Iterator[Dict[str, Any]]:
    with _opened(path) as file_:
        yield from chain.from_iterable(batch.to_pylist() for batch in file_.iter_batches(batch_size=_BATCH))


def table_tags(path: Path, labels: Tuple[str, ...]) -> Tuple[Optional[str], Tuple[str, ...]]:
    """Return the column of tags that the metadata of a file describes, and their names: `labels`, or those there."""
    with _opened(path) as file_:
        metadata = file_.schema_arrow.metadata or {}
    try:
        features = parse_json(metadata.get(_METADATA, b"{}")).get("info", {}).get("features", {})
        for column in TAGS:
            feature = features.get(column)
            # Lists are also written as [{...}].
            inner = feature[0] if isinstance(feature, list) and feature else feature
            inner = inner.get("feature") if isinstance(feature, dict) else inner
            if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and OUTSIDE in inner["names"]:
                return column, labels or tag_names(tuple(inner["names"]))
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        reason = f"the metadata '{_METADATA.decode()}' of its schema: {error}"
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure="Write it again")) from error
    return None, labels


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    require("pyarrow", extra="parquet")
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(existing(path)) as file_:
            yield file_
    # Sizes in a damaged file can exceed the memory, and strings can be invalid UTF-8.
    except (pyarrow.ArrowException, OSError, MemoryError, UnicodeDecodeError, OverflowError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure="Write it again")) from error

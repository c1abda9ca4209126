"""Datasets of Hugging Face, and AutoTrain: `{"tokens": [...], "ner_tags": [...]}` with a tag for every token. Rows of
JSON hold their numbers, whose names are given apart, or the names themselves; -100, -1 and null are missing."""

from collections import Counter
from typing import Any, Dict, Iterator, Optional, Tuple

from spacy.tokens import Doc

from ..conll import bio_tags, check_tag, decode_tags, is_readable
from ..foreign import TAGS, find_tags
from ..rows import BLANK_TOKENS, RowError, is_blank, row_from_doc, show
from .records import Mark, Record, a_list, an_object
from .tags import UNKNOWN, tag_names
from .tool import Context, Tool

NER_TAGS = "ner_tags"
# What datasets say about tokens beside entities.
_COLUMNS = ("tokens", "spaces", "pos", "pos_tags", "chunk_tags", "lemmas", "upos", "xpos", "feats")


def read(row: Any, context: Context) -> Record:
    """Read a row.

    row (Any): The row.
    context (Context): Names of tags that are numbers.
    RETURNS (Record): The record.
    RAISES (RowError): If it is malformed, or the names of its numbers are not known.
    """
    row = an_object(row, "a row")
    if not isinstance(row.get("tokens"), list):
        raise RowError(f"no tokens: expected a list under 'tokens', got {show(row)}")
    tokens = row["tokens"]
    key = find_tags(row) or next((key for key in TAGS if key in row), None)
    record = Record(tokens=tokens, id=row.get("id") or None)
    context.pass_over(row, {*_COLUMNS, key})
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
    """Make a row, with names of tags: null is missing.

    doc (Doc): The Doc.
    lost (Counter[str]): Counts what cannot be said; nothing here.
    YIELDS (Dict[str, Any]): One row.
    RAISES (RowError): For a label that no tag can hold.
    """
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
        raise RowError(f"'{tag}' is no tag that could be read again: rename the label")
    return tag


def _tag(value: Any, names: Tuple[str, ...]) -> Optional[str]:
    if value is None or value in UNKNOWN:
        return None
    if type(value) is int:
        if not names:
            raise RowError(
                "tags are numbers, whose names are not known: convert with them, like --labels O,B-PER,I-PER"
            )
        if value >= len(names) or value < 0:
            raise RowError(f"the tag {value} has no name: there are {len(names)}, from 0 to {len(names) - 1}")
        return check_tag(names[value])
    if not isinstance(value, str):
        raise RowError(f"a tag must be a number or a string, got {show(value)}")
    return check_tag(value, names)


HUGGINGFACE = Tool(read, write=write)

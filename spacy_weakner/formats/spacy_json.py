"""spaCy's `["text", {"entities": [[0, 4, "PER"]]}]`, as JSON."""

from collections import Counter
from typing import Any, Iterator, List

from spacy.tokens import Doc

from ..annotations.rows import RowError, show
from .records import Record, a_list, record_of, triple_mark
from .tool import Context, Tool


def read(row: Any, context: Context) -> Record:
    """Read a pair.

    row (Any): The pair.
    context (Context): Not used.
    RETURNS (Record): The record.
    RAISES (RowError): If it is malformed.
    """
    if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)):
        raise RowError(f'expected [text, {{"entities": ...}}], got {show(row)}')
    text, annotations = row
    ents = None
    if annotations.get("entities") is not None:
        ents = [triple_mark(item) for item in a_list(annotations["entities"], "entities")]
    return Record(text=text, ents=ents, cats=annotations.get("cats"))


def write(doc: Doc, lost: "Counter[str]") -> Iterator[List[Any]]:
    """Make a pair.

    doc (Doc): The Doc.
    lost (Counter[str]): Counts what cannot be said; nothing here.
    YIELDS (List[Any]): One pair.
    """
    record = record_of(doc)
    cats = {"cats": record.cats} if record.cats else {}
    if record.ents is None:
        yield [record.text, cats]
    else:
        yield [record.text, {"entities": [list(mark[:3]) for mark in record.ents], **cats}]


SPACY_JSON = Tool(read, write=write)

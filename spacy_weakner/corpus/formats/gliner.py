"""GLiNER: `{"tokenized_text": ["New", "York"], "ner": [[0, 1, "city"]]}`; the end is the last token of the span."""

from collections import Counter
from typing import Any, Dict, Iterator

from spacy.tokens import Doc

from ..counts import RowError, show
from ..jsonl import row_from_doc
from .records import Context, Record, Tool, a_list, an_object, triple_mark

_KEYS = frozenset(["tokenized_text", "ner", "ner_labels", "ner_negatives", "negatives", "relations"])


def read(row: Any, context: Context) -> Record:
    """Read a row."""
    row = an_object(row, "a row")
    if "tokenized_text" not in row:
        raise RowError(f"no 'tokenized_text': {show(row)}")
    context.note_unknown(row, _KEYS)
    ents = None
    if row.get("ner") is not None:
        ents = [triple_mark(item, last=True) for item in a_list(row["ner"], "ner")]
    return Record(tokens=a_list(row["tokenized_text"], "tokenized_text"), ents=ents, id=row.get("id"))


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Make a row."""
    row = row_from_doc(doc)
    ner = [[start, end - 1, label] for start, end, label, *_ in row["ents"] or []]
    yield {"tokenized_text": row["tokens"], "ner": ner}


GLINER = Tool(read, write=write)

"""doccano: `{"text": ..., "label": [[0, 4, "PER"]]}`, or objects under "entities", with relations beside them."""

from collections import Counter
from typing import Any, Dict, Iterator

from spacy.tokens import Doc

from ..counts import RowError, show
from ..foreign import SPANS, find_spans
from .records import EMPTY, Context, Mark, Record, Tool, a_list, an_object, make_mark, record_of, triple_mark

_TEXTS = ("text", "data")
# Lists and objects of doccano that hold no spans: comments, categories of the text, relations, other columns.
_OTHERS = ("relations", "Comments", "comments", "cats", "meta", "metadata")
RELATIONS = "relations, ignored"


def read(row: Any, context: Context) -> Record:
    """Read a row."""
    row = an_object(row, "a row")
    text = next((row[key] for key in _TEXTS if isinstance(row.get(key), str)), None)
    if text is None:
        raise RowError(f"no text: expected a string under 'text', got {show(row)}")
    key = find_spans(row) or next((key for key in SPANS if key in row), None)
    context.note_unknown(row, {key, *_OTHERS})
    spans = None if key is None else a_list(row[key], key)
    if spans == []:
        context.counts.notes[EMPTY] += 1
    if row.get("relations"):
        context.counts.notes[RELATIONS] += len(a_list(row["relations"], "relations"))
    return Record(text=text, ents=None if spans is None else [_mark(item) for item in spans], id=row.get("id"))


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Make a row."""
    record = record_of(doc)
    row: Dict[str, Any] = {} if record.id is None else {"id": record.id}
    yield {**row, "text": record.text, "label": [list(mark[:3]) for mark in record.ents or []]}


def _mark(item: Any) -> Mark:
    if isinstance(item, dict):
        start, end = (item.get("start_offset", item.get("start")), item.get("end_offset", item.get("end")))
        return make_mark(start, end, item.get("label"), item)
    return triple_mark(item)


DOCCANO = Tool(read, sure=False, write=write)

"""Dataturks: `{"content": ..., "annotation": [{"label": ["PER"], "points": [{"start": 0, "end": 3, "text": ...}]}]}`.
The end is the last character of the span."""

from typing import Any, Iterator

from ..counts import RowError, show
from .records import EMPTY, Context, Mark, Record, Tool, a_list, an_object, make_mark

_KEYS = frozenset(["annotation", "metadata", "extras"])


def read(row: Any, context: Context) -> Record:
    """Read a row."""
    row = an_object(row, "a row")
    if not isinstance(row.get("content"), str):
        raise RowError(f"no text: expected a string under 'content', got {show(row)}")
    context.note_unknown(row, _KEYS)
    if row.get("annotation") is None:
        return Record(text=row["content"])
    marks = [mark for item in a_list(row["annotation"], "annotation") for mark in _marks(item)]
    context.counts.note(EMPTY, not marks)
    return Record(text=row["content"], ents=marks)


def _marks(item: Any) -> Iterator[Mark]:
    item = an_object(item, "an annotation")
    for point in a_list(item.get("points"), "points"):
        point = an_object(point, "a span")
        for label in a_list(item.get("label"), "label"):
            yield make_mark(point.get("start"), point.get("end"), label, item, text=point.get("text"), last=True)


DATATURKS = Tool(read)

"""spaCy's `["text", {"entities": [[0, 4, "PER"]]}]`, as JSON."""

from collections import Counter
from typing import Any, Iterator, List, Optional

from spacy.tokens import Doc

from ..counts import RowError, show
from .records import Context, Record, Tool, a_list, record_of, triple_mark

NULLS = "null instead of texts that were not annotated, dropped"
# What spaCy's own training data may hold, beside span groups.
_KEYS = frozenset(
    ["entities", "cats", "links", "words", "spaces", "tags", "pos", "morphs", "lemmas", "heads", "deps", "sent_starts"]
)


def read(row: Any, context: Context) -> Optional[Record]:
    """Read a pair."""
    if row is None:
        context.counts.notes[NULLS] += 1
        return None
    if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)):
        raise RowError(f'expected [text, {{"entities": ...}}], got {show(row)}')
    text, annotations = row
    context.note_unknown(annotations, _KEYS)
    ents = None
    if annotations.get("entities") is not None:
        ents = [triple_mark(item) for item in a_list(annotations["entities"], "entities")]
    return Record(text=text, ents=ents, cats=annotations.get("cats"))


def write(doc: Doc, lost: "Counter[str]") -> Iterator[List[Any]]:
    """Make a pair."""
    record = record_of(doc)
    cats = {"cats": record.cats} if record.cats else {}
    if record.ents is None:
        yield [record.text, cats]
    else:
        yield [record.text, {"entities": [list(mark[:3]) for mark in record.ents], **cats}]


SPACY_JSON = Tool(read, write=write)

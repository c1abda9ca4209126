"""The reader of every format that is not ours, by its name. Those of layouts with one row for each text are here."""

from collections import Counter
from typing import Any, Dict, Iterator, List, Optional

from spacy.tokens import Doc

from ..counts import RowError, show
from ..foreign import SPANS, find_spans
from ..jsonl import row_from_doc
from ..records import Mark, Record, a_list, make_mark
from .brat import BRAT
from .huggingface import HUGGINGFACE
from .label_studio import LABEL_STUDIO
from .prodigy import PRODIGY
from .records import EMPTY, Context, Tool, a_text, an_object, record_of, triple_mark

NULLS = "null instead of texts that were not annotated, dropped"
RELATIONS = "relations, ignored"
# Lists and objects that hold no spans: comments, categories of the text, relations, other columns.
_DOCCANO = ("relations", "Comments", "comments", "cats", "meta", "metadata")
_DATATURKS = frozenset(["annotation", "metadata", "extras"])
_GLINER = frozenset(["tokenized_text", "ner", "ner_labels", "ner_negatives", "negatives", "relations"])
# What spaCy's own training data may hold, beside span groups.
_SPACY = frozenset(
    ["entities", "cats", "links", "words", "spaces", "tags", "pos", "morphs", "lemmas", "heads", "deps", "sent_starts"]
)


def read_doccano(row: Any, context: Context) -> Record:
    """`{"text": ..., "label": [[0, 4, "PER"]]}`, or objects under "entities", with relations beside them."""
    row = an_object(row, "a row")
    text = a_text(row, "text", "data")
    key = find_spans(row) or next((key for key in SPANS if key in row), None)
    context.note_unknown(row, {key, *_DOCCANO})
    spans = None if key is None else a_list(row[key], key)
    context.counts.note(EMPTY, spans == [])
    context.counts.note(RELATIONS, len(a_list(row.get("relations") or [], "relations")))
    return Record(text=text, ents=None if spans is None else list(map(_doccano_mark, spans)), id=row.get("id"))


def _doccano_mark(item: Any) -> Mark:
    if not isinstance(item, dict):
        return triple_mark(item)
    start, end = (item.get(f"{key}_offset", item.get(key)) for key in ("start", "end"))
    return make_mark(start, end, item.get("label"), item)


def write_doccano(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    record = record_of(doc)
    row: Dict[str, Any] = {} if record.id is None else {"id": record.id}
    yield {**row, "text": record.text, "label": [list(mark[:3]) for mark in record.ents or []]}


def read_dataturks(row: Any, context: Context) -> Record:
    """`{"content": ..., "annotation": [{"label": ["PER"], "points": [{"start": 0, "end": 3, "text": ...}]}]}`. The end
    is the last character of the span."""
    row = an_object(row, "a row")
    record = Record(text=a_text(row, "content"))
    context.note_unknown(row, _DATATURKS)
    if row.get("annotation") is not None:
        record.ents = [mark for item in a_list(row["annotation"], "annotation") for mark in _dataturks_marks(item)]
        context.counts.note(EMPTY, not record.ents)
    return record


def _dataturks_marks(item: Any) -> Iterator[Mark]:
    item = an_object(item, "an annotation")
    for point in a_list(item.get("points"), "points"):
        point = an_object(point, "a span")
        for label in a_list(item.get("label"), "label"):
            yield make_mark(point.get("start"), point.get("end"), label, item, text=point.get("text"), last=True)


def read_gliner(row: Any, context: Context) -> Record:
    """`{"tokenized_text": ["New", "York"], "ner": [[0, 1, "city"]]}`; the end is the last token of the span."""
    row = an_object(row, "a row")
    if "tokenized_text" not in row:
        raise RowError(f"no 'tokenized_text': {show(row)}")
    context.note_unknown(row, _GLINER)
    ents = None
    if row.get("ner") is not None:
        ents = [triple_mark(item, last=True) for item in a_list(row["ner"], "ner")]
    return Record(tokens=a_list(row["tokenized_text"], "tokenized_text"), ents=ents, id=row.get("id"))


def write_gliner(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    row = row_from_doc(doc)
    ner = [[start, end - 1, label] for start, end, label, *_ in row["ents"] or []]
    yield {"tokenized_text": row["tokens"], "ner": ner}


def read_spacy_json(row: Any, context: Context) -> Optional[Record]:
    """spaCy's `["text", {"entities": [[0, 4, "PER"]]}]`, as JSON."""
    if row is None:
        context.counts.note(NULLS)
        return None
    if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)):
        raise RowError(f'expected [text, {{"entities": ...}}], got {show(row)}')
    text, annotations = row
    context.note_unknown(annotations, _SPACY)
    ents = None
    if annotations.get("entities") is not None:
        ents = [triple_mark(item) for item in a_list(annotations["entities"], "entities")]
    return Record(text=text, ents=ents, cats=annotations.get("cats"))


def write_spacy_json(doc: Doc, lost: "Counter[str]") -> Iterator[List[Any]]:
    record = record_of(doc)
    entities = {} if record.ents is None else {"entities": [list(mark[:3]) for mark in record.ents]}
    yield [record.text, {**entities, **({"cats": record.cats} if record.cats else {})}]


TOOLS: Dict[str, Tool] = {
    "prodigy": PRODIGY,
    "label-studio": LABEL_STUDIO,
    "doccano": Tool(read_doccano, sure=False, write=write_doccano),
    "dataturks": Tool(read_dataturks),
    "brat": BRAT,
    "huggingface": HUGGINGFACE,
    "gliner": Tool(read_gliner, write=write_gliner),
    "spacy-json": Tool(read_spacy_json, write=write_spacy_json),
}

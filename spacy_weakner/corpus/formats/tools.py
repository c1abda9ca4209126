"""The readers and writers of all formats that are not read line by line, by format name. Formats with one row per text
are implemented here."""

from collections import Counter
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from spacy.tokens import Doc

from ..counts import RowCounts, RowError, show_value
from ..foreign import SPANS, find_spans, tool_of
from ..records import EMPTY, Mark, Record, a_list, a_text, an_object, make_mark, object_mark, record_of, triple_mark
from . import brat, huggingface, label_studio, page, prodigy

NULLS = "null instead of texts that were not annotated, dropped"
RELATIONS = "relations, ignored"
ABSENT = "documents without the span group that is read as gold; their tokens count as missing"
# Keys with lists and objects that hold no spans: comments, categories of the text, relations, other columns.
_DOCCANO = ("relations", "Comments", "comments", "cats", "meta", "metadata")
_GLINER = frozenset(["tokenized_text", "ner", "ner_labels", "ner_negatives", "negatives", "relations"])
# Keys of spaCy's own training data.
_SPACY = frozenset(
    ["entities", "spans", "cats", "links", "words", "spaces", "tags", "pos", "morphs", "lemmas", "heads", "deps"]
    + ["sent_starts"]
)
# Keys of `Doc.to_json`; "_" are attributes of users.
_DOC = frozenset(["ents", "spans", "tokens", "sents", "cats", "_"])


def read_doccano(row: Any, counts: RowCounts) -> Record:
    """Read `{"text": ..., "label": [[0, 4, "PER"]]}`, or objects under "entities" with relations beside them."""
    row = an_object(row, "a row")
    text = a_text(row, "text", "data")
    key = find_spans(row) or next((key for key in SPANS if key in row), None)
    counts.note_unknown(row, {key, *_DOCCANO})
    spans = None if key is None or row[key] is None else a_list(row[key], key)
    counts.note(EMPTY, spans == [])
    counts.note(RELATIONS, len(a_list(row.get("relations") or [], "relations")))
    return Record(text=text, ents=None if spans is None else list(map(_doccano_mark, spans)), id=row.get("id"))


def _doccano_mark(item: Any) -> Mark:
    if not isinstance(item, dict):
        return triple_mark(item)
    start, end = (item.get(f"{key}_offset", item.get(key)) for key in ("start", "end"))
    # Rasa has "entity" and "value"; an "entity" of transformers is the tag of a word piece.
    label = item.get("label", item.get("entity") if "value" in item else None)
    return make_mark(start, end, label, item, text=item.get("text"))


def write_doccano(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    record = record_of(doc)
    row: Dict[str, Any] = {} if record.id is None else {"id": record.id}
    yield {**row, "text": record.text, "label": [list(mark[:3]) for mark in record.ents or []]}


def read_gliner(row: Any, counts: RowCounts) -> Record:
    """Read `{"tokenized_text": ["New", "York"], "ner": [[0, 1, "city"]]}`; the end is the last token of the span."""
    row = an_object(row, "a row")
    if "tokenized_text" not in row:
        raise RowError(f"no 'tokenized_text': {show_value(row)}")
    counts.note_unknown(row, _GLINER)
    ents = None
    if row.get("ner") is not None:
        ents = [triple_mark(item, last=True) for item in a_list(row["ner"], "ner")]
    return Record(tokens=a_list(row["tokenized_text"], "tokenized_text"), ents=ents, id=row.get("id"))


def write_gliner(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    record = record_of(doc, in_tokens=True)
    ner = [[mark.start, mark.end - 1, mark.label] for mark in record.ents or []]
    yield {"tokenized_text": record.tokens, "ner": ner}


def read_spacy_json(row: Any, counts: RowCounts, key: Optional[str] = None) -> Optional[Record]:
    """Read spaCy's `["text", {"entities": [[0, 4, "PER"]]}]`, as JSON, or what `Doc.to_json` returns. `key` is the span
    group that is read instead of the entities."""
    if row is None:
        counts.note(NULLS)
        return None
    if tool_of(row) != "spacy-json":
        raise RowError(f'expected [text, {{"entities": ...}}], or the result of Doc.to_json, got {show_value(row)}')
    if isinstance(row, dict):
        counts.note_unknown(row, _DOC)
        ents = _of_spacy(row, "ents", key, counts)
        borders = prodigy.token_borders(row["tokens"])
        return Record(text=a_text(row, "text"), borders=borders, ents=ents, cats=row.get("cats"), id=row.get("id"))
    text, annotations = row
    counts.note_unknown(annotations, _SPACY)
    ents = _of_spacy(annotations, "entities", key, counts)
    return Record(text=text, ents=ents, cats=annotations.get("cats"))


def _of_spacy(row: Any, name: str, key: Optional[str], counts: RowCounts) -> Optional[List[Mark]]:
    """Return the entities under a name, or those of a span group, and count the other groups."""
    groups = {name: a_list(spans, name) for name, spans in an_object(row.get("spans") or {}, "spans").items()}
    counts.groups.update({name: len(spans) for name, spans in groups.items() if spans and name != key})
    counts.note(ABSENT, key is not None and key not in groups)
    items = row.get(name) if key is None else groups.get(key)
    return None if items is None else list(map(object_mark, a_list(items, name)))


# Functions that make a record of an item, or return None if nothing is to be kept.
READERS: Dict[str, Callable[..., Optional[Record]]] = {
    "prodigy": prodigy.read,
    "label-studio": label_studio.read,
    "doccano": read_doccano,
    "brat": brat.read,
    "huggingface": huggingface.read,
    "gliner": read_gliner,
    "spacy-json": read_spacy_json,
}
# Functions that group rows about one text: the items become lists of rows.
GATHERERS = {"prodigy": prodigy.gather, "label-studio": label_studio.gather}
# Functions that make rows of a Doc and count what is lost.
WRITERS: Dict[str, Callable[[Doc, "Counter[str]"], Iterable[Dict[str, Any]]]] = {
    "prodigy": prodigy.write,
    "label-studio": label_studio.write,
    "doccano": write_doccano,
    "huggingface": huggingface.write,
    "gliner": write_gliner,
    "html": page.write,
}

"""Label Studio: tasks with annotations and predictions (JSON), and rows of annotations (JSON_MIN). Offsets count UTF-16
units, as browsers do."""

from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, Optional

from spacy.tokens import Doc

from ..annotations import weak
from ..annotations.foreign import labels_key
from ..annotations.rows import RowError, show
from .doccano import EMPTY
from .location import Item
from .offsets import UTF16, Places
from .records import Mark, Record, a_list, an_object, make_mark, record_of
from .tool import Context, Tool

PREDICTIONS = "predictions"
WEAK = "weak"
# Names of the controls in Label Studio's own template for entities.
FROM_NAME, TO_NAME = "label", "text"
CANCELLED = "annotations that were cancelled, passed over"
OLDER = "annotations of a text for which there is a newer one, passed over"
NUMBERS = "predictions of which the export holds only the number, passed over"
OTHERS = "results that are no labelled spans (choices, relations, notes), passed over"
_ANNOTATIONS = ("annotations", "completions")
_HYPERTEXT = "hypertextlabels"
# What stands beside the data in JSON_MIN.
_ABOUT = ("annotator", "created_at", "updated_at", "id", "annotation_id", "lead_time")


def gather(items: Iterable[Item]) -> Iterator[Item]:
    """Bring neighbouring rows of JSON_MIN together that belong to one task.

    items (Iterable[Item]): Tasks or rows.
    YIELDS (Item): Lists of one task, or of rows.
    """
    rows: List[Any] = []
    last: Optional[Item] = None
    for place, row in items:
        if rows and not (_is_row(row) and _is_row(rows[0]) and row.get("id") == rows[0].get("id") is not None):
            assert last is not None
            yield last[0], rows
            rows = []
        rows.append(row)
        last = (place, row)
    if last is not None:
        yield last[0], rows


def read(rows: List[Any], context: Context) -> Record:
    """Read a task.

    rows (List[Any]): The task, or its rows.
    context (Context): Counts.
    RETURNS (Record): The record.
    RAISES (RowError): If it is malformed.
    """
    notes = context.counts.notes
    row = an_object(rows[0], "a task")
    if _is_row(row):
        notes.update({OLDER: len(rows) - 1} if len(rows) > 1 else {})
        row = _newest(rows)
        key = labels_key(row)
        values = [] if key is None else row[key]
        notes.update({} if values else {EMPTY: 1})
        texts = {name: value for name, value in row.items() if name not in _ABOUT}
        return Record(text=_text(texts), ents=_marks([{"value": v} for v in values], notes), id=row.get("id"))
    data = an_object(row["data"], "'data'")
    identifier = data.get("id", row.get("id"))
    record = Record(text=_text(data), id=identifier if type(identifier) in (int, str) else None)
    key = next((key for key in _ANNOTATIONS if row.get(key)), _ANNOTATIONS[0])
    found = [an_object(each, "an annotation") for each in a_list(row.get(key), key)]
    valid = [each for each in found if not each.get("was_cancelled")]
    notes.update({CANCELLED: len(found) - len(valid)} if len(valid) < len(found) else {})
    notes.update({OLDER: len(valid) - 1} if len(valid) > 1 else {})
    if valid:
        results = a_list(_newest(valid).get("result"), "result")
        record.ents = _marks(results, notes)
        # Perhaps the question was another one.
        notes.update({EMPTY: 1} if results and not record.ents else {})
    versions: Dict[str, List[Dict[str, Any]]] = {}
    for each in a_list(row.get("predictions"), "predictions"):
        if type(each) is int:
            notes[NUMBERS] += 1
            continue
        each = an_object(each, "a prediction")
        versions.setdefault(str(each.get("model_version") or PREDICTIONS), []).append(each)
    for version, predictions in versions.items():
        newest = _newest(predictions)
        record.weak[version] = _marks(a_list(newest.get("result"), "result"), notes, newest.get("score"))
    return record


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Make a task: gold as an annotation, weak labels as predictions, which the tool shows as suggestions. The score of
    a prediction is the lowest one of its spans.

    doc (Doc): The Doc.
    lost (Counter[str]): Counts what cannot be said; nothing here.
    YIELDS (Dict[str, Any]): One task.
    """
    record = record_of(doc)
    text = record.text or ""
    places = Places(text, UTF16)

    def result(marks: List[Mark]) -> List[Dict[str, Any]]:
        return [_result(i, mark, text, places) for i, mark in enumerate(marks)]

    task: Dict[str, Any] = {"data": {"text": text, **({} if record.id is None else {"id": record.id})}}
    if weak.get_meta(doc) is not None:
        task["meta"] = weak.get_meta(doc)
    groups = dict(record.weak)
    if record.ents is not None:
        if weak.is_weak(doc):
            groups[WEAK] = record.ents
        else:
            task["annotations"] = [{"result": result(record.ents)}]
    if groups:
        task["predictions"] = [
            {"model_version": source, **_lowest(marks), "result": result(marks)} for source, marks in groups.items()
        ]
    yield task


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and not isinstance(row.get("data"), dict)


def _newest(found: List[Dict[str, Any]]) -> Dict[str, Any]:
    def stamp(each: Dict[str, Any]) -> str:
        return str(each.get("updated_at") or each.get("created_at") or "")

    # Of those made at the same time, the last.
    return max(reversed(found), key=stamp)


def _text(data: Dict[str, Any]) -> str:
    if isinstance(data.get("text"), str):
        return str(data["text"])
    texts = [value for key, value in data.items() if isinstance(value, str) and key != "id"]
    if len(texts) != 1:
        raise RowError(f"which of these is the text? Name it 'text': {show(data)}")
    return texts[0]


def _marks(results: List[Any], notes: "Counter[str]", score: Any = None) -> List[Mark]:
    marks = []
    for item in results:
        item = an_object(item, "a result")
        value = item.get("value")
        if item.get("type") == _HYPERTEXT:
            raise RowError("spans of HTML, whose offsets do not count a text. Export the text as such")
        labels = value.get("labels") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(labels, list) or not labels or "start" not in value:
            notes[OTHERS] += 1
            continue
        own = item.get("score", value.get("score"))
        for label in labels:
            marks.append(
                make_mark(
                    value["start"],
                    value.get("end"),
                    label,
                    value,
                    score=score if own is None else own,
                    text=value.get("text"),
                )
            )
    return marks


def _result(number: int, mark: Mark, text: str, places: Places) -> Dict[str, Any]:
    value = {
        "start": places.offset(mark.start),
        "end": places.offset(mark.end),
        "text": text[mark.start : mark.end],
        "labels": [mark.label],
    }
    score = {} if mark.score is None else {"score": mark.score}
    return {"id": f"e{number}", "from_name": FROM_NAME, "to_name": TO_NAME, "type": "labels", "value": value, **score}


def _lowest(marks: List[Mark]) -> Dict[str, float]:
    scores = [mark.score for mark in marks if mark.score is not None]
    return {"score": min(scores)} if scores else {}


LABEL_STUDIO = Tool(read, gather, UTF16, write=write)

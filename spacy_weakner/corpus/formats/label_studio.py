"""Label Studio: tasks with annotations and predictions (JSON), rows of annotations (JSON_MIN), and annotations that
hold their task (in cloud storage). Offsets count UTF-16 units, as browsers do."""

from collections import Counter
from itertools import groupby
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.tokens import Doc

from .. import weak
from ..foreign import holds_task, is_labels
from ..rows import RowCounts, RowError, show
from .doccano import EMPTY
from .location import Item
from .offsets import UTF16, Places
from .records import Mark, Record, a_list, agreed, an_object, make_mark, record_of
from .tool import Context, Tool

PREDICTIONS = "predictions"
WEAK = "weak"
# Names of the controls in Label Studio's own template for entities.
FROM_NAME, TO_NAME = "label", "text"
CANCELLED = "annotations that were cancelled, passed over"
OVERRULED = "annotations of a text for which there is one marked as ground truth, passed over"
OLDER = "annotations of a text for which there is a newer one of the same annotator, passed over"
DISPUTED = "spans on which annotators differ, so that nothing is known about their tokens"
NUMBERS = "predictions of which the export holds only the number, passed over"
OTHERS = "results that are no labelled spans (choices, relations, notes), passed over"
_ANNOTATIONS = ("annotations", "completions")
# Lists and objects that are read, or hold no entities.
_KEYS = frozenset(
    [*_ANNOTATIONS, PREDICTIONS, "data", "meta", "task", "result", "completed_by", "annotator", "annotators", "drafts"]
    + ["updated_by", "comments", "comment_authors", "reviews", "reviewers", "history", "annotations_results"]
    + ["predictions_results", "prediction", "predictions_model_versions"]
)
_HYPERTEXT = "hypertextlabels"
# What stands beside the data in JSON_MIN.
_ABOUT = ("annotator", "created_at", "updated_at", "id", "annotation_id", "lead_time")


def gather(items: Iterable[Item]) -> Iterator[Item]:
    """Bring neighboring annotations of one task together.

    items (Iterable[Item]): Tasks, rows of JSON_MIN, or annotations that hold their task.
    YIELDS (Item): Lists of one task, or of the annotations of one.
    """
    for key, found in groupby(items, key=lambda item: _task_key(item[1])):
        if key is None:
            yield from ((place, [row]) for place, row in found)
        else:
            places, rows = zip(*found, strict=True)
            yield places[-1], list(rows)


def read(rows: List[Any], context: Context) -> Record:
    """Read a task.

    rows (List[Any]): The task, or its annotations.
    context (Context): Counts.
    RETURNS (Record): The record.
    RAISES (RowError): If it is malformed.
    """
    counts = context.counts
    rows = [an_object(row, "a task") for row in rows]
    task = rows[0]["task"] if holds_task(rows[0]) else rows[0]
    is_row = not isinstance(task.get("data"), dict)
    data = {name: value for name, value in task.items() if name not in _ABOUT} if is_row else task["data"]
    identifier = task.get("id") if is_row else data.get("id", task.get("id"))
    record = Record(text=_text(data), id=identifier if type(identifier) in (int, str) else None)
    found: List[Dict[str, Any]] = []
    for row in rows:
        # In JSON_MIN, the name of a control is free.
        labels = [key for key, value in row.items() if is_row and is_labels(value)]
        context.pass_over(row, {*_KEYS, *labels})
        if is_row:
            values = [{"value": value} for key in labels for value in row[key]]
            found.append({**row, "result": values, "completed_by": row.get("annotator")})
        elif holds_task(row):
            found.append(row)
        else:
            key = next((key for key in _ANNOTATIONS if row.get(key)), _ANNOTATIONS[0])
            found += [an_object(each, "an annotation") for each in a_list(row.get(key), key)]
    _add_gold(record, found, is_row, counts)
    versions: Dict[str, List[Dict[str, Any]]] = {}
    for each in a_list(task.get("predictions"), "predictions"):
        if type(each) is int:
            counts.note(NUMBERS)
            continue
        each = an_object(each, "a prediction")
        versions.setdefault(str(each.get("model_version") or PREDICTIONS), []).append(each)
    for version, predictions in versions.items():
        newest = _newest(predictions)
        record.weak[version] = _marks(a_list(newest.get("result"), "result"), counts, newest.get("score"))
    return record


def _add_gold(record: Record, found: List[Dict[str, Any]], is_row: bool, counts: RowCounts) -> None:
    """The newest annotation of each annotator counts, or of those that are marked as ground truth; where annotators
    differ, nothing is known."""
    valid = [each for each in found if not each.get("was_cancelled")]
    chosen = [each for each in valid if each.get("ground_truth") is True] or valid
    annotators: Dict[str, List[Dict[str, Any]]] = {}
    for each in chosen:
        annotators.setdefault(_annotator(each.get("completed_by")), []).append(each)
    results = [a_list(_newest(each).get("result"), "result") for each in annotators.values()]
    if results:
        record.ents, disputed = agreed([_marks(result, counts) for result in results])
        record.missing = [mark[:2] for mark in disputed]
        # Perhaps the question was another one.
        counts.note(EMPTY, not (record.ents or disputed) and (is_row or any(results)))
        counts.note(DISPUTED, len(disputed))
    counts.note(CANCELLED, len(found) - len(valid))
    counts.note(OVERRULED, len(valid) - len(chosen))
    counts.note(OLDER, len(chosen) - len(results))


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


def _task_key(row: Any) -> Optional[Tuple[Any, Any]]:
    """What the annotations of one task have in common; None of a whole task."""
    if not isinstance(row, dict) or isinstance(row.get("data"), dict):
        return None
    task = row["task"] if holds_task(row) else row
    key = (task.get("id"), task.get("text"))
    return None if key == (None, None) else key


def _annotator(who: Any) -> str:
    # A number, or an object that has one.
    return repr(who.get("id", who.get("email")) if isinstance(who, dict) else who)


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


def _marks(results: List[Any], counts: RowCounts, score: Any = None) -> List[Mark]:
    marks = []
    for item in results:
        item = an_object(item, "a result")
        value = item.get("value")
        if item.get("type") == _HYPERTEXT:
            raise RowError("spans of HTML, whose offsets do not count a text. Export the text as such")
        labels = value.get("labels") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(labels, list) or not labels or "start" not in value:
            counts.note(OTHERS)
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

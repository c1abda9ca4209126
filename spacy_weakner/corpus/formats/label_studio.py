"""Label Studio: tasks with annotations and predictions (JSON), and rows of annotations (JSON_MIN). Offsets count UTF-16
units, as in browsers."""

from collections import Counter
from itertools import chain, groupby
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ...ty import Entity
from ..counts import RowCounts, RowError, show_value
from ..foreign import is_labels
from ..records import EMPTY, Item, Mark, Record, a_list, a_probability, an_object, make_mark, read_meta, record_of
from ..weak import SUGGESTED_GROUP
from .names import UTF16
from .offsets import Offsets

# The control for concept ids: <TextArea name="kb_id" toName="text" perRegion="true"/>. Its results have the id of the
# region that they belong to.
ID_NAME = "kb_id"
PREDICTIONS = "predictions"
WEAK = "weak"
# Names of the controls in Label Studio's own template for entities.
FROM_NAME, TO_NAME = "label", "text"
CANCELLED = "cancelled annotations, ignored"
OVERRULED = "annotations of texts that have one marked as ground truth, ignored"
OLDER = "annotations of texts that have a newer one by the same annotator, ignored"
DISPUTED = "spans on which annotators differ; their tokens count as missing"
NUMBERS = "predictions that the export contains only as a number, ignored"
OTHERS = "results other than labeled spans (choices, relations, notes), ignored"
_ANNOTATIONS = ("annotations", "completions")
# Keys with lists and objects that are read, or that hold no entities.
_KEYS = frozenset(
    [*_ANNOTATIONS, PREDICTIONS, "data", "meta", "annotator", "annotators", "drafts"]
    + ["updated_by", "comments", "comment_authors", "reviews", "reviewers", "history", "annotations_results"]
    + ["predictions_results", "prediction", "predictions_model_versions"]
)
_HYPERTEXT = "hypertextlabels"
# Keys beside the data in JSON_MIN.
_ABOUT = ("annotator", "created_at", "updated_at", "id", "annotation_id", "lead_time")


def gather(items: Iterable[Item]) -> Iterator[Item]:
    """Group neighboring annotations of one task."""
    for key, found in groupby(items, key=lambda item: _task_key(item[1])):
        if key is None:
            yield from ((place, [row]) for place, row in found)
        else:
            places, rows = zip(*found, strict=True)
            yield places[-1], list(rows)


def read(rows: List[Any], counts: RowCounts) -> Record:
    rows = [an_object(row, "a task") for row in rows]
    task = rows[0]
    is_row = not isinstance(task.get("data"), dict)
    data = {name: value for name, value in task.items() if name not in _ABOUT} if is_row else task["data"]
    identifier = task.get("id") if is_row else data.get("id", task.get("id"))
    record = Record(text=_text(data), id=identifier if type(identifier) in (int, str) else None)
    record.meta = next(filter(None, map(read_meta, rows)), None)
    found: List[Dict[str, Any]] = []
    for row in rows:
        # In JSON_MIN, the name of a control is arbitrary.
        labels = [key for key, value in row.items() if is_row and is_labels(value)]
        counts.note_unknown(row, {*_KEYS, *labels})
        if is_row:
            values = [{"value": value} for key in labels for value in row[key]]
            found.append({**row, "result": values, "completed_by": row.get("annotator")})
        else:
            key = next((key for key in _ANNOTATIONS if row.get(key)), _ANNOTATIONS[0])
            found += [an_object(item, "an annotation") for item in a_list(row.get(key), key)]
    _add_gold(record, found, is_row, counts)
    versions: Dict[str, List[Dict[str, Any]]] = {}
    for prediction in a_list(task.get("predictions"), "predictions"):
        if type(prediction) is int:
            counts.note(NUMBERS)
            continue
        prediction = an_object(prediction, "a prediction")
        versions.setdefault(str(prediction.get("model_version") or PREDICTIONS), []).append(prediction)
    for predictions in versions.values():
        newest = _newest(predictions)
        marks = _marks(a_list(newest.get("result"), "result"), counts, newest.get("score"))
        record.suggested += [mark for mark in marks if _visible(mark) not in map(_visible, record.suggested)]
    return record


def _add_gold(record: Record, found: List[Dict[str, Any]], is_row: bool, counts: RowCounts) -> None:
    """Add the newest annotation of each annotator, or only annotations marked as ground truth if there are any. Where
    annotators differ, the tokens are missing."""
    valid = [annotation for annotation in found if not annotation.get("was_cancelled")]
    chosen = [annotation for annotation in valid if annotation.get("ground_truth") is True] or valid
    annotators: Dict[str, List[Dict[str, Any]]] = {}
    for annotation in chosen:
        who = annotation.get("completed_by")  # a number, or an object that has one
        name = repr(who.get("id", who.get("email")) if isinstance(who, dict) else who)
        annotators.setdefault(name, []).append(annotation)
    results = [a_list(_newest(annotations).get("result"), "result") for annotations in annotators.values()]
    if results:
        record.ents, disputed = _agreed([_marks(result, counts) for result in results])
        record.missing = [mark[:2] for mark in disputed]
        # The task may have been another one.
        counts.note(EMPTY, not (record.ents or disputed) and (is_row or any(results)))
        counts.note(DISPUTED, len(disputed))
    counts.note(CANCELLED, len(found) - len(valid))
    counts.note(OVERRULED, len(valid) - len(chosen))
    counts.note(OLDER, len(chosen) - len(results))


def _agreed(answers: Sequence[List[Mark]]) -> Tuple[List[Mark], List[Mark]]:
    """Return the spans that all annotators of a text marked, with their ids, and the spans that only some marked."""
    marks: Dict[Entity, Mark] = {}
    for mark in chain(*answers):
        before = marks.get(_visible(mark), mark).id
        marks[_visible(mark)] = mark._replace(id="|".join(dict.fromkeys(filter(None, [before, mark.id]))))
    shared = set.intersection(*({_visible(mark) for mark in answer} for answer in answers))
    return [marks[key] for key in marks if key in shared], [marks[key] for key in marks if key not in shared]


def _visible(mark: Mark) -> Entity:
    """Return span and label, without white space at the ends if the row gives the text of the span."""
    text = mark.text or ""
    start, end = mark.start + len(text) - len(text.lstrip()), mark.end - len(text) + len(text.rstrip())
    return (start, end, mark.label) if start < end else mark[:3]


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Yield the task of a Doc: gold as an annotation, weak labels as predictions, which the tool shows as suggestions.
    The score of a prediction is the lowest score of its spans."""
    record = record_of(doc)
    text = record.text or ""
    offsets = Offsets(text, UTF16)

    def result(marks: List[Mark]) -> List[Dict[str, Any]]:
        return [part for i, mark in enumerate(marks) for part in _results(i, mark, text, offsets)]

    task: Dict[str, Any] = {"data": {"text": text, **({} if record.id is None else {"id": record.id})}}
    if record.meta is not None:
        task["meta"] = record.meta
    groups = {**record.weak, **({SUGGESTED_GROUP: record.suggested} if record.suggested else {})}
    if record.ents is not None and record.is_weak:
        groups[WEAK if WEAK not in groups else f"{WEAK} entities"] = record.ents
    elif record.ents is not None:
        task["annotations"] = [{"result": result(record.ents)}]
    for source, marks in groups.items():
        scores = [mark.score for mark in marks if mark.score is not None]
        lowest = {"score": min(scores)} if scores else {}
        task.setdefault("predictions", []).append({"model_version": source, **lowest, "result": result(marks)})
    yield task


def _task_key(row: Any) -> Optional[Tuple[Any, Any]]:
    """Return the key that the annotations of one task share; None for a complete task."""
    if not isinstance(row, dict) or isinstance(row.get("data"), dict):
        return None
    key = (row.get("id"), row.get("text"))
    return None if key == (None, None) else key


def _newest(found: List[Dict[str, Any]]) -> Dict[str, Any]:
    # Of several with the same time, the last one.
    return max(reversed(found), key=lambda item: str(item.get("updated_at") or item.get("created_at") or ""))


def _text(data: Dict[str, Any]) -> str:
    if isinstance(data.get("text"), str):
        return str(data["text"])
    texts = [value for key, value in data.items() if isinstance(value, str) and key != "id"]
    if len(texts) != 1:
        raise RowError(f"the text cannot be found: name its field 'text': {show_value(data)}")
    return texts[0]


def _marks(results: List[Any], counts: RowCounts, score: Any = None) -> List[Mark]:
    marks = []
    results = [an_object(item, "a result") for item in results]
    ids = {item.get("id"): _ids(item) for item in results if item.get("from_name") == ID_NAME}
    for item in results:
        if item.get("from_name") == ID_NAME:
            continue
        value = item.get("value")
        if item.get("type") == _HYPERTEXT:
            raise RowError("spans of HTML, whose offsets do not refer to plain text. Export plain text instead")
        labels = value.get("labels") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(labels, list) or not labels or "start" not in value:
            counts.note(OTHERS)
            continue
        span_score = item.get("score", value.get("score"))
        found: Dict[str, Any] = {
            "score": a_probability(score if span_score is None else span_score),
            "text": value.get("text"),
            "id": ids.get(item.get("id")),
        }
        marks += [make_mark(value["start"], value.get("end"), label, value, **found) for label in labels]
    return marks


def _ids(item: Dict[str, Any]) -> str:
    """Return the ids in a result of the id control, joined by "|"."""
    texts = an_object(item.get("value"), "a value").get("text")
    return "|".join(str(text).strip() for text in ([texts] if isinstance(texts, str) else a_list(texts, "text")))


def _results(number: int, mark: Mark, text: str, offsets: Offsets) -> Iterator[Dict[str, Any]]:
    """Yield the result of a span, and the result of its id."""
    place = {"start": offsets.offset(mark.start), "end": offsets.offset(mark.end)}
    region = {"id": f"e{number}", "to_name": TO_NAME}
    value = {**place, "text": text[mark.start : mark.end], "labels": [mark.label]}
    score = {} if mark.score is None else {"score": mark.score}
    yield {**region, "from_name": FROM_NAME, "type": "labels", "value": value, **score}
    if mark.id:
        yield {**region, "from_name": ID_NAME, "type": "textarea", "value": {**place, "text": mark.id.split("|")}}

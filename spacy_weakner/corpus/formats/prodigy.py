"""Prodigy: answered rows. The meaning of an answer depends on the task.

- Manual (`ner.manual`, `ner.correct`): an accepted row is complete gold. A rejected row is dropped.
- Binary (`ner.teach`): an accepted span is an entity, and a rejected span is known to be wrong; all other tokens are
  missing.
- Ignored rows are dropped. Rows without an answer hold suggestions.

Rows with the same `_input_hash` are about one text and become one record. They need not be adjacent.
"""

import zlib
from collections import Counter
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from spacy.tokens import Doc

from ...ty import Entity
from ..counts import RowCounts, RowError
from ..foreign import is_prodigy
from ..records import Item, Mark, Record, a_list, a_text, an_object, object_mark, read_meta, record_of

ACCEPT, REJECT, IGNORE = "accept", "reject", "ignore"
IGNORED = "rows answered 'ignore', dropped"
REJECTED = "rows rejected as a whole (single spans may be right), dropped"
MERGED = "rows merged with others about the same text"
CONFLICTS = "answers that contradict a newer one about the same text, ignored"
OLDER = "spans of older rows that the newest row about the same text lacks; their tokens count as missing"
OTHER_VIEWS = "rows of questions other than entities, kept as text without annotation"
OUTSIDE = "tokens known to be outside of entities, in sentences with missing tokens"
_BINARY, _MANUAL = ("ner", "spans"), ("ner_manual", "spans_manual", "review", "relations")
# Prodigy's keys with lists and objects that are read, or that hold no entities.
_KEYS = frozenset(
    ["tokens", "spans", "meta", "options", "accept", "relations", "versions", "config", "vars", "llm", "openai"]
)
_BLOCKS, _REVIEW = "blocks", "review"
_SUGGESTED = {"score", "source", "rank", "pattern", "priority"}


def gather(items: Iterable[Item]) -> Iterator[Item]:
    """Group the rows about one text, at the place of the last of them."""
    texts: Dict[Any, Tuple[Any, List[Any]]] = {}
    for number, (place, row) in enumerate(items):
        key = row.get("_input_hash") if isinstance(row, dict) and is_prodigy(row) else None
        key = number if key is None else (str(key), str(row.get("text")))
        rows = texts.pop(key, (place, []))[1]
        rows.append(row)
        texts[key] = (place, rows)
    yield from texts.values()


def read(rows: List[Any], counts: RowCounts) -> Optional[Record]:
    """Read the rows about one text. Return None if none of them is kept."""
    answers, kept = _Answers(), 0
    for row in sorted(rows, key=_time) if all(map(_time, rows)) else rows:
        row = an_object(row, "a row")
        a_text(row, "text")
        answer = row.get("answer")
        if answer == IGNORE or (answer == REJECT and not _names_wrong(row)):
            counts.note(IGNORED if answer == IGNORE else REJECTED)
            continue
        kept += 1
        unknown = counts.note_unknown(row, _KEYS)
        asked = _is_manual(row) or _view(row) is None
        if answer == ACCEPT and asked and unknown and row.get("spans") is None:
            raise RowError(
                f"accepted without 'spans', but with {', '.join(map(repr, unknown))}, which Prodigy does not use. If "
                "it contains entities, rename the key to 'spans'; if there are no entities, write \"spans\": []"
            )
        answers.add(row)
    if not kept:
        return None
    # Not every view shows tokens.
    tokens = (row["tokens"] for row in reversed(rows) if row.get("tokens"))
    record = answers.record(rows[-1]["text"], token_borders(next(tokens, None)))
    record.id = next((row["id"] for row in reversed(rows) if type(row.get("id")) in (int, str)), None)
    record.meta = next(filter(None, map(read_meta, reversed(rows))), None)
    counts.note(MERGED, kept - 1)
    counts.note(CONFLICTS, answers.conflicts)
    counts.note(OTHER_VIEWS, answers.others)
    counts.note(OLDER, len(answers.older))
    return record


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Yield the rows of a Doc: one accepted row for complete gold, one row per span if the gold is incomplete, or one
    unanswered row with weak labels as suggestions if there is no gold."""
    record = record_of(doc)
    row, span = _row(doc, record), _span_maker(record)
    ents, n_weak = record.ents or [], sum(map(len, record.weak.values()))
    known = record.ents is not None and not record.is_weak
    if known and not record.missing:
        lost["weak spans"] += n_weak
        lost["wrong spans"] += len(record.wrong)
        yield {**row, "spans": list(map(span, ents)), "answer": ACCEPT, "_view_id": _MANUAL[0]}
        return
    # A span needs a label here, and suggestions have no answers beside them.
    wrong = [mark for mark in record.wrong if mark.label and not record.suggested]
    lost["wrong spans"] += len(record.wrong) - len(wrong)
    answers = [(mark, ACCEPT) for mark in ents if known] + [(mark, REJECT) for mark in wrong]
    if known:
        visible, inside = sum(not token.is_space for token in doc), sum(map(len, doc.ents))
        lost[OUTSIDE] += visible - len(record.missing) - inside
    if answers:
        lost["weak spans"] += n_weak + (0 if known else len(ents))
        about = {"_view_id": _BINARY[0], "_input_hash": zlib.crc32((record.text or "").encode())}
        yield from ({**row, "spans": [span(mark)], "answer": answer, **about} for mark, answer in answers)
        return
    yield unanswered(doc, record, lost)


def unanswered(doc: Doc, record: Record, lost: "Counter[str]") -> Dict[str, Any]:
    """Return a row without an answer. Its suggestions are the entities of a record, or earlier suggestions, or weak
    labels; of those that overlap, the first."""
    span = _span_maker(record)
    suggested = list(map(span, record.ents or record.suggested)) or [
        span(mark, source=source) for source, marks in record.weak.items() for mark in marks
    ]
    spans: List[Dict[str, Any]] = []
    for found in suggested:
        if all(found["end"] <= other["start"] or other["end"] <= found["start"] for other in spans):
            spans.append(found)
    lost["weak spans"] += sum(map(len, record.weak.values())) - sum("source" in found for found in spans)
    return {**_row(doc, record), "spans": sorted(spans, key=lambda found: found["start"])}


def _row(doc: Doc, record: Record) -> Dict[str, Any]:
    """Return the keys of a row that all views share."""
    tokens = [
        {"text": t.text, "start": t.idx, "end": t.idx + len(t), "id": t.i, "ws": bool(t.whitespace_)} for t in doc
    ]
    about = {"id": record.id, "meta": record.meta}
    return {"text": record.text, "tokens": tokens, **{key: value for key, value in about.items() if value is not None}}


def _span_maker(record: Record) -> Callable[..., Dict[str, Any]]:
    starts = {start: i for i, (start, _) in enumerate(record.borders)}
    ends = {end: i for i, (_, end) in enumerate(record.borders)}

    def span(mark: Mark, **more: Any) -> Dict[str, Any]:
        more |= {} if mark.score is None else {"score": mark.score}
        more |= {"kb_id": mark.id} if mark.id else {}
        tokens = {"token_start": starts[mark.start], "token_end": ends[mark.end]}
        return {"start": mark.start, "end": mark.end, **tokens, "label": mark.label, **more}

    return span


class _Answers:
    """The answers of several rows about one text."""

    def __init__(self) -> None:
        self.manual: Optional[List[Mark]] = None
        self.older: Dict[Entity, Mark] = {}
        self.binary: Dict[Entity, Tuple[Mark, bool]] = {}
        self.suggested: List[Mark] = []
        self.conflicts = 0
        self.others = 0

    def add(self, row: Dict[str, Any]) -> None:
        answer, spans = row.get("answer"), a_list(row.get("spans"), "spans")
        marks = list(map(object_mark, spans))
        if answer not in (ACCEPT, REJECT):
            self.suggested += marks
        elif _is_binary(row):
            for mark, span in zip(marks, spans, strict=True):
                right = _answer(span, answer) == ACCEPT
                self.conflicts += self.binary.get(mark[:3], (mark, right))[1] != right
                self.binary[mark[:3]] = (mark, right)
        elif _is_manual(row):
            self._add_manual(marks)
        else:
            self.others += 1

    def _add_manual(self, marks: List[Mark]) -> None:
        """Add a manual answer. Older spans that it lacks may belong to other labels, or may have been corrected."""
        older = {**self.older, **{mark[:3]: mark for mark in self.manual or []}}
        # Where both have a span, the newest is right.
        self.older = {
            key: mark for key, mark in older.items() if all(m.end <= mark.start or mark.end <= m.start for m in marks)
        }
        self.conflicts += not older.keys() <= _keys(marks) | self.older.keys()
        self.manual = marks

    def record(self, text: str, borders: List[Tuple[int, int]]) -> Record:
        accepted = [mark for mark, right in self.binary.values() if right]
        rejected = [mark for mark, right in self.binary.values() if not right]
        record = Record(text=text, borders=borders, suggested=self.suggested)
        if self.manual is not None:
            found = _keys(self.manual)
            self.conflicts += len(_keys(accepted) - found) + len(_keys(rejected) & found)
            record.ents = self.manual
            record.missing = [mark[:2] for mark in self.older.values()]
            record.wrong = [mark for mark in rejected if mark[:3] not in found]
        elif self.binary:
            record.ents, record.complete, record.wrong = accepted, False, rejected
        return record


def _view(row: Dict[str, Any]) -> Any:
    view = row.get("_view_id")
    # A review stores the view of the reviewed rows.
    return row.get("view_id", view) if view == _REVIEW else view


def _is_manual(row: Dict[str, Any]) -> bool:
    # Blocks may hold anything, and old rows store no view: rows with tokens were shown for marking spans.
    view = _view(row)
    return view in _MANUAL if view not in (None, _BLOCKS) else "spans" in row or "tokens" in row


def _is_binary(row: Dict[str, Any]) -> bool:
    view = _view(row)
    if view is not None:
        return view in _BINARY
    spans = row.get("spans")
    if not isinstance(spans, list) or len(spans) != 1 or not isinstance(spans[0], dict):
        return False
    return bool(_SUGGESTED & spans[0].keys()) or (row.get("answer") == REJECT and "tokens" not in row)


def _names_wrong(row: Dict[str, Any]) -> bool:
    """Return True if a rejected row shows what is wrong, which it does not if it has several spans."""
    spans = row.get("spans")
    several = isinstance(spans, list) and len(spans) > 1 and all(_answer(span, REJECT) == REJECT for span in spans)
    return _is_binary(row) and not several


def _answer(span: Any, answer: str) -> str:
    span_answer = span.get("answer") if isinstance(span, dict) else None
    return span_answer if span_answer in (ACCEPT, REJECT) else answer


def token_borders(tokens: Any) -> List[Tuple[int, int]]:
    """Return start and end of tokens that are objects; an empty list if some are not known."""
    if not isinstance(tokens, list):
        return []
    borders = [(token.get("start"), token.get("end")) for token in tokens if isinstance(token, dict)]
    known = [(start, end) for start, end in borders if type(start) is int and type(end) is int]
    return known if len(known) == len(tokens) else []


def _keys(marks: List[Mark]) -> Set[Entity]:
    return {mark[:3] for mark in marks}


def _time(row: Any) -> int:
    time = row.get("_timestamp") if isinstance(row, dict) else None
    return time if type(time) is int else 0

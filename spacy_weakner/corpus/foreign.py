"""Detection of rows of other annotation tools by their keys. As rows of this package, they would lose their labels and
seem to have no annotation. `corpus.formats` reads these formats."""

import shlex
from pathlib import Path
from typing import Any, List, Optional

from .tags import OUTSIDE, is_tag, split_tags

# Keys of labels in rows of this package; see `jsonl`.
_OWN = ("ents", "spans", "weak_ents", "suggested", "gold")
# Keys of rows that hold only text, as most rows of large corpora do.
BARE = {"id", "text", "tokens", "spaces"}
_PRODIGY = ("_input_hash", "_task_hash", "_view_id")
_ANSWERS = ("accept", "reject", "ignore")
_TASK = ("annotations", "completions", "predictions")
# Keys that only a record has, and no object around records.
_OF_RECORDS = ("text", "tokens", "tokenized_text")
# Keys of spans, and of tags, in other formats.
SPANS = ("label", "labels", "entities", "annotations", "annotation")
TAGS = ("ner_tags", "ner", "tags", "labels", "label")
_OF_ENTITIES = ("ner_tags", "ner")  # whose strings are tags in any spelling


def tool_of(row: Any) -> Optional[str]:
    """Return the format of a row of another tool, or None."""
    if isinstance(row, list):
        is_pair = len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)
        return "spacy-json" if is_pair else None
    if not isinstance(row, dict) or (row.keys() <= BARE and not {"text", "tokens"} <= row.keys()):
        return None
    if is_prodigy(row):
        return "prodigy"
    if _is_doc(row):
        return "spacy-json"
    if "tokenized_text" in row:
        return "gliner"
    if isinstance(row.get("data"), dict) and any(key in row for key in _TASK):
        return "label-studio"
    spans = row.get("spans")
    # WikiANN has texts there, beside its tags.
    are_texts = isinstance(spans, list) and any(isinstance(span, str) for span in spans)
    if not are_texts and any(isinstance(row[key], (list, dict, type(None))) for key in _OWN if key in row):
        return None
    if find_tags(row) is not None:
        return "huggingface"
    key = find_spans(row)
    if key is None:
        return "label-studio" if any(map(is_labels, row.values())) else None
    return "label-studio" if is_labels(row[key]) else "doccano"


def wrapped(value: Any) -> Optional[List[Any]]:
    """Return the records of a file that wraps them in an object (`{"data": [...]}`); None for other objects. Rasa wraps
    them twice."""
    value = value.get("rasa_nlu_data", value) if isinstance(value, dict) else value
    if not isinstance(value, dict) or not value.keys().isdisjoint(_OF_RECORDS) or isinstance(value.get("data"), dict):
        return None

    def is_record(item: Any) -> bool:
        is_ours = isinstance(item, dict) and not _is_span(item) and any(key in item for key in _OF_RECORDS)
        return is_ours or tool_of(item) is not None

    found = [items for items in value.values() if isinstance(items, list) and any(map(is_record, items))]
    return found[0] if len(found) == 1 else None


def is_prodigy(row: Any) -> bool:
    """Return True if a row is Prodigy's: it has an answer or a hash, or its tokens are objects beside the text."""
    if any(key in row for key in _PRODIGY) or row.get("answer") in _ANSWERS[1:]:
        return True
    tokens, spans = row.get("tokens"), row.get("spans")
    if "text" in row and isinstance(tokens, list) and any(isinstance(token, dict) for token in tokens):
        return not _is_doc(row)
    return row.get("answer") in _ANSWERS and isinstance(spans, list) and any(isinstance(span, dict) for span in spans)


def format_of(row: Any) -> Optional[str]:
    """Return the format of a row with annotations, of another tool or of this package."""
    is_ours = isinstance(row, dict) and any(isinstance(row.get(key), (list, dict)) for key in _OWN)
    return tool_of(row) or ("jsonl" if is_ours else None)


def find_tags(row: Any) -> Optional[str]:
    """Return the key that holds one tag per token."""
    tokens = row.get("tokens")
    return next((key for key in TAGS if _are_tags(row.get(key), tokens, key in _OF_ENTITIES)), None)


def find_spans(row: Any) -> Optional[str]:
    """Return the key that holds the spans of a row with a text."""
    return next((key for key in SPANS if _are_spans(row.get(key))), None)


def is_labels(value: Any) -> bool:
    """Return True if a value is a list of spans in Label Studio's form."""
    return _are_spans(value) and all(isinstance(item, dict) and isinstance(item.get("labels"), list) for item in value)


def with_names(message: str, path: Path) -> str:
    """Put the file name into the command of a message."""
    new = path.with_name(f"{path.name.partition('.')[0]}-new.spacy")
    return message.replace("convert FILE NEW", f"convert {shlex.quote(str(path))} {shlex.quote(str(new))}")


def _is_doc(row: Any) -> bool:
    """Return True for what spaCy's `Doc.to_json` writes. Unlike Prodigy's, its tokens are objects without texts, and
    its spans are groups."""
    tokens = row.get("tokens")
    if "text" not in row or not (isinstance(tokens, list) and tokens):
        return False
    if row.get("answer") in _ANSWERS or isinstance(row.get("spans"), list):
        return False
    are_borders = all(isinstance(token, dict) and {"start", "end"} <= token.keys() for token in tokens)
    return are_borders and ("ents" in row or not any("text" in token for token in tokens))


def _are_spans(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(item: Any) -> bool:
    if isinstance(item, dict):
        return bool({"start", "start_offset"} & item.keys()) and bool({"end", "end_offset"} & item.keys())
    return isinstance(item, list) and len(item) == 3 and [type(part) for part in item] == [int, int, str]


def _are_tags(value: Any, tokens: Any, sure: bool) -> bool:
    has_tokens = isinstance(tokens, list)
    if not isinstance(value, list) or not (sure or (has_tokens and len(value) == len(tokens))):
        return False
    types = {*map(type, value)} - {type(None)}
    if types != {str}:
        # pandas makes floats of whole numbers.
        return bool(types) and types <= {int, float} and all(tag is None or tag % 1 == 0 for tag in value)
    return (
        (sure and has_tokens)
        or OUTSIDE in value
        or all(tag is None or all(map(is_tag, split_tags(tag))) for tag in value)
    )

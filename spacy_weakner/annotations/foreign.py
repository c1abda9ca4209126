"""Rows of other annotation tools, told by their keys. In rows of ours, their labels would be passed over: the sentence
would seem to be without annotation. The formats are read in `spacy_weakner.formats`."""

import shlex
from pathlib import Path
from typing import Any, Optional

from .tags import is_tag, split_tags

# Where our rows keep labels; see `rows`.
_OWN = ("ents", "spans", "weak_ents", "gold")
# What rows have that are text alone: most of them, where there is much.
BARE = {"id", "text", "tokens", "spaces"}
_PRODIGY = ("_input_hash", "_task_hash", "_view_id")
_ANSWERS = ("accept", "reject", "ignore")
_TASK = ("annotations", "completions", "predictions")
# Where others keep spans, and tags.
SPANS = ("label", "labels", "entities", "annotations")
TAGS = ("ner_tags", "tags", "ner", "labels", "label")


def tool_of(row: Any) -> Optional[str]:
    """Recognise a row of another tool.

    row (Any): The row.
    RETURNS (Optional[str]): Name of its format; None for a row of ours, or without labels.
    """
    if isinstance(row, list):
        is_pair = len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)
        return "spacy-json" if is_pair else None
    if not isinstance(row, dict) or (row.keys() <= BARE and not {"text", "tokens"} <= row.keys()):
        return None
    if is_prodigy(row):
        return "prodigy"
    if "tokenized_text" in row:
        return "gliner"
    if isinstance(row.get("data"), dict) and any(key in row for key in _TASK):
        return "label-studio"
    if any(key in row for key in _OWN):
        return None
    if find_tags(row) is not None:
        return "huggingface"
    key = find_spans(row)
    if key is None:
        return labels_key(row) and "label-studio"
    return "label-studio" if is_labels(row[key]) else "doccano"


def is_prodigy(row: Any) -> bool:
    """Whether a row is one of Prodigy: it is answered, or knows its hash, or its tokens are objects beside the text."""
    if any(key in row for key in _PRODIGY) or row.get("answer") in _ANSWERS[1:]:
        return True
    tokens, spans = row.get("tokens"), row.get("spans")
    if "text" in row and isinstance(tokens, list) and any(isinstance(token, dict) for token in tokens):
        return True
    return row.get("answer") in _ANSWERS and isinstance(spans, list) and any(isinstance(span, dict) for span in spans)


def find_tags(row: Any) -> Optional[str]:
    """The key under which a row has a tag for every token.

    row (Any): The row.
    RETURNS (Optional[str]): The key, if there is one.
    """
    tokens = row.get("tokens")
    return next((key for key in TAGS if _are_tags(row.get(key), tokens)), None)


def find_spans(row: Any) -> Optional[str]:
    """The key under which a row with a text has spans.

    row (Any): The row.
    RETURNS (Optional[str]): The key, if there is one.
    """
    return next((key for key in SPANS if _are_spans(row.get(key))), None)


def labels_key(row: Any) -> Optional[str]:
    """The key of the results in a row of Label Studio's JSON_MIN: the name of a control, which is free.

    row (Any): The row.
    RETURNS (Optional[str]): The key, if there is one.
    """
    return next((key for key, value in row.items() if is_labels(value)), None)


def is_labels(value: Any) -> bool:
    """Whether these are spans as Label Studio writes them."""
    return _are_spans(value) and all(isinstance(item, dict) and isinstance(item.get("labels"), list) for item in value)


def with_names(message: str, path: Path) -> str:
    """Put the name of the file into the command of a message.

    message (str): What `rows.refuse_foreign` said, or anything else.
    path (Path): The file.
    RETURNS (str): The message.
    """
    new = path.with_name(f"{path.name.partition('.')[0]}-new.spacy")
    return message.replace("convert FILE NEW", f"convert {shlex.quote(str(path))} {shlex.quote(str(new))}")


def _are_spans(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(item: Any) -> bool:
    if isinstance(item, dict):
        return bool({"start", "start_offset"} & item.keys()) and bool({"end", "end_offset"} & item.keys())
    return isinstance(item, list) and len(item) == 3 and [type(part) for part in item] == [int, int, str]


def _are_tags(value: Any, tokens: Any) -> bool:
    if not (isinstance(value, list) and isinstance(tokens, list)) or not value or len(value) != len(tokens):
        return False
    numbers = all(type(tag) is int for tag in value)
    if all(tag is None for tag in value):
        return False
    return numbers or all(tag is None or (isinstance(tag, str) and all(map(is_tag, split_tags(tag)))) for tag in value)

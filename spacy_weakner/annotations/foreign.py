"""Rows of other annotation tools. Their labels stand under keys that mean nothing here, and would be passed over: the
sentence would seem to be without annotation."""

import re
import shlex
from pathlib import Path
from typing import Any, Dict, List, Optional

# Where this layout keeps labels; see `rows`.
_OWN = ("ents", "spans", "weak_ents", "gold")
_SPAN_KEYS = ("label", "labels", "entities", "annotations")
_TAG_KEYS = ("ner_tags", "tags", "ner", "labels", "label")
_TAG = re.compile(r"O|[BIESLU]-\S.*")
_OR_REMOVE = "If these are not labels to be read, remove the key."


def foreign_layout(row: Dict[str, Any]) -> Optional[str]:
    """Recognise a row of another tool.

    row (Dict[str, Any]): The row.
    RETURNS (Optional[str]): What it looks like, and what to do; None for a row without foreign labels.
    """
    if row.get("answer") in ("reject", "ignore"):
        return (
            f"'answer' is '{row['answer']}': this is a row of Prodigy that was not accepted, and it would be read as "
            f'correct. Remove such rows: grep -v \'"answer": *"{row["answer"]}"\' FILE > NEW'
        )
    if "tokens" not in row and "text" not in row:
        return _without_text(row)
    if isinstance(row.get("tokens"), list) and "text" in row and any(isinstance(t, dict) for t in row["tokens"]):
        return (
            "'tokens' holds objects beside 'text': this looks like Prodigy. Offsets of its spans count characters, so "
            "remove the tokens: jq -c 'del(.tokens)' FILE > NEW"
        )
    if any(key in row for key in _OWN):
        return None
    for key in _SPAN_KEYS:
        if _are_spans(row.get(key)):
            return _spans_message(key, row[key])
    for key in _TAG_KEYS:
        if _are_tags(row.get(key), row.get("tokens")):
            return _tags_message(key, row[key])
    return None


def with_names(message: str, path: Path) -> str:
    """Put the name of the file into the command of a message.

    message (str): What `foreign_layout` said, or anything else.
    path (Path): The file.
    RETURNS (str): The message.
    """
    new = path.with_name(f"{path.name.partition('.')[0]}-new.jsonl")
    message = message.replace("FILE > NEW.conll", f"FILE > {shlex.quote(str(new.with_suffix('.conll')))}")
    return message.replace("FILE > NEW", f"FILE > {shlex.quote(str(new))}").replace("FILE > ", f"{_read(path)} > ")


def _read(path: Path) -> str:
    name = shlex.quote(str(path))
    return f"<(gzip -dc {name})" if path.suffix == ".gz" else name


def _without_text(row: Dict[str, Any]) -> Optional[str]:
    if "tokenized_text" in row:
        return (
            "neither 'tokens' nor 'text', but 'tokenized_text': this looks like GLiNER, whose spans end with their "
            "last token. Write: jq -c '{tokens: .tokenized_text, ents: [.ner[] | [.[0], .[1] + 1, .[2]]]}' FILE > NEW"
        )
    if isinstance(row.get("data"), dict) and any(key in row for key in ("annotations", "completions", "predictions")):
        return (
            "neither 'tokens' nor 'text', but 'data' and 'annotations': this looks like Label Studio. Write rows "
            '{"text": ..., "ents": [[start, end, "LABEL"]]} of its results. (Its offsets count UTF-16 units: an emoji '
            "is two.)"
        )
    return None


def _are_spans(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_span, value))


def _is_span(item: Any) -> bool:
    if isinstance(item, dict):
        return bool({"start", "start_offset"} & item.keys()) and bool({"end", "end_offset"} & item.keys())
    return isinstance(item, list) and len(item) == 3 and [type(part) for part in item] == [int, int, str]


def _spans_message(key: str, items: List[Any]) -> str:
    tool = "Label Studio" if isinstance(items[0], dict) and "labels" in items[0] else "doccano"
    if isinstance(items[0], list):
        program = f".ents = .{key} | del(.{key})"
    else:
        start, end = ("start_offset", "end_offset") if "start_offset" in items[0] else ("start", "end")
        label = "labels[0]" if "labels" in items[0] else "label"
        program = f".ents = [.{key}[] | [.{start}, .{end}, .{label}]] | del(.{key})"
    return (
        f"'{key}' holds spans, as {tool} writes them, but gold stands under 'ents' here, so the row would be read as "
        f"not annotated. Rename the key: jq -c '{program}' FILE > NEW. {_OR_REMOVE}"
    )


def _are_tags(value: Any, tokens: Any) -> bool:
    if not (isinstance(value, list) and isinstance(tokens, list)) or not value or len(value) != len(tokens):
        return False
    numbers = all(type(tag) is int for tag in value)
    return numbers or all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in value)


def _tags_message(key: str, tags: List[Any]) -> str:
    columns = f"jq -r '([.tokens, .{key}] | transpose[] | @tsv), \"\"' FILE > NEW.conll"
    start = (
        f"'{key}' holds a tag for every token, as Hugging Face datasets have them, but gold stands under 'ents' here, "
        "so the row would be read as not annotated. "
    )
    if isinstance(tags[0], str):
        return f"{start}Write columns of them: {columns}. {_OR_REMOVE}"
    return (
        f"{start}Replace the numbers by their names (dataset.features['{key}'].feature.names), then write columns: "
        f"{columns}. {_OR_REMOVE}"
    )

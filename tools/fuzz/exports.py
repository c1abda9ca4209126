"""Files of annotation tools: each is read from one of them, and written for another."""

import io
import json
from functools import cache
from random import Random
from typing import Any, Dict, List

from .kind import OUT, Files, Kind, Mutator, command, gold, inside_spacy, jsonl
from .mutators import mutate, mutate_binary, mutate_json

_TEXT = "Anna 😊 met Bob in New York."
_TOKENS = [(0, 4), (5, 6), (7, 10), (11, 14), (15, 17), (18, 21), (22, 26), (26, 27)]
_WORDS = ["Anna", "met", "Bob", "in", "New", "York"]
_TAGS = ["B-PER", "O", "B-PER", "O", "B-LOC", "I-LOC"]
_NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]

_ANNA = {"start": 0, "end": 4, "text": "Anna", "token_start": 0, "token_end": 0, "label": "PER"}
_BOB = {"start": 11, "end": 14, "label": "LOC", "score": 0.4, "source": "m"}
_YORK = {"start": 18, "end": 26, "token_start": 5, "token_end": 6, "label": "LOC"}
_TOKEN_ROWS = [
    {"text": _TEXT[start:end], "start": start, "end": end, "id": i, "ws": end < 26}
    for i, (start, end) in enumerate(_TOKENS)
]
PRODIGY: List[Dict[str, Any]] = [
    {"text": _TEXT, "_input_hash": 1, "_task_hash": 2, "_view_id": "ner_manual", "tokens": _TOKEN_ROWS,
     "spans": [_ANNA, _YORK], "answer": "accept", "_timestamp": 5},
    {"text": "Bob ran", "_input_hash": 2, "_view_id": "ner", "spans": [{**_ANNA, "end": 3, "text": "Bob"}],
     "answer": "reject"},
    {"text": _TEXT, "_input_hash": 1, "_view_id": "ner", "spans": [_BOB], "answer": "accept", "_timestamp": 6},
    {"text": "Ignored", "_input_hash": 3, "_view_id": "ner", "spans": [], "answer": "ignore"},
    {"text": _TEXT, "_input_hash": 4, "tokens": _TOKEN_ROWS, "spans": [_ANNA, _BOB], "meta": {"a": 1}},
]  # fmt: skip

_VALUE = {"start": 12, "end": 15, "text": "Bob", "labels": ["PER"]}
_RESULT = {"id": "x", "from_name": "label", "to_name": "text", "type": "labels", "value": _VALUE, "score": 0.8}
_DONE = {"was_cancelled": False, "created_at": "2024-01-01T10:00:00Z", "result": [_RESULT]}
_CHOICE = {"type": "choices", "value": {"choices": ["good"]}}
TASKS: List[Dict[str, Any]] = [
    {"id": 1, "data": {"text": _TEXT}, "annotations": [_DONE, {**_DONE, "was_cancelled": True}], "predictions": []},
    {
        "id": 2,
        "data": {"text": _TEXT, "id": "s2"},
        "predictions": [{"model_version": "m", "score": 0.5, "result": [_RESULT, _CHOICE]}],
    },
]
JSON_MIN: List[Dict[str, Any]] = [
    {"id": 1, "text": _TEXT, "label": [_VALUE], "annotator": 1, "updated_at": "2024-01-01", "lead_time": 1.5},
    {"id": 1, "text": _TEXT, "label": [], "annotator": 2, "updated_at": "2024-01-02"},
    {"id": 2, "text": "Bob ran", "label": [{**_VALUE, "start": 0, "end": 3}]},
]
DOCCANO: List[Dict[str, Any]] = [
    {"id": 1, "text": _TEXT, "label": [[0, 4, "PER"], [18, 26, "LOC"]], "Comments": []},
    {"id": 2, "text": "Bob ran", "labels": [[0, 3, "PER"]]},
    {
        "id": 3,
        "text": "Bob ran",
        "entities": [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 3}],
        "relations": [{"id": 1, "from_id": 1, "to_id": 1, "type": "x"}],
    },
]
ANN = (
    "T1\tPER 0 4\tAnna\nT2\tLOC 18 21;22 26\tNew York\nT3\tX 7 10;15 17\tmet in\n"
    "R1\tY Arg1:T1 Arg2:T2\n#1\tNote T1\tx\n"
)
NUMBERS: List[Dict[str, Any]] = [
    {"id": "0", "tokens": _WORDS, "ner_tags": [1, 0, 1, -100, 3, 4]},
    {"tokens": ["Bob"], "ner_tags": [1]},
]
AUTOTRAIN: List[Dict[str, Any]] = [{"tokens": _WORDS, "tags": _TAGS}, {"tokens": ["Bob", "ran"], "tags": [None, "O"]}]
GLINER: List[Dict[str, Any]] = [
    {"tokenized_text": _WORDS, "ner": [[0, 0, "person"], [4, 5, "city"]]},
    {"tokenized_text": ["Bob", "ran"], "ner": []},
]
PAIRS: List[Any] = [
    [_TEXT, {"entities": [[0, 4, "PER"], [18, 26, "LOC"]], "cats": {"X": 1.0}}],
    ["Bob ran", {"cats": {"X": 0.0}}],
]
COLUMNS = "1\tAnna\tNNP\tB-PER\tx\n2\tmet\tVBD\tO\tx\n\n1\tNew\tNNP\tI-LOC\tx\n2\tYork\tNNP\t-\tx\n"


@cache
def _table() -> bytes:
    features = {
        "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
        "ner_tags": {"feature": {"names": _NAMES, "_type": "ClassLabel"}, "_type": "Sequence"},
    }
    return _parquet(NUMBERS, {"info": {"features": features}})


def _parquet(rows: List[Any], metadata: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"huggingface": json.dumps(metadata)})
    written = io.BytesIO()
    parquet.write_table(table, written)
    return written.getvalue()


def _inside_parquet(random: Random, data: bytes) -> bytes:
    """A table that is sound, of other columns or with other metadata."""
    from pyarrow import ArrowException, parquet

    table = parquet.read_table(io.BytesIO(data))
    rows, metadata = table.to_pylist(), json.loads(table.schema.metadata[b"huggingface"])
    for _ in range(random.choice([1, 1, 3])):
        if random.random() < 0.5:
            rows = mutate_json(random, rows)
        else:
            metadata = mutate_json(random, metadata)
    try:
        return _parquet(rows, metadata)
    except (ArrowException, TypeError, ValueError, AttributeError, OverflowError):
        return data


def _array(rows: List[Any]) -> str:
    return json.dumps(rows, ensure_ascii=False, indent=1)


def _kind(name: str, target: str, files: Files, output: str, to: str, *options: str, mutator: Mutator = mutate) -> Kind:
    run = command("convert", f"@{target}", f"@{OUT}{output}", "--to", to, *options)
    back = "" if to == "spacy" else to
    return Kind(name, target, run, lambda: files, mutator, to=back)


def _tool(name: str, target: str, content: str, output: str, to: str, *options: str) -> Kind:
    return _kind(name, target, {target: content.encode()}, output, to, *options)


def _written(to: str, output: str) -> Kind:
    """Damage within a `.spacy` file, written for a tool."""
    run = command("convert", "@gold.spacy", f"@{OUT}{output}", "--to", to)
    return Kind(f"to-{to}{output}", "gold.spacy", run, lambda: {"gold.spacy": gold()}, inside_spacy, to=to)


_BRAT = {"a.ann": ANN.encode(), "a.txt": _TEXT.encode()}
_TABLE = ("--format", "huggingface")
KINDS = [
    _tool("prodigy", "a.jsonl", jsonl(PRODIGY), ".spacy", "spacy"),
    _tool("prodigy-named", "a.jsonl", jsonl(PRODIGY), ".json", "label-studio", "--format", "prodigy"),
    _tool("label-studio", "a.json", _array(TASKS), ".jsonl", "prodigy"),
    _tool("label-studio-min", "a.json", _array(JSON_MIN), ".jsonl", "doccano", "--format", "label-studio"),
    _tool("doccano", "a.jsonl", jsonl(DOCCANO), ".jsonl", "huggingface"),
    _kind("brat", "a.ann", _BRAT, ".jsonl", "jsonl"),
    Kind("brat-text", "a.txt", command("convert", "@a.ann", f"@{OUT}.spacy"), lambda: _BRAT),
    _tool("huggingface", "a.jsonl", jsonl(NUMBERS), ".json", "gliner", *_TABLE, "--labels", ",".join(_NAMES)),
    _tool("autotrain", "a.jsonl", jsonl(AUTOTRAIN), ".jsonl", "jsonl", *_TABLE),
    Kind(
        "parquet",
        "a.parquet",
        command("convert", "@a.parquet", f"@{OUT}.jsonl", "--to", "huggingface"),
        lambda: {"a.parquet": _table()},
        mutate_binary,
        to="huggingface",
    ),
    Kind(
        "parquet-inside",
        "a.parquet",
        command("convert", "@a.parquet", f"@{OUT}.conll"),
        lambda: {"a.parquet": _table()},
        _inside_parquet,
        to="conll",
    ),
    _tool("gliner", "a.json", _array(GLINER), ".iob", "conll"),
    _tool("spacy-json", "a.json", _array(PAIRS), ".jsonl", "jsonl"),
    _tool("wrapper", "a.json", json.dumps({"classes": ["PER"], "annotations": [*PAIRS, None]}), ".jsonl", "jsonl"),
    _tool("wrapper-of-lines", "a.json", json.dumps({"data": DOCCANO}, indent=1), ".spacy", "spacy"),
    _tool("spacy-json-rows", "a.jsonl", jsonl(PAIRS), ".spacy", "spacy"),
    _tool("conll-columns", "a.tsv", COLUMNS, ".jsonl", "prodigy", "--columns", "2", "4"),
    _written("prodigy", ".jsonl"),
    _written("label-studio", ".json"),
    _written("doccano", ".jsonl"),
    _written("huggingface", ".jsonl"),
    _written("gliner", ".jsonl"),
    _written("conll", ".conll"),
]

"""A corpus of rows, and the same as a `.spacy` file."""

import zlib
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Dict, List

import spacy
import srsly

from spacy_weakner.corpus.docbin import write_docs

from ..util import doc_from_row
from .mutators import mutate_binary, mutate_json

ROWS: List[Dict[str, Any]] = [
    {"id": "s1", "tokens": ["New", "York", "rocks", "."], "ents": [[0, 2, "CITY"]], "cats": {"TRAVEL": 1.0}},
    {
        "tokens": ["Anna", "took", "aspirin"],
        "spaces": [True, True, False],
        "ents": [[0, 1, "PER"]],
        "missing": [[2, 3]],
    },
    {"text": "Bob met Anna in Paris.", "ents": [{"start": 0, "end": 3, "label": "PER"}, [16, 21, "CITY"]]},
    {"tokens": ["aspirin", "helps"], "weak_ents": {"terms": [[0, 1, "DRUG", 0.7]], "other": None}, "ents": None},
    {"tokens": ["Anna", "x"], "weak": True, "confidence": 0.5, "ents": [], "gold": [[0, 1, "PER"]], "gold_missing": []},
    {"text": "Only text here. Two sentences."},
]


@cache
def gold() -> bytes:
    """The rows as a `.spacy` file."""
    nlp = spacy.blank("xx")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.spacy"
        write_docs(path, [doc_from_row(row, nlp) for row in ROWS])
        return path.read_bytes()


def inside_spacy(random: Random, data: bytes) -> bytes:
    """A `.spacy` file with sound compression and wrong contents."""
    message = srsly.msgpack_loads(zlib.decompress(data))
    if random.random() < 0.3:
        return zlib.compress(mutate_binary(random, zlib.decompress(data)))
    for _ in range(random.choice([1, 1, 3])):
        message = mutate_json(random, message)
    try:
        return zlib.compress(srsly.msgpack_dumps(message))
    except (ValueError, TypeError, OverflowError, UnicodeError):
        return data

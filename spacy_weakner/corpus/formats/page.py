"""A page to annotate a corpus in a browser, without a server: one file with the rows, HTML, and JavaScript. It saves
answered rows in the layout of Prodigy."""

import json
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Dict, Iterable, Iterator, Tuple

from spacy.tokens import Doc

from ..records import record_of
from . import prodigy

_TEMPLATE, _SCRIPT = "annotate.html", "annotate.js"


def write(doc: Doc, lost: "Counter[str]") -> Iterator[Dict[str, Any]]:
    """Yield one row without an answer. Its spans are gold if there is any, or else weak labels."""
    record = record_of(doc)
    if record.ents is not None and not record.is_weak:
        lost["weak spans"] += sum(map(len, record.weak.values()))
        record.weak = {}
    yield prodigy.unanswered(doc, record, lost)


def around(title: str, labels: Iterable[str]) -> Tuple[str, str]:
    """Return what stands before and after the array of rows.

    labels (Iterable[str]): Labels to choose from, in addition to those of the rows.
    """
    folder = Path(__file__).parent
    template = (folder / _TEMPLATE).read_text(encoding="utf-8")
    script = (folder / _SCRIPT).read_text(encoding="utf-8")
    values = {
        "title": escape(title),
        "labels": as_script(sorted(labels)),
        "script": script,
        "hash": f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    }
    before, after = (Template(part).substitute(values) for part in template.split("$rows\n"))
    return before, after


def as_script(value: Any) -> str:
    """Return JSON that cannot end the element "script" around it."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")

"""Taking suspect labels out of a Doc, and listing them."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List

from spacy.tokens import Doc, Span

from ...corpus import weak
from ...corpus.docbin import stream_docs
from ...files import atomic_path
from ...ty import Entity
from .suspicion import Finding


def make_missing(doc: Doc, found: List[Finding]) -> None:
    """Make suspect tokens missing, in all that a training may learn from, and keep what they were in the span group
    "suspect".

    doc (Doc): The Doc.
    found (List[Finding]): What is suspect; without overlaps.
    """
    weak.remove_group(doc, weak.SUSPECT_GROUP)
    if not found:
        return
    spans = [Span(doc, each.start, each.end, label=each.label) for each in found]
    group = weak.set_spans(doc, weak.SUSPECT_GROUP, spans, {"scores": [each.probability for each in found]})
    group.attrs["instead"] = [each.instead for each in found]
    group.attrs["instead_scores"] = [each.instead_probability for each in found]
    doc.set_ents([], missing=spans, default="unmodified")
    tokens = [i for each in found for i in range(each.start, each.end)]
    tags, soft = weak.get_tags(doc), weak.get_soft_labels(doc)
    if tags is not None:
        weak.set_tags(doc, [None if i in {*tokens} else tag for i, tag in enumerate(tags)])
    if soft is not None:
        rows = soft.probabilities.copy()
        rows[tokens] = 0.0
        weak.set_soft_labels(doc, soft._replace(probabilities=rows))


def sources_of(doc: Doc, entity: Entity) -> List[str]:
    """The weak sources that propose an entity.

    doc (Doc): The Doc, with what its sources say.
    entity (Entity): The entity.
    RETURNS (List[str]): Their names, sorted.
    """
    return [name for name in weak.weak_sources(doc) if entity in weak.group_entities(doc, weak.weak_group(name))]


def write_list(path: Path, corpus: Path) -> int:
    """List the suspect labels of a cleaned corpus as JSONL, one in each row.

    path (Path): The file.
    corpus (Path): The corpus: a `.spacy` file or a folder of them.
    RETURNS (int): The number of rows.
    """
    number = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file_:
        for doc in stream_docs(corpus):
            for row in _rows(doc):
                file_.write(_printable(json.dumps(row, ensure_ascii=False)) + "\n")
                number += 1
    return number


def _rows(doc: Doc) -> Iterator[Dict[str, Any]]:
    if weak.SUSPECT_GROUP not in doc.spans:
        return
    group = doc.spans[weak.SUSPECT_GROUP]
    columns = (group.attrs[name] for name in ("scores", "instead", "instead_scores"))
    for span, probability, instead, said in zip(group, *columns, strict=True):
        yield {
            "id": weak.get_id(doc),
            "text": doc.text,
            "start": span.start_char,
            "end": span.end_char,
            "entity": span.text,
            "label": span.label_,
            "sources": sources_of(doc, (span.start, span.end, span.label_)),
            "probability": round(probability, 4),
            "instead": instead,
            "instead_probability": round(said, 4),
        }


def _printable(line: str) -> str:
    """Escape what would move a cursor, turn the direction of writing, or end a line."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)

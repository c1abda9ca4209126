"""What the tests of formats share."""

import json

import spacy

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs

NLP = spacy.blank("xx")
TEXT = "Anna met Bob in Paris."
ANNA, PARIS = [0, 4, "PER"], [16, 21, "LOC"]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_array(path, rows, **settings):
    path.write_text(json.dumps(rows, ensure_ascii=False, **settings), encoding="utf-8")
    return path


def converted(path, **settings):
    """Docs of a file, and the report, by way of the command's function."""
    output = path.with_name("converted.spacy")
    report = convert(path, output, overwrite=True, **{"lang": "xx", **settings})
    return list(read_docs(output, NLP.vocab)), report


def ents(doc):
    return [(ent.text, ent.label_) for ent in doc.ents]


def group(doc, name):
    return [(span.text, span.label_) for span in doc.spans.get(name, [])]


def said(doc):
    """All that a Doc says, to be compared."""
    return (
        [t.text for t in doc],
        [(t.ent_iob_, t.ent_type_) for t in doc],
        {name: (group(doc, name), weak.group_scores(doc, name)) for name in doc.spans},
    )


def result(start, end, label, **more):
    value = {"start": start, "end": end, "text": TEXT[start:end], "labels": [label]}
    return {"id": "x1", "from_name": "label", "to_name": "text", "type": "labels", "value": value, **more}


def task(annotations=(), predictions=(), text=TEXT, **more):
    return {"id": 7, "data": {"text": text}, "annotations": list(annotations), "predictions": list(predictions), **more}


def answer(*spans, by=1, at="2024-01-01T10:00:00Z", **more):
    return {"completed_by": by, "created_at": at, "result": [result(*span) for span in spans], **more}

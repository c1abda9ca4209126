"""Rows whose spans are the anchors."""

import json

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.errors import WeaknerError

from .util import SENTENCE, entities, run

TEXT = "Anna  met Bob.\n\nLater Eve left Rome."
SPANS = [[0, 4, "PER"], [10, 13, "X"], [22, 25, "PER"], [26, 28, "X"]]


@pytest.mark.parametrize("key", ["spans", "ents"])
def test_texts_are_split_and_labels_are_those_of_anchors(tmp_path, key):
    row = {"id": "d", "text": TEXT, key: SPANS}
    report, docs = run(tmp_path, {"a.jsonl": json.dumps(row)})
    assert [entities(doc) for doc in docs] == [["Anna", "Bob"], ["Eve"]]
    assert [weak.get_id(doc) for doc in docs] == ["d.1", "d.2"]
    assert {ent.label_ for doc in docs for ent in doc.ents} == {"Entity"}
    assert all(weak.is_weak(doc) and weak.weak_sources(doc) == ["anchors"] for doc in docs)
    assert all(token.ent_iob for doc in docs for token in doc)
    assert (report.docs, report.anchors, report.misaligned) == (2, 3, 1)


def test_rows_of_tokens_beside_pages(tmp_path):
    rows = [{"tokens": ["Anna", "ran"], "ents": [[0, 1, "PER"]]}, {"tokens": ["it", "rained"], "ents": None}]
    pages = json.dumps({"wikitext": SENTENCE})
    report, docs = run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows)), "b.jsonl": pages})
    assert sorted(map(len, map(entities, docs))) == [1, 4] and (report.few, report.pages) == (1, 1)


@pytest.mark.parametrize("row", [{"text": "ab", "spans": [[0, 9, "X"]]}, {"wikitext": SENTENCE}])
def test_bad_rows_are_named(tmp_path, row):
    rows = [{"text": "Anna", "spans": [[0, 4, "X"]]}, row]
    with pytest.raises(WeaknerError, match=r"WK103.*a\.jsonl, line 2"):
        run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows))})

"""Pages that are hostile or broken do not stop a dump."""

import json
import os
from contextlib import closing
from multiprocessing import active_children

import pytest

from spacy_weakner.labeling.anchors import anchors as module
from spacy_weakner.labeling.anchors.markup import Titles, wikitext_paragraphs
from spacy_weakner.labeling.anchors.pages import Page

from .util import SENTENCE, run

pytestmark = pytest.mark.slow


def test_hostile_pages_are_skipped_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SECONDS", 0.5)
    pages = ["{{a|" * 5000, SENTENCE, "<ref>" * 5000, "[[a|" * 5000, "<ref name=" * 5000, "[[New]] one."]
    rows = [{"wikitext": text} for text in pages]
    report, docs = run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows))})
    assert report.skipped["too slow"] >= 1
    assert report.pages == 6 and len(docs) == 2


def test_the_process_gets_the_namespaces_of_each_wiki_and_is_replaced_when_it_dies():
    text, namespaces = "[[Gambar:x|y]] [[e]] \x00 \u2028 & é", [("6", "Gambar")]
    with closing(module._Parser()) as parser:
        for known in (namespaces, [], namespaces):
            expected = wikitext_paragraphs(text, Titles(known))
            assert parser.parse(Page("", "wikitext", text, known)) == (expected, "")
        (process,) = active_children()
        os.kill(process.pid, 9)
        assert parser.parse(Page("", "wikitext", SENTENCE)) == ([], "unreadable")
        assert parser.parse(Page("", "wikitext", SENTENCE))[0]

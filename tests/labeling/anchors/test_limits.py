"""Pages that are hostile, broken or very long do not stop a dump."""

import json
import os
from contextlib import closing
from importlib import import_module

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.anchors.anchors import PageParser
from spacy_weakner.labeling.anchors.markup import Titles, wikitext_paragraphs
from spacy_weakner.labeling.anchors.pages import Page

from .util import HTML, SENTENCE, run

pytestmark = pytest.mark.slow
MODULE = import_module("spacy_weakner.labeling.anchors.anchors")

N = 100_000


@pytest.mark.parametrize("unit", ["<a ", "<!--", "<![CDATA[", '<a href="', "<a href=x>[", "<?", "</p>", "<title>"])
def test_hostile_html_does_not_stop_a_run(tmp_path, monkeypatch, unit):
    monkeypatch.setattr(MODULE, "MAX_SECONDS", 2.0)
    rows = [{"html": unit * (N // len(unit))}, {"html": HTML}]
    report, docs = run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows))})
    assert report.pages == 2 and len(docs) == 1


def test_hostile_pages_are_skipped_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "MAX_SECONDS", 0.5)
    pages = ["{{a|" * 5000, "<ref>" * 5000, "[[a|" * 5000, "<ref name=" * 5000]
    rows = [*({"wikitext": text} for text in pages), {"html": "<b>" * N}, {"html": HTML}, {"wikitext": SENTENCE}]
    report, docs = run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows))})
    assert report.skipped["too slow"] >= 1
    assert report.pages == 7 and len(docs) == 2


def test_a_parser_that_cannot_start(tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE, "_PARSER", "spacy_weakner.no_such_module")
    with pytest.raises(WeaknerError, match=r"WK313.*spacy_weakner.no_such_module"):
        run(tmp_path, {"a.wiki": SENTENCE})


def test_the_process_gets_the_namespaces_of_each_wiki():
    text, namespaces = "[[Gambar:x|y]] [[e]] \x00 \u2028 & é", [("6", "Gambar")]
    with closing(PageParser()) as parser:
        for known in (namespaces, [], namespaces):
            expected = json.loads(json.dumps(wikitext_paragraphs(text, Titles(known))))
            assert parser.parse(Page("", "wikitext", text, known)) == (expected, "")


def test_a_process_that_dies_is_replaced():
    with closing(PageParser()) as parser:
        assert parser.parse(Page("", "wikitext", SENTENCE))[0]
        os.kill(parser.process.pid, 9)
        assert parser.parse(Page("", "wikitext", SENTENCE)) == ([], "unreadable")
        assert parser.parse(Page("", "html", HTML))[0]

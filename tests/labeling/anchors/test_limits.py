"""Pages that are hostile, broken or very long do not stop a dump."""

import json
from contextlib import closing

import pytest

from spacy_weakner.labeling.anchors.markup import WIKITEXT, PageParser, Titles, html_paragraphs, wikitext_paragraphs

from .util import HTML, SENTENCE, dump, page, run

pytestmark = pytest.mark.slow

N = 100_000


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["<a ", "<!--", "<![CDATA[", '<a href="', "<a href=x>[", "<?", "</p>", "<title>"])
def test_hostile_html_does_not_stop_a_run(tmp_path, unit):
    rows = [{"html": unit * (N // len(unit))}, {"html": HTML}]
    report, docs = run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows))}, max_seconds=2)
    assert report.pages == 2 and len(docs) == 1


def test_html_may_be_nested_deeply():
    assert html_paragraphs("<div>" * 900 + HTML, Titles())[0][0].startswith("Anna met")


@pytest.mark.slow
def test_hostile_pages_are_skipped_and_counted(tmp_path):
    pages = ["{{a|" * 5000, "<ref>" * 5000, "[[a|" * 5000, "<ref name=" * 5000, "x" * (1 << 20)]
    rows = [*({"wikitext": text} for text in pages), {"html": "<b>" * N}, {"html": HTML}, {"wikitext": SENTENCE}]
    report, docs = run(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, rows))}, max_page=1 << 19, max_seconds=0.5)
    assert report.skipped["too large"] == 1 and report.skipped["too slow"] >= 1
    assert report.unreadable[-1].endswith(", line 5 (too large)")
    assert report.pages == 8 and len(docs) == 2


def test_pages_that_are_too_large(tmp_path):
    files = {"a.xml": dump(page("A", "x" * 5000), page("B", SENTENCE)), "b.wiki": "x\n" * 5000}
    report, docs = run(tmp_path, files, max_page=1000)
    assert report.skipped == {"too large": 2} and len(docs) == 1


def test_the_process_gets_the_namespaces_of_each_wiki():
    text, namespaces = "[[Gambar:x|y]] [[e]] \x00 \u2028 &", [("6", "Gambar")]
    with closing(PageParser(1000, 10.0)) as parser:
        for known in (namespaces, [], namespaces):
            expected = json.loads(json.dumps(wikitext_paragraphs(text, Titles(known))))
            assert parser.parse(WIKITEXT, text, known) == (expected, "")


def test_a_process_that_dies_is_replaced():
    with closing(PageParser(1000, 10.0)) as parser:
        assert parser.parse(WIKITEXT, SENTENCE, [])[0]
        parser.process.kill()
        assert parser.parse(WIKITEXT, SENTENCE, []) == ([], "unreadable")
        assert parser.parse("html", HTML, [])[0]

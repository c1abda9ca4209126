"""Pages that are hostile, broken or very long do not stop a dump."""

import json
import subprocess
import sys

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.stages.anchoring.hypertext import html_paragraphs
from spacy_weakner.stages.anchoring.limits import PageReader, depth
from spacy_weakner.stages.anchoring.pages import Page
from spacy_weakner.stages.anchoring.serving import TOO_SLOW
from spacy_weakner.stages.anchoring.titles import Titles
from spacy_weakner.stages.anchoring.wikitext import wikitext_paragraphs

from .util import HTML, SENTENCE, dump, page, run

N = 100_000


@pytest.mark.parametrize("unit", ["<a ", "<!--", "<![CDATA[", '<a href="', "<a href=x>[", "<?", "</p>", "<title>"])
def test_html_takes_time_that_is_linear(unit):
    # Minutes with many another parser.
    assert html_paragraphs(unit * (N // len(unit)), Titles()) is not None


def test_html_that_is_nested_too_deeply():
    assert html_paragraphs("<div>" * N, Titles()) is None
    assert html_paragraphs("<div>" * 900 + HTML, Titles())[0].text.startswith("Anna met")


def test_hostile_pages_are_skipped_and_counted(tmp_path):
    pages = ["{{a|" * 5000, "<ref>" * 5000, "[[a|" * 5000, "<ref name=" * 5000, "x" * (1 << 20)]
    rows = [*({"wikitext": text} for text in pages), {"html": "<b>" * N}, {"html": HTML}, {"wikitext": SENTENCE}]
    text = "\n".join(map(json.dumps, rows))
    report, docs = run(tmp_path, {"a.jsonl": text}, max_page=1 << 19, max_seconds=0.3)
    assert report.skipped == {"nested too deeply": 4, "too slow": 1, "too large": 1}
    assert [place.rpartition(", ")[2] for place in report.unreadable][3:5] == [
        "line 4 (too slow)",
        "line 5 (too large)",
    ]
    assert report.pages == 8 and len(docs) == 2


def test_of_pages_that_are_too_large_only_the_beginning_is_kept(tmp_path):
    files = {"a.xml": dump(page("A", "x" * 5000), page("B", SENTENCE)), "b.wiki": "x\n" * 5000}
    report, docs = run(tmp_path, files, max_page=1000)
    assert report.skipped == {"too large": 2} and len(docs) == 1


@pytest.mark.parametrize(
    "text, expected",
    [("a {{b|[[c]]}} [[d]]", 2), ("<ref>a</ref> <ref name=b/> <br> <li>", 1), ("]] }}", 0), ("{{{a}}} {|\n|}", 1)],
)
def test_depth(text, expected):
    assert depth(text) == expected


def test_the_process_knows_the_titles_of_each_wiki_and_gives_what_the_parser_gives():
    text, own = "[[Gambar:x|y]] [[e]] \x00 \u2028 &", Titles([("6", "Gambar")])
    with PageReader() as reader:
        for titles in (own, Titles(), own):
            expected = wikitext_paragraphs(text, titles)
            assert reader.read(Page("", text, "wikitext", titles)).paragraphs == expected


def test_a_process_that_dies_is_replaced():
    wikitext = Page("", SENTENCE, "wikitext", Titles())
    with PageReader() as reader:
        assert reader.read(wikitext).paragraphs
        reader._process.kill()
        assert reader.read(wikitext).problem == "unreadable"
        assert reader.read(wikitext).paragraphs


def test_html_needs_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_weakner.stages.anchoring.hypertext.find_spec", lambda name: None)
    with pytest.raises(WeaknerError, match=r"WK440.*HTML.*lxml"):
        run(tmp_path, {"a.html": HTML})


SERVE_WITHOUT_TIMERS = """
import signal, time
del signal.setitimer
from spacy_weakner.stages.anchoring import serving
serving.wikitext_paragraphs = lambda text, titles: time.sleep(60) if text == "slow" else []
serving.serve(0.5)
"""


def test_a_slow_page_where_the_system_has_no_timer():
    rows = "".join(json.dumps([text, []]) + "\n" for text in ("quick", "slow", "never"))
    command = [sys.executable, "-c", SERVE_WITHOUT_TIMERS]
    done = subprocess.run(command, input=rows, capture_output=True, text=True, timeout=60)
    assert done.returncode == TOO_SLOW and done.stdout.splitlines() == ["[]"], done.stderr

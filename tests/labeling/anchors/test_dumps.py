"""Dumps of wikis."""

import bz2
import gzip

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.anchors.pages import read_pages

from .util import SENTENCE, dump, entities, page, run


def test_dump(tmp_path):
    text = dump(
        page("Anna &amp; Bob", SENTENCE + " [[Gambar:x.jpg|mini]]"),
        page("Old", "#REDIRECT [[Anna]]", extra='<redirect title="Anna" />'),
        page("Older", " #redirect [[Anna]]"),
        page("Talk:Anna", SENTENCE, ns="1"),
        page("Anna.css", SENTENCE, model="css"),
        page("Empty", ""),
        page("Gone", "")[: -len("</revision></page>")] + "</revision></page>",
        namespaces='<namespace key="0" /><namespace key="6" case="first-letter">Gambar</namespace>',
    )
    report, docs = run(tmp_path, {"a.xml": text})
    assert [doc.text for doc in docs] == ["Anna met Bobby in Paris and Rome."]
    assert [entities(doc) for doc in docs] == [["Anna", "Bobby", "Paris", "Rome"]]
    assert [weak.get_id(doc) for doc in docs] == ["Anna & Bob.1"]
    assert (report.pages, report.redirects, report.other) == (3, 2, 2)


def test_the_last_revision_counts(tmp_path):
    slot = "<content><role>x</role><model>json</model><text>[[No]]</text></content>"
    old = "<revision><text>[[Old]] one.</text></revision>"
    text = dump(page("A", "[[New]] one.", extra=old).replace("</revision></page>", f"{slot}</revision></page>"))
    _, docs = run(tmp_path, {"a.xml": text})
    assert [doc.text for doc in docs] == ["New one."]


@pytest.mark.parametrize("name, pack", [("a.XML.gz", gzip.compress), ("a1.xml-p1p9.bz2", bz2.compress)])
def test_packed_dumps(tmp_path, name, pack):
    first, second = dump(page("A", SENTENCE)).encode()[:200], dump(page("A", SENTENCE)).encode()[200:]
    report, _ = run(tmp_path, {name: pack(first) + pack(second)})  # as in multistream dumps
    assert report.docs == 1


def test_dumps_are_streamed(tmp_path):
    text = "[[Number]] is &lt;b&gt;here&lt;/b&gt; é. " * 10_000
    path = tmp_path / "a.xml"
    path.write_text(dump(*[page(f"P{i}", text) for i in range(3)])[:-20], encoding="utf-8")
    pages = read_pages(path, "dump")
    assert next(pages).text.endswith("<b>here</b> é. ")
    with pytest.raises(WeaknerError, match="WK206"):
        list(pages)


LAUGHS = '<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12)
)


@pytest.mark.parametrize(
    "text, message",
    [
        (dump(page("A", "&m;"), head=f"{LAUGHS}]>"), "amplification"),
        (dump(page("A", "&x;"), head='<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "undefined entity"),
        (dump(page("A", "x"), page("B &amp; C", "&x;")), "undefined entity: line 1, column"),
        ("<html><body/></html>", "its root element is <html>"),
        ("", "no element found"),
        (dump(page("A", "x"), head='<?xml version="1.0" encoding="nope"?>'), "encoding"),
        (dump(page("A", "é")).encode("latin-1"), "invalid token"),
    ],
)
def test_dumps_that_cannot_be_read(tmp_path, text, message):
    with pytest.raises(WeaknerError, match=rf"WK206.*a\.xml.*{message}"):
        run(tmp_path, {"a.xml": text})
    assert [path.name for path in tmp_path.iterdir()] == ["in"]

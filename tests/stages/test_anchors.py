"""Links of wikis and web pages as entities."""

import bz2
import gzip
import importlib.util
import json
import time

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.annotations import weak
from spacy_weakner.annotations.corpus import read_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.stages.anchoring.hypertext import html_paragraphs
from spacy_weakner.stages.anchoring.pages import page_format
from spacy_weakner.stages.anchoring.paragraphs import Paragraphs
from spacy_weakner.stages.anchoring.titles import Titles
from spacy_weakner.stages.anchoring.wikitext import wikitext_paragraphs
from spacy_weakner.stages.anchors import anchors

NLP = spacy.blank("en")
SENTENCE = "[[Anna]] met [[Bob|Bobby]] in [[Paris]] and [[Rome]]."
HTML = '<p><a href="/wiki/Anna">Anna</a> met <a href="/wiki/Bob">Bobby</a> in <a href="x">Paris</a>.</p>'


def shown(paragraphs):
    """Paragraphs with their anchors in brackets."""
    result = []
    for text, found in paragraphs:
        for start, end in reversed(found):
            text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
        result.append(text)
    return result


def wiki(text, titles=None):
    return shown(wikitext_paragraphs(text, titles or Titles()))


def html(text):
    return shown(html_paragraphs(text, Titles()))


def page(title, text, ns="0", extra="", model="wikitext"):
    return (
        f"<page><title>{title}</title><ns>{ns}</ns><id>1</id>{extra}<revision><id>2</id><model>{model}</model>"
        f'<text xml:space="preserve">{text}</text></revision></page>'
    )


def dump(*pages, namespaces="", head=""):
    site = f"<siteinfo><namespaces>{namespaces}</namespaces></siteinfo>"
    return f'{head}<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{site}{"".join(pages)}</mediawiki>'


def run(tmp_path, files, output="out.spacy", **options):
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    report = anchors([folder], tmp_path / output, **{"min_anchors": 1, **options})
    return report, list(read_docs(tmp_path / output, NLP.vocab))


def entities(doc):
    return [ent.text for ent in doc.ents]


# Wikitext


@pytest.mark.parametrize(
    "text, expected",
    [
        # Links.
        ("An [[apple]] a day", ["An [apple] a day"]),
        ("In [[Paris, Texas|Paris]].", ["In [Paris]."]),
        ("[[Paris#History|past]] [[Paris]]", ["[past] [Paris]"]),
        ("two [[bus]]es, [[Bob]]'s, [[bus]]ES", ["two [buses], [Bob]'s, [bus]ES"]),
        ("''[[bus]]''es [[a]]<nowiki/>b", ["[bus]es [a]b"]),
        ("[[ Paris ]] [[x| y  z ]].", ["[Paris] [y z] ."]),
        ("[[a]][[b]] [[c]] d", ["[a][b] [c] d"]),
        ("[[Paris|]] [[x|†]] [[]] [[|b]]", ["[Paris] † b"]),
        ("[[:Paris]]", ["[Paris]"]),
        # Other markup in and around links.
        ("'''[[Paris]]''' ''was [[Rome|''old'' '''city''']]''", ["[Paris] was [old city]"]),
        ("'''''both''''' '''open [[Paris]]", ["both open [Paris]"]),
        ("<b>[[Paris|the <i>city</i>]]</b> x<sup>2</sup> <span>[[Rome]]</span>", ["[the city] x2 [Rome]"]),
        ("[[AT&amp;T]] &amp; co.&nbsp;ltd [[a|b&ndash;c]] &#65; &#xD800;", ["[AT&T] & co. ltd [b–c] A \ufffd"]),
        ("[[x|a {{t|{{u|[[v]]}}}} b]] {{t}}c", ["[a b] c"]),
        ("[[x|a <!-- [[y]] --> b]]", ["[a b]"]),
        ("a<br>b<br/>[[c]]", ["a b [c]"]),
        ("<nowiki>[[no]]</nowiki>", ["[[no]]"]),
        # What is no article.
        ("a [[File:x.jpg|thumb|see [[Paris]]]] b [[image:y.png]] c", ["a b c"]),
        ("a [[Category:X]] b [[:Category:X]] [[:File:y|z]]", ["a b Category:X z"]),
        ("[[de:Paris]] [[:de:Paris|Deutsch]] [[zh-min-nan:Paris]] [[wikt:run|run]] [[s:Text]]", ["Deutsch run"]),
        ("[[Talk:Paris|a]] [[User_talk:Bob|b]] [[Help : X|c]] [[#Part|d]] [[/sub|e]] [[../up|f]]", ["a b c d e f"]),
        ("[[Alien: Covenant]] [[Re:Zero]] [[CSI: Miami|CSI]]", ["[Alien: Covenant] [Re:Zero] [CSI]"]),
        ("see [http://a.b the [[site]]] [http://a.b] http://c.d/e", ["see the [site] http://c.d/e"]),
        # Parts of a page.
        ("one\ntwo [[a]]\n\nthree\n\n\nfour", ["one two [a]", "three", "four"]),
        ("a [[b]]\n== The [[c]] ==\nd", ["a [b]", "The [c]", "d"]),
        ("x\n* a [[b]]\n** c\n# d\n: e\n; f : g\nh\n----\ni", ["x", "a [b]", "c", "d", "e", "f", "g", "h", "i"]),
        ("<ul><li>a [[b]]</li><li>c</li></ul>d<li>e\nf", ["a [b]", "c", "d", "e", "f"]),
        ("<div>a</div>b<p>c [[d]]</p>e<blockquote>f</blockquote>", ["a", "b", "c [d]", "e", "f"]),
        ("a\n{|\n| [[b]] || c\n|}\nd", ["a", "d"]),
        ("a<table><tr><td>[[b]]</td></tr></table>d", ["a", "d"]),
        ("a<ref>b [[c]]</ref> d<ref name=x/>.\n<references/>", ["a d."]),
        ("a <math>x</math> b <!-- c --> d <gallery>\nFile:x|[[y]]\n</gallery>", ["a b d"]),
        ("{{Infobox\n| a = [[b]]\n}}\n'''C''' d {{convert|5|km}} e\n{{{f}}}\n__NOTOC__\n", ["C d e"]),
        ("a [[b|c\n\nd]] e", ["a c", "d e"]),
        # Broken markup.
        ("a [[b and [[c]] d", ["a [[b and [c] d"]),
        ("{{a [[b]] c}", ["{{a [b] c}"]),
        ("<b>a [[b]] </i> <ref>c", ["<b>a [b] </i> <ref>c"]),
        ("a [[b|c [[d]] e]] f", ["a [c d e] f"]),
        ("]] }} |} ''", ["]] }} |}"]),
        ("", []),
        (" \n{{t}}\n ", []),
    ],
)
def test_wikitext(text, expected):
    assert wiki(text) == expected


def test_namespaces_of_a_wiki():
    text = "[[Gambar:x|y]] [[Kategori:z]] [[Pembicaraan:a|b]] [[:Gambar:x|c]] [[Image:d]] [[e]]"
    assert wiki(text) == ["[y] [Kategori:z] [b] [c] [e]"]
    titles = Titles([("0", ""), ("1", "Pembicaraan"), ("6", "Gambar"), ("14", "Kategori")])
    assert wiki(text, titles) == ["b c [e]"]


def test_pages_that_the_parser_gives_up(tmp_path, monkeypatch):
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    parse = mwparserfromhell.parse

    def fail(text):
        if "bad" in text:
            raise ParserError("a bug")
        return parse(text)

    monkeypatch.setattr(mwparserfromhell, "parse", fail)
    report, docs = run(tmp_path, {"a.wiki": "bad", "b.wiki": SENTENCE})
    assert [path.rpartition("/")[2] for path in report.unreadable] == ["a.wiki"]
    assert report.pages == 2 and len(docs) == 1


# HTML


@pytest.mark.parametrize(
    "text, expected",
    [
        ("<p>In <a href=/wiki/Paris>Paris</a>, <a>x</a>.</p>", ["In [Paris], x."]),
        ("<p>a <a href='b'>b <i>c <b>d</b></i></a> <i><a href='e'>e</a></i></p>", ["a [b c d] [e]"]),
        ("<p>a&amp;b&nbsp;<a href='?title=C&amp;x=1'>c&eacute;</a></p>", ["a&b [cé]"]),
        ("<p>a<br>b\n <a href='c'> c </a>d</p>", ["a b [c] d"]),
        # What is no article.
        ("<p><a href='http://a.b/c'>a</a> <a href='//a.b/c'>b</a> <a href='mailto:a@b'>c</a></p>", ["a b c"]),
        (
            "<p><a href='javascript:x()'>a</a> <a href='http://[x'>b</a> <a href='#c'>c</a> <a href=''>d</a></p>",
            ["a b c d"],
        ),
        ("<p><a href='a' class='x external'>a</a> <a href='/wiki/b' class=extiw>b</a></p>", ["a b"]),
        (
            "<p><a href='/wiki/File:a.jpg'>a</a> <a href='./Category:b'>b</a> <a href='/wiki/Talk%3Ac'>c</a></p>",
            ["a b c"],
        ),
        ("<p><a href='/w/index.php?title=Help:A'>a</a> <a href='/w/index.php?title=B&redlink=1'>b</a></p>", ["a [b]"]),
        ("<p><a href='./AC/DC'>a</a> <a href='/wiki/Alien:_Covenant'>b</a> <a href='/c/'>c</a></p>", ["[a] [b] [c]"]),
        # References.
        ("<p>a<sup class=reference><a href='#n'>[1]</a></sup>, b</p>", ["a, b"]),
        ("<p>a<sup>[<a href='#n'>1</a>]</sup> b<sup>2</sup> <a href='n'>[note 2]</a>c</p>", ["a b2 c"]),
        ("<p>a <a class='external' href='http://x'>[3]</a>b <a href=c>†</a></p>", ["a b †"]),
        # Parts of a page.
        ("<h1>a <a href=b>b</a></h1><ul><li><a href=c>c</a></ul><p>d</p>e<div>f</div>", ["d"]),
        ("<p>a<p>b <a href=c>c</a><div>d<p>e</div>f", ["a", "b [c]", "e"]),
        ("<nav><p>a <a href=b>b</a></p><nav></nav><p>c</p></nav><p>d</p>", ["d"]),
        ("<p>a <script>b <p> </script><style>c</style><!-- d --> e</p>", ["a e"]),
        ("<p>a</p><table><tr><td><p>b</p></table><p>c <svg><text>d</text></svg>e</p>", ["a", "c e"]),
        ("<p>a <span class='noprint x'>b <span>c</span></span> d <span class=noprint>e</p><p>f</p>", ["a d", "f"]),
        ("<p/>a<p>b<script src=x /></script>c<hr/>d", ["bc"]),
        # Broken markup.
        ("<p>a <a href=b>b <a href=c>c</a> d</b></p></p></a>", ["a [b] [c] d"]),
        ("<p>a <a href=b>b<p>c", ["a b", "c"]),
        ("<p>a < b <1 &unknown; &#x110000;</p>", ["a < b <1 &unknown; \ufffd"]),
        ("text <b>alone", []),
        ("", []),
    ],
)
def test_html(text, expected):
    assert html(text) == expected


@pytest.mark.parametrize(
    "head",
    ["<base href='//en.wikipedia.org/wiki/'>", "<link rel=canonical href='https://EN.wikipedia.org/wiki/Anna'>"],
)
def test_whole_addresses_of_the_page_itself(head):
    text = "<p><a href='https://en.wikipedia.org/wiki/B'>b</a> <a href='https://de.wikipedia.org/wiki/B'>c</a></p>"
    assert html(f"<html><head>{head}</head>{text}") == ["[b] c"]


# Any text at all


MARKUP = st.lists(
    st.sampled_from(
        [
            "[[",
            "]]",
            "|",
            "{{",
            "}}",
            "''",
            "'''",
            "\n",
            "\n\n",
            "* ",
            "==",
            "{|",
            "|}",
            "[http://x ",
            "]",
            "a",
            "B ",
            "&amp;",
        ]
        + [
            "<p>",
            "</p>",
            "<a href=x>",
            "</a>",
            "<sup>",
            "</sup>",
            "<a href=#x>",
            "[1]",
            "<ref>",
            "</ref>",
            "<!--",
            "-->",
        ]
        + [
            "<nav>",
            "</nav>",
            "<div>",
            "</div>",
            "<br>",
            "File:",
            ":",
            "#",
            "\x00",
            "é",
            "<span class=noprint>",
            "</span>",
        ]
    ),
    max_size=30,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(MARKUP)
def test_any_markup_gives_well_formed_paragraphs(text):
    for read in (wikitext_paragraphs, html_paragraphs):
        for words, found in read(text, Titles()):
            assert words and words == " ".join(words.split())
            borders = [border for span in found for border in span]
            assert borders == sorted(borders) and all(0 <= start < end <= len(words) for start, end in found)
            assert all(words[start:end].strip() == words[start:end] for start, end in found)


def test_paragraphs_piece_by_piece():
    paragraphs = Paragraphs()
    paragraphs.add(" ")
    assert paragraphs.begin_anchor() and not paragraphs.begin_anchor()
    paragraphs.add("  a")
    mark = paragraphs.mark()
    paragraphs.add(" b")
    assert paragraphs.since(mark) == " b"
    assert paragraphs.end_anchor() and not paragraphs.end_anchor()
    paragraphs.extend_anchor("c")
    paragraphs.add("d")
    mark = paragraphs.mark()
    paragraphs.begin_anchor()
    paragraphs.add("e")
    paragraphs.end_anchor()
    paragraphs.rewind(mark)
    paragraphs.add(" f ")
    assert paragraphs.finish() == [("a bcd f", [(0, 4)])]


# Dumps


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


@pytest.mark.parametrize(
    "name, pack", [("a.xml.bz2", bz2.compress), ("a.xml.gz", gzip.compress), ("a.xml-p1p9.bz2", bz2.compress)]
)
def test_packed_dumps(tmp_path, name, pack):
    first, second = dump(page("A", SENTENCE)).encode()[:200], dump(page("A", SENTENCE)).encode()[200:]
    report, _ = run(tmp_path, {name: pack(first) + pack(second)})  # as in multistream dumps
    assert report.docs == 1


def test_dumps_are_streamed(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_weakner.stages.anchoring.dumps._CHUNK", 7)
    pages = [page(f"P{i}", f"[[Number {i}]] is &lt;b&gt;here&lt;/b&gt; é.") for i in range(3)]
    _, docs = run(tmp_path, {"a.xml": dump(*pages)})
    assert [doc.text for doc in docs] == [f"Number {i} is here é." for i in range(3)]


LAUGHS = '<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12)
)


@pytest.mark.parametrize(
    "text, message",
    [
        (dump(page("A", "&m;"), head=f"{LAUGHS}]>"), "DOCTYPE"),
        (dump(page("A", "&x;"), head='<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "DOCTYPE"),
        (dump(head='<!DOCTYPE m SYSTEM "http://127.0.0.1/x.dtd">'), "DOCTYPE"),
        (dump(page("A", "x"), page("B &amp; C", "&x;")), r", page 'B & C': .*undefined entity"),
        (dump(page("A", "x"))[:-20], "page 'A': .*unclosed token"),
        (dump(page("A", "x"))[:-12], "no element found"),
        (dump(page("A", "<b>")), r"page 'A'.*mismatched tag"),
        ("<html><body/></html>", "its root is <html>"),
        ("", "no element found"),
        ("plain", "syntax error"),
        (dump(page("A", "x"), head='<?xml version="1.0" encoding="nope"?>'), "encoding"),
        (dump(page("A", "x")).encode() + b"\xff", ": .*invalid token"),
        (dump(page("A", "é")).encode("latin-1"), "invalid token"),
    ],
)
def test_dumps_that_cannot_be_read(tmp_path, text, message):
    begin = time.monotonic()
    with pytest.raises(WeaknerError, match=rf"WK442.*a\.xml.*{message}"):
        run(tmp_path, {"a.xml": text})
    assert time.monotonic() - begin < 10
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


# Filters


def test_sentences_and_what_a_doc_carries(tmp_path):
    text = "Zero. [[Anna]] met [[Bob]]! Then [[Rome]] fell.\n* [[Last]] item"
    report, docs = run(tmp_path, {"a.wiki": text}, label="THING")
    assert [doc.text for doc in docs] == ["Anna met Bob!", "Then Rome fell.", "Last item"]
    for doc in docs:
        assert weak.is_weak(doc) and weak.weak_sources(doc) == ["anchors"] and weak.get_id(doc) is None
        assert weak.group_entities(doc, "weak:anchors") == weak.doc_entities(doc)
        assert {ent.label_ for ent in doc.ents} == {"THING"} and all(token.ent_iob for token in doc)
    assert (report.docs, report.tokens, report.anchors, report.few) == (3, 10, 4, 1)
    assert (report.files, report.pages, report.long, report.duplicates, report.misaligned) == (1, 1, 0, 0, 0)


def test_min_anchors(tmp_path):
    text = f"{SENTENCE} Only [[one]].\n\n[[One]] and [[two]] and [[three]]."
    report, docs = run(tmp_path, {"a.wiki": text}, min_anchors=4)
    assert [len(doc.ents) for doc in docs] == [4] and report.few == 2
    report, docs = run(tmp_path, {"a.wiki": text}, "b.spacy", min_anchors=3)
    assert [len(doc.ents) for doc in docs] == [4, 3] and report.few == 1
    report, docs = run(tmp_path, {"a.wiki": "No link."}, "c.spacy", min_anchors=0)
    assert [weak.is_weak(doc) and len(doc.ents) for doc in docs] == [0] and report.few == 0


def test_max_length(tmp_path):
    text = "[[One]] is here. [[Two]] is here now."
    report, docs = run(tmp_path, {"a.wiki": text}, max_length=4)
    assert [len(doc) for doc in docs] == [4] and report.long == 1
    assert run(tmp_path, {"a.wiki": text}, "b.spacy", max_length=5)[0].long == 0


def test_duplicates(tmp_path):
    files = {"a.wiki": "[[Anna]] is here.\n* Anna is [[here]].", "b.html": "<p>ANNA is <a href=x>HERE</a>.</p>"}
    report, docs = run(tmp_path, files)
    assert [doc.text for doc in docs] == ["Anna is here."] and report.duplicates == 2
    assert entities(docs[0]) == ["Anna"]
    # The same file twice is read once.
    folder = tmp_path / "in"
    report = anchors([folder, folder / "a.wiki"], tmp_path / "b.spacy", min_anchors=1)
    assert (report.pages, report.duplicates) == (2, 2)


def test_anchors_must_align(tmp_path):
    text = "un[[happy]] [[Bob]][[Ann]] [[Yahoo! Inc|Yahoo! Inc]] [[Rome]] fell."
    report, docs = run(tmp_path, {"a.wiki": text})
    assert [entities(doc) for doc in docs] == [["Rome"]]
    assert report.misaligned == 4


def test_tokenizer_and_language(tmp_path):
    files = {"a.wiki": "[[L]]-dopa is new."}
    assert run(tmp_path, files, tokenizer="spacy_weakner.WordTokenizer.v1")[0].anchors == 1
    assert (
        run(tmp_path, {"a.wiki": "[[北京]]是[[中国]]的[[首都]]。你呢？"}, "b.spacy", lang="zh", min_anchors=3)[0].docs
        == 1
    )


# Files


def test_rows(tmp_path):
    rows = [{"html": HTML, "id": "x"}, {"wikitext": SENTENCE, "id": 7, "url": "u"}, {"wikitext": "#REDIRECT [[x]]"}]
    report, docs = run(tmp_path, {"a.jsonl.gz": gzip.compress("\n".join(map(json.dumps, rows)).encode())})
    assert [weak.get_id(doc) for doc in docs] == ["x.1", "7.1"]
    assert [len(doc.ents) for doc in docs] == [3, 4]
    assert (report.pages, report.redirects) == (2, 1)


@pytest.mark.parametrize(
    "line, message",
    [
        ("{}", "neither 'html' nor 'wikitext'"),
        ('{"html": "a", "wikitext": "b"}', "both 'html' and 'wikitext'"),
        ('{"html": 1}', "must be a string"),
        ('{"html": "\\ud800"}', "surrogate"),
        ('{"html": "a", "id": []}', "'id'"),
        ("[", "not JSON"),
    ],
)
def test_malformed_rows(tmp_path, line, message):
    with pytest.raises(WeaknerError, match=rf"WK103.*a\.jsonl, line 2: .*{message}"):
        run(tmp_path, {"a.jsonl": json.dumps({"html": HTML}) + f"\n{line}\n"})


@pytest.mark.parametrize(
    "name, expected",
    [
        ("a.xml", "dump"),
        ("a.XML.bz2", "dump"),
        ("wiki-articles1.xml-p1p41242.bz2", "dump"),
        ("a.wiki", "wikitext"),
        ("a.txt.gz", "wikitext"),
        ("a.html", "html"),
        ("a.htm.gz", "html"),
        ("a.jsonl", "jsonl"),
        ("a.pdf", None),
        ("a.bz2", None),
        ("a", None),
    ],
)
def test_formats(tmp_path, name, expected):
    assert page_format(tmp_path / name) == expected


def test_folders_and_formats(tmp_path):
    files = {"b.html": HTML, "a.wiki": SENTENCE, "c.pdf": "no", ".hidden.wiki": "[[No]]"}
    _, docs = run(tmp_path, files)
    assert [doc[0].text for doc in docs] == ["Anna", "Anna"] and [len(doc.ents) for doc in docs] == [4, 3]
    (tmp_path / "page.data").write_text(HTML)
    assert anchors([tmp_path / "page.data"], tmp_path / "b.spacy", format="html", min_anchors=3).docs == 1


def test_shards_and_determinism(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_weakner.stages.anchors._ZONE", 2)
    files = {"a.xml": dump(*[page(f"P{i}", f"[[Number{i}]] is. [[Other{i}]] is.") for i in range(7)])}
    report, docs = run(tmp_path, files, "out", shard_size=4)
    assert (report.docs, report.files) == (14, 4)
    assert [entities(doc) for doc in docs] == [[f"{x}{i}"] for i in range(7) for x in ("Number", "Other")]
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"part-0000{i}.spacy" for i in range(4)]
    again, _ = run(tmp_path, files, "again", shard_size=4)
    assert again == report
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_vocabulary_does_not_grow(tmp_path, monkeypatch):
    made = []

    def blank(*args):
        made.append(spacy.blank("en"))
        return made[0]

    monkeypatch.setattr("spacy_weakner.stages.anchors.blank_pipeline", blank)
    run(tmp_path, {"a.wiki": "[[Zyxwvut]] is here."})
    assert "Zyxwvut" not in made[0].vocab.strings


def test_nothing_is_replaced_unasked(tmp_path):
    for output in ("out", "out.spacy"):
        run(tmp_path, {"a.wiki": SENTENCE}, output)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.spacy")}
        with pytest.raises(WeaknerError, match=r"WK314.*--overwrite"):
            run(tmp_path, {"a.wiki": SENTENCE}, output)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.spacy")} == before
        _, docs = run(tmp_path, {"a.wiki": "[[New]]."}, output, overwrite=True)
        assert [doc.text for doc in docs] == ["New."]
        with pytest.raises(WeaknerError, match="WK442"):
            run(tmp_path, {"a.wiki": SENTENCE, "b.xml": "<broken"}, output, overwrite=True)
        (tmp_path / "in" / "b.xml").unlink()
        assert [doc.text for doc in read_docs(tmp_path / output, NLP.vocab)] == ["New."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "out.spacy"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_outputs_that_are_refused(tmp_path, overwrite):
    options = {"overwrite": overwrite, "min_anchors": 1}
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.wiki").write_text(SENTENCE)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "mine.spacy").write_bytes(b"")
    for output, code in [
        ("in", "WK304"),
        ("in/x.spacy", "WK304"),
        ("x.jsonl", "WK305"),
        ("file", "WK305"),
        ("gold", "WK300"),
    ]:
        with pytest.raises(WeaknerError, match=code):
            anchors([folder], tmp_path / output, **options)
    assert (folder / "a.wiki").read_text() == SENTENCE and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name, data, options, message",
    [
        ("a.pdf", b"", {}, "WK101"),
        ("a.wiki", b"caf\xe9", {}, "WK104.*a.wiki"),
        ("a.wiki.gz", gzip.compress(b"x" * 1000, mtime=0)[:-12], {}, "WK206.*a.wiki.gz"),
        ("a.xml.bz2", bz2.compress(dump(page("A", SENTENCE)).encode())[:-12], {}, "WK206.*a.xml.bz2"),
        ("a.xml.bz2", b"no bzip2", {}, "WK206.*a.xml.bz2"),
        ("a.xml.gz", b"no gzip", {}, "WK206.*a.xml.gz"),
        ("a.wiki", b"[[x]]", {"format": "text"}, "WK005.*format.*dump, wikitext, html, jsonl"),
        ("a.wiki", b"[[x]]", {"min_anchors": -1}, "WK005.*min_anchors"),
        ("a.wiki", b"[[x]]", {"max_length": 0}, "WK005.*max_length"),
        ("a.wiki", b"[[x]]", {"shard_size": 0}, "WK005.*shard_size"),
        ("a.wiki", b"[[x]]", {"label": " "}, "WK005.*label"),
        ("a.wiki", b"[[x]]", {"tokenizer": "nope"}, "WK106"),
        ("a.wiki", b"[[x]]", {"lang": "qqq"}, "WK107"),
        ("a.wiki", b"", {}, r"WK441.*pages: 1.*anchors: 0, .*length: 0"),
        ("a.wiki", b"[[x]] y.", {"max_length": 1}, "WK441.*length: 1"),
        ("a.html", b"<p>[[x]]</p>", {}, r"WK441.*anchors: 1"),
    ],
)
@pytest.mark.parametrize("output", ["out", "out.spacy"])
def test_errors(tmp_path, output, name, data, options, message):
    with pytest.raises(WeaknerError, match=message):
        run(tmp_path, {name: data}, output, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_missing_input(tmp_path):
    with pytest.raises(WeaknerError, match="WK100"):
        anchors([tmp_path / "no.xml"], tmp_path / "out")
    (tmp_path / "a.pdf").write_text("x")
    with pytest.raises(WeaknerError, match=r"WK105.*\.wiki"):
        anchors([tmp_path / "a.pdf"], tmp_path / "out")


def test_without_the_package(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    missing = lambda name, *rest: None if name == "mwparserfromhell" else find_spec(name, *rest)  # noqa: E731
    monkeypatch.setattr("spacy_weakner.stages.anchoring.wikitext.find_spec", missing)
    files = {"a.wiki": SENTENCE, "a.xml": dump(page("A", SENTENCE)), "a.jsonl": json.dumps({"wikitext": SENTENCE})}
    for name, text in files.items():
        with pytest.raises(WeaknerError, match=r"WK440.*mwparserfromhell.*spacy_weakner\[wiki\]"):
            run(tmp_path, {name: text})
        (tmp_path / "in" / name).unlink()
    assert run(tmp_path, {"a.html": HTML})[0].docs == 1

"""Links in wikitext."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.labeling.anchors.markup import Titles, wikitext_paragraphs


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


WIKI = "[[ ]] | {{ }} '' ''' == {| |} [http://x ] a B &amp; [1] File: : # \x00 \x01 é \ue000 \ue001 \ue003 <!-- -->"
TAGS = "<p>,</p>,<a href=x>,<a href=#x>,</a>,<sup>,</sup>,<ref>,</ref>,<nav>,</nav>,<div>,</div>,<br>,</span>"
SPACES = [" ", "\n", "\n\n", "* ", "<span class=noprint>"]
MARKUP = st.lists(st.sampled_from([*WIKI.split(" "), *TAGS.split(","), *SPACES]), max_size=30).map("".join)


@settings(max_examples=100, deadline=None)
@given(MARKUP)
def test_any_markup_gives_well_formed_paragraphs(text):
    for words, found in wikitext_paragraphs(text, Titles()):
        assert words and words == " ".join(words.split())
        borders = [border for span in found for border in span]
        assert borders == sorted(borders) and all(0 <= start < end <= len(words) for start, end in found)
        assert all(words[start:end].strip() == words[start:end] for start, end in found)

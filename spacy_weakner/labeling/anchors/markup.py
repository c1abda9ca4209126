"""Paragraphs with their anchors, from wikitext and HTML.

Both are turned into plain text with marks (characters for private use, which are removed from the input): where an
anchor begins and ends, where a paragraph ends, and where a list item begins.
"""

import re
from html import unescape
from itertools import takewhile
from typing import Any, List, Tuple
from urllib.parse import parse_qs, unquote, urlsplit

from .titles import ARTICLE, HIDDEN, Titles, words

# Text whose runs of white space are one blank, and start and end of its anchors in characters.
Paragraph = Tuple[str, List[Tuple[int, int]]]

_OPEN, _CLOSE, _BREAK, _ITEM = "\ue000", "\ue001", "\ue002", "\ue003"
# Marks, and what lxml refuses in a text.
_CLEAN = {
    **{code: " " for code in range(32) if chr(code) not in "\t\n\r"},
    **dict.fromkeys(map(ord, f"{_OPEN}{_CLOSE}{_BREAK}{_ITEM}\ufffe\uffff")),
}
_ANCHOR = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_MAGIC_WORD = re.compile(r"^[ \t]*__\S+__[ \t]*$", re.MULTILINE)
_PARAGRAPH_END = re.compile(rf"{_ITEM}([^\n{_BREAK}]*)|\n[^\S\n]*\n")

_ITEMS = words("li dd dt")
_BLOCKS = _ITEMS | words("p div ul ol dl blockquote center poem hr h1 h2 h3 h4 h5 h6")
# Tables, references, and what has no text to read.
_DROPPED_BLOCKS = words("table tr td th pre syntaxhighlight source gallery timeline score references")
_DROPPED = _DROPPED_BLOCKS | words(
    "ref math chem ce graph imagemap inputbox templatedata templatestyles categorytree section hiero mapframe "
    "maplink indicator style script"
)
_DROPPED_HTML = words(
    "aside audio button canvas figure footer form header iframe math nav noscript object pre script select style "
    "svg table template textarea video"
)
# Of MediaWiki: marks of references, links to edit a section, boxes of links; links to other sites.
_DROPPED_CLASSES = words("reference mw-editsection navbox noprint")
_OTHER_CLASSES = words("external extiw")


def wikitext_paragraphs(text: str, titles: Titles) -> List[Paragraph]:
    """Read wikitext. Templates, tables, references and comments are left out; headings and list items are paragraphs of
    their own.

    text (str): The wikitext of a page.
    titles (Titles): Tells which links lead to articles.
    RETURNS (List[Paragraph]): The paragraphs.
    """
    import mwparserfromhell

    code = mwparserfromhell.parse(text.translate(_CLEAN))
    marked = _MAGIC_WORD.sub("", _Wikitext(titles).render(code))
    return _paragraphs(_end_lines(marked))


def html_paragraphs(text: str, titles: Titles) -> List[Paragraph]:
    """Read HTML: the paragraphs (`<p>`), since most links elsewhere belong to menus and lists.

    text (str): The HTML of a page, or of a part of it.
    titles (Titles): Tells which links lead to articles.
    RETURNS (List[Paragraph]): The paragraphs.
    """
    from lxml import etree, html

    # As bytes with their encoding, so that the encoding that the page declares does not count.
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        root = html.document_fromstring(text.translate(_CLEAN).encode("utf-8"), parser=parser)
    except etree.ParserError:  # without any element
        return []
    host = next((_split(node.get("href", ""))[0] for node in root.xpath("//base | //link[@rel='canonical']")), "")
    for node in root.xpath("/*//*"):
        if node.tag in _DROPPED_HTML or _DROPPED_CLASSES & {*node.get("class", "").split()}:
            node.drop_tree()
    for note in root.xpath("//sup[.//a[starts-with(normalize-space(@href), '#')]]"):
        note.drop_tree()
    for node in root.xpath("//p//*"):
        if node.tag == "br":
            node.tail = f" {node.tail or ''}"
        elif node.tag in _BLOCKS:  # within a link that is not closed
            node.text, node.tail = _BREAK + (node.text or ""), _BREAK + (node.tail or "")
    for link in root.xpath("//p//a"):
        shown = link.text_content().strip()
        if shown.startswith("[") and shown.endswith("]"):  # "[1]", "[edit]"
            link.drop_tree()
        elif _BREAK not in shown and _is_article(link, host, titles):
            link.text, link.tail = _OPEN + (link.text or ""), _CLOSE + (link.tail or "")
    return _paragraphs(_BREAK.join(node.text_content() for node in root.xpath("//p[not(ancestor::p)]")))


def _paragraphs(marked: str) -> List[Paragraph]:
    return [found for found in map(_paragraph, marked.split(_BREAK)) if found[0]]


def _paragraph(marked: str) -> Paragraph:
    """Take the marks out of a text, and normalize its white space."""
    text, anchors, is_gap = "", [], False
    # Of anchors within each other, the inner one is left.
    for number, part in enumerate(_ANCHOR.split(marked)):
        part = part.translate(_CLEAN)
        shown = " ".join(part.split())
        if not shown:
            is_gap = is_gap or bool(part)
            continue
        if text and (is_gap or part[0].isspace()):
            text += " "
        if number % 2 and any(map(str.isalnum, shown)):
            anchors.append((len(text), len(text) + len(shown)))
        text += shown
        is_gap = part[-1].isspace()
    return text, anchors


def _end_lines(text: str) -> str:
    """Mark the ends of paragraphs: a blank line, and the end of the line of a list item."""
    return _PARAGRAPH_END.sub(lambda found: f"{_BREAK}{found[1] or ''}{_BREAK}", text)


class _Wikitext:
    """Renders wikitext as text with marks."""

    def __init__(self, titles: Titles) -> None:
        from mwparserfromhell import nodes

        self.titles = titles
        # What is not listed here (templates, their arguments, comments) is left out.
        self.renderers: Any = {
            nodes.Text: lambda node: str(node.value).replace("'''", "").replace("''", ""),
            nodes.HTMLEntity: lambda node: unescape(str(node)),
            nodes.Heading: lambda node: _BREAK + self.render(node.title) + _BREAK,
            nodes.ExternalLink: self._external_link,
            nodes.Wikilink: self._link,
            nodes.Tag: self._tag,
        }

    def render(self, code: Any) -> str:
        parts: List[str] = []
        previous: Any = None
        for node in code.nodes:
            text = self.renderers.get(type(node), lambda node: "")(node)
            if previous == self._link and parts[-1].endswith(_CLOSE):
                # "[[bus]]es" is shown as one link.
                trail = "".join(takewhile(str.islower, text))
                parts[-1] = parts[-1][:-1] + trail + _CLOSE
                text = text[len(trail) :]
            parts.append(text)
            previous = self.renderers.get(type(node))
        return "".join(parts)

    def _link(self, node: Any) -> str:
        named = node.text is not None and bool(str(node.text).strip())
        title = unescape(str(node.title)).strip()
        kind = self.titles.kind(title, named)
        if kind == HIDDEN:
            return ""
        text = self.render(node.text) if named else title[1:] if title.startswith(":") else self.render(node.title)
        is_anchor = kind == ARTICLE and _BREAK not in _end_lines(text) and any(map(str.isalnum, text))
        inner = _ANCHOR.sub(r"\1", text).replace("\n", " ")
        return f"{_OPEN}{inner}{_CLOSE}" if is_anchor else text

    def _external_link(self, node: Any) -> str:
        if node.title is not None:
            return self.render(node.title)
        return "" if node.brackets else str(node.url)

    def _tag(self, node: Any) -> str:
        name = str(node.tag).strip().lower()
        around = _BREAK if name in _BLOCKS or name in _DROPPED_BLOCKS else ""
        if name in _DROPPED:
            return around
        if name == "br":
            return " "
        if node.self_closing:  # of a list item, this is the mark at the beginning of its line
            return around + (_ITEM if name in _ITEMS else "")
        return around + self.render(node.contents) + around


def _is_article(link: Any, host: str, titles: Titles) -> bool:
    target, path, query = _split(link.get("href", "").strip())
    if _OTHER_CLASSES & {*link.get("class", "").split()} or (target and target != host) or not (path or query):
        return False
    # Pages of a wiki are named in the query, or by what follows /wiki/, where slashes are part of the title.
    _, wiki, title = path.partition("/wiki/")
    names = parse_qs(query).get("title", [unquote(title if wiki else path.rpartition("/")[2])])
    return not names[0] or titles.kind(names[0]) == ARTICLE


def _split(href: str) -> Tuple[str, str, str]:
    """Host, path and query of an address; the host is the whole address if it is not one of the web."""
    try:
        parts = urlsplit(href)
    except ValueError:
        return href, "", ""
    if parts.scheme not in ("", "http", "https"):
        return href, "", ""
    return parts.netloc.lower(), parts.path, parts.query

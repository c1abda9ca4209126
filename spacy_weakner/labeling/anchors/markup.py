"""Paragraphs with their anchors, from wikitext and HTML.

Both are turned into plain text with marks (characters for private use, which are removed from the input): where an
anchor begins and ends, where a paragraph ends, and where a list item begins.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from html import unescape
from importlib import import_module
from itertools import takewhile
from multiprocessing.connection import Connection, Pipe
from typing import Any, FrozenSet, Iterable, List, Optional, Sequence, Tuple
from urllib.parse import parse_qs, unquote, urlsplit

from ...errors import Errors, WeaknerError

# Text whose runs of white space are one blank, and start and end of its anchors in characters.
Paragraph = Tuple[str, List[Tuple[int, int]]]
WIKITEXT, HTML = "wikitext", "html"
# Hostile pages can take a parser hours.
MAX_SECONDS = 10.0
ARTICLE, OTHER, HIDDEN = "article", "other", "hidden"

_OPEN, _CLOSE, _BREAK, _ITEM = "\ue000", "\ue001", "\ue002", "\ue003"
# Marks, and what lxml refuses in a text.
_CLEAN = {
    **{code: " " for code in range(32) if chr(code) not in "\t\n\r"},
    **dict.fromkeys(map(ord, f"{_OPEN}{_CLOSE}{_BREAK}{_ITEM}\ufffe\uffff")),
}
_ANCHOR = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_MAGIC_WORD = re.compile(r"^[ \t]*__\S+__[ \t]*$", re.MULTILINE)
_PARAGRAPH_END = re.compile(rf"{_ITEM}([^\n{_BREAK}]*)|\n[^\S\n]*\n")


def _words(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


_ITEMS = _words("li dd dt")
_BLOCKS = _ITEMS | _words("p div ul ol dl blockquote center poem hr h1 h2 h3 h4 h5 h6")
# Tables, references, and what has no text to read.
_DROPPED_BLOCKS = _words("table tr td th pre syntaxhighlight source gallery timeline score references")
_DROPPED = _DROPPED_BLOCKS | _words(
    "ref math chem ce graph imagemap inputbox templatedata templatestyles categorytree section hiero mapframe "
    "maplink indicator style script"
)
_DROPPED_HTML = _words(
    "aside audio button canvas figure footer form header iframe math nav noscript object pre script select style "
    "svg table template textarea video"
)
# Of MediaWiki: marks of references, links to edit a section, boxes of links; links to other sites.
_DROPPED_CLASSES = _words("reference mw-editsection navbox noprint")
_OTHER_CLASSES = _words("external extiw")
# Namespaces of files and categories. Dumps bring the names of their wiki; these are for single pages of large ones.
_HIDDEN = _words(
    "file image category datei bild kategorie fichier catégorie archivo imagen categoría immagine categoria "
    "bestand afbeelding categorie ficheiro imagem plik grafika kategoria файл изображение категория зображення "
    "категорія fil 文件 檔案 图像 圖像 分类 分類 ファイル 画像 カテゴリ 파일 분류 ملف تصنيف קובץ קטגוריה"
)
_HIDDEN_KEYS = ("6", "14")
_OTHER = _words(
    "media special talk user user_talk project project_talk wikipedia wikipedia_talk wp file_talk mediawiki "
    "mediawiki_talk template template_talk help help_talk category_talk portal portal_talk draft draft_talk "
    "module module_talk book timedtext topic"
)
_PROJECTS = _words(
    "w wikt wiktionary s wikisource b wikibooks n wikinews q wikiquote v wikiversity voy wikivoyage species "
    "wikispecies d wikidata c commons m meta mw foundation simple doi hdl arxiv"
)


class PageParser:
    """Parses one page at a time in a process of its own, which is killed when a page takes longer than `MAX_SECONDS`,
    even within the C code of a parser."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen[bytes]] = None

    def parse(self, markup: str, text: str, namespaces: Sequence[Sequence[str]]) -> Tuple[List[Paragraph], str]:
        """The paragraphs of a page, and why there are none: "too slow" or "unreadable"."""
        if self.process is None:
            self._connection, far_end = Pipe()
            # Not by multiprocessing, which would run the script of a user again.
            command = [sys.executable, "-m", __name__, str(far_end.fileno())]
            self.process = subprocess.Popen(command, pass_fds=[far_end.fileno()])
            far_end.close()
            try:
                self._connection.recv_bytes()  # ready: its start is not within the time of the first page
            except (EOFError, OSError):
                self.close()
                what = f"anything at all ('{shlex.join(command[:-1])} 0' shows why)"
                raise WeaknerError(Errors.WK313.format(what=what)) from None
        problem = "unreadable"
        with suppress(EOFError, OSError):  # the process died
            self._connection.send_bytes(json.dumps([markup, text, namespaces]).encode())
            if self._connection.poll(MAX_SECONDS):
                paragraphs = json.loads(self._connection.recv_bytes())
                return (paragraphs, "") if paragraphs is not None else ([], problem)
            problem = "too slow"
        self.close()
        return [], problem

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._connection.close()
            self.process = None


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    for package in ("lxml.html", "mwparserfromhell"):
        with suppress(ImportError):
            import_module(package)
    connection.send_bytes(b"ready")
    with suppress(EOFError):  # the parent died
        while True:
            markup, text, namespaces = json.loads(connection.recv_bytes())
            try:
                parse = html_paragraphs if markup == HTML else wikitext_paragraphs
                found: Optional[List[Paragraph]] = parse(text, Titles(namespaces))
            except Exception:  # the parsers raise many kinds; the page is counted
                found = None
            connection.send_bytes(json.dumps(found).encode())


class Titles:
    """Tells links to articles from others by their titles, with the namespaces (key, name) of a wiki's dump; the
    English names are known on every wiki."""

    def __init__(self, namespaces: Iterable[Sequence[str]] = ()) -> None:
        named = [(key, _fold(name)) for key, name in namespaces if name.strip() and key != "0"]
        self._hidden = {*map(_fold, _HIDDEN), *(name for key, name in named if key in _HIDDEN_KEYS)}
        self._other = {*map(_fold, _OTHER), *(name for key, name in named if key not in _HIDDEN_KEYS)}

    def kind(self, title: str, has_text: bool = True) -> str:
        """ARTICLE; OTHER, which is a link but not to an article; or HIDDEN, which shows no text: files, categories, and
        the same page in other languages where the link has no text of its own."""
        title = title.strip()
        is_shown = title.startswith(":")  # a link to a file, category or language in place of the thing itself
        title = title[is_shown:].lstrip()
        if not title or title.startswith(("#", "/", "../")):
            return OTHER  # a section of the page, or pages below it
        prefix, colon, rest = title.partition(":")
        if not colon:
            return ARTICLE
        if _fold(prefix) in self._hidden:
            return OTHER if is_shown else HIDDEN
        if _fold(prefix) in self._other:
            return OTHER
        if _is_interwiki(prefix.strip(), rest):
            return OTHER if is_shown or has_text else HIDDEN
        return ARTICLE


def _is_interwiki(prefix: str, rest: str) -> bool:
    # No list holds all prefixes. They are written in lower case and without a blank, other than the titles of articles
    # with a colon ("Alien: Covenant", "Re:Zero").
    if not rest or rest[0].isspace() or not (prefix.isascii() and prefix.islower()):
        return False
    parts = prefix.split("-")
    return prefix in _PROJECTS or (2 <= len(parts[0]) <= 3 and all(map(str.isalpha, parts)))


def _fold(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def wikitext_paragraphs(text: str, titles: Titles) -> List[Paragraph]:
    """Templates, tables, references and comments are left out; headings and list items are paragraphs of their own."""
    import mwparserfromhell

    code = mwparserfromhell.parse(text.translate(_CLEAN))
    return _paragraphs(_end_lines(_MAGIC_WORD.sub("", _Wikitext(titles).render(code))))


def html_paragraphs(text: str, titles: Titles) -> List[Paragraph]:
    """The paragraphs (`<p>`) alone, since most links elsewhere belong to menus and lists."""
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
        has_text = node.text is not None and bool(str(node.text).strip())
        title = unescape(str(node.title)).strip()
        kind = self.titles.kind(title, has_text)
        if kind == HIDDEN:
            return ""
        text = self.render(node.text) if has_text else title[1:] if title.startswith(":") else self.render(node.title)
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


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))

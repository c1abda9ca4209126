"""Extraction of paragraphs and their anchors from wikitext.

Wikitext is converted to plain text with marks (private-use characters, which are removed from the input) for the start
and the end of an anchor, the end of a paragraph, and the start of a list item.
"""

import re
import signal
from html import unescape
from itertools import takewhile
from typing import Any, FrozenSet, Iterable, List, Sequence, Tuple

from mwparserfromhell import nodes, parse
from mwparserfromhell.definitions import PARSER_BLACKLIST

# Text in which each run of white space is one blank, and the start and end of its anchors in characters.
Paragraph = Tuple[str, List[Tuple[int, int]]]
ARTICLE, OTHER, HIDDEN = "article", "other", "hidden"
_OPEN, _CLOSE, _BREAK, _ITEM = "\ue000", "\ue001", "\ue002", "\ue003"
# Marks, and characters that are not text.
_CLEAN = {
    **{code: " " for code in range(32) if chr(code) not in "\t\n\r"},
    **dict.fromkeys(map(ord, f"{_OPEN}{_CLOSE}{_BREAK}{_ITEM}\ufffe\uffff")),
}
_ANCHOR = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_MAGIC_WORD = re.compile(r"^[ \t]*__\S+__[ \t]*$", re.MULTILINE)
_OTHER_WIKI = re.compile(r"[a-z]+(-[a-z]+)*\s*:\S")
_PARAGRAPH_END = re.compile(rf"{_ITEM}([^\n{_BREAK}]*)|\n[^\S\n]*\n")


def _words(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


_ITEMS = _words("li dd dt")
# Blocks without readable text: tables, references, code and formulas.
_DROPPED_BLOCKS = _words("table tr td th pre syntaxhighlight source gallery timeline score references")
_DROPPED = (
    _DROPPED_BLOCKS
    | {*PARSER_BLACKLIST} - {"nowiki"}
    | _words("ref indicator style script mapframe maplink templatestyles")
)
_BLOCKS = _ITEMS | _DROPPED_BLOCKS | _words("p div ul ol dl blockquote center poem hr h1 h2 h3 h4 h5 h6")
# Namespaces of files and categories. Dumps contain the names of their wiki; these are for single pages of large wikis.
_HIDDEN = _words(
    "file image category datei bild kategorie fichier catégorie archivo imagen categoría immagine categoria "
    "bestand afbeelding categorie ficheiro imagem plik grafika kategoria файл изображение категория зображення "
    "категорія fil 文件 檔案 图像 圖像 分类 分類 ファイル 画像 カテゴリ 파일 분류 ملف تصنيف קובץ קטגוריה"
)
_OTHER = _words("media special user project wikipedia wp mediawiki template help portal draft module book topic")


class Titles:
    """A classifier of link titles as articles or other pages, based on the namespaces (key, name) of a wiki's dump. The
    English names are valid on every wiki."""

    def __init__(self, namespaces: Iterable[Sequence[str]] = ()) -> None:
        kinds = {**dict.fromkeys(_HIDDEN, HIDDEN), **dict.fromkeys(_OTHER, OTHER)}
        kinds.update((name, HIDDEN if key in ("6", "14") else OTHER) for key, name in namespaces if name.strip())
        self.kinds = {_fold(name): kind for name, kind in kinds.items()}

    def kind(self, title: str, has_text: bool = True) -> str:
        """Return ARTICLE; OTHER, for a link to something else; or HIDDEN, for a link without visible text: files,
        categories, and the same page in other languages if the link has no text of its own."""
        title = title.strip()
        is_shown = title.startswith(":")  # a visible link to a file, category or language
        title = title[is_shown:].lstrip()
        if not title or title.startswith(("#", "/", "../")):
            return OTHER  # a section of the page, or a subpage
        prefix, colon, _ = title.partition(":")
        name = _fold(prefix)
        kind = self.kinds.get(name, OTHER if name.endswith("talk") else ARTICLE) if colon else ARTICLE
        # Links to other wikis: no list holds all prefixes. They are in lower case and not followed by a blank, unlike
        # in titles of articles with a colon ("Alien: Covenant", "Re:Zero").
        if kind == ARTICLE and _OTHER_WIKI.match(title):
            kind = OTHER if has_text else HIDDEN
        return OTHER if is_shown and kind == HIDDEN else kind


def _fold(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def wikitext_paragraphs(text: str, titles: Titles) -> List[Paragraph]:
    """Return paragraphs, without templates, tables, references and comments; headings and list items are separate."""
    marked = _end_lines(_MAGIC_WORD.sub("", _render(parse(text.translate(_CLEAN)), titles)))
    return [found for found in map(_paragraph, marked.split(_BREAK)) if found[0]]


def _render(code: Any, titles: Titles) -> str:
    """Return wikitext as text with marks."""
    text, previous = "", None
    for node in code.nodes:
        if isinstance(node, nodes.Text):
            shown = str(node.value).replace("'''", "").replace("''", "")
            if isinstance(previous, nodes.Wikilink) and text.endswith(_CLOSE):  # "[[bus]]es" is displayed as one link
                trail = "".join(takewhile(str.islower, shown))
                text, shown = text[:-1] + trail + _CLOSE, shown[len(trail) :]
            text += shown
        elif isinstance(node, nodes.HTMLEntity):
            text += unescape(str(node))
        elif isinstance(node, nodes.Heading):
            text += _BREAK + _render(node.title, titles) + _BREAK
        elif isinstance(node, nodes.ExternalLink):
            text += "" if node.title is None and node.brackets else _render(node.title or node.url, titles)
        elif isinstance(node, nodes.Wikilink):
            text += _render_link(node, titles)
        elif isinstance(node, nodes.Tag):
            text += _render_tag(node, titles)
        previous = node  # other nodes (templates, their arguments, comments) are left out
    return text


def _render_link(node: Any, titles: Titles) -> str:
    has_text = node.text is not None and bool(str(node.text).strip())
    title = unescape(str(node.title)).strip()
    kind = titles.kind(title, has_text)
    if kind == HIDDEN:
        return ""
    text = _render(node.text, titles) if has_text else _render(node.title, titles).strip().removeprefix(":")
    if kind == OTHER or _BREAK in _end_lines(text) or not any(map(str.isalnum, text)):
        return text
    return _OPEN + _ANCHOR.sub(r"\1", text).replace("\n", " ") + _CLOSE


def _render_tag(node: Any, titles: Titles) -> str:
    name = str(node.tag).strip().lower()
    around = _BREAK if name in _BLOCKS else ""
    if name in _DROPPED:
        return around
    if name == "br":
        return " "
    if node.self_closing:  # of a list item, this is the mark at the start of its line
        return around + (_ITEM if name in _ITEMS else "")
    return around + _render(node.contents, titles) + around


def _paragraph(marked: str) -> Paragraph:
    """Remove the marks from a text, and normalize its white space."""
    text, anchors, is_gap = "", [], False
    # Of nested anchors, the inner one is kept.
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
    """Mark the ends of paragraphs: blank lines, and the line ends of list items."""
    return _PARAGRAPH_END.sub(lambda found: f"{_BREAK}{found[1] or ''}{_BREAK}", text)


def parse_page(page: Tuple[str, Sequence[Sequence[str]], float]) -> List[Paragraph]:
    """Return the paragraphs of a text in a wiki with these namespaces. Run this in a separate process: an alarm ends
    the process after the given number of seconds, even within the C code of the parser."""
    text, namespaces, seconds = page
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return wikitext_paragraphs(text, Titles(namespaces))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

"""Anchors of HTML."""

from html.parser import HTMLParser
from typing import Dict, FrozenSet, List, Optional, Tuple
from urllib.parse import parse_qs, unquote, urlsplit

from .paragraphs import Mark, Paragraph, Paragraphs
from .titles import ARTICLE, Titles, names

_BLOCKS = names(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hgroup hr html li main menu nav ol p pre section table tbody td tfoot th thead tr ul"
)
_DROPPED = names(
    "aside audio button canvas figure footer form header iframe math nav noscript object pre script select style svg "
    "table template textarea video"
)
# Of MediaWiki: marks of references, links to edit a section, boxes of links.
_DROPPED_CLASSES = frozenset(["reference", "mw-editsection", "navbox", "noprint"])
_OTHER_CLASSES = frozenset(["external", "extiw"])
_VOID = names("area base br col embed hr img input link meta source track wbr")
_WIKI = "/wiki/"

_Attributes = List[Tuple[str, Optional[str]]]


def html_paragraphs(text: str, titles: Titles) -> Optional[List[Paragraph]]:
    """Read a page. Only paragraphs (`<p>`) are read, since most links elsewhere belong to menus and lists; scripts,
    tables, references and the like within them are left out.

    text (str): Its HTML, or a part of it.
    titles (Titles): Tells which links lead to articles.
    RETURNS (Optional[List[Paragraph]]): The paragraphs; None if the parser gives up.
    """
    reader = _Reader(titles)
    try:
        reader.feed(text)
        reader.close()
    except AssertionError:  # of the parser, where a declaration is malformed
        return None
    return reader.paragraphs.finish()


class _Link:
    """A link that is open.

    mark (Mark): Where it begins.
    anchor (bool): Whether it is an anchor.
    """

    def __init__(self, mark: Mark, anchor: bool) -> None:
        self.mark = mark
        self.anchor = anchor


# The parser of the standard library, and not lxml: no package more for the one thing to do here, which needs no tree.
# It takes any markup for something, and never looks at entities of a DOCTYPE or at other files.
class _Reader(HTMLParser):
    """Follows the tags of a page.

    titles (Titles): Tells which links lead to articles.
    """

    def __init__(self, titles: Titles) -> None:
        super().__init__(convert_charrefs=True)
        self.titles = titles
        self.paragraphs = Paragraphs()
        self._host = ""  # of the page, if it says so
        self._inside = False  # whether a paragraph is open
        self._link: Optional[_Link] = None
        self._sup: Optional[Mark] = None  # where raised text begins
        self._reference = False  # whether it is the mark of a note
        self._dropped = ""  # the element that is left out
        self._depth = 0  # how many elements of its name are open, itself included
        self._inline = False  # whether it ends with its paragraph at the latest

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        if self._still_dropped(tag):
            self._depth += tag == self._dropped
            return
        attributes = {name: value or "" for name, value in attrs}
        classes = frozenset(attributes.get("class", "").split())
        if tag in _BLOCKS:
            # Also ends a paragraph whose end tag is missing.
            self._end_paragraph()
        if tag not in _VOID and (tag in _DROPPED or classes & _DROPPED_CLASSES):
            self._dropped, self._depth, self._inline = tag, 1, tag not in _BLOCKS | _DROPPED
        elif tag == "p":
            self._inside = True
        elif tag == "br":
            self._add(" ")
        elif tag == "a":
            self._begin_link(attributes, classes)
        elif tag == "sup":
            self._sup = self.paragraphs.mark()
        elif tag == "base" or (tag == "link" and attributes.get("rel") == "canonical"):
            self._host = self._host or _split(attributes.get("href", ""))[0]

    def handle_endtag(self, tag: str) -> None:
        if self._still_dropped(tag):
            self._depth -= tag == self._dropped
            if not self._depth:
                self._dropped = ""
        elif tag in _BLOCKS:
            self._end_paragraph()
        elif tag == "a":
            self._end_link()
        elif tag == "sup":
            if self._sup is not None and self._reference:
                self.paragraphs.rewind(self._sup)
            self._sup, self._reference = None, False

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self._add(data)

    def _still_dropped(self, tag: str) -> bool:
        if self._inline and tag in _BLOCKS:
            self._dropped, self._inline = "", False
        return bool(self._dropped)

    def _add(self, text: str) -> None:
        if self._inside:
            self.paragraphs.add(text)

    def _begin_link(self, attributes: Dict[str, str], classes: FrozenSet[str]) -> None:
        self._end_link()  # links do not nest
        href = attributes.get("href", "").strip()
        if self._sup is not None and href.startswith("#"):
            self._reference = True  # a raised link within the page leads to a note
        mark = self.paragraphs.mark()
        anchor = self._inside and self._is_article(href, classes) and self.paragraphs.begin_anchor()
        self._link = _Link(mark, anchor)

    def _end_link(self) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        text = self.paragraphs.since(link.mark).strip()
        if text.startswith("[") and text.endswith("]"):
            self.paragraphs.rewind(link.mark)  # "[1]", "[edit]": not a part of the sentence
        elif link.anchor:
            self.paragraphs.end_anchor()

    def _end_paragraph(self) -> None:
        self.paragraphs.end()
        self._inside = self._reference = False
        self._link = self._sup = None

    def _is_article(self, href: str, classes: FrozenSet[str]) -> bool:
        host, path, query = _split(href)
        if classes & _OTHER_CLASSES or (host and host != self._host) or not (path or query):
            return False
        # Pages of a wiki are named in the query, or by what follows /wiki/, where slashes are part of the title.
        _, wiki, title = path.partition(_WIKI)
        names = parse_qs(query).get("title", [unquote(title if wiki else path.rpartition("/")[2])])
        return not names[0] or self.titles.kind(names[0]) == ARTICLE


def _split(href: str) -> Tuple[str, str, str]:
    """Host, path and query of an address; the host is the whole address if it is not one of the web."""
    try:
        parts = urlsplit(href)
    except ValueError:
        return href, "", ""
    if parts.scheme not in ("", "http", "https"):
        return href, "", ""
    return parts.netloc.lower(), parts.path, parts.query

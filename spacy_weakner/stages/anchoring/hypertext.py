"""Anchors of HTML."""

from importlib.util import find_spec
from typing import FrozenSet, List, Mapping, Optional, Tuple
from urllib.parse import parse_qs, unquote, urlsplit

from ...errors import Errors, WeaknerError
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

_PARSER = "lxml"
# Of elements within each other: pages of people have a few dozen.
MAX_DEPTH = 1000


def require_parser() -> None:
    """Check that the parser of HTML is installed, which the extra "wiki" brings.

    RAISES (WeaknerError): If it is not.
    """
    if find_spec(_PARSER) is None:
        raise WeaknerError(Errors.WK440.format(markup="HTML", package=_PARSER))


def html_paragraphs(text: str, titles: Titles) -> Optional[List[Paragraph]]:
    """Read a page, in time that is linear in its length. Only paragraphs (`<p>`) are read, since most links elsewhere
    belong to menus and lists; scripts, tables, references and the like within them are left out.

    text (str): Its HTML, or a part of it.
    titles (Titles): Tells which links lead to articles.
    RETURNS (Optional[List[Paragraph]]): The paragraphs; None if the parser gives up, or elements lie too deep in others
        (`MAX_DEPTH`).
    RAISES (WeaknerError): If the parser is not installed.
    """
    require_parser()
    from lxml import etree

    reader = _Reader(titles)
    # As bytes, whose encoding is given: what the page says of it does not count.
    parser = etree.HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
    try:
        parser.feed(text.encode("utf-8"))
        parser.close()
    except _TooDeep:
        return None
    except etree.LxmlError:
        # Raised at the end of a page without any element, too.
        return None if text.strip() else []
    return reader.paragraphs.finish()


class _TooDeep(Exception):
    pass


class _Link:
    """A link that is open.

    mark (Mark): Where it begins.
    anchor (bool): Whether it is an anchor.
    """

    def __init__(self, mark: Mark, anchor: bool) -> None:
        self.mark = mark
        self.anchor = anchor


# A target of the parser: no tree is built. It takes any markup for something, and never looks at entities of a DOCTYPE
# or at other files.
class _Reader:
    """Follows the tags of a page.

    titles (Titles): Tells which links lead to articles.
    """

    def __init__(self, titles: Titles) -> None:
        self.titles = titles
        self.paragraphs = Paragraphs()
        self._host = ""  # of the page, if it says so
        self._inside = False  # whether a paragraph is open
        self._open = 0  # elements
        self._link: Optional[_Link] = None
        self._sup: Optional[Mark] = None  # where raised text begins
        self._reference = False  # whether it is the mark of a note
        self._dropped = ""  # the element that is left out
        self._depth = 0  # how many elements of its name are open, itself included
        self._inline = False  # whether it ends with its paragraph at the latest

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open += 1
        if self._open > MAX_DEPTH:
            raise _TooDeep
        if self._still_dropped(tag):
            self._depth += tag == self._dropped
            return
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

    def end(self, tag: str) -> None:
        self._open -= 1
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

    def data(self, data: str) -> None:
        if not self._dropped:
            self._add(data)

    def close(self) -> None:
        pass

    def _still_dropped(self, tag: str) -> bool:
        if self._inline and tag in _BLOCKS:
            self._dropped, self._inline = "", False
        return bool(self._dropped)

    def _add(self, text: str) -> None:
        if self._inside:
            self.paragraphs.add(text)

    def _begin_link(self, attributes: Mapping[str, str], classes: FrozenSet[str]) -> None:
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

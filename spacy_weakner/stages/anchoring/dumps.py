"""XML exports of MediaWiki, page by page."""

from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, NoReturn, Optional, Tuple
from xml.etree.ElementTree import ParseError, XMLParser

from ...errors import Errors, WeaknerError
from ...files import open_packed
from .titles import Titles

_CHUNK = 1 << 16
_ROOT = "mediawiki"
# What is read of a page. Of several revisions the last one counts.
_FIELDS = frozenset(["title", "ns", "model", "text"])
_ARTICLES = "0"
_WIKITEXT = "wikitext"


class DumpPage(NamedTuple):
    """A page of a dump.

    title (str): Its title.
    article (bool): Whether it is an article in wikitext: no discussion, template, file and so on.
    redirect (bool): Whether it only leads to another one.
    text (str): Its wikitext.
    titles (Titles): What is known of the wiki's titles.
    """

    title: str
    article: bool
    redirect: bool
    text: str
    titles: Titles


def read_dump(path: Path, max_page: int) -> Iterator[DumpPage]:
    """Stream the pages of a dump; few of them are in memory at a time.

    path (Path): The file; `.bz2` and `.gz` are unpacked.
    max_page (int): Of pages with more characters only so many are kept, and one more.
    YIELDS (DumpPage): All pages, in their order.
    RAISES (WeaknerError): If it is damaged, not well-formed, no export of MediaWiki, or has a DOCTYPE.
    """
    target = _Target(max_page)
    parser = XMLParser(target=target)
    with open_packed(path) as file_:
        while True:
            chunk = file_.read(_CHUNK)
            try:
                if chunk:
                    parser.feed(chunk)
                else:
                    parser.close()
            # Of encodings that are not known, others than a ParseError.
            except (ParseError, LookupError, ValueError) as error:
                place = "" if target.page is None else f", page '{target.page.get('title', '')}'"
                raise WeaknerError(Errors.WK442.format(path=path, page=place, reason=error)) from error
            yield from target.pages
            target.pages.clear()
            if not chunk:
                break


# A target of the parser, and not `iterparse`: it can refuse a DOCTYPE, where entities would be declared that expand
# without end or read other files, and it builds no tree that would have to be cleared.
class _Target:
    """What the parser calls.

    max_page (int): See `read_dump`.
    """

    def __init__(self, max_page: int) -> None:
        self.max_page = max_page
        self.pages: List[DumpPage] = []  # those that are complete
        self.page: Optional[Dict[str, str]] = None  # the one that is open
        self._titles = Titles()
        self._namespaces: List[Tuple[str, str]] = []
        self._begun = False
        self._key = ""
        self._redirect = False
        self._content = False  # whether it is in a part of a revision that is not the page itself
        self._text: Optional[List[str]] = None  # of an element that is wanted
        self._room = 0  # characters that it may still have

    def doctype(self, name: str, public: Optional[str], system: Optional[str]) -> NoReturn:
        raise ValueError("it has a DOCTYPE, which exports never have and which is not read")

    def start(self, tag: str, attributes: Dict[str, str]) -> None:
        name, self._room = _local(tag), self.max_page + 1
        if not self._begun:
            if name != _ROOT:
                raise ValueError(f"its root is <{name}>, not <{_ROOT}>")
            self._begun = True
        elif name == "page":
            self.page, self._redirect = {}, False
        elif name == "redirect":
            self._redirect = True
        elif name == "content":
            self._content = True
        elif name == "namespace":
            self._key = attributes.get("key", "")
            self._text = []
        elif self.page is not None and not self._content and name in _FIELDS:
            self._text = []

    def data(self, data: str) -> None:
        if self._text is not None and self._room > 0:
            self._text.append(data[: self._room])
            self._room -= len(data)

    def end(self, tag: str) -> None:
        name = _local(tag)
        text, self._text = self._text, None
        if text is not None and name == "namespace":
            self._namespaces.append((self._key, "".join(text)))
        elif text is not None and self.page is not None:
            self.page[name] = "".join(text)
        elif name == "namespaces":
            self._titles = Titles(self._namespaces)
        elif name == "content":
            self._content = False
        elif name == "page" and self.page is not None:
            self._end_page(self.page)
            self.page = None

    def close(self) -> None:
        pass

    def _end_page(self, page: Dict[str, str]) -> None:
        # Old exports name no namespace and no model: they have articles in wikitext.
        namespace, model = page.get("ns", _ARTICLES), page.get("model", _WIKITEXT)
        article = namespace == _ARTICLES and model == _WIKITEXT
        self.pages.append(DumpPage(page.get("title", ""), article, self._redirect, page.get("text", ""), self._titles))


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]

"""Streams the pages of dumps and other files."""

from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Tuple
from xml.etree.ElementTree import Element, ParseError, iterparse

from ...corpus.counts import RowError, at_line
from ...corpus.jsonl import read_rows
from ...corpus.rows import read_identifier
from ...errors import Errors, WeaknerError
from ...files import open_packed, read_lines
from .markup import HTML, WIKITEXT

DUMP, JSONL = "dump", "jsonl"
SUFFIXES = {".xml": DUMP, ".wiki": WIKITEXT, ".txt": WIKITEXT, ".html": HTML, ".htm": HTML, ".jsonl": JSONL}
# What a page is instead of an article, for those that are passed over.
REDIRECT, NO_ARTICLE = "redirect", "no article"


class Page(NamedTuple):
    """A page of a wiki, with the namespaces (key, name) of that; `place` is for messages."""

    place: str
    markup: str
    text: str = ""
    namespaces: List[Tuple[str, str]] = []
    identifier: Optional[str] = None


def page_format(path: Path) -> Optional[str]:
    """The format of a file by its name, one of `SUFFIXES`; `.gz` and `.bz2` do not count."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".bz2")
    # The parts of a large dump are called like ".xml-p1p41242".
    suffix = Path(name).suffix
    return SUFFIXES.get(".xml" if suffix.startswith(".xml-p") else suffix)


def read_pages(path: Path, format: str) -> Iterator[Page]:
    """Stream the pages of a file. Those that are no articles have the markup `REDIRECT` or `NO_ARTICLE`."""
    if format == DUMP:
        pages = _read_dump(path)
    elif format == JSONL:
        pages = _read_rows(path)
    else:
        pages = iter([Page(str(path), format, "\n".join(read_lines(path)))])
    for page in pages:
        # As all wikis understand it.
        is_redirect = page.markup == WIKITEXT and page.text.lstrip()[:9].casefold() == "#redirect"
        yield page._replace(markup=REDIRECT) if is_redirect else page


def _read_dump(path: Path) -> Iterator[Page]:
    """The pages of an XML export of MediaWiki. Expat reads no other files, and expands entities within limits."""
    namespaces: List[Tuple[str, str]] = []
    with open_packed(path) as file_:
        try:
            events = iterparse(file_, ["start", "end"])
            _, root = next(events)
            if _name(root) != "mediawiki":
                raise ValueError(f"its root is <{_name(root)}>, not <mediawiki>")
            for event, node in events:
                if event == "end" and _name(node) == "namespace":
                    namespaces.append((node.get("key", ""), node.text or ""))
                elif event == "end" and _name(node) == "page":
                    yield _page_of_dump(path, node, namespaces)
                    root.clear()
        # Of encodings that are not known, others than a ParseError.
        except (ParseError, LookupError, ValueError, StopIteration) as error:
            cure = "Give an XML export of MediaWiki"
            raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure=cure)) from error


def _page_of_dump(path: Path, node: Element, namespaces: List[Tuple[str, str]]) -> Page:
    # Of several revisions the last one counts. Old exports name no namespace and no model.
    revision = (node.findall("{*}revision") or [Element("revision")])[-1]
    title, markup = node.findtext("{*}title", ""), revision.findtext("{*}model", WIKITEXT)
    if (node.findtext("{*}ns", "0"), markup) != ("0", WIKITEXT):
        markup = NO_ARTICLE
    elif node.find("{*}redirect") is not None:
        markup = REDIRECT
    return Page(f"{path}, page '{title}'", markup, revision.findtext("{*}text", ""), namespaces, title)


def _name(node: Element) -> str:
    return node.tag.rpartition("}")[2]


def _read_rows(path: Path) -> Iterator[Page]:
    for number, row in read_rows(path):
        with at_line(path, number):
            given = [key for key in (HTML, WIKITEXT) if row.get(key) is not None]
            if len(given) != 1:
                raise RowError(f"{'both' if given else 'neither'} 'html' {'and' if given else 'nor'} 'wikitext'")
            text = row[given[0]]
            if not isinstance(text, str):
                raise RowError(f"'{given[0]}' must be a string")
            text.encode("utf-8")  # fails here, where the line is known, for half of a surrogate pair
            page = Page(f"{path}, line {number}", given[0], text, identifier=read_identifier(row.get("id")))
        yield page

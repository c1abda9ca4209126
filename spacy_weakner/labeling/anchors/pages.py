"""Streams the pages of dumps and other files."""

from itertools import islice
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple
from xml.etree.ElementTree import Element, ParseError, iterparse

from ...corpus.counts import RowError, at_line, show_value
from ...corpus.jsonl import read_rows
from ...corpus.records import read_identifier
from ...errors import Errors, WeaknerError
from ...files import open_packed, read_lines, unpacked_name

DUMP, WIKITEXT, JSONL = "dump", "wikitext", "jsonl"
SUFFIXES = {".xml": DUMP, ".wiki": WIKITEXT, ".txt": WIKITEXT, ".jsonl": JSONL}
# Keys of rows that hold entities; see `corpus.jsonl`.
SPANS = ("ents", "spans")
# Markup of pages that are skipped because they are not articles.
REDIRECT, NO_ARTICLE = "redirect", "no article"


class Page(NamedTuple):
    """A page of a wiki, with the namespaces (key, name) of the wiki. `place` is for messages."""

    place: str
    markup: str
    text: str = ""
    namespaces: List[Tuple[str, str]] = []
    identifier: Optional[str] = None


def page_format(path: Path) -> Optional[str]:
    """Return the format of a file by its name, one of `SUFFIXES`; `.gz` and `.bz2` are ignored."""
    suffix = unpacked_name(path).suffix
    # The parts of a large dump have suffixes like ".xml-p1p41242".
    return SUFFIXES.get(".xml" if suffix.startswith(".xml-p") else suffix)


def is_corpus(path: Path, format: str) -> bool:
    """Return True for rows whose entities are the anchors, by the first row."""
    return format == JSONL and any(not row.keys().isdisjoint(SPANS) for _, row in islice(read_rows(path), 1))


def read_pages(path: Path, format: str) -> Iterator[Page]:
    """Stream the pages of a file. Pages that are not articles have the markup `REDIRECT` or `NO_ARTICLE`."""
    if format == WIKITEXT:
        pages = iter([Page(str(path), format, "\n".join(read_lines(path)))])
    else:
        pages = _read_dump(path) if format == DUMP else _read_rows(path)
    for page in pages:
        # All wikis accept this keyword.
        is_redirect = page.markup == WIKITEXT and page.text.lstrip()[:9].casefold() == "#redirect"
        yield page._replace(markup=REDIRECT) if is_redirect else page


def _read_dump(path: Path) -> Iterator[Page]:
    """Stream the pages of an XML export of MediaWiki. Expat reads no external files and limits entity expansion."""
    namespaces: List[Tuple[str, str]] = []
    with open_packed(path) as file_:
        try:
            events: Any = iterparse(file_, ["start", "end"])
            _, root = next(events)
            if root.tag.rpartition("}")[2] != "mediawiki":
                raise ValueError(f"its root element is <{root.tag}>, not <mediawiki>")
            for event, node in events:
                name = node.tag.rpartition("}")[2] if event == "end" else ""
                if name == "namespace":
                    namespaces.append((node.get("key", ""), node.text or ""))
                elif name == "page":
                    yield _page_of_dump(path, node, namespaces)
                    root.clear()
        # Unknown encodings raise errors other than ParseError.
        except (ParseError, LookupError, ValueError, StopIteration) as error:
            cure = "Give an XML export of MediaWiki"
            raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure=cure)) from error


def _page_of_dump(path: Path, node: Element, namespaces: List[Tuple[str, str]]) -> Page:
    # Of several revisions, the last one is used. Old exports name no namespace and no model.
    revision = (node.findall("{*}revision") or [Element("revision")])[-1]
    title, markup = node.findtext("{*}title", ""), revision.findtext("{*}model", WIKITEXT)
    if (node.findtext("{*}ns", "0"), markup) != ("0", WIKITEXT):
        markup = NO_ARTICLE
    elif node.find("{*}redirect") is not None:
        markup = REDIRECT
    return Page(f"{path}, page '{title}'", markup, revision.findtext("{*}text", ""), namespaces, title)


def _read_rows(path: Path) -> Iterator[Page]:
    for number, row in read_rows(path):
        with at_line(path, number):
            text = row.get(WIKITEXT)
            if not isinstance(text, str):
                others = f"; or give rows with {' or '.join(map(repr, SPANS))}" if text is None else ""
                raise RowError(f"'{WIKITEXT}' must be a string, got {show_value(text)}{others}")
            text.encode("utf-8")  # fails here, where the line number is available, for half of a surrogate pair
            page = Page(f"{path}, line {number}", WIKITEXT, text, identifier=read_identifier(row.get("id")))
        yield page

"""Streams the pages of dumps and other files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple
from xml.etree.ElementTree import Element, ParseError, iterparse

from ...corpus.jsonl import at_line, read_rows
from ...corpus.rows import Row, RowError, read_identifier
from ...errors import Errors, WeaknerError
from ...files import open_packed, read_lines
from .parsing import HTML, WIKITEXT

DUMP, JSONL = "dump", "jsonl"
SUFFIXES: Dict[str, str] = {
    ".xml": DUMP,
    ".wiki": WIKITEXT,
    ".txt": WIKITEXT,
    ".html": HTML,
    ".htm": HTML,
    ".jsonl": JSONL,
}
_PACKED = (".gz", ".bz2")


class Page(NamedTuple):
    """A page: where it is, for messages; its markup and text; the namespaces of its wiki; and its name in its file."""

    place: str
    markup: str
    text: str
    namespaces: List[Tuple[str, str]] = []
    identifier: Optional[str] = None


@dataclass
class PageCounts:
    """Pages passed over.

    redirects (int): Pages that only lead to others.
    other (int): Pages of dumps that are no articles.
    """

    redirects: int = 0
    other: int = 0


def page_format(path: Path) -> Optional[str]:
    """RETURNS (Optional[str]): The format of a file by its name, one of `SUFFIXES`; `.gz` and `.bz2` do not count."""
    name = path.name.lower()
    suffix = Path(next((name[: -len(end)] for end in _PACKED if name.endswith(end)), name)).suffix
    # The parts of a large dump are called like ".xml-p1p41242".
    return SUFFIXES.get(".xml" if suffix.startswith(".xml-p") else suffix)


def read_pages(path: Path, format: str, counts: PageCounts, max_page: int) -> Iterator[Page]:
    """Stream the articles of a file.

    path (Path): The file.
    format (str): One of the formats of `SUFFIXES`.
    counts (PageCounts): Where to count the others.
    max_page (int): Of a file that is one page and has more characters, only so many are read, and one line more.
    YIELDS (Page): The articles.
    RAISES (WeaknerError): For anything malformed, with file and line.
    """
    if format == DUMP:
        pages = _read_dump(path, counts)
    elif format == JSONL:
        pages = _read_rows(path)
    else:
        pages = iter([Page(str(path), format, _beginning(path, max_page))])
    for page in pages:
        # As all wikis understand it.
        if page.markup == WIKITEXT and page.text.lstrip()[:9].casefold() == "#redirect":
            counts.redirects += 1
        else:
            yield page


def _read_dump(path: Path, counts: PageCounts) -> Iterator[Page]:
    """The articles of an XML export of MediaWiki. Expat reads no other files, and expands entities within limits."""
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
                    # Of several revisions the last one counts. Old exports name no namespace and no model.
                    revision = (node.findall("{*}revision") or [Element("revision")])[-1]
                    title, model = node.findtext("{*}title", ""), revision.findtext("{*}model", WIKITEXT)
                    if (node.findtext("{*}ns", "0"), model) != ("0", WIKITEXT):
                        counts.other += 1
                    elif node.find("{*}redirect") is not None:
                        counts.redirects += 1
                    else:
                        text = revision.findtext("{*}text", "")
                        yield Page(f"{path}, page '{title}'", WIKITEXT, text, namespaces, title)
                    root.clear()
        # Of encodings that are not known, others than a ParseError.
        except (ParseError, LookupError, ValueError, StopIteration) as error:
            raise WeaknerError(Errors.WK442.format(path=path, reason=error)) from error


def _name(node: Element) -> str:
    return node.tag.rpartition("}")[2]


def _read_rows(path: Path) -> Iterator[Page]:
    for number, row in read_rows(path):
        with at_line(path, number):
            page = _page_of_row(row, f"{path}, line {number}")
        yield page


def _page_of_row(row: Row, place: str) -> Page:
    keys = [key for key in (HTML, WIKITEXT) if row.get(key) is not None]
    if len(keys) != 1:
        raise RowError(f"{'both' if keys else 'neither'} 'html' {'and' if keys else 'nor'} 'wikitext'")
    text = row[keys[0]]
    if not isinstance(text, str):
        raise RowError(f"'{keys[0]}' must be a string")
    text.encode("utf-8")  # fails here, where the line is known, for half of a surrogate pair
    return Page(place, keys[0], text, identifier=read_identifier(row.get("id")))


def _beginning(path: Path, max_page: int) -> str:
    """The text of a file, or enough of it to be too long."""
    lines, length = [], 0
    for line in read_lines(path):
        lines.append(line)
        length += len(line) + 1
        if length > max_page + 1:
            break
    return "\n".join(lines)

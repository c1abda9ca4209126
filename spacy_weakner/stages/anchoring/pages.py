"""Which file holds pages in which form, and streaming them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ...annotations.jsonl import at_line, read_rows
from ...annotations.rows import Row, RowError, read_identifier
from ...files import read_lines
from .dumps import read_dump
from .titles import Titles

HTML = "html"
WIKITEXT = "wikitext"
DUMP = "dump"
JSONL = "jsonl"
SUFFIXES: Dict[str, str] = {
    ".xml": DUMP,
    ".wiki": WIKITEXT,
    ".txt": WIKITEXT,
    ".html": HTML,
    ".htm": HTML,
    ".jsonl": JSONL,
}
_PACKED = (".gz", ".bz2")
# As all wikis understand it; dumps say it in a way of their own.
_REDIRECT = "#redirect"


class Page(NamedTuple):
    """A page.

    place (str): Where it is, for messages.
    text (str): Its markup.
    markup (str): "wikitext" or "html".
    titles (Titles): What is known of the titles that its links name.
    identifier (Optional[str]): What it is called in its file.
    """

    place: str
    text: str
    markup: str
    titles: Titles
    identifier: Optional[str] = None


def page_format(path: Path) -> Optional[str]:
    """Tell the format of a file from its name.

    path (Path): The file; an ending `.gz` or `.bz2` is passed over.
    RETURNS (Optional[str]): One of the formats of `SUFFIXES`, or None.
    """
    name = path.name.lower()
    plain = Path(next((name[: -len(end)] for end in _PACKED if name.endswith(end)), name))
    # The parts of a large dump are called like ".xml-p1p41242".
    suffix = ".xml" if plain.suffix.startswith(".xml-p") else plain.suffix
    return SUFFIXES.get(suffix)


@dataclass
class PageCounts:
    """What was passed over.

    redirects (int): Pages that only lead to others.
    other (int): Pages of dumps that are no articles.
    """

    redirects: int = 0
    other: int = 0


def read_pages(path: Path, format: str, counts: PageCounts, max_page: int) -> Iterator[Page]:
    """Stream the articles of a file.

    path (Path): The file.
    format (str): One of the formats of `SUFFIXES`.
    counts (PageCounts): Where to count.
    max_page (int): Of pages with more characters only so many are read, and one more.
    YIELDS (Page): The articles.
    RAISES (WeaknerError): For anything malformed, with file and page or line.
    """
    for page, redirect in _read(path, format, counts, max_page):
        if redirect or (page.markup == WIKITEXT and page.text.lstrip()[: len(_REDIRECT)].casefold() == _REDIRECT):
            counts.redirects += 1
        else:
            yield page


def _read(path: Path, format: str, counts: PageCounts, max_page: int) -> Iterator[Tuple[Page, bool]]:
    if format == DUMP:
        for found in read_dump(path, max_page):
            if found.article:
                place = f"{path}, page '{found.title}'"
                yield Page(place, found.text, WIKITEXT, found.titles, found.title), found.redirect
            else:
                counts.other += 1
    elif format == JSONL:
        titles = Titles()
        for number, row in read_rows(path):
            with at_line(path, number):
                page = _page_of_row(row, f"{path}, line {number}", titles)
            yield page, False
    else:
        yield Page(str(path), _beginning(path, max_page), format, Titles()), False


def _beginning(path: Path, max_page: int) -> str:
    """The text of a file, or as much of it as tells that it is too long."""
    lines, length = [], 0
    for line in read_lines(path):
        lines.append(line)
        length += len(line) + 1
        if length > max_page + 1:
            break
    return "\n".join(lines)


def _page_of_row(row: Row, place: str, titles: Titles) -> Page:
    keys = [key for key in (HTML, WIKITEXT) if row.get(key) is not None]
    if len(keys) != 1:
        raise RowError(f"{'both' if keys else 'neither'} 'html' {'and' if keys else 'nor'} 'wikitext'")
    text = row[keys[0]]
    if not isinstance(text, str):
        raise RowError(f"'{keys[0]}' must be a string")
    text.encode("utf-8")  # fails here, where the line is known, if there are halves of surrogate pairs
    return Page(place, text, keys[0], titles, read_identifier(row.get("id")))

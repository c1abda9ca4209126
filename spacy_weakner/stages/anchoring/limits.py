"""Reading pages within limits, so that one page that is hostile or broken does not stop a dump.

No parser of wikitext takes time that is linear in any page. It works in a process of its own, which the system ends
when a page has had its time, and which ends with the one that has started it.
"""

import json
import re
import signal
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import List, NamedTuple, Optional, Type

from .hypertext import html_paragraphs
from .pages import WIKITEXT, Page
from .paragraphs import Paragraph
from .serving import TOO_SLOW
from .titles import Titles
from .wikitext import require_parser

_CHILD = f"{__package__}.serving"
_TIMED_OUT = {TOO_SLOW, *([-signal.SIGPROF] if hasattr(signal, "SIGPROF") else [])}
MAX_PAGE = 10_000_000
MAX_SECONDS = 10.0
# Of templates, links, tables and tags that are open at a time in wikitext: pages of people have a few.
MAX_DEPTH = 200
LARGE, DEEP, SLOW, UNREADABLE = "too large", "nested too deeply", "too slow", "unreadable"
# Tags that mostly stand without an end, or have none.
_SINGLE = "br|hr|li|p|dd|dt|tr|td|th|wbr|img|references|nowiki"
_MARKS = re.compile(rf"(\{{\{{|\[\[|\{{\||<(?!(?:{_SINGLE})\b)[a-z][^<>/]*>)|\}}\}}|\]\]|\|\}}|</[a-z]", re.IGNORECASE)


class Reading(NamedTuple):
    """What came of a page.

    paragraphs (List[Paragraph]): Its paragraphs.
    problem (Optional[str]): Why there are none: "too large", "nested too deeply", "too slow" or "unreadable".
    """

    paragraphs: List[Paragraph]
    problem: Optional[str] = None


class PageReader:
    """Reads pages. As a context, it ends its process.

    max_page (int): Pages with more characters are not read.
    max_seconds (float): CPU seconds that a page of wikitext may take. (HTML takes time that is linear in its length.)
    """

    def __init__(self, max_page: int = MAX_PAGE, max_seconds: float = MAX_SECONDS) -> None:
        self.max_page = max_page
        self.max_seconds = max_seconds
        self._process: Optional[subprocess.Popen[str]] = None
        self._titles: Optional[Titles] = None  # that the process knows

    def __enter__(self) -> "PageReader":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end()

    def read(self, page: Page) -> Reading:
        """Read a page.

        page (Page): The page.
        RETURNS (Reading): What came of it.
        RAISES (WeaknerError): If the parser is not installed.
        """
        if len(page.text) > self.max_page:
            return Reading([], LARGE)
        if page.markup == WIKITEXT:
            return Reading([], DEEP) if depth(page.text) > MAX_DEPTH else self._ask(page.text, page.titles)
        found = html_paragraphs(page.text, page.titles)
        return Reading([], DEEP) if found is None else Reading(found)

    def _ask(self, text: str, titles: Titles) -> Reading:
        if self._process is None:
            require_parser()
            command = [sys.executable, "-m", _CHILD, str(self.max_seconds)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")
        process, known = self._process, self._titles is titles
        assert process.stdin is not None and process.stdout is not None
        self._titles = titles
        try:
            process.stdin.write(json.dumps([text, None if known else titles.namespaces]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # the pipe is broken
            answer = ""
        if not answer:
            return Reading([], SLOW if self._end() in _TIMED_OUT else UNREADABLE)
        found = json.loads(answer)
        if found is None:
            return Reading([], UNREADABLE)
        return Reading([Paragraph(words, [(start, end) for start, end in anchors]) for words, anchors in found])

    def _end(self) -> int:
        """Wait for the end of the process; gives its exit status."""
        process, self._process, self._titles = self._process, None, None
        if process is None:
            return 0
        with suppress(OSError):
            process.communicate()  # ends its input
        return process.wait()


def depth(text: str) -> int:
    """How many templates, links, tables and tags are open at a time, at the most; those that nothing closes included.

    text (str): Wikitext.
    RETURNS (int): Their number.
    """
    now = highest = 0
    for mark in _MARKS.finditer(text):
        now = now + 1 if mark[1] else max(0, now - 1)
        highest = max(highest, now)
    return highest

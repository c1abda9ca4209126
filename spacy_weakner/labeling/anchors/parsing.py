"""Parses pages in a process of its own with a time limit, so that no hostile page stops a run."""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from typing import List, Optional, Tuple

from .markup import Paragraph, html_paragraphs, wikitext_paragraphs
from .titles import Titles

HTML, WIKITEXT = "html", "wikitext"
LARGE, SLOW, UNREADABLE = "too large", "too slow", "unreadable"


class PageParser:
    """Parses pages one at a time.

    max_page (int): Pages with more characters are not parsed.
    max_seconds (float): CPU seconds that a page may take.
    """

    def __init__(self, max_page: int, max_seconds: float) -> None:
        self.max_page = max_page
        self.max_seconds = max_seconds
        self._process: Optional[subprocess.Popen[str]] = None

    def parse(self, markup: str, text: str, namespaces: List[Tuple[str, str]]) -> Tuple[List[Paragraph], str]:
        """Parse a page.

        markup (str): "wikitext" or "html".
        text (str): The page.
        namespaces (List[Tuple[str, str]]): Those of its wiki; see `Titles`.
        RETURNS (Tuple[List[Paragraph], str]): The paragraphs, and why there are none: "too large", "too slow" or
            "unreadable".
        """
        if len(text) > self.max_page:
            return [], LARGE
        if self._process is None:
            command = [sys.executable, "-m", __name__, str(self.max_seconds)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps([markup, text, namespaces]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            return [], SLOW if self.close() == -signal.SIGPROF else UNREADABLE
        paragraphs = json.loads(line)
        return (paragraphs, "") if paragraphs is not None else ([], UNREADABLE)

    def close(self) -> int:
        """End the process. RETURNS (int): Its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(OSError):
            process.communicate()  # ends its input
        return process.wait()


def serve(max_seconds: float) -> None:
    """Parse the pages that stand on the lines of standard input; the system ends the process with SIGPROF if one takes
    too long, even within the C code of a parser."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the input ends this process
    for package in ("lxml.html", "mwparserfromhell"):
        with suppress(ImportError):
            import_module(package)  # not within the time of the first page
    for line in sys.stdin:
        markup, text, namespaces = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, max_seconds)
        try:
            parse = html_paragraphs if markup == HTML else wikitext_paragraphs
            found: Optional[List[Paragraph]] = parse(text, Titles(namespaces))
        except Exception:  # the parsers raise many kinds; the page is counted
            found = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(float(sys.argv[1]))

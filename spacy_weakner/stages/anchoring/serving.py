"""What a process does that reads wikitext for another one. It imports little, so that it starts at once."""

import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import Iterator, List, Tuple

from .titles import Titles
from .wikitext import wikitext_paragraphs

# Exit code after a page that took too long, where the system has no timer that ends a process.
TOO_SLOW = 70


def serve(seconds: float) -> None:
    """Read pages from standard input, one per line: the text, and the namespaces of its wiki if they are not those of
    the last page. Write what they hold to standard output.

    seconds (float): CPU seconds for each; after them the system ends the process with SIGPROF. Where there is no such
        timer (Windows), seconds, after which the process ends itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the input ends this process
    titles = Titles()
    for line in sys.stdin:
        text, namespaces = json.loads(line)
        if namespaces is not None:
            titles = Titles([_pair(item) for item in namespaces])
        with _limited(seconds):
            found = wikitext_paragraphs(text, titles)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End this process if the block takes longer."""
    if hasattr(signal, "setitimer"):
        # A signal without a handler ends the process in the midst of the parser, too.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        return
    timer = threading.Timer(seconds, os._exit, [TOO_SLOW])
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


def _pair(item: List[str]) -> Tuple[str, str]:
    key, name = item
    return key, name


if __name__ == "__main__":
    serve(float(sys.argv[1]))

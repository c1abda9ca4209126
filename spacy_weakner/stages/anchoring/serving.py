"""What a process does that reads wikitext for another one. It imports little, so that it starts at once."""

import json
import signal
import sys
from typing import List, Tuple

from .titles import Titles
from .wikitext import wikitext_paragraphs


def serve(seconds: float) -> None:
    """Read pages from standard input, one per line: the text, and the namespaces of its wiki if they are not those of
    the last page. Write what they hold to standard output.

    seconds (float): CPU seconds for each; after them the system ends the process with SIGPROF.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the input ends this process
    titles = Titles()
    for line in sys.stdin:
        text, namespaces = json.loads(line)
        if namespaces is not None:
            titles = Titles([_pair(item) for item in namespaces])
        # A signal without a handler ends the process in the midst of the parser, too.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        found = wikitext_paragraphs(text, titles)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def _pair(item: List[str]) -> Tuple[str, str]:
    key, name = item
    return key, name


if __name__ == "__main__":
    serve(float(sys.argv[1]))

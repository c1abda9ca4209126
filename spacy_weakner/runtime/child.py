"""Processes that end with the one that has started them, and tell it what went wrong.

`python -m spacy_weakner.runtime.child MODULE` is one. Its standard input is a pipe, which ends when the parent does,
for whatever reason; until then the parent may write requests to it, a line each. Its standard output is another:
answers and errors go there as lines of JSON, since a full disk takes no file. What is printed goes to a log.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Mapping

from ..own_code import import_own_code

FAILED = 1
INTERRUPTED = 130
Process = subprocess.Popen  # of bytes
_PR_SET_PDEATHSIG = 1  # of the system's header prctl.h


def start(module: str, log: Path, environment: Mapping[str, str]) -> "Process[bytes]":
    """Start a process that calls the function `main` of a module, with a function that tells the parent an error, and a
    queue of the lines that the parent writes; what it returns is the exit code. What it prints goes to the log."""
    # Not buffered, so that the log ends with what went wrong.
    plain = {"ANSI_COLORS_DISABLED": "1", "PYTHONUNBUFFERED": "1", **environment}
    command, pipe = [sys.executable, "-m", __name__, module], subprocess.PIPE
    with log.open("wb") as file_:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file_, env=plain)


# The child


def main(module: str) -> int:
    """Watch the parent, send to the log what is printed, and do the work."""
    if sys.platform == "linux":
        # The system ends this process even while a library keeps Python from running any thread.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_watch_parent, args=(requests,), daemon=True).start()
    channel: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(error: object) -> None:
        channel.write(json.dumps({"error": None if error is None else str(error)}) + "\n")
        channel.flush()

    import_own_code()
    # It is imported now, which may take seconds.
    return int(import_module(module).main(tell, requests))


def _watch_parent(requests: "SimpleQueue[str]") -> None:
    # Not sys.stdin, whose lock the end of this process would wait for.
    with open(0, encoding="utf-8", closefd=False) as lines:
        for line in lines:
            requests.put(line)
    # At once: what is half written stands in folders that the next run knows for leftovers.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

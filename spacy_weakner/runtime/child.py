"""Processes that end with the one that has started them, and tell it what went wrong.

`python -m spacy_weakner.runtime.child MODULE ...` is one. Its standard input is a pipe, which ends when the
parent does, for whatever reason; until then the parent may write requests to it, a line each. Its standard output is
another: answers and errors go there as lines of JSON, since a full disk takes no file. What is printed goes to a log.
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
from typing import IO, Any, Mapping, Optional, Sequence, Tuple

from ..own_code import import_own_code

FAILED = 1
INTERRUPTED = 130
Process = subprocess.Popen  # of bytes
_PR_SET_PDEATHSIG = 1  # of the system's header prctl.h

# The parent


def start(
    module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str], **more: Any
) -> "Process[bytes]":
    """Start a process.

    module (str): Its function `main` is called with the arguments, a function that tells the parent an error, and a
        queue of the lines that the parent writes; what it returns is the exit code.
    arguments (Sequence[str]): The arguments.
    log (Path): File for what it prints.
    environment (Mapping[str, str]): Its environment.
    **more (Any): See `subprocess.Popen`.
    RETURNS (Process[bytes]): The process.
    """
    command = [sys.executable, "-m", __name__, module, *arguments]
    # Not buffered, so that the log ends with what went wrong.
    plain = {"ANSI_COLORS_DISABLED": "1", "PYTHONUNBUFFERED": "1", **environment}
    with log.open("wb") as file_:
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file_, env=plain, **more)


def said(process: "Process[bytes]") -> Tuple[Optional[str], str]:
    """The error that a process has told that has ended; or what else it has printed beside its log."""
    text = "" if process.stdout is None else process.stdout.read().decode("utf-8", errors="replace")
    try:
        return str(json.loads(text)["error"]), ""
    except (ValueError, TypeError, KeyError):
        return None, text


# The child


def main(module: str, arguments: Sequence[str]) -> int:
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
    return int(import_module(module).main(arguments, tell, requests))


def _watch_parent(requests: "SimpleQueue[str]") -> None:
    # Not sys.stdin, whose lock the end of this process would wait for.
    with open(0, encoding="utf-8", closefd=False) as lines:
        for line in lines:
            requests.put(line)
    # At once: what is half written stands in folders that the next run knows for leftovers.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

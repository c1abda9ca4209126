"""Processes that end with the one that has started them, and tell it what went wrong.

Their standard input is a pipe, which ends when the parent does, for whatever reason. Their standard output is another:
errors go there, since a full disk takes no file. What is printed goes to a log.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, Callable, Mapping, Optional, Sequence, Tuple

FAILED = 1
INTERRUPTED = 130
Process = subprocess.Popen  # of bytes

# The parent


def start(
    module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str], **more: Any
) -> "Process[bytes]":
    """Start a process.

    module (str): What `python -m` runs; it calls `begin`.
    arguments (Sequence[str]): Its arguments.
    log (Path): File for what it prints.
    environment (Mapping[str, str]): Its environment.
    **more (Any): See `subprocess.Popen`.
    RETURNS (Process[bytes]): The process.
    """
    command = [sys.executable, "-m", module, *arguments]
    with log.open("wb") as file_:
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file_, env={**environment}, **more)


def said(process: "Process[bytes]") -> Tuple[Optional[str], str]:
    """What a process has said that has ended.

    process (Process[bytes]): The process.
    RETURNS (Tuple[Optional[str], str]): The error that it has told, and what else it has printed beside its log.
    """
    text = "" if process.stdout is None else process.stdout.read().decode("utf-8", errors="replace")
    try:
        return str(json.loads(text)["error"]), ""
    except (ValueError, TypeError, KeyError):
        return None, text


# The child


def begin() -> Callable[[object], None]:
    """Watch the parent, and send to the log what is printed from now on.

    RETURNS (Callable[[object], None]): Tells the parent an error, once.
    """
    channel: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def watch() -> None:
        # Not sys.stdin, whose lock the end of this process would wait for.
        while os.read(0, 1):
            pass
        # At once: what is half written stands in folders that the next run knows for leftovers.
        os._exit(INTERRUPTED)

    def tell(error: object) -> None:
        with channel:
            channel.write(json.dumps({"error": str(error)}))

    threading.Thread(target=watch, daemon=True).start()
    return tell

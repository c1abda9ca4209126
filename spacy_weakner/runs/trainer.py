"""Processes that run `spacy train`, one training after another: to import all that it needs takes longer than to train
a linear CRF."""

import json
import os
import sys
from concurrent.futures import CancelledError
from pathlib import Path
from queue import Empty, SimpleQueue
from select import select
from threading import Event
from typing import Callable, List, Optional, Sequence

from .._compat import import_factories_by_name
from ..errors import Errors, WeaknerError
from ..runtime.child import FAILED, Process, start
from ..scratch import DISK_ERRORS, disk_error, wanted

_TAIL = 4  # lines of the log that an error shows
_POLL_SECONDS = 0.2

# The parent


class Trainers:
    """Processes that train, started as they are needed; they end with this context. OMP_NUM_THREADS is their number of
    threads, or else `threads`."""

    def __init__(self, threads: Optional[int] = None) -> None:
        self.threads = threads
        # Once it is set, by any thread, trainings end without a result.
        self.stop = Event()
        self._all: List[Process] = []
        self._idle: SimpleQueue[Process] = SimpleQueue()

    def __enter__(self) -> "Trainers":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._all:
            process.kill()  # it has nothing to do, or its result is unwanted
            process.communicate()

    def train(self, arguments: Sequence[str], output: Path, log: Path) -> None:
        """Run `spacy train` with some arguments in an idle process, and write what it prints to a log."""
        process = self._take(log)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"arguments": list(arguments), "log": str(log)}).encode() + b"\n")
        process.stdin.flush()
        # Ctrl-C is raised in the main thread alone, so that others have to look; and a cluster wakes nobody who waits.
        while not select([process.stdout], [], [], _POLL_SECONDS)[0]:
            if self.stop.is_set():
                raise CancelledError
        answer = process.stdout.readline()
        error = json.loads(answer)["error"] if answer else None
        if error is not None:
            raise WeaknerError(error)
        if not answer:
            tail = " | ".join(log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_TAIL:])
            shown = wanted(output)
            raise WeaknerError(Errors.WK360.format(output=shown, code=process.wait(), log=shown / log.name, tail=tail))
        self._idle.put(process)

    def _take(self, log: Path) -> Process:
        try:
            return self._idle.get_nowait()
        except Empty:
            environment = dict(os.environ)
            if self.threads is not None:
                environment.setdefault("OMP_NUM_THREADS", str(self.threads))
            self._all.append(start(__name__, log, environment))
            return self._all[-1]


# The process


def main(tell: Callable[[object], None], requests: "SimpleQueue[str]") -> int:
    """Run the requested trainings (JSON) until the parent ends, or one fails, and `tell` the parent the result of each.
    Called by `runtime.child`; returns the exit code."""
    import_factories_by_name()
    while True:
        request = json.loads(requests.get())
        # Whatever prints, in whatever language, prints to the log of its training.
        log = os.open(request["log"], os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        try:
            code = _train(request["arguments"])
        except OSError as error:
            if error.errno not in DISK_ERRORS:
                raise
            tell(disk_error(Path(request["log"]).parent, error))
            os._exit(FAILED)  # without a last try to write to the log
        if code:
            return code
        tell(None)


def _train(arguments: Sequence[str]) -> int:
    from spacy.cli import setup_cli

    if "torch" in sys.modules:
        import torch

        # As it is in a new process: an earlier training may have set it.
        torch.set_float32_matmul_precision("highest")
    sys.argv = ["spacy", "train", *arguments]
    try:
        setup_cli()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED * bool(ended.code)
    return 0

"""Runs the parts of a stage in fresh processes. They are neither forked nor sent objects: each reads a JSON file.
Those of `child` end when their parent does, whatever the reason.
"""

import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence

from ..corpus.docbin import receipt_path
from ..errors import Errors, WeaknerError
from ..progress import Progress
from .child import FAILED, INTERRUPTED, said, start
from .tasks import Task, do_task

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 10
_TAIL_LINES = 3


# The parent


class Processes:
    """Processes on this machine, one for each part.

    parts (int): How many.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts

    def run(self, tasks: Sequence[Task], folder: Path, *, progress: bool = False) -> None:
        """Do the tasks; see `run_workers`."""
        run_workers(tasks, folder, progress=progress)


def run_workers(tasks: Sequence[Task], folder: Path, *, progress: bool = False) -> None:
    """Start one process per task and wait for all of them. If one fails, or this process is interrupted, none survives.

    tasks (Sequence[Task]): What they do.
    folder (Path): For their files; the caller removes it.
    progress (bool): Show how far all have come.
    RAISES (WeaknerError): If a worker fails, with its message.
    """
    with ExitStack() as stack:
        workers: List[_Worker] = []
        stack.callback(_stop, workers)
        total = sum(len(task.pending) for task in tasks)
        bar = stack.enter_context(Progress[None](total=total, desc=tasks[0].stage, unit="shard", enabled=progress))
        for number, task in enumerate(tasks, start=1):
            workers.append(_Worker(task, number, folder))
        while True:
            # Before the count of receipts, so that the last ones are seen.
            codes = [worker.process.poll() for worker in workers]
            bar.update(sum(worker.newly_finished() for worker in workers))
            failed = next((w for w, code in zip(workers, codes, strict=True) if code), None)
            if failed is not None:
                raise failed.error(len(tasks))
            if None not in codes:
                return
            time.sleep(_POLL_SECONDS)


class _Worker:
    def __init__(self, task: Task, number: int, folder: Path) -> None:
        self.number = number
        self._log = folder / f"worker-{number}.log"
        # Workers make their shards in order, so that only the next one has to be looked at.
        self._waiting = [(receipt, _changed_at(receipt)) for receipt in map(receipt_path, task.pending)][::-1]
        path = folder / f"worker-{number}.json"
        path.write_text(task.to_json(), encoding="utf-8")
        # More threads than cores would slow all workers down; who says how many knows better.
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "TOKENIZERS_PARALLELISM": "false"}
        # Ctrl-C reaches the parent alone, which then stops them in an orderly way.
        self.process = start(__name__, [str(path)], self._log, environment, start_new_session=True)

    def newly_finished(self) -> int:
        """How many shards have been finished since the last call."""
        n = len(self._waiting)
        while self._waiting and _changed_at(self._waiting[-1][0]) != self._waiting[-1][1]:
            self._waiting.pop()
        return n - len(self._waiting)

    def error(self, total: int) -> WeaknerError:
        """What went wrong."""
        error, text = said(self.process)
        if error is not None:
            return WeaknerError(error)
        code = self.process.returncode
        if code == -9:  # SIGKILL, which not every system has a name for
            how = "was killed, perhaps because memory ran out (fewer workers need less)"
        elif code < 0:
            how = f"was ended by the signal {signal.Signals(-code).name}"
        else:
            how = f"ended with the exit code {code}"
        text += self._log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        tail = "".join(f" | {line}" for line in lines[-_TAIL_LINES:])
        return WeaknerError(Errors.WK313.format(number=self.number, total=total, how=how, tail=tail))


def _stop(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _GRACE_SECONDS
    for worker in workers:
        try:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                pipe.close()


def _changed_at(path: Path) -> Optional[int]:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


# The worker


def main(arguments: Sequence[str], tell: Callable[[object], None], requests: object) -> int:
    """Do one task.

    arguments (Sequence[str]): The JSON file that says which.
    tell (Callable[[object], None]): Tells the parent an error.
    requests (object): Not used: one task is all.
    RETURNS (int): The exit code.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        do_task(Path(arguments[0]).read_text(encoding="utf-8"))
    except (WeaknerError, OSError) as error:
        tell(error)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _interrupt(signal_number: int, frame: Any) -> None:
    # Once: a second one could interrupt the removal of half-written files.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt

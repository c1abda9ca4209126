"""Pools of processes that call functions concurrently: on this machine here, on a Ray cluster in `cluster`."""

import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from threading import Thread
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar

from ..errors import Errors, WeaknerError
from ..scratch import remove_own

A = TypeVar("A")
T = TypeVar("T")
INTERRUPTED = 130
_POLL_SECONDS = 0.5
_GRACE_SECONDS = 10


class ProcessPool(ABC):
    """A pool of processes that call functions. Arguments and results are pickled.

    parts (int): Number of parts into which work is divided.
    """

    parts: int

    @abstractmethod
    def submit(self, function: Callable[[A], T], argument: A) -> "Future[T]":
        """Have a process call a function."""

    @abstractmethod
    def failure(self, error: Exception, what: str) -> Exception:
        """Return the exception to raise after a call has raised an error. `what` names the call."""

    def check(self, what: str) -> None:  # noqa: B027
        """Raise a `WeaknerError` if no process is left that could do the remaining work."""

    def each(
        self,
        function: Callable[[A], T],
        arguments: Sequence[A],
        names: Sequence[str],
        on_poll: Callable[[], None] = lambda: None,
    ) -> Iterator[Tuple[int, T]]:
        """Call a function with each of some arguments. Yield the index and the result of each call, as they finish.
        `names` are for messages, and `on_poll` is called periodically."""
        waiting = {self.submit(function, argument): i for i, argument in enumerate(arguments)}
        while waiting:
            done, _ = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
            on_poll()
            if not done:
                self.check(f"{len(waiting)} of {len(names)} tasks")
            # Successful results are kept, even if another call failed.
            for future in sorted(done, key=lambda future: future.exception() is not None):
                error = future.exception()
                if isinstance(error, Exception):
                    # It is unknown which call has lost its process.
                    is_lost = isinstance(error, BrokenProcessPool)
                    what = f"{len(waiting)} of {len(names)}" if is_lost else names[waiting[future]]
                    raise self.failure(error, what) from error
                yield waiting.pop(future), future.result()


class Processes(ProcessPool):
    """A pool of processes on this machine; see `processes`."""

    def __init__(self, pool: ProcessPoolExecutor, parts: int, threads: Optional[int]) -> None:
        self._pool = pool
        self.parts = parts
        self._others = active_children()
        self._own: List[Any] = []
        # More threads than cores would slow down all processes.
        self._environment = {} if threads is None else {"OMP_NUM_THREADS": str(threads), **os.environ}
        if threads == 1:
            self._environment["TOKENIZERS_PARALLELISM"] = "false"

    def submit(self, function: Callable[[A], T], argument: A) -> "Future[T]":
        with _starting(self._environment):
            future = self._pool.submit(_call, function, argument)
        self._own = [child for child in active_children() if child not in self._others]
        return future

    def check(self, what: str) -> None:
        # The executor notices the end of a process that it has just started only when another one is done.
        if any(child.exitcode for child in self._own):
            raise WeaknerError(Errors.WK313.format(what=what))

    def end(self) -> None:
        """Wait until the processes have ended, which they do unless a library blocks them; then kill the rest."""
        deadline = time.monotonic() + _GRACE_SECONDS
        for child in self._own:
            child.join(max(0.0, deadline - time.monotonic()))
            if child.is_alive():
                child.kill()

    def failure(self, error: Exception, what: str) -> Exception:
        return WeaknerError(Errors.WK313.format(what=what)) if isinstance(error, BrokenProcessPool) else error


@contextmanager
def processes(n: int, *, threads: Optional[int] = 1, with_spacy: bool = True) -> Iterator[ProcessPool]:
    """Start processes that end with the block, or with this process for any reason. Each has the given number of
    threads, unless OMP_NUM_THREADS is set (None: as many as there are cores). With `with_spacy`, they can create
    components by name, and import the user's own functions."""
    context = get_context("spawn")
    # Nothing is ever sent. The pipe ends when this process closes it or is gone.
    lifeline, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(n, context, _start, (lifeline, with_spacy))
    made = Processes(pool, n, threads)
    try:
        yield made
        pool.shutdown()
    finally:
        end.close()
        made.end()
        pool.shutdown(cancel_futures=True)
        lifeline.close()


@contextmanager
def _starting(values: Dict[str, str]) -> Iterator[None]:
    """Start processes with these variables, and without running the user's script again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with environment(**values):
            yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set environment variables for the duration of the block."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


# In the processes

_calls: List[Any] = []  # functions that are being called
_interrupted: List[int] = []  # the signal that ends this process


def _start(lifeline: Connection, with_spacy: bool) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    if with_spacy:
        from .._compat import import_factories_by_name
        from ..own_code import import_own_code

        import_factories_by_name()
        import_own_code()


def _call(function: Callable[[A], T], argument: A) -> T:
    _calls.append(function)
    try:
        return function(argument)
    finally:
        _calls.clear()
        if _interrupted:  # whether or not the function has handled the exception
            remove_own()
            os._exit(INTERRUPTED)


def _interrupt(signal_number: int, frame: Any) -> None:
    # Only once: a second signal could interrupt the removal of half-written files.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _interrupted.append(signal_number)
    if not _calls:
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt


def _end_with_parent(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    if _calls and sys.platform != "win32":
        os.kill(os.getpid(), signal.SIGTERM)  # the main thread handles it
        time.sleep(_GRACE_SECONDS)
    os._exit(INTERRUPTED)

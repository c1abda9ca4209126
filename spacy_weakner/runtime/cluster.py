"""A Ray cluster as a pool. Ray schedules the calls, and reschedules them if a process or a machine is lost. Results are
written to a folder that all machines share."""

import logging
import os
import platform
import signal
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple, TypeVar
from uuid import uuid4

import spacy

from ..code_version import code_version
from ..errors import Errors, WeaknerError, require
from ..files import write_text
from ..own_code import OWN_CODE, import_own_code, own_code
from .pool import ProcessPool

A = TypeVar("A")
T = TypeVar("T")
AUTO = "auto"
# Parts per core: small enough to lose, and to balance machines of different speed.
_PARTS_PER_CPU = 4
_RETRIES = 3
_NONCE = "nonce"
_GRACE_SECONDS = 10
_PATIENCE_SECONDS = 60


class MachineInfo(NamedTuple):
    """What a machine sees: Python (without patch number) and spaCy; the version of this package; the driver's file."""

    host: str
    python: str
    code: str
    nonce: str


class Cluster(ProcessPool):
    """The connected machines; see `connected`. With `many_cores`, a call requires as many cores as the smallest machine
    has, or, with GPUs, has per GPU."""

    def __init__(self, ray: Any, gpus: int, many_cores: bool) -> None:
        self._ray, self._gpus, self._cpus = ray, gpus, 1
        self._calls: Dict[Future[Any], Any] = {}
        self._alive = time.monotonic()
        kind = "GPU" if gpus else "CPU"
        found = int(ray.cluster_resources().get(kind, 0))
        if not found:
            raise WeaknerError(Errors.WK719.format(kind=kind))
        # Never a single part, which would take itself for the whole.
        self.parts = max(2, found * _PARTS_PER_CPU)
        if many_cores:
            machines = [node["Resources"] for node in self._nodes()]
            self._cpus = max(1, min(int(has["CPU"] // has["GPU"] if gpus else has["CPU"]) for has in machines))

    def submit(self, function: Callable[[A], T], argument: A) -> "Future[T]":
        run = self._remote(_run, num_cpus=self._cpus, num_gpus=self._gpus, max_retries=_RETRIES)
        call = run.remote(str(Path.cwd()), function, argument)
        future: Future[T] = call.future()
        self._calls[future] = call
        return future

    def failure(self, error: Exception, what: str) -> Exception:
        cause = getattr(error, "cause", None)  # the exception raised by the function
        if isinstance(cause, (WeaknerError, OSError)):
            return cause
        # Ray has dozens of its own errors, for processes, machines, memory and imports.
        reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
        return WeaknerError(Errors.WK723.format(what=what, reason=f"{type(error).__name__}: {reason.strip()}"))

    def check(self, what: str) -> None:
        # Ray silently queues a call that no machine can run.
        self._alive = time.monotonic() if self._nodes() else self._alive
        if time.monotonic() - self._alive > _PATIENCE_SECONDS:
            raise WeaknerError(Errors.WK723.format(what=what, reason="all machines that can run them were lost"))

    def check_machines(self, folder: Path) -> None:
        """Check that all machines see the same files, and run the same versions of Python and this package."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        nonce = uuid4().hex
        write_text(folder / _NONCE, nonce)
        places = str(Path.cwd()), str(folder / _NONCE)
        here, nodes = look(*places), self._nodes()
        looks = [
            self._remote(look, num_cpus=0, max_retries=0, scheduling_strategy=On(node["NodeID"], soft=False)).remote(
                *places
            )
            for node in nodes
        ]
        for node, call in zip(nodes, looks, strict=True):
            try:
                there: MachineInfo = self._ray.get(call, timeout=_PATIENCE_SECONDS)
            except Exception as error:
                raise self.failure(error, f"the check of {node['NodeManagerHostname']}") from error
            for what, mine, its in (
                ("Python", here.python, there.python),
                ("version of spacy_weakner", here.code, there.code),
                ("output folder", folder, folder if there.nonce == nonce else "a folder with other contents"),
            ):
                if mine != its:
                    raise WeaknerError(Errors.WK722.format(host=there.host, what=what, mine=mine, its=its))

    def stop(self) -> None:
        """End all unfinished calls."""
        calls = [call for future, call in self._calls.items() if not future.done()]
        # First an interrupt as with Ctrl-C, so that no half-written files remain.
        for force in (False, True):
            for call in calls:
                with suppress(Exception):  # the call may be gone
                    self._ray.cancel(call, force=force)
            if calls:
                _, calls = self._ray.wait(calls, num_returns=len(calls), timeout=_GRACE_SECONDS)

    def _nodes(self) -> List[Dict[str, Any]]:
        """Return the machines with the resources that a call needs."""
        needs = {"CPU": self._cpus, **({"GPU": self._gpus} if self._gpus else {})}
        return [
            node
            for node in self._ray.nodes()
            if node["Alive"] and all(node["Resources"].get(kind, 0) >= n for kind, n in needs.items())
        ]

    def _remote(self, function: Callable[..., Any], **options: Any) -> Any:
        path = own_code()
        if path is not None:
            options["runtime_env"] = {"env_vars": {OWN_CODE: str(path)}}
        # Exceptions of a function are returned: only lost calls are retried.
        return self._ray.remote(function).options(**{"num_cpus": 1, "retry_exceptions": False, **options})


@contextmanager
def connected(address: str, folder: Path, *, gpus: int = 0, many_cores: bool = False) -> Iterator[Cluster]:
    """Connect to a Ray cluster for the duration of the block; an existing connection is used, and kept. The address
    "auto" is that of the environment variable RAY_ADDRESS, or else this machine alone. All machines must see the
    folder."""
    require("ray", extra="ray")
    import ray

    is_new = not ray.is_initialized()
    if is_new:
        # Not Ray's own discovery, which may find the remains of a cluster that has ended.
        where = (os.environ.get("RAY_ADDRESS") or "local") if address == AUTO else address
        alone: Dict[str, Any] = {"include_dashboard": False} if where == "local" else {}
        with _handlers():
            try:
                ray.init(where, log_to_driver=False, logging_level=logging.ERROR, **alone)
            except Exception as error:  # of many kinds
                reason = " ".join(str(error).split()) or type(error).__name__
                where, cure = f"the Ray cluster '{address}'", "Start one (ray start --head), or give 'auto'"
                raise WeaknerError(Errors.WK764.format(where=where, reason=reason, cure=cure)) from error
    try:
        cluster = Cluster(ray, gpus, many_cores)
        cluster.check_machines(folder)
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        if is_new:
            with _handlers():
                ray.shutdown()


@contextmanager
def _handlers() -> Iterator[None]:
    """Restore our signal handlers, which Ray replaces with its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: List[Tuple[signal.Signals, Any]] = [
        (number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)
    ]
    try:
        yield
    finally:
        for number, handler in before:
            if handler is not None:
                signal.signal(number, handler)


# On the machines


def _run(cwd: str, function: Callable[[A], T], argument: A) -> T:
    os.chdir(cwd)  # relative paths start there
    import_own_code()
    return function(argument)


def look(cwd: str, path: str) -> MachineInfo:
    """Return what this machine sees."""
    there = Path(path)
    nonce = there.read_text(encoding="utf-8") if there.exists() and Path(cwd).is_dir() else ""
    python = f"{'.'.join(platform.python_version_tuple()[:2])} with spaCy {spacy.__version__}"
    return MachineInfo(socket.gethostname(), python, code_version(), nonce)

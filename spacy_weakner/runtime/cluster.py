"""Parts of a stage on the machines of a Ray cluster. Ray gives them out, and again if a process or a machine is lost;
the shards lie in a folder that all machines see, and what is finished is skipped."""

import logging
import os
import platform
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from uuid import uuid4

import spacy

from ..code_version import code_version
from ..errors import Errors, WeaknerError
from ..files import write_text
from ..own_code import OWN_CODE, import_own_code, own_code
from ..progress import Progress
from .tasks import Task, do_task

AUTO = "auto"
# So many parts a core: small enough to lose, and to even out machines of different speed.
_PARTS_PER_CPU = 4
_RETRIES = 3
_NONCE = "nonce"
_GRACE_SECONDS = 10
_PATIENCE_SECONDS = 60


class Seen(NamedTuple):
    """What a machine sees.

    host (str): Its name.
    python (str): Its version of Python, without the last number, and of spaCy.
    code (str): Version of this package.
    nonce (str): What stands in the file that the driver has written; empty if it is not there.
    """

    host: str
    python: str
    code: str
    nonce: str


class Work(NamedTuple):
    """What one process does.

    text (str): What it is told: JSON.
    what (str): What that is, for messages.
    size (int): How much of the whole that is.
    """

    text: str
    what: str
    size: int = 1


class Cluster:
    """Machines that are connected; see `connected`.

    ray (Any): The module.
    gpus (int): GPUs that each part wants.
    """

    def __init__(self, ray: Any, gpus: int) -> None:
        self.ray = ray
        self.gpus = gpus
        self.cpus = 1

    @property
    def parts(self) -> int:
        """RETURNS (int): Into how many parts work is cut.
        RAISES (WeaknerError): If the cluster has nothing to do it with.
        """
        kind = "GPU" if self.gpus else "CPU"
        found = int(self.ray.cluster_resources().get(kind, 0))
        if not found:
            raise WeaknerError(Errors.WK719.format(kind=kind))
        # Never one alone, which would take itself for the whole.
        return max(2, found * _PARTS_PER_CPU)

    def run(self, tasks: Sequence[Task], folder: Path, *, progress: bool = False) -> None:
        """Do the tasks, and wait for all of them.

        tasks (Sequence[Task]): What to do.
        folder (Path): For files of this run, in a place that all machines see.
        progress (bool): Show how far they have come.
        RAISES (WeaknerError): If a task fails, with its message, or no machine is left that could do it.
        """
        works = [
            Work(task.to_json(), f"part {task.part.first + 1} of {task.part.of}", len(task.pending)) for task in tasks
        ]
        for _ in self.each(do_task, works, folder, desc=tasks[0].stage, unit="shard", progress=progress):
            pass

    def each(
        self,
        do: Callable[[str], Any],
        works: Sequence[Work],
        folder: Path,
        *,
        desc: str,
        unit: str,
        progress: bool = False,
    ) -> Generator[Tuple[int, Any], None, None]:
        """Do all of something. If one fails, or this process is interrupted, none goes on.

        do (Callable[[str], Any]): What each process calls; it returns what JSON could hold.
        works (Sequence[Work]): What to do.
        folder (Path): For files of this run, in a place that all machines see.
        desc, unit (str): What progress is shown as.
        progress (bool): Show how far it has come.
        YIELDS (Tuple[int, Any]): The number of one that is done, and what was returned.
        RAISES (WeaknerError): See `run`.
        """
        self.check_nodes(folder)
        run = self._remote(_run, num_cpus=self.cpus, max_retries=_RETRIES, num_gpus=self.gpus)
        waiting = {run.remote(str(Path.cwd()), do, work.text): n for n, work in enumerate(works)}
        total = sum(work.size for work in works)
        with Progress[None](total=total, desc=desc, unit=unit, enabled=progress) as bar:
            try:
                alive = time.monotonic()
                while waiting:
                    done, _ = self.ray.wait([*waiting], timeout=1.0)
                    # What no machine can do waits for one, without a word.
                    alive = time.monotonic() if done or self._nodes() else alive
                    if time.monotonic() - alive > _PATIENCE_SECONDS:
                        what, reason = f"{len(waiting)} of {len(works)}", "all machines that could have been lost"
                        raise WeaknerError(Errors.WK723.format(what=what, reason=reason))
                    for reference in done:
                        n = waiting.pop(reference)
                        error, result = self._get(reference, works[n].what)
                        if error is not None:
                            raise WeaknerError(error)
                        yield n, result
                        bar.update(works[n].size)
            finally:
                self._stop([*waiting])

    def take_many_cores(self) -> None:
        """Let each that is to be done have as many cores as the smallest machine has, or, with GPUs, as it has for each
        of them.

        RAISES (WeaknerError): If the cluster has nothing to do it with.
        """
        found = [node["Resources"] for node in self._nodes()]
        if not found:
            raise WeaknerError(Errors.WK719.format(kind="GPU" if self.gpus else "CPU"))
        self.cpus = max(1, min(int(own["CPU"] // own["GPU"] if self.gpus else own["CPU"]) for own in found))

    def check_nodes(self, folder: Path) -> None:
        """Check that all machines see the same files, with the same Python and package.

        folder (Path): Where all of them are to find a file.
        RAISES (WeaknerError): If one does not.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        nonce = uuid4().hex
        write_text(folder / _NONCE, nonce)
        places = str(Path.cwd()), str(folder / _NONCE)
        own, nodes = _look(*places), self._nodes()
        asked = [
            self._remote(_look, num_cpus=0, max_retries=0, scheduling_strategy=On(node["NodeID"], soft=False))
            for node in nodes
        ]
        for node, reference in zip(nodes, [look.remote(*places) for look in asked], strict=True):
            there: Seen = self._get(reference, f"a look at {node['NodeManagerHostname']}", _PATIENCE_SECONDS)
            for what, mine, its in (
                ("Python", own.python, there.python),
                ("version of spacy_weakner", own.code, there.code),
                ("output folder", nonce, there.nonce),
            ):
                if mine != its:
                    shown = "another one" if what == "output folder" else its
                    raise WeaknerError(Errors.WK722.format(host=there.host, what=what, mine=mine, its=shown))

    def _stop(self, references: List[Any]) -> None:
        # First as Ctrl-C does, so that nothing half-written stays.
        for force in (False, True):
            for reference in references:
                with suppress(Exception):  # it may be gone
                    self.ray.cancel(reference, force=force)
            if references:
                _, references = self.ray.wait(references, num_returns=len(references), timeout=_GRACE_SECONDS)

    def _nodes(self) -> List[Dict[str, Any]]:
        """Machines that can do a part."""
        needs = {"CPU": self.cpus, **({"GPU": self.gpus} if self.gpus else {})}
        return [
            node
            for node in self.ray.nodes()
            if node["Alive"] and all(node["Resources"].get(kind, 0) >= n for kind, n in needs.items())
        ]

    def _remote(self, function: Callable[..., Any], **options: Any) -> Any:
        # Errors of ours come back as values: only what is lost is tried again.
        own = own_code()
        if own is not None:
            options["runtime_env"] = {"env_vars": {OWN_CODE: str(own)}}
        return self.ray.remote(function).options(**{"num_cpus": 1, "retry_exceptions": False, **options})

    def _get(self, reference: Any, what: str, seconds: Optional[float] = None) -> Any:
        try:
            return self.ray.get(reference, timeout=seconds)
        except Exception as error:  # Ray has dozens, for processes, machines, memory and imports
            reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), "")
            reason = f"{type(error).__name__}: {reason.strip()}"
            raise WeaknerError(Errors.WK723.format(what=what, reason=reason)) from error


@contextmanager
def connected(address: str, gpus: int = 0) -> Iterator[Cluster]:
    """Connect to a Ray cluster, for as long as this lasts; a connection that is there already is used, and stays.

    address (str): That of the cluster; "auto": the one that the environment variable RAY_ADDRESS names, or else this
        machine alone.
    gpus (int): GPUs that each part wants.
    YIELDS (Cluster): The cluster.
    RAISES (WeaknerError): If Ray is not installed, or there is no cluster at the address.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield Cluster(ray, gpus)
        return
    # Not what Ray finds by itself: it may be what is left of a cluster that has ended.
    where = (os.environ.get("RAY_ADDRESS") or "local") if address == AUTO else address
    alone: Dict[str, Any] = {"include_dashboard": False} if where == "local" else {}
    with _handlers():
        try:
            ray.init(where, log_to_driver=False, logging_level=logging.ERROR, **alone)
        except Exception as error:  # of many kinds
            reason = " ".join(str(error).split()) or type(error).__name__
            raise WeaknerError(Errors.WK721.format(address=address, reason=reason)) from error
    try:
        yield Cluster(ray, gpus)
    finally:
        with _handlers():
            ray.shutdown()


def load_ray() -> Any:
    """RETURNS (Any): The module.
    RAISES (WeaknerError): If it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise WeaknerError(Errors.WK720) from error
    return ray


@contextmanager
def _handlers() -> Iterator[None]:
    """Ray puts its own handlers of signals in the place of ours."""
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


def _run(cwd: str, do: Callable[[str], Any], text: str) -> Tuple[Optional[str], Any]:
    """Do something.

    cwd (str): The folder that relative paths begin in.
    do (Callable[[str], Any]): What.
    text (str): What it takes.
    RETURNS (Tuple[Optional[str], Any]): What went wrong, in words for the user; and what was returned.
    """
    os.chdir(cwd)
    try:
        import_own_code()
        return None, do(text)
    except (WeaknerError, OSError) as error:
        return str(error), None


def _look(cwd: str, path: str) -> Seen:
    """What this machine sees.

    cwd (str): As in `_run`.
    path (str): The file that the driver has written.
    RETURNS (Seen): See there.
    """
    there = Path(path)
    nonce = there.read_text(encoding="utf-8") if there.exists() and Path(cwd).is_dir() else ""
    python = f"{'.'.join(platform.python_version_tuple()[:2])} with spaCy {spacy.__version__}"
    return Seen(socket.gethostname(), python, code_version(), nonce)

"""Locks on outputs: two runs never write to the same one.

While a run lasts, beside its output `x` stands a file `.x.lock` (of a share of the shards `.x.2-of-8.lock`), which says
who it is. The operating system locks that file and frees it however the run ends, so a run that was killed is known by
its file alone. What another machine has locked is seen where the file system passes locks on (NFS does, others may
not); a file of another machine is therefore never taken for that of a dead run unless a user says so. Where a file
system has no locks at all, the process that the file names is looked for.
"""

import inspect
import json
import os
import re
import shlex
import socket
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import wraps
from math import gcd
from pathlib import Path
from typing import IO, Callable, Iterator, List, Optional, ParamSpec, Tuple, TypeVar

from spacy.util import logger

from ...errors import Errors, Warnings, WeaknerError
from ...files import parse_json
from ...scratch import TAKE_OVER, is_at, place_beside, remove_leftovers, try_lock, writing

_LONGEST = 160  # letters of a command
_PATIENCE = 0.5  # seconds in which a run that has just begun says who it is
_SHARE = re.compile(r"([0-9]+)-of-([0-9]+)\.lock")
Share = Tuple[int, int]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Holder:
    """A run that writes to an output.

    host (str): Name of its machine.
    pid (int): Its process.
    started (str): When that process began, as the system counts; tells it from later ones of the same number.
    since (str): When it came to the output.
    command (str): Its command line.
    """

    host: str
    pid: int
    started: str
    since: str
    command: str

    @classmethod
    def here(cls) -> "Holder":
        """This process."""
        command = " ".join(shlex.join(sys.argv).split())
        command = command if len(command) <= _LONGEST else f"{command[: _LONGEST - 3]}..."
        since = datetime.now().astimezone().isoformat(" ", "seconds")
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()) or "", since, command)

    @classmethod
    def read(cls, file_: IO[str]) -> Optional["Holder"]:
        """Read what `write` has written; None: nothing yet."""
        file_.seek(0)
        try:
            data = parse_json(file_.read())
            return cls(**{**data, "pid": int(data["pid"])})
        except (ValueError, TypeError, KeyError, OSError):
            return None

    def write(self, file_: IO[str]) -> None:
        """Write it in the place of all that a file holds."""
        file_.seek(0)
        file_.truncate()
        file_.write(json.dumps(asdict(self)) + "\n")
        file_.flush()

    def is_alive(self) -> bool:
        """Whether the process is there, on this machine."""
        started = _started(self.pid)
        return started is not None and started == self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}: {self.command}"


@contextmanager
def locked(output: Path, share: Share = (0, 1), *, quiet: bool = False) -> Iterator[None]:
    """Keep other runs from an output while the block runs. What killed ones have left there is removed first.

    output (Path): A file or a folder; need not exist.
    share (Share): Which shards of it are written, see `Part`; runs with others do not disturb.
    quiet (bool): Say nothing where the place of a killed run is taken.
    RAISES (WeaknerError): If another run holds it, perhaps on another machine.
    """
    output = Path(output).resolve()
    path = _path(output, share)
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    with writing(output, every=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        file_ = _acquire(path, output, quiet)
    try:
        _check_others(path, output, share)
        remove_leftovers(output)
        yield
    finally:
        _release(file_, path)
        for folder in made:
            try:
                folder.rmdir()  # where nothing was written
            except OSError:
                break


def holding(*names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function hold its outputs while it runs.

    *names (str): Its arguments that are paths of outputs, or None.
    RETURNS (Callable): The decorator.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function)
        def hold(*args: P.args, **kwargs: P.kwargs) -> T:
            given = signature.bind(*args, **kwargs).arguments
            outputs = {Path(given[name]).resolve(): None for name in names if given.get(name) is not None}
            with ExitStack() as stack:
                for output in outputs:
                    stack.enter_context(locked(output))
                return function(*args, **kwargs)

        return hold

    return decorate


def _path(output: Path, share: Share) -> Path:
    first, of = share
    name = f".{output.name}.lock" if of == 1 else f".{output.name}.{first + 1}-of-{of}.lock"
    return place_beside(output) / name


def _acquire(path: Path, output: Path, quiet: bool) -> IO[str]:
    while True:
        try:
            file_ = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "r+", encoding="utf-8")
            new = True
        except FileExistsError:
            try:
                file_, new = path.open("r+", encoding="utf-8"), False
            except FileNotFoundError:  # gone this moment
                continue
        held: Optional[bool] = False
        try:
            held = try_lock(file_)  # of a new one, too, another run may have been the first
            if held is not False and not is_at(file_, path):
                file_.close()
                continue
            before = None if new and held is not False else _check(file_, held, output)
            Holder.here().write(file_)
        except BaseException:
            if new and held is not False:
                path.unlink(missing_ok=True)
            file_.close()
            raise
        if before is not None and not quiet:
            logger.warning(Warnings.WK905.format(path=output, holder=before))
        return file_


def _check(file_: IO[str], held: Optional[bool], output: Path) -> Optional[Holder]:
    """Whether the place of another run may be taken: the run, if it has ended without a word."""
    holder = Holder.read(file_)
    deadline = time.monotonic() + _PATIENCE
    while holder is None and not held and time.monotonic() < deadline:
        time.sleep(_PATIENCE / 20)
        holder = Holder.read(file_)
    host = socket.gethostname()
    if held is False or (held is None and (holder is None or (holder.host == host and holder.is_alive()))):
        raise WeaknerError(Errors.WK787.format(path=output, holder=holder or "it has not said who it is"))
    if holder is not None and holder.host != host and os.environ.get(TAKE_OVER, "") in ("", "0"):
        raise WeaknerError(Errors.WK788.format(path=output, holder=holder, host=host, variable=TAKE_OVER))
    return holder


def _check_others(path: Path, output: Path, share: Share) -> None:
    """Look for runs that write some of the same shards: of all of them, or of other shares."""
    for other in _others(path, output):
        found = _SHARE.fullmatch(other.name.removeprefix(f".{output.name}."))
        theirs = (int(found[1]) - 1, int(found[2])) if found else (0, 1)
        if (share[0] - theirs[0]) % gcd(share[1], theirs[1]):
            continue
        try:
            with other.open("r+", encoding="utf-8") as file_:
                _check(file_, try_lock(file_), output)
                _release(file_, other)
        except FileNotFoundError:
            continue


def _others(path: Path, output: Path) -> List[Path]:
    names = re.compile(rf"\.{re.escape(output.name)}\.([0-9]+-of-[0-9]+\.)?lock")
    return [other for other in path.parent.iterdir() if names.fullmatch(other.name) and other != path]


def _release(file_: IO[str], path: Path) -> None:
    ours = is_at(file_, path)
    if sys.platform == "win32":
        file_.close()  # what is open cannot be removed
    if ours:
        with suppress(PermissionError):  # there another run may have opened it
            path.unlink(missing_ok=True)
    file_.close()


def _started(pid: int) -> Optional[str]:
    """When a process began; "" where the system does not tell; None: there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        pass
    if sys.platform == "win32" or Path("/proc/self/stat").exists():
        return None if pid != os.getpid() else ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # it is somebody else's
        pass
    return ""

"""Locks on outputs, so that two runs never write to the same one.

While it lasts, a run holds a lock file beside its output `x`: `.x.lock` (`.x.2-of-8.lock` for a part of the shards).
The operating system releases the lock however the run ends, so a killed run blocks no other. Whether runs on other
machines are detected depends on the file system (NFS forwards locks, others may not).
"""

import inspect
import re
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from math import gcd
from pathlib import Path
from typing import Callable, Iterator, ParamSpec, Tuple, TypeVar

from filelock import BaseFileLock, FileLock, Timeout

from ..errors import Errors, WeaknerError
from ..files import check_output
from ..scratch import place_beside, remove_leftovers, resolved, writing

Share = Tuple[int, int]
P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def locked(output: Path, share: Share = (0, 1)) -> Iterator[None]:
    """Lock an output (which need not exist) against other runs during the block. Leftovers of killed runs are removed
    first, unless it is one share of the shards (see `Part`): runs that write another share are not blocked."""
    check_output((), [output])
    output = resolved(output)
    part = "" if share == (0, 1) else f".{share[0] + 1}-of-{share[1]}"
    path = place_beside(output) / f".{output.name}{part}.lock"
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    with writing(output, every=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _acquire(path, output)
    try:
        _check_others(path, output, share)
        if share == (0, 1):  # on another machine, files of running parts could look like leftovers
            remove_leftovers(output)
        yield
    finally:
        _release(lock)
        for folder in made:
            try:
                folder.rmdir()  # if nothing was written there
            except OSError:
                break


def holding(*names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function lock its outputs while it runs: its arguments with these names, which are paths or None."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function)
        def hold(*args: P.args, **kwargs: P.kwargs) -> T:
            given = signature.bind(*args, **kwargs).arguments
            outputs = {resolved(given[name]): Path(given[name]) for name in names if given.get(name) is not None}
            with ExitStack() as stack:
                for output in outputs.values():
                    stack.enter_context(locked(output))
                return function(*args, **kwargs)

        return hold

    return decorate


def _acquire(path: Path, output: Path) -> BaseFileLock:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise WeaknerError(Errors.WK787.format(path=output, lock=path)) from None
    return lock


def _release(lock: BaseFileLock) -> None:
    # Before the release, so that no other run's lock is deleted. (On Windows, open files cannot be deleted.)
    with suppress(PermissionError):
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()


def _check_others(path: Path, output: Path, share: Share) -> None:
    """Check for runs that write some of the same shards: all of them, or overlapping shares."""
    names = re.compile(rf"\.{re.escape(output.name)}\.(?:([0-9]+)-of-([0-9]+)\.)?lock")
    for other in list(path.parent.iterdir()):
        found = names.fullmatch(other.name)
        if found is None or other == path:
            continue
        first, of = (int(found[1]) - 1, int(found[2])) if found[1] else (0, 1)
        if (share[0] - first) % gcd(share[1], of) == 0:
            _release(_acquire(other, output))

"""Locks on outputs: two runs never write to the same one.

While a run lasts, it holds a file beside its output `x`: `.x.lock` (of a share of the shards `.x.2-of-8.lock`). The
operating system frees that file however the run ends, so a run that was killed blocks nobody. Whether a run on another
machine is seen depends on the file system (NFS passes locks on, others may not).
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
from ..scratch import place_beside, remove_leftovers, writing

Share = Tuple[int, int]
P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def locked(output: Path, share: Share = (0, 1)) -> Iterator[None]:
    """Keep other runs from an output (which need not exist) while the block runs. What killed ones have left there is
    removed first. Runs that write another share of its shards, see `Part`, do not disturb."""
    output = Path(output).resolve()
    path = _path(output, share)
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    with writing(output, every=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _acquire(path, output)
    try:
        _check_others(path, output, share)
        remove_leftovers(output)
        yield
    finally:
        _release(lock)
        for folder in made:
            try:
                folder.rmdir()  # where nothing was written
            except OSError:
                break


def holding(*names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function hold its outputs while it runs: its arguments of these names, which are paths or None."""

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


def _acquire(path: Path, output: Path) -> BaseFileLock:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise WeaknerError(Errors.WK787.format(path=output, lock=path)) from None
    return lock


def _release(lock: BaseFileLock) -> None:
    # Before it is free, so that nobody's lock is removed. (On Windows what is open cannot be removed, and stays.)
    with suppress(PermissionError):
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()


def _check_others(path: Path, output: Path, share: Share) -> None:
    """Look for runs that write some of the same shards: of all of them, or of other shares."""
    names = re.compile(rf"\.{re.escape(output.name)}\.(?:([0-9]+)-of-([0-9]+)\.)?lock")
    for other in list(path.parent.iterdir()):
        found = names.fullmatch(other.name)
        if found is None or other == path:
            continue
        first, of = (int(found[1]) - 1, int(found[2])) if found[1] else (0, 1)
        if (share[0] - first) % gcd(share[1], of) == 0:
            _release(_acquire(other, output))

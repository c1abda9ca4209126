"""Temporary folders that live as long as a run does. Each holds a file that its run has locked: the system frees that
however the process ends, so that what killed runs have left is told from what is in use.
"""

import atexit
import errno
import os
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Optional
from uuid import uuid4

from .errors import Errors, WeaknerError

_LOCK = ".lock"
# How the name of an output ends that was moved aside, into a scratch folder, to be replaced.
ASIDE = ".old"
_NAME = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp")
# Folders that are in use, and the process that has made them: a forked one inherits the names.
_own: Dict[Path, int] = {}
# What can only be said of writing, and that no other file would change.
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def try_lock(file_: IO[Any]) -> Optional[bool]:
    """Lock an open file as long as it is open, without waiting: True if it is locked now, False if another has locked
    it, None if the file system has no locks."""
    from filelock import lock_descriptor  # which a pipeline does without

    try:
        return lock_descriptor(file_.fileno(), blocking=False)
    except OSError:
        return None


def is_at(file_: IO[Any], path: Path) -> bool:
    """True if an open file still is the one at a path."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file_.fileno()), there)


def place_beside(output: Path) -> Path:
    """Where temporary files of an output go: beside it; or in it, if it is a folder that is mounted, or within one that
    cannot be written to."""
    inside = output.is_dir() and (os.path.ismount(output) or not os.access(output.parent, os.W_OK))
    return output if inside else output.parent


@contextmanager
def scratch_folder(output: Path) -> Iterator[Path]:
    """Make a folder beside an output, and remove it at the end; an error names the output if that cannot be made, or
    the disk is full."""
    output = Path(output).resolve()  # "." has no name
    with writing(output, every=True):
        folder, lock = _make(place_beside(output), output.name)
    try:
        with lock, writing(output):
            yield folder
    finally:
        _remove(folder)


def remove_leftovers(output: Path) -> None:
    """Remove what killed runs have left beside an output and in it."""
    output = Path(output).resolve()
    found = [path for path in _listed(output.parent) if _wanted_name(path.name) == output.name]
    if output.is_dir():
        # (Unlike rglob, it does not mind what others remove meanwhile.)
        for root, folders, _ in os.walk(output):
            temporary = [name for name in folders if _NAME.fullmatch(name)]
            found += [Path(root, name) for name in temporary]
            folders[:] = [name for name in folders if name not in temporary]
    for path in found:
        _remove_if_dead(path)


@contextmanager
def writing(path: Path, *, every: bool = False) -> Iterator[None]:
    """Name what was written when a full disk was met; with `every`, at any error of the system."""
    try:
        yield
    except OSError as error:
        if not every and error.errno not in DISK_ERRORS:
            raise
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> WeaknerError:
    """What a user is told of an error in writing."""
    return WeaknerError(Errors.WK785.format(path=wanted(path), reason=error.strerror or error))


def wanted(path: Path) -> Path:
    """What a path is called in the end, without the temporary folders on the way to it."""
    return Path(*(part for part in path.parts if not _NAME.fullmatch(part)))


def _wanted_name(name: str) -> Optional[str]:
    found = _NAME.fullmatch(name)
    return None if found is None else found[1]


def _listed(folder: Path) -> List[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _make(place: Path, name: str) -> "tuple[Path, IO[str]]":
    place.mkdir(parents=True, exist_ok=True)
    while True:
        folder = place / f".{name}.{uuid4().hex[:8]}.tmp"
        _own[folder] = os.getpid()
        folder.mkdir()
        try:
            lock = (folder / _LOCK).open("x", encoding="utf-8")
        except FileNotFoundError:  # another run has just taken it for a leftover
            continue
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            if try_lock(lock) is not False and is_at(lock, folder / _LOCK):
                return folder, lock
        except BaseException:
            lock.close()
            raise
        lock.close()


def _remove(folder: Path) -> None:
    _put_back(folder)
    # The lock goes last: without it, what is left where this is killed would be nobody's.
    for path in _listed(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            with suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    _own.pop(folder, None)


def _put_back(folder: Path) -> None:
    """Put an output back that was moved aside, if its run ended before another one was in its place."""
    name = _wanted_name(folder.name)
    aside, output = folder / f"{name}{ASIDE}", folder.parent / str(name)
    if aside.exists() and not output.exists():
        os.rename(aside, output)


@atexit.register
def remove_own() -> None:
    """Remove what this process still has: an interrupt may come while a folder is made or removed. It is called when
    the process ends."""
    for folder, process in list(_own.items()):
        if process == os.getpid():
            _remove(folder)


def _remove_if_dead(folder: Path) -> None:
    try:
        with (folder / _LOCK).open("r+", encoding="utf-8") as lock:
            if not try_lock(lock):
                return
            _remove(folder)  # locked, or a run that is about to lock it would take it for its own
        _remove(folder)  # where what is open cannot be removed
    except FileNotFoundError:
        # Its run ended between two lines; or is in between, and then makes another.
        try:
            folder.rmdir()
        except OSError:  # it is gone, or holds something: no folder of a run
            return
    except OSError:
        return

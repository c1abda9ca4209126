"""Temporary folders that exist only during a run. Each holds a file that its run has locked. The system releases the
lock however the process ends, which distinguishes leftovers of killed runs from folders in use.
"""

import atexit
import errno
import os
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Optional, Union
from uuid import uuid4

from .errors import Errors, WeaknerError

_LOCK = ".lock"
# Suffix of an output that was moved into a scratch folder, to be replaced.
ASIDE = ".old"
_NAME = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp")
# Folders in use, and the process that created each: a forked process inherits the names.
_own: Dict[Path, int] = {}
# Errors that only concern writing, and that no other file would change.
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def resolved(path: Union[str, Path]) -> Path:
    """Return an absolute path without links. (`Path.resolve` fails for links that lead in a circle.)"""
    return Path(os.path.realpath(path))


def try_lock(file_: IO[Any]) -> Optional[bool]:
    """Lock an open file for as long as it is open, without waiting. Return True if it is locked now, False if another
    process has locked it, None if the file system has no locks."""
    from filelock import lock_descriptor  # imported here, since pipelines do not need it

    try:
        return lock_descriptor(file_.fileno(), blocking=False)
    except OSError:
        return None


def is_at(file_: IO[Any], path: Path) -> bool:
    """Return True if an open file is still the file at a path."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file_.fileno()), there)


def place_beside(output: Path) -> Path:
    """Return the folder for temporary files of an output: beside it; or in it, if it is a mounted folder, or a folder
    whose parent is not writable."""
    inside = output.is_dir() and (os.path.ismount(output) or not os.access(output.parent, os.W_OK))
    return output if inside else output.parent


@contextmanager
def scratch_folder(output: Path) -> Iterator[Path]:
    """Create a folder beside an output, and remove it at the end. If it cannot be created, or the disk is full, the
    error names the output."""
    output = resolved(output)  # "." has no name
    with writing(output, every=True):
        folder, lock = _make(place_beside(output), output.name)
    try:
        with lock, writing(output):
            yield folder
    finally:
        _remove(folder)


def remove_leftovers(output: Path) -> None:
    """Remove the leftovers of killed runs beside and in an output."""
    output = resolved(output)
    found = [path for path in _listed(output.parent) if _wanted_name(path.name) == output.name]
    if output.is_dir():
        # Unlike rglob, os.walk is not affected by concurrent deletions.
        for root, folders, _ in os.walk(output):
            temporary = [name for name in folders if _NAME.fullmatch(name)]
            found += [Path(root, name) for name in temporary]
            folders[:] = [name for name in folders if name not in temporary]
    for path in found:
        _remove_if_dead(path)


@contextmanager
def writing(path: Path, *, every: bool = False) -> Iterator[None]:
    """Name the output in errors about a full disk; with `every`, in any OSError."""
    try:
        yield
    except OSError as error:
        if not every and error.errno not in DISK_ERRORS:
            raise
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> WeaknerError:
    """Return the user's error for a failed write."""
    is_full = error.errno in DISK_ERRORS - {errno.EROFS}
    cure = f"{'Free some space' if is_full else 'Correct the path or its permissions'}, or choose another location"
    return WeaknerError(Errors.WK785.format(path=wanted(path), reason=error.strerror or error, cure=cure))


def wanted(path: Path) -> Path:
    """Return the final form of a path, without temporary folders."""
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
        folder.mkdir(mode=0o700)  # what will replace a private file is private
        try:
            lock = (folder / _LOCK).open("x", encoding="utf-8")
        except FileNotFoundError:  # another run has just removed it as a leftover
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
    # The lock is removed last: without it, the remains after a kill here would belong to no run.
    for path in _listed(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            with suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    _own.pop(folder, None)


def _put_back(folder: Path) -> None:
    """Restore an output that was moved aside, if the run ended before the new output was in place."""
    name = _wanted_name(folder.name)
    aside, output = folder / f"{name}{ASIDE}", folder.parent / str(name)
    if aside.exists() and not output.exists():
        os.rename(aside, output)


@atexit.register
def remove_own() -> None:
    """Remove the remaining scratch folders of this process: an interrupt may occur while one is created or removed.
    This is called when the process ends."""
    for folder, process in list(_own.items()):
        if process == os.getpid():
            _remove(folder)


def _remove_if_dead(folder: Path) -> None:
    try:
        with (folder / _LOCK).open("r+", encoding="utf-8") as lock:
            if not try_lock(lock):
                return
            _remove(folder)  # while locked: otherwise, a run that is about to lock it would take it for its own
        _remove(folder)  # for systems on which open files cannot be removed
    except FileNotFoundError:
        # Its run ended between creating folder and lock, or is still between them, and then creates another folder.
        try:
            folder.rmdir()
        except OSError:  # it is gone, or holds files and belongs to no run
            return
    except OSError:
        return

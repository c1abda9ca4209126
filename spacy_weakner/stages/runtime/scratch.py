"""Folders that live as long as a run does."""

import fcntl
import glob
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator
from uuid import uuid4

_LOCK = "lock"


@contextmanager
def scratch_folder(output: Path) -> Iterator[Path]:
    """Make a folder beside an output, and remove it at the end. What killed runs have left there is removed first.

    output (Path): The output. If it is a folder within one that cannot be written to (as mounted ones are), it takes
        the folder itself.
    YIELDS (Path): The folder.
    """
    output = output.resolve()  # "." has no name
    place = output.parent
    place.mkdir(parents=True, exist_ok=True)
    if output.is_dir() and not os.access(place, os.W_OK):
        place = output
    for old in place.glob(f".{glob.escape(output.name)}.*.tmp"):
        _remove_if_dead(old)
    folder = place / f".{output.name}.{uuid4().hex[:8]}.tmp"
    made = folder.with_suffix(".new")
    made.mkdir()
    try:
        # The system frees the lock however this process ends. It is taken before the folder has the name by which
        # other runs find it.
        with (made / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(made, folder)
            yield folder
    finally:
        shutil.rmtree(made, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_dead(folder: Path) -> None:
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # no folder of a run, or one that is alive
        return

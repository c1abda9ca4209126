"""Trainings that can be stopped and taken up again, and whose product is a folder.

Beside the output `x` stands, while a training runs, its work folder `x.work` with checkpoints. A receipt in either says
which inputs and settings it belongs to.
"""

import fcntl
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set

from ...errors import Errors, WeaknerError
from ...files import write_text
from ..runtime.hashes import hash_file
from ..runtime.scratch import scratch_folder

RECEIPT = "receipt.json"
_LOCK = "lock"
_STATE = "trainer_state.json"
Receipt = Dict[str, Any]


def work_folder(output: Path) -> Path:
    """The work folder of an output."""
    return output.with_name(f"{output.name}.work")


def last_checkpoint(work: Path) -> Optional[Path]:
    """The last checkpoint of a `Trainer` that was written whole.

    work (Path): The work folder.
    RETURNS (Optional[Path]): Folder of the checkpoint.
    """
    for found in sorted(work.glob("checkpoint-*"), key=checkpoint_step, reverse=True):
        try:
            json.loads((found / _STATE).read_text(encoding="utf-8"))  # is written at the end
        except (OSError, ValueError):
            continue
        return found
    return None


def checkpoint_step(checkpoint: Path) -> int:
    """After how many steps a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def finished(output: Path, made_from: Receipt) -> Optional[Receipt]:
    """Find out whether an output need not be made again.

    output (Path): The output.
    made_from (Receipt): What it is to be made from, with its "stage".
    RETURNS (Optional[Receipt]): Its receipt if it was made from the same and is intact; else None.
    RAISES (WeaknerError): If something is there that the stage has not made.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return None
    receipt = _read_receipt(output)
    files = receipt.get("files", {})
    if receipt.get("stage") != made_from["stage"] or _files(output) - {RECEIPT, *files}:
        raise WeaknerError(Errors.WK300.format(path=output))
    if _differences(receipt, made_from) or any(not _has_hash(output / name, value) for name, value in files.items()):
        return None
    return receipt


@contextmanager
def claimed(work: Path, made_from: Receipt) -> Iterator[None]:
    """Hold a work folder while the block runs. Without a checkpoint in it, it does not outlive an error.

    work (Path): The work folder.
    made_from (Receipt): What its checkpoints must have been made from.
    YIELDS (None): Nothing.
    RAISES (WeaknerError): If another run holds it, it has checkpoints that were made from something else, or it is not
        that of an earlier run.
    """
    stage = made_from["stage"]
    receipt = _read_receipt(work)
    if receipt.get("stage") != stage and _contents(work):
        raise WeaknerError(Errors.WK300.format(path=work))
    work.mkdir(parents=True, exist_ok=True)
    with (work / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WeaknerError(Errors.WK356.format(path=work, stage=stage)) from error
        differences = _differences(receipt, made_from)
        if differences:
            if last_checkpoint(work) is not None:
                message = Errors.WK355.format(path=work, stage=stage, differences=", ".join(differences))
                raise WeaknerError(message)
            for path in _contents(work):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            _write_receipt(work, made_from)
        try:
            yield
        except BaseException:
            if last_checkpoint(work) is None:
                shutil.rmtree(work)
            raise


@contextmanager
def published(output: Path, receipt: Receipt) -> Iterator[Path]:
    """Give a folder to write to, and put it in the place of the output when the block ends well. The output is never
    half written.

    output (Path): The output, which need not exist. What is there is replaced; see `finished`.
    receipt (Receipt): Is written with it.
    YIELDS (Path): Where to write.
    """
    with scratch_folder(output) as folder:
        new = folder / "new"
        new.mkdir()
        yield new
        hashes = {name: hash_file(new / name) for name in _files(new)}
        _write_receipt(new, {**receipt, "files": hashes})
        if output.exists():
            os.rename(output, folder / "old")
        os.rename(new, output)


def _files(folder: Path) -> Set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _differences(receipt: Receipt, made_from: Receipt) -> List[str]:
    return [key for key, value in made_from.items() if key not in receipt or receipt[key] != value]


def _has_hash(path: Path, value: str) -> bool:
    return path.is_file() and hash_file(path) == value


def _contents(work: Path) -> List[Path]:
    return [path for path in work.iterdir() if path.name != _LOCK] if work.exists() else []


def _write_receipt(folder: Path, receipt: Receipt) -> None:
    write_text(folder / RECEIPT, json.dumps(receipt, indent=2, sort_keys=True) + "\n")


def _read_receipt(folder: Path) -> Receipt:
    """The receipt in a folder; empty if there is none, or it is damaged."""
    try:
        receipt = json.loads((folder / RECEIPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return receipt if isinstance(receipt, dict) else {}

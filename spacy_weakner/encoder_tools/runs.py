"""Trainings that can be stopped and taken up again, and whose product is a folder.

Beside the output `x` stands, while a training runs, its work folder `x.work` with checkpoints. A receipt in either says
which inputs and settings it belongs to.
"""

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set

from ..errors import Errors, WeaknerError
from ..files import parse_json, replace
from ..runtime.hashes import hash_file
from ..runtime.receipts import Receipt
from ..scratch import scratch_folder, try_lock

RECEIPT = "receipt.json"
_LOCK = "lock"
_STATE = "trainer_state.json"


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
            parse_json((found / _STATE).read_bytes())  # is written at the end
        except (OSError, ValueError):
            continue
        return found
    return None


def checkpoint_step(checkpoint: Path) -> int:
    """After how many steps a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def finished(output: Path, made_from: Dict[str, Any]) -> Optional[Receipt]:
    """Find out whether an output need not be made again.

    output (Path): The output.
    made_from (Dict[str, Any]): What it is to be made from, with its "stage".
    RETURNS (Optional[Receipt]): Its receipt if it was made from the same and is intact; else None.
    RAISES (WeaknerError): If something is there that the stage has not made.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return None
    receipt = Receipt.read(output / RECEIPT) or Receipt({})
    if receipt.made_from.get("stage") != made_from["stage"] or _files(output) - {RECEIPT, *receipt.files}:
        raise WeaknerError(Errors.WK300.format(path=output))
    return receipt if not receipt.differences(made_from) and receipt.is_intact(output) else None


@contextmanager
def claimed(work: Path, made_from: Dict[str, Any]) -> Iterator[None]:
    """Hold a work folder while the block runs. Without a checkpoint in it, it does not outlive an error.

    work (Path): The work folder.
    made_from (Dict[str, Any]): What its checkpoints must have been made from.
    YIELDS (None): Nothing.
    RAISES (WeaknerError): If another run holds it, it has checkpoints that were made from something else, or it is not
        that of an earlier run.
    """
    stage = made_from["stage"]
    receipt = Receipt.read(work / RECEIPT) or Receipt({})
    if receipt.made_from.get("stage") != stage and _contents(work):
        raise WeaknerError(Errors.WK300.format(path=work))
    work.mkdir(parents=True, exist_ok=True)
    with (work / _LOCK).open("w") as lock:
        if try_lock(lock) is False:
            raise WeaknerError(Errors.WK356.format(path=work, stage=stage))
        differences = receipt.differences(made_from)
        if differences:
            if last_checkpoint(work) is not None:
                message = Errors.WK355.format(path=work, stage=stage, differences=", ".join(differences))
                raise WeaknerError(message)
            for path in _contents(work):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            Receipt(made_from).write(work / RECEIPT)
        try:
            yield
        except BaseException:
            if last_checkpoint(work) is None:
                shutil.rmtree(work)
            raise


@contextmanager
def published(output: Path, made_from: Dict[str, Any], report: Dict[str, Any]) -> Iterator[Path]:
    """Give a folder to write to, and put it in the place of the output when the block ends well. The output is never
    half written.

    output (Path): The output, which need not exist. What is there is replaced; see `finished`.
    made_from (Dict[str, Any]): What it was made from.
    report (Dict[str, Any]): What is told about it.
    YIELDS (Path): Where to write.
    """
    with scratch_folder(output) as folder:
        new = folder / "new"
        new.mkdir()
        yield new
        hashes = {name: hash_file(new / name) for name in _files(new)}
        Receipt(made_from, hashes, report).write(new / RECEIPT)
        replace(new, output.resolve(), folder)


def _files(folder: Path) -> Set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _contents(work: Path) -> List[Path]:
    return [path for path in work.iterdir() if path.name != _LOCK] if work.exists() else []

"""Outputs that a stage writes as a whole: one file, or a folder of shards."""

import os
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

from spacy.tokens import Doc

from ..corpus.docbin import SUFFIX, UNFINISHED, found_files, receipt_path, write_docs
from ..errors import Errors, WeaknerError
from ..files import atomic_path, replace
from ..scratch import resolved, scratch_folder
from .hashes import hash_file
from .receipts import Receipt

SHARD_SIZE = 5000
RECEIPT = "receipt.json"  # in a folder that is replaced as a whole
_SYSTEM = (".DS_Store", "Thumbs.db")  # which file managers write into folders
_SHARD_NAME = "part-{:05d}" + SUFFIX


def is_folder(path: Path) -> bool:
    """Return True if an output is a folder of shards: it is an existing folder, or its name has no suffix."""
    return path.is_dir() or not path.suffix


def check_there(output_path: Path, overwrite: bool) -> None:
    """Refuse an output that something else has made, or that exists and must not be replaced."""
    as_folder = is_folder(output_path)
    if not as_folder:
        exists = output_path.exists()
    else:
        ours = _shards(output_path)
        foreign = sorted(set(found_files(output_path)) - ours) if output_path.is_dir() else []
        foreign += sorted(path for path in ours if receipt_path(path).exists())
        if foreign:
            # They would become part of the corpus, or they were made by a later stage.
            raise WeaknerError(Errors.WK300.format(path=foreign[0]))
        exists = bool(ours) and not (output_path / UNFINISHED).exists()
    if exists and not overwrite:
        what = "contains a corpus" if as_folder else "exists"
        raise WeaknerError(Errors.WK314.format(path=output_path, exists=what))


def check_folder(output_path: Path, overwrite: bool, stage: str) -> None:
    """Refuse an existing folder, unless it may be replaced and holds only what this stage wrote, by its receipt."""
    if output_path.exists():
        if not overwrite:
            raise WeaknerError(Errors.WK314.format(path=output_path, exists="exists"))
        read_receipt(output_path, stage)


def read_receipt(output_path: Path, stage: str) -> Receipt:
    """Return the receipt in a folder, an empty one if there is none. Refuse a folder with anything else in it, or
    with a file that was edited."""
    receipt = Receipt.read(output_path / RECEIPT) or Receipt({})
    files = _files(output_path)
    foreign = files - {RECEIPT, *receipt.files}
    for name in files - foreign - {RECEIPT}:
        path = output_path / name
        if not path.is_file() or hash_file(path) != receipt.files[name]:
            foreign.add(name)
    is_empty = output_path.is_dir() and all(path.name in _SYSTEM for path in output_path.iterdir())
    if foreign or (receipt.made_from.get("stage") != stage and output_path.exists() and not is_empty):
        raise WeaknerError(Errors.WK300.format(path=output_path / min(foreign, default="")))
    return receipt


@contextmanager
def made_folder(
    output_path: Path, made_from: Dict[str, Any], report: Optional[Dict[str, Any]] = None
) -> Iterator[Path]:
    """Yield a temporary path for a folder. At the end, it gets a receipt of its files, and becomes the output."""
    with atomic_path(output_path) as folder:
        yield folder
        hashes = {name: hash_file(folder / name) for name in _files(folder) - {RECEIPT}}
        Receipt(made_from, hashes, report or {}).write(folder / RECEIPT)


def write_shards(docs: Iterable[Doc], folder: Path, shard_size: int) -> int:
    """Write a folder of shards. Shards of an earlier run are replaced after all new ones are written."""
    folder = resolved(folder)
    with scratch_folder(folder) as scratch:
        aside = scratch / folder.name
        names: List[str] = []
        rest = iter(docs)
        for first in rest:
            names.append(_SHARD_NAME.format(len(names)))
            write_docs(aside / names[-1], chain([first], islice(rest, shard_size - 1)))
        if folder.exists():
            _fill(folder, aside, names)
        else:
            os.replace(aside, folder)
        return len(names)


def _fill(folder: Path, aside: Path, names: List[str]) -> None:
    """Move shards into a folder, which may also hold other files. The folder is marked as unfinished meanwhile."""
    (folder / UNFINISHED).touch()
    for path in _shards(folder) - {folder / name for name in names}:
        path.unlink()
    for name in names:
        replace(aside / name, folder / name, aside)
    (folder / UNFINISHED).unlink()


def _shards(folder: Path) -> Set[Path]:
    return set(folder.glob("part-[0-9]*" + SUFFIX))


def _files(folder: Path) -> Set[str]:
    """Return all files in a folder, except those of file managers, and links even if they lead to folders or
    nowhere."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not (path.is_dir() or path.name in _SYSTEM))
    return {path.relative_to(folder).as_posix() for path in found}

"""Outputs that a stage writes as a whole: one file, or a folder of shards."""

import os
from itertools import chain, islice
from pathlib import Path
from typing import Iterable, List, Set

from spacy.tokens import Doc

from ..corpus.docbin import SUFFIX, UNFINISHED, found_files, receipt_path, write_docs
from ..errors import Errors, WeaknerError
from ..scratch import scratch_folder

SHARD_SIZE = 5000
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


def check_folder(output_path: Path, overwrite: bool, made: str) -> None:
    """Refuse an existing folder, unless it may be replaced and was made by the same command."""
    if not output_path.exists():
        return
    if not overwrite:
        raise WeaknerError(Errors.WK314.format(path=output_path, exists="exists"))
    if not (output_path / made).exists() and not (output_path.is_dir() and not any(output_path.iterdir())):
        raise WeaknerError(Errors.WK300.format(path=output_path))


def write_shards(docs: Iterable[Doc], folder: Path, shard_size: int) -> int:
    """Write a folder of shards. Shards of an earlier run are replaced after all new ones are written."""
    folder = folder.resolve()
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
    for path in _shards(folder):
        path.unlink()
    for name in names:
        os.replace(aside / name, folder / name)
    (folder / UNFINISHED).unlink()


def _shards(folder: Path) -> Set[Path]:
    return set(folder.glob("part-*" + SUFFIX))

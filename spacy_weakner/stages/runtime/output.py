"""Corpora that a stage writes as a whole: one file, or a folder of shards."""

import os
import shutil
from itertools import chain, islice
from pathlib import Path
from typing import Iterable, List, Set
from uuid import uuid4

from spacy.tokens import Doc

from ...annotations.corpus import SUFFIX, write_docs
from ...errors import Errors, WeaknerError
from .shards import receipt_path

SHARD_SIZE = 5000
_SHARD_NAME = "part-{:05d}" + SUFFIX


def is_folder(path: Path) -> bool:
    """Whether an output is a folder of shards: it exists as one, or its name has no suffix."""
    return path.is_dir() or not path.suffix


def check_there(output_path: Path, overwrite: bool) -> None:
    """Refuse an output that others have made, or that exists and is not to be replaced.

    output_path (Path): A file or a folder.
    overwrite (bool): Whether it is to be replaced.
    RAISES (WeaknerError): If it is refused.
    """
    as_folder = is_folder(output_path)
    if not as_folder:
        exists = output_path.exists()
    else:
        ours = _shards(output_path)
        foreign = sorted(set(output_path.rglob("*" + SUFFIX)) - ours) if output_path.is_dir() else []
        foreign += sorted(path for path in ours if receipt_path(path).exists())
        if foreign:
            # They would become part of the corpus, or they are the work of a later stage.
            raise WeaknerError(Errors.WK300.format(path=foreign[0]))
        exists = bool(ours)
    if exists and not overwrite:
        what = "holds a corpus" if as_folder else "exists"
        raise WeaknerError(Errors.WK314.format(path=output_path, exists=what))


def write_shards(docs: Iterable[Doc], folder: Path, shard_size: int) -> int:
    """Write a folder of shards, whole or not at all. Those of an earlier run are replaced.

    docs (Iterable[Doc]): What to write; one shard of them is in memory at a time.
    folder (Path): The folder.
    shard_size (int): Docs per shard.
    RETURNS (int): The number of shards.
    """
    earlier = _shards(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # All shards are made aside and moved at the end: a folder never holds a part of a corpus.
    aside = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}.tmp")
    try:
        names: List[str] = []
        rest = iter(docs)
        for first in rest:
            names.append(_SHARD_NAME.format(len(names)))
            write_docs(aside / names[-1], chain([first], islice(rest, shard_size - 1)))
        folder.mkdir(exist_ok=True)
        for name in names:
            os.replace(aside / name, folder / name)
        for path in earlier - {folder / name for name in names}:
            path.unlink()
        return len(names)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _shards(folder: Path) -> Set[Path]:
    return set(folder.glob("part-*" + SUFFIX))

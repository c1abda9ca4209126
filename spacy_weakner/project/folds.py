"""Folds of the gold: without dev, candidates are compared on folds that their pipelines were not trained on."""

from pathlib import Path
from typing import List

from spacy.vocab import Vocab

from ..corpus.docbin import read_docs, write_docs
from ..errors import Errors, WeaknerError
from ..runs.groups import ONE_LEARNABLE, FoldFiles, learnable, split_folds, write_folds


def all_folds(folder: Path) -> Path:
    """Return the path of the gold in the order of its folds."""
    return folder / "all.spacy"


def make_folds(gold: Path, folder: Path, n: int, *, seed: int = 0, needed: bool = True) -> List[FoldFiles]:
    """Split the gold by document if its ids name them, else by sentence; into fewer folds if there are fewer different
    sentences. If only one sentence has entities, no split is possible: an error if folds are needed, else no folds."""
    parts = split_folds(list(read_docs(gold, Vocab())), n, seed)
    reason = ""
    if len(parts) < 2:
        reason = "all its sentences have the same text"
    elif not learnable(parts):
        reason = ONE_LEARNABLE
    if reason and needed:
        raise WeaknerError(Errors.WK361.format(path=gold, reason=reason, instead=", or dev (--dev)"))
    if reason:
        return []
    write_docs(all_folds(folder), [doc for part in parts for doc in part.held_out])
    return write_folds(parts, folder)

"""Cross-validation of the gold, where there is too little of it for dev."""

from pathlib import Path
from typing import List, NamedTuple

from spacy.vocab import Vocab

from ..corpus.docbin import read_docs, write_docs
from ..errors import Errors, WeaknerError
from ..runs.groups import learnable, split_folds


class Fold(NamedTuple):
    """A part of the gold, and the rest.

    held_out (Path): The part.
    rest (Path): All others, without copies of it.
    """

    held_out: Path
    rest: Path


def make_folds(gold: Path, folder: Path, n: int, *, seed: int = 0, needed: bool = True) -> List[Fold]:
    """Split the gold, by document where identifiers tell, into parts; fewer of fewer different sentences.

    gold (Path): The gold.
    folder (Path): Where the parts go.
    n (int): How many.
    seed (int): Seed of the split.
    needed (bool): Whether there must be some.
    RETURNS (List[Fold]): The folds; none where the gold cannot be split.
    RAISES (WeaknerError): If they are needed, and only one sentence, or copies of one, have entities.
    """
    parts = split_folds(list(read_docs(gold, Vocab())), n, seed)
    if len(parts) > 1 and not learnable(parts):
        if needed:
            raise WeaknerError(Errors.WK693.format(path=gold))
        return []
    made = []
    for i, part in enumerate(parts, start=1):
        fold = Fold(folder / f"fold-{i}.spacy", folder / f"rest-{i}.spacy")
        write_docs(fold.held_out, part.held_out)
        write_docs(fold.rest, part.rest)
        made.append(fold)
    write_docs(folder / "all.spacy", [doc for part in parts for doc in part.held_out])
    return made

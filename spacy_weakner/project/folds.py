"""Cross-validation of the gold, where there is too little of it for dev."""

from pathlib import Path
from typing import Callable, List, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..annotations.corpus import bare_copy, read_docs, write_docs
from ..errors import Errors, WeaknerError
from ..stages.crossfitting.groups import learnable, split_folds
from ..stages.runtime.pipelines import load_pipeline
from ..stages.runtime.training import Training
from .workshop import pipeline_of

FOLDS = 3


class Fold(NamedTuple):
    """A part of the gold, and the rest.

    held_out (Path): The part.
    rest (Path): All others, without copies of it.
    """

    held_out: Path
    rest: Path


def make_folds(gold: Path, folder: Path, *, seed: int = 0) -> List[Fold]:
    """Split the gold, by document where identifiers tell, into `FOLDS` parts; fewer of fewer different sentences.

    gold (Path): The gold.
    folder (Path): Where the parts go.
    seed (int): Seed of the split.
    RETURNS (List[Fold]): The folds.
    RAISES (WeaknerError): If only one sentence, or copies of one, have entities.
    """
    parts = split_folds(list(read_docs(gold, Vocab())), FOLDS, seed)
    if len(parts) > 1 and not learnable(parts):
        raise WeaknerError(Errors.WK693.format(path=gold))
    made = []
    for n, part in enumerate(parts, start=1):
        fold = Fold(folder / f"fold-{n}.spacy", folder / f"rest-{n}.spacy")
        write_docs(fold.held_out, part.held_out)
        write_docs(fold.rest, part.rest)
        made.append(fold)
    write_docs(folder / "all.spacy", [doc for part in parts for doc in part.held_out])
    return made


def trainings_of(folds: List[Fold], folder: Path, make: Callable[[Path, Path, Path], Training]) -> List[Training]:
    """The trainings of one candidate, each on all folds but one.

    folds (List[Fold]): The folds.
    folder (Path): Where the pipelines go.
    make (Callable[[Path, Path, Path], Training]): Makes a training of gold, of what is evaluated on, and of a folder.
    RETURNS (List[Training]): One per fold. No checkpoint may be chosen by the fold.
    """
    return [make(fold.rest, fold.rest, folder / f"fold-{n}") for n, fold in enumerate(folds, start=1)]


def predict_folds(folds: List[Fold], trainings: List[Training], output: Path) -> Path:
    """What pipelines find in the gold that they were not trained on.

    folds (List[Fold]): The folds.
    trainings (List[Training]): The training without each.
    output (Path): Where the labels go: the sentences of all folds, in their order.
    RETURNS (Path): The same.
    """
    found: List[Doc] = []
    for fold, training in zip(folds, trainings, strict=True):
        nlp = load_pipeline(pipeline_of(training, select=False))
        found.extend(nlp.pipe([bare_copy(doc) for doc in read_docs(fold.held_out, nlp.vocab)]))
    write_docs(output, found)
    return output

"""What candidates are compared on: dev or, without dev, the gold, every fold of it by pipelines that were not trained
on it."""

from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Optional

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import read_docs, write_docs
from ..errors import Errors, WeaknerError
from ..evaluation.candidates import Candidate, Predictions
from ..evaluation.compare import SAMPLES, Comparison, compare
from ..runs.groups import ONE_LEARNABLE, learnable, split_folds


class Fold(NamedTuple):
    """A part of the gold, and all others without copies of it."""

    held_out: Path
    rest: Path


def all_folds(folder: Path) -> Path:
    """The gold in the order of its folds."""
    return folder / "all.spacy"


def make_folds(gold: Path, folder: Path, n: int, *, seed: int = 0, needed: bool = True) -> List[Fold]:
    """Split the gold, by document where identifiers tell; into fewer parts if there are fewer different sentences. It
    cannot be split if there are entities in one of them alone, which is an error if folds are needed."""
    parts = split_folds(list(read_docs(gold, Vocab())), n, seed)
    reason = ""
    if len(parts) < 2:
        reason = "all its sentences have the same text"
    elif not learnable(parts):
        reason = ONE_LEARNABLE
    if reason and needed:
        raise WeaknerError(Errors.WK361.format(path=gold, reason=reason, instead=", or dev (--dev)"))
    folds = []
    for i, part in enumerate(() if reason else parts, start=1):
        folds.append(Fold(folder / f"fold-{i}.spacy", folder / f"rest-{i}.spacy"))
        write_docs(folds[-1].held_out, part.held_out)
        write_docs(folds[-1].rest, part.rest)
    if folds:
        write_docs(all_folds(folder), [doc for part in parts for doc in part.held_out])
    return folds


class Evaluator:
    """Scores candidates on one corpus, dev or the gold in the order of its folds. Predictions of a candidate are made
    once and kept as a file in the folder."""

    def __init__(self, corpus: Path, folder: Path, seed: int = 0) -> None:
        self.corpus = corpus
        self.pipelines: Dict[str, Path] = {}
        self._folder = folder
        self._seed = seed
        self._predicted: Dict[str, Path] = {}

    def add(self, name: str, pipeline: Path, predicted: Optional[Iterable[Doc]] = None) -> None:
        """Add a candidate, with predictions on the corpus by pipelines that were not trained on it. None: `pipeline`
        itself was trained on no gold, and predicts."""
        if predicted is None:
            predicted = (doc for _, doc in Predictions(Candidate(name, pipeline), self.corpus))
        self.pipelines[name] = pipeline
        self._predicted[name] = self._folder / f"predicted-{len(self.pipelines)}.spacy"
        write_docs(self._predicted[name], predicted)

    def compare(self, baseline: Optional[str] = None) -> List[Comparison]:
        """Score all candidates. See `compare`."""
        return compare(self.corpus, self._predicted, bootstrap=SAMPLES, baseline=baseline, seed=self._seed)

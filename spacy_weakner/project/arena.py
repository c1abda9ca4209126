"""What candidates are compared on: dev or, without any, the gold, each fold of it by what has not seen it."""

from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Sequence

from spacy.tokens import Doc

from ..corpus.docbin import write_docs
from ..evaluation.compare import SAMPLES, Comparison, compare
from .folds import Fold


class Arena:
    """Where candidates are compared.

    dev (Optional[Path]): What they are compared on; None: the gold.
    folds (Sequence[Fold]): The folds of the gold.
    folder (Path): Where predictions go.
    seed (int): Seed of the confidence intervals.
    gpu_id (int): -1 is the CPU.
    """

    def __init__(
        self, dev: Optional[Path], folds: Sequence[Fold], folder: Path, seed: int = 0, gpu_id: int = -1
    ) -> None:
        self.dev = dev
        self.folds = list(folds)
        self.folder = folder
        self.seed = seed
        self.gpu_id = gpu_id
        self.pipelines: Dict[str, Path] = {}
        self._compared: Dict[str, Path] = {}

    @property
    def corpus(self) -> Path:
        """RETURNS (Path): What candidates are compared on."""
        return self.folder / "all.spacy" if self.dev is None else self.dev

    def enter(self, name: str, pipeline: Path, held_out: Optional[Iterable[Doc]] = None) -> None:
        """Add a candidate.

        name (str): Its name.
        pipeline (Path): Its pipeline, which may have seen all gold.
        held_out (Optional[Iterable[Doc]]): What it finds in the folds, in their order, without having seen them; None:
            the pipeline has seen no gold at all. Not asked where there is dev.
        """
        self.pipelines[name] = self._compared[name] = pipeline
        if self.dev is None and held_out is not None:
            path = self.folder / f"found-{len(self.pipelines)}.spacy"
            write_docs(path, held_out)
            self._compared[name] = path

    def compare(self, baseline: Optional[str] = None) -> List[Comparison]:
        """Score all candidates.

        baseline (Optional[str]): What the others are compared with; None: the one with the best F1.
        RETURNS (List[Comparison]): The scores, with confidence intervals.
        """
        return compare(
            self.corpus, self._compared, bootstrap=SAMPLES, baseline=baseline, seed=self.seed, gpu_id=self.gpu_id
        )


def by_name(rows: Sequence[Comparison]) -> Mapping[str, float]:
    """RETURNS (Mapping[str, float]): F1 by candidate."""
    return {row.name: row.counts.f1 for row in rows}

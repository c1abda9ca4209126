"""Writes the tag distributions predicted by pipelines as soft labels (Meng et al. 2021, Equation 6)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Union

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..corpus.weak import TagDistributions, set_soft_labels, set_weak
from ..errors import Errors, WeaknerError
from ..runs.train import find_members
from ..runtime.devices import on_device
from ..runtime.hashes import hash_model
from ..runtime.lock import holding
from ..runtime.predictions import TagPredictor
from ..runtime.shards import Shards
from ..runtime.stage import Report, Stage

BATCH_SIZE = 256


@dataclass
class SoftReport(Report):
    """Counts of `predict_soft_labels`, beside those of `Report`."""

    tokens: int = 0  # tokens of the Docs written
    agreed: int = 0  # tokens with the same most probable tag in all pipelines
    # Sum over tokens of the standard deviation of P(entity) = 1 - P(O) between pipelines.
    total_deviation: float = 0.0

    @property
    def agreement(self) -> float:
        """Share of the tokens with the same most probable tag in all pipelines."""
        return self.agreed / max(1, self.tokens)

    @property
    def deviation(self) -> float:
        """Mean deviation over the tokens: the lower it is, the more similar are the predictions."""
        return self.total_deviation / max(1, self.tokens)


@holding("output_path")
def predict_soft_labels(
    input_path: Path,
    output_path: Path,
    models: Sequence[Union[str, Path]],
    *,
    component: Optional[str] = None,
    gpu_id: int = -1,
    progress: bool = False,
) -> SoftReport:
    """Write the mean of the tag distributions of pipelines as soft labels. Docs are not changed otherwise, except that
    Docs without annotation become weakly labeled.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder in which each shard keeps its name.
    models (Sequence[Union[str, Path]]): Pipelines, or folders of `train --members`.
    component (Optional[str]): Name of the component that gives the distributions; None: the last one that does.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    RETURNS (SoftReport): What was written.
    RAISES (WeaknerError): For missing input, or if the pipelines give no distributions, or distributions over different
        tags.
    """
    with on_device(gpu_id):
        stage = Soft(models, component)
        return Shards(stage.name, input_path, output_path).run(stage, progress=progress)


class Soft(Stage[SoftReport]):
    """The stage, with the arguments of `predict_soft_labels`."""

    name = "soft"
    report = SoftReport

    def __init__(self, models: Sequence[Union[str, Path]], component: Optional[str]) -> None:
        self.models = [pipeline for model in models for pipeline in find_members(model)]
        super().__init__({"models": [hash_model(model) for model in self.models], "component": component}, Vocab())
        self.component = component
        self.predictors: List[TagPredictor] = []
        self._columns: List[List[int]] = []

    def open(self) -> None:
        self.predictors = [TagPredictor(model, self.component) for model in self.models]
        first, *others = self.predictors
        for other in others:
            if other.pipe.tag_scheme != first.pipe.tag_scheme or sorted(other.labels) != sorted(first.labels):
                a, b = (f"{', '.join(p.labels)} ({p.pipe.tag_scheme})" for p in (first, other))
                raise WeaknerError(Errors.WK430.format(model=other.model, labels=b, first=first.model, other=a))
        # The same tags may be in another order.
        self._columns = [[predictor.labels.index(label) for label in first.labels] for predictor in self.predictors]

    def zones(self) -> List[Union[Vocab, Language]]:
        return [self.vocab, *(predictor.nlp for predictor in self.predictors)]

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        labels, scheme = self.predictors[0].labels, self.predictors[0].pipe.tag_scheme
        for batch in minibatch(docs, BATCH_SIZE):
            predicted = [
                [rows[:, columns] for rows in predictor.distributions(batch)]
                for predictor, columns in zip(self.predictors, self._columns, strict=True)
            ]
            for doc, *rows in zip(batch, *predicted, strict=True):
                # (n_pipelines, n_tokens, n_labels)
                stacked = numpy.stack(rows)
                self._count(stacked, labels.index("O"))
                mean: Any = stacked.mean(axis=0).astype("float32")
                set_soft_labels(doc, TagDistributions(labels, scheme, mean))
                if not doc.has_annotation("ENT_IOB"):
                    set_weak(doc)
                yield doc

    def _count(self, stacked: NDArray[numpy.float64], outside: int) -> None:
        best = stacked.argmax(axis=2)
        self.stats.tokens += stacked.shape[1]
        self.stats.agreed += int((best == best[0]).all(axis=0).sum())
        # 1 - P(O) has the same standard deviation as P(O).
        self.stats.total_deviation += float(stacked[:, :, outside].std(axis=0).sum())

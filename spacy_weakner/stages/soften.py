"""Writes what a pipeline believes of every token of a corpus: soft labels, for another model to learn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Union

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..annotations.corpus import read_docs
from ..annotations.sentences import sentence_key
from ..annotations.weak import SoftLabels, set_soft_labels, set_weak
from .runtime.devices import on_device
from .runtime.hashes import hash_model, hash_path
from .runtime.lock import holding
from .runtime.predictions import TokenPredictor
from .runtime.shards import run_stage
from .runtime.stage import Report, Stage

BATCH_SIZE = 256


@dataclass
class SoftenReport(Report):
    """What was written, beside what `Report` tells.

    tokens (int): Tokens of the Docs written.
    excluded (int): Docs that were left out: they stand in other corpora too.
    """

    tokens: int = 0
    excluded: int = 0


@holding("output")
def soften(
    corpus: Path,
    output: Path,
    pipeline: Path,
    *,
    component: Optional[str] = None,
    sources: Sequence[str] = (),
    exclude: Sequence[Path] = (),
    gpu_id: int = -1,
    progress: bool = False,
) -> SoftenReport:
    """Write the distributions over tags of a pipeline as soft labels; Docs count as weakly labelled then.

    corpus (Path): A `.spacy` file or a folder of them.
    output (Path): A `.spacy` file, or a folder where every shard keeps its name.
    pipeline (Path): The pipeline.
    component (Optional[str]): Name of the component that gives the distributions; None: the last that does.
    sources (Sequence[str]): Weak sources of the corpus that the pipeline may see the labels of.
    exclude (Sequence[Path]): Corpora such as dev and test whose sentences are left out.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (SoftenReport): What was written.
    RAISES (WeaknerError): For missing input, or if the pipeline gives no distributions.
    """
    with on_device(gpu_id):
        stage = Soften(pipeline, component, sources, exclude)
        return run_stage(stage, Path(corpus), Path(output), progress=progress)


class Soften(Stage[SoftenReport]):
    """The stage that writes soft labels; arguments as in `soften`."""

    name = "soften"
    report = SoftenReport

    def __init__(
        self, pipeline: Path, component: Optional[str], sources: Sequence[str], exclude: Sequence[Path]
    ) -> None:
        settings = {"pipeline": hash_model(pipeline), "component": component, "sources": list(sources)}
        super().__init__({**settings, "exclude": [hash_path(path) for path in exclude]}, Vocab())
        self.exclude = list(exclude)
        self.pipeline = pipeline
        self.component = component
        self.sources = sources

    def open(self) -> None:
        self.predictor = TokenPredictor(self.pipeline, self.component, sources=self.sources)
        self._excluded = {sentence_key(doc.text) for path in self.exclude for doc in read_docs(path, Vocab())}

    def zones(self) -> List[Union[Vocab, Language]]:
        return [self.vocab, self.predictor.nlp]

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for batch in minibatch(filter(self._wanted, docs), BATCH_SIZE):
            for doc, rows in zip(batch, self.predictor(batch), strict=True):
                self.stats.tokens += len(doc)
                probabilities: Any = rows.astype("float32")
                set_soft_labels(doc, SoftLabels(self.predictor.labels, self.predictor.scheme, probabilities))
                set_weak(doc)
                yield doc

    def _wanted(self, doc: Doc) -> bool:
        wanted = sentence_key(doc.text) not in self._excluded
        self.stats.excluded += not wanted
        return wanted

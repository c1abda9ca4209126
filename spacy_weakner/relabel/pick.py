"""Writes a corpus with the entities that a trained model picks (CoFEE)."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Union

from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus import weak
from ..corpus.entities import set_entities
from ..corpus.overlaps import without_overlaps
from ..errors import check_range
from ..runtime.executor import Executor
from ..runtime.hashes import hash_model
from ..runtime.lock import holding
from ..runtime.predictions import Predictor
from ..runtime.stage import Report, Stage
from ..ty import Entity
from .given import check_given

BATCH_SIZE = 256


@dataclass
class PickReport(Report):
    """Counts of `pick`, beside those of `Report`."""

    given: int = 0  # entities before picking
    kept: int = 0  # of these, entities that were kept
    picked: "Counter[str]" = field(default_factory=Counter)


@holding("output_path")
def pick(
    input_path: Path,
    output_path: Path,
    model: Union[str, Path],
    *,
    threshold: float = 0.1,
    union: bool = False,
    component: Optional[str] = None,
    gpu_id: int = -1,
    workers: int = 1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> PickReport:
    """Write the entities that a model predicts as labels to learn from (Xue et al. 2020, Section 4.2). All tokens
    outside them become "O", and the Docs are marked as weak. The former labels are kept in the span group "matched",
    unless it already holds those of an earlier stage.

    (The paper continues with the labels that its best model was trained on. These are the predictions of that model:
    one round further.)

    input_path (Path): A corpus: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder in which each shard keeps its name.
    model (Union[str, Path]): A pipeline with `mrc_ner`: its folder, or the name of an installed package.
    threshold (float): The picking rate delta: a probability that starts and ends must exceed. Of overlapping entities,
        those with the largest sum of probabilities are kept.
    union (bool): Keep the existing labels, and add picked entities beside them; else replace them.
    component (Optional[str]): Name of the component; None: the last `mrc_ner`.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    workers, ray: See `runtime.executor.Executor`.
    progress (bool): Show progress.
    RETURNS (PickReport): What was picked.
    RAISES (WeaknerError): For missing input, gold, invalid settings, and a pipeline that cannot be loaded or has no
        `mrc_ner`.
    """
    check_range("threshold", threshold, 0.0, 1.0)
    make = partial(Pick, str(model), component, Path(input_path), threshold, union)
    return Executor(workers, ray, gpu_id).run_on_corpus(make, input_path, output_path, progress=progress)


class Pick(Stage[PickReport]):
    """The stage, with the arguments of `pick`. `path` is that of the corpus, for messages."""

    name = "pick"
    report = PickReport

    def __init__(self, model: str, component: Optional[str], path: Path, threshold: float, union: bool) -> None:
        # mrc_ner, or another component whose labels are questions.
        self.predictor = Predictor(
            model, component, lambda pipe: hasattr(pipe, "set_question"), "answers questions", "an mrc_ner"
        )
        self.path, self.union, self.pipe = path, union, self.predictor.pipe
        self.pipe.threshold = threshold
        options = {"threshold": threshold, "union": union}
        settings = {"model": hash_model(model), "component": self.predictor.name, **options}
        super().__init__(settings, self.predictor.nlp.vocab)

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for batch in minibatch(docs, BATCH_SIZE):
            for doc, predicted in zip(batch, self.pipe.predict(self.predictor.bare(batch)), strict=True):
                check_given(doc, self.path)
                self._write(doc, predicted.entities)
                yield doc

    def _write(self, doc: Doc, picked: List[Entity]) -> None:
        given, ids = weak.doc_entities(doc), weak.doc_ids(doc)
        entities = sorted(picked)
        if self.union:
            both = [*given, *picked]
            # Existing entities come first.
            ranks = [1.0] * len(given) + [0.0] * len(picked)
            entities = [both[i] for i in without_overlaps([(start, end) for start, end, _ in both], ranks, len(doc))]
        if weak.MATCHED_GROUP not in doc.spans:
            weak.set_group(doc, weak.MATCHED_GROUP, given, ids=ids)
        weak.remove_group(doc, weak.SUSPECT_GROUP)
        set_entities(doc, entities, [True] * len(doc))
        weak.give_ids(doc, ids)
        weak.add_ids(doc)
        weak.set_weak(doc)
        # These belong to the former labels.
        weak.set_tags(doc, None)
        weak.set_soft_labels(doc, None)
        weak.set_confidence(doc, None, None)
        self.stats.given += len(given)
        self.stats.kept += len({*entities} & {*given})
        self.stats.picked.update(label for _, _, label in {*entities} - {*given})

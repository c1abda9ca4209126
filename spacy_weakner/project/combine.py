"""Trains the candidates that need gold: heads, and a combiner of lists and heads, which learns from predictions on gold
that the heads were not trained on.

Every head predicts each fold, and dev, once: its entities, and its candidates for the combiner.
"""

import math
import warnings
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..calibration.calibrate import make_complete
from ..calibration.fitting import find_temperature
from ..corpus.docbin import copy_with_groups, read_docs
from ..corpus.documents import group_keys
from ..corpus.language import CorpusLanguage
from ..corpus.weak import PREDICTED_PREFIX, copy_group, set_group
from ..runs.groups import FoldFiles
from ..runs.training import Training
from ..training.augmenting import CaseCopies
from ..training.readers import make_example
from .assembling import COMBINER, PROPOSES, WRITES, assemble, last_steps, predict_docs, save
from .context import TrainingContext, pipeline_of
from .rules import is_little

# With little gold, combiners are compared with other candidates in about this number of parts, which the folds of the
# heads consist of.
PARTS = 10
DECIDED = f"{PREDICTED_PREFIX}{COMBINER}"


class Predicted(NamedTuple):
    """Gold, and predictions of a pipeline that was not trained on it."""

    nlp: Any  # the pipeline; None once it is no longer needed
    gold: List[Doc]
    docs: List[Doc]  # predictions on the gold
    copies: Sequence[Doc] = ()  # copies of the gold in other case
    copied: Sequence[Doc] = ()  # predictions on these copies


class TrainedHead(NamedTuple):
    """A trained head."""

    name: str  # name of the component
    title: str  # name of the candidate
    size: str = ""  # of the encoder
    whole: Path = Path()  # the pipeline that was trained on all gold, or on none
    folds: Sequence[Path] = ()  # for each fold of the gold, the pipeline that was not trained on it
    reads_lists: bool = True  # True if matches of the lists are features
    is_combined: bool = True  # False if the head is compared only, and not part of the combination

    def predict(
        self, pipeline: Path, corpus: Path, language: CorpusLanguage, cases: Optional[CaseCopies] = None
    ) -> Predicted:
        """Predict a corpus that contains the matches of the lists, and its copies in other case."""
        settings = {**PROPOSES, **WRITES, "annotate_ents": True}
        nlp = assemble({}, {self.name: pipeline}, settings, language, stored=True)
        gold = list(read_docs(corpus, nlp.vocab))
        copies = [copy for doc in gold for copy in cases.copies(doc)] if cases else []
        docs = predict_docs(nlp, [*gold, *copies])
        return Predicted(nlp, gold, docs[: len(gold)], copies, docs[len(gold) :])


def plan_head(
    context: TrainingContext, head: TrainedHead, gold: Path, dev: Optional[Path], folds: Sequence[FoldFiles]
) -> Tuple[TrainedHead, List[Training]]:
    """Plan the trainings of a head, and set its paths: one training without each fold, and one on all gold, in which
    dev chooses the checkpoint. A held-out fold must not choose one."""
    how: Any = {"size": head.size, "with_lists": head.reads_lists}
    parts = [
        context.on_gold(fold.rest, context.models / "folds" / f"{head.name}-{n}", **how)
        for n, fold in enumerate(folds, start=1)
    ]
    whole = context.on_gold(gold, context.models / head.name, dev, **how)
    return head._replace(whole=pipeline_of(whole), folds=[*map(pipeline_of, parts)]), [*parts, whole]


def save_alone(
    head: TrainedHead, lists: Mapping[str, Path], held_out: Iterable[Predicted], output: Path, language: CorpusLanguage
) -> Path:
    """Write a pipeline with one calibrated head and the lists that it reads."""
    nlp = assemble(lists if head.reads_lists else {}, {head.name: head.whole}, WRITES, language)
    calibrate_head(nlp, head.name, held_out)
    return save(nlp, output, lists if head.reads_lists else {}, lists)


def calibrate_head(nlp: Language, name: str, held_out: Iterable[Predicted]) -> None:
    """Set the temperature of a head that makes held-out gold most likely (Guo et al. 2017), with a log-normal prior
    around 1. Its entities do not change. Each part of the gold has a pipeline that was not trained on it."""
    parts = []
    for pipeline, gold, docs, *_ in held_out:
        head: Any = pipeline.get_pipe(name)
        labels = set(head.labels)
        examples = [
            Example(doc, gold_doc)
            for doc, gold_doc in zip(docs, gold, strict=True)
            if make_complete(gold_doc) and labels.issuperset(ent.label_ for ent in gold_doc.ents)
        ]
        if examples:
            parts.append((len(examples), head.held_out_loss(examples)))

    def loss(temperature: float) -> float:
        # If all predictions are right, no temperature is low enough: with little gold, the prior keeps it near 1.
        return sum(n * mean(temperature) for n, mean in parts) + 0.5 * math.log(temperature) ** 2

    if parts:
        calibrated: Any = nlp.get_pipe(name)
        calibrated.set_temperature(find_temperature(loss))


class CombinedFold(NamedTuple):
    """A fold of the gold, and its copies in other case, from which a combiner also learns."""

    docs: List[Doc]
    copies: List[Doc] = []

    def deal(self, n: int) -> List[int]:
        """Return for each Doc, then for each copy, in which of at most `n` parts it is. Copies of a sentence are in the
        same part and, if there are at least `n` documents, the sentences of each document."""
        keys = group_keys([*self.docs, *self.copies], n)
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return [numbers[key] % n for key in keys]


class Combination:
    """A combination of term lists (pipelines by source) and heads. Its combiner decides between their entities, and is
    fitted on gold with the candidates of both."""

    def __init__(
        self,
        lists: Mapping[str, Path],
        heads: Sequence[TrainedHead],
        folds: Sequence[CombinedFold],
        language: CorpusLanguage,
    ) -> None:
        self.lists = lists
        self.heads = heads
        self.folds = folds
        self.language = language

    @property
    def has_little_gold(self) -> bool:
        """True if there are few sentences in all folds together; see `is_little`."""
        return is_little(sum(len(fold.docs) for fold in self.folds))

    def decide_fold(self, n: int, thresholds: Mapping[str, float] = MappingProxyType({})) -> List[Doc]:
        """Predict a fold with a combiner that was fitted on the other folds, perhaps with thresholds of labels. With
        little gold, each part of the fold is predicted with a combiner that was fitted on all other gold: with two
        thirds of 100 sentences, a combiner makes other choices than the packaged one."""
        fold = self.folds[n]
        others = [other for i, other in enumerate(self.folds) if i != n]
        part_of = fold.deal(math.ceil(PARTS / len(self.folds)) if self.has_little_gold else 1)
        decided: Dict[int, Doc] = {}
        for part in sorted({*part_of}):
            held_out = [i for i in range(len(fold.docs)) if part_of[i] == part]
            rest = [doc for doc, its in zip([*fold.docs, *fold.copies], part_of, strict=True) if its != part]
            combiner = self._add_combiner(spacy.blank("xx"), [*others, CombinedFold(rest)])
            if thresholds:
                combiner.set_thresholds({label: x for label, x in thresholds.items() if label in combiner.labels})
            with warnings.catch_warnings():
                # No warning about labels that only this part has: the combiner of all gold has them.
                warnings.filterwarnings("ignore", message=r"\[WK908\]")
                decided.update(zip(held_out, self.decide([fold.docs[i] for i in held_out], combiner), strict=True))
        return [decided[i] for i in range(len(fold.docs))]

    def combiner(self, without: Optional[int] = None) -> Any:
        """Return the combiner that was fitted on all folds, or on all but one."""
        if without is None:
            return self._whole.get_pipe(COMBINER)
        return self._add_combiner(spacy.blank("xx"), [fold for i, fold in enumerate(self.folds) if i != without])

    def decide(self, docs: Sequence[Doc], combiner: Any = None) -> List[Doc]:
        """Predict Docs that have candidates with a combiner; without one, with that of all folds. The span group
        `DECIDED` has the probabilities of all candidates."""
        combiner = self.combiner() if combiner is None else combiner
        copies = [copy_with_groups(doc, doc.spans) for doc in docs]
        for copy, pairs in zip(copies, combiner.score_candidates(copies), strict=True):
            set_group(copy, DECIDED, [entity for entity, _ in pairs], [p for _, p in pairs])
        return self.annotate(copies, combiner)

    def annotate(self, docs: Iterable[Doc], combiner: Any) -> List[Doc]:
        """Set the entities of copies of Docs that have candidates."""
        return [self._finish(doc) for doc in combiner.pipe(copy_with_groups(doc, doc.spans) for doc in docs)]

    def save(self, output: Path) -> Path:
        """Write the pipeline, with the combiner that was fitted on all folds."""
        return save(self._whole, output, self.lists)

    @cached_property
    def _finish(self) -> Callable[[Doc], Doc]:
        return last_steps(self.lists)

    @cached_property
    def _whole(self) -> Language:
        nlp = assemble(self.lists, {head.name: head.whole for head in self.heads}, PROPOSES, self.language)
        self._add_combiner(nlp, self.folds)
        return nlp

    def _add_combiner(self, nlp: Language, folds: Sequence[CombinedFold]) -> Any:
        names = [head.name for head in self.heads]
        combiner: Any = nlp.add_pipe(COMBINER, config={"sources": list(self.lists), "predictions": names})
        gold = [make_example(doc) for fold in folds for doc in (*fold.docs, *fold.copies)]
        combiner.initialize(lambda: gold, nlp=nlp)
        return combiner


def with_candidates(heads: Sequence[TrainedHead], predicted: Sequence[Predicted]) -> CombinedFold:
    """Return gold with the candidates of all heads as span groups."""
    fold = CombinedFold(predicted[0].gold, list(predicted[0].copies))
    for head, part in zip(heads, predicted, strict=True):
        for doc, other in zip([*fold.docs, *fold.copies], [*part.docs, *part.copied], strict=True):
            copy_group(other, doc, f"{PREDICTED_PREFIX}{head.name}")
    return fold

"""Learns from held-out gold from which scores on a pipeline's entities are as precise as wanted."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..corpus.docbin import bare_copy, read_docs
from ..corpus.gold import find_gold
from ..corpus.weak import doc_entities
from ..errors import Errors, WeaknerError, check_range
from ..files import atomic_path, check_output, existing
from ..pipelines import default_component, load_pipeline
from ..progress import Progress
from ..runtime.devices import on_device
from ..scores import as_json
from ..ty import EntityThresholds
from .thresholds import Scored, Threshold, Thresholds, fit_thresholds

PRECISION, DELTA, MIN_ENTITIES = 0.95, 0.1, 50
BATCH_SIZE = 256
# The highest that components take: of a label without threshold only what is certain is still predicted.
NEVER = 1.0


class ConformalReport(NamedTuple):
    """What was found.

    precision (float): What was wanted.
    delta (float): The chance that a threshold promises too much.
    docs (int): Docs with gold.
    left_out (int): Docs without.
    unscored (int): Entities without a score.
    labels (Dict[str, Threshold]): Per label, sorted.
    others (Threshold): For labels that were never predicted here, and those with too few entities.
    """

    precision: float
    delta: float
    docs: int
    left_out: int
    unscored: int
    labels: Dict[str, Threshold]
    others: Threshold

    def to_json(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What JSON can hold; thresholds are not rounded."""
        data: Dict[str, Any] = as_json(self)
        data["others"]["threshold"] = self.others.threshold
        for label, own in self.labels.items():
            data["labels"][label]["threshold"] = own.threshold
        return data


def conformal(
    model: Union[str, Path],
    gold: Path,
    *,
    precision: float = PRECISION,
    delta: float = DELTA,
    min_entities: int = MIN_ENTITIES,
    apply: Optional[Path] = None,
    gpu_id: int = -1,
    progress: bool = False,
) -> ConformalReport:
    """Find for each label the lowest threshold of `ent._.weakner_score` from which on entities are right as often as
    wanted, but for a chance of `delta`. What exactly is guaranteed, and when, stands in `thresholds`.

    model (Union[str, Path]): A pipeline whose entities have scores: its folder, or the name of an installed package.
    gold (Path): Gold that it was neither trained on nor chosen by: a `.spacy` file or a folder of them.
    precision (float): What is wanted, in (0, 1).
    delta (float): The chance that the threshold of a label promises too much, in (0, 0.25].
    min_entities (int): Labels of which fewer entities are predicted in the gold are taken together.
    apply (Optional[Path]): Folder for a copy of the pipeline whose last component with `set_thresholds` has them. Of
        labels that cannot be that precise it then predicts nothing that is less than certain.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (ConformalReport): What was found.
    RAISES (WeaknerError): For unusable settings, a pipeline without scores, no gold, and a copy that cannot be made.
    """
    check_range("precision", precision, 1e-6, 1.0 - 1e-6)
    check_range("delta", delta, 1e-12, 0.25)
    check_range("min_entities", min_entities, 0, None)
    gold = existing(gold)
    if apply is not None:
        check_output([gold, *([Path(model)] if Path(model).exists() else [])], [Path(apply)])
        if Path(apply).exists():
            raise WeaknerError(Errors.WK300.format(path=apply))
    with on_device(gpu_id):
        nlp = load_pipeline(model)
        target = None if apply is None else _target(nlp, str(model))
        seen = _Seen()
        docs = Progress(read_docs(gold, nlp.vocab), desc="conformal", unit="doc", enabled=progress)
        for batch in minibatch(docs, BATCH_SIZE):
            for doc, predicted in zip(batch, nlp.pipe([bare_copy(doc) for doc in batch]), strict=True):
                seen.add(doc, predicted)
        if not seen.docs:
            raise WeaknerError(Errors.WK729.format(path=gold))
        if not any(seen.scored.values()):
            raise WeaknerError(Errors.WK727.format(pipeline=model, path=gold))
        found = fit_thresholds(seen.scored, precision, delta, min_entities)
        if apply is not None and target is not None:
            target.set_thresholds(_by_label(found, target))
            with atomic_path(Path(apply)) as temporary:
                nlp.to_disk(temporary)
    return ConformalReport(precision, delta, seen.docs, seen.left_out, seen.unscored, *found)


class _Seen:
    """What was predicted on gold."""

    def __init__(self) -> None:
        self.docs = self.left_out = self.unscored = 0
        self.scored: Dict[str, List[Scored]] = {}

    def add(self, doc: Doc, predicted: Doc) -> None:
        """Look at one Doc and what the pipeline says about it."""
        gold = find_gold(doc)
        if gold is None or not len(doc):
            self.left_out += 1
            return
        self.docs += 1
        for _, _, label in gold.entities:
            self.scored.setdefault(label, [])
        known = Span.has_extension("weakner_score")
        scores = {(ent.start, ent.end, ent.label_): ent._.weakner_score if known else None for ent in predicted.ents}
        for entity in gold.scorable(doc_entities(predicted)):
            score = scores[entity]
            if score is None or not numpy.isfinite(score):
                self.unscored += 1
            else:
                self.scored.setdefault(entity[2], []).append((float(score), entity in gold.entities))


def _target(nlp: Language, model: str) -> EntityThresholds:
    found = default_component(nlp, lambda pipe: isinstance(pipe, EntityThresholds))
    if found is None:
        raise WeaknerError(Errors.WK728.format(pipeline=model, names=", ".join(nlp.component_names)))
    return found[1]


def _by_label(found: Thresholds, target: EntityThresholds) -> Dict[str, float]:
    thresholds = {label: found.labels.get(label, found.others).threshold for label in target.labels}
    return {label: NEVER if value is None else value for label, value in thresholds.items()}


def format_thresholds(report: ConformalReport) -> Tuple[List[str], List[Tuple[str, ...]]]:
    """Lay the result out.

    report (ConformalReport): The result.
    RETURNS (Tuple[List[str], List[Tuple[str, ...]]]): Header and cells.
    """
    header = ["", "entities", "precision", "threshold", "kept", "their precision", "at least", "right ones kept"]
    rows = [(label, own) for label, own in report.labels.items()]
    if any(own.pooled for _, own in rows):
        rows = [*((label, own) for label, own in rows if not own.pooled), ("all others", report.others)]
    return header, [
        (
            label,
            f"{own.entities:,}",
            _percent(own.right / own.entities if own.entities else None),
            "none" if own.threshold is None else f"{own.threshold:.4f}",
            f"{own.kept:,}",
            *map(_percent, (own.precision, own.bound, own.recall if own.kept else None)),
        )
        for label, own in rows
    ]


def _percent(share: Optional[float]) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"

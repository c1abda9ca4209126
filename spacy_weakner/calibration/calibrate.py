"""Fits the temperature, the outside bias and the thresholds of a trained pipeline on held-out gold."""

from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..corpus.entities import set_entities
from ..corpus.formats.reading import Reading, read_corpus
from ..corpus.gold import find_gold
from ..corpus.weak import doc_entities
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..heads.entities import EntityHead
from ..progress import Progress
from ..runs.groups import split_folds
from ..runtime.devices import on_device
from ..runtime.output import made_folder, making
from ..runtime.predictions import Predictor
from ..ty import EntityThresholds
from .fitting import FittedNumber, fit_bias, fit_temperature
from .seen import unseen
from .thresholds import ScoredEntity, Threshold, convincing, fit_thresholds

TEMPERATURE, BIAS, THRESHOLD = "temperature", "bias", "threshold"
FITS = (TEMPERATURE, BIAS, THRESHOLD)
PRECISION, DELTA, MIN_ENTITIES = 0.95, 0.1, 50
BATCH_SIZE = 256
# The highest threshold of components: for a label without a threshold, only certain entities are still predicted.
NEVER = 1.0


class ThresholdReport(NamedTuple):
    """Thresholds of a pipeline."""

    docs: int  # Docs with gold
    left_out: int  # Docs without gold
    unscored: int  # entities without a score
    labels: Dict[str, Threshold]  # per label, sorted
    others: Threshold  # for labels that were never predicted here, and labels with too few entities

    @property
    def unsure(self) -> List[str]:
        """RETURNS (List[str]): Labels whose precision is not guaranteed."""
        return [label for label, found in self.labels.items() if found.threshold is None or not found.guaranteed]


class CalibrateReport(NamedTuple):
    """The fitted settings; None if not requested."""

    component: str
    docs: int  # Docs with complete gold on which temperature and bias were fitted
    temperature: Optional[FittedNumber]  # with the mean negative log-likelihood of the gold
    bias: Optional[FittedNumber]  # with F1 in [0, 100] on the gold; slightly too high, as the bias was chosen on it
    thresholds: Optional[ThresholdReport]
    # Docs that were left out, since the pipeline was trained or chosen on sentences of them, and then short ones
    seen: int = 0
    # Settings of its config that name corpora which cannot be read here, so their sentences could not be left out
    unknown: Sequence[str] = ()


@making("output_path", "gold", "model", folder=True)
def calibrate(
    model: Union[str, Path],
    gold: Path,
    output_path: Path,
    *,
    fit: Sequence[str],
    precision: float = PRECISION,
    delta: float = DELTA,
    min_entities: int = MIN_ENTITIES,
    strict: bool = False,
    component: Optional[str] = None,
    overwrite: bool = False,
    gpu_id: int = -1,
    progress: bool = False,
) -> CalibrateReport:
    """Fit settings of a component on held-out gold, and write the pipeline with these settings. In this order:

    - "bias" is added to the scores of "O" to maximize F1. A model that was trained on incomplete labels, or on few
      negatives, has learned a wrong share of entities. Preset entities of a Doc that are kept count as found. A bias is
      only used if it improves on no bias and on the present one.
    - "temperature" divides all scores, and maximizes the likelihood of the gold (Guo et al. 2017). It changes no
      prediction, unless a `crf_ner` has a `threshold`.
    - "threshold": per label, the lowest threshold of `ent._.weakner_score` at which entities have the wanted precision,
      except with a probability of `delta`; `thresholds` states the guarantee. It requires gold that nothing else was
      fitted on: together with another fit, each gets half of the documents. Labels for which nothing is guaranteed get
      the best threshold there is or, with `strict`, only certain entities are still predicted.

    Previous thresholds of the component are removed, since they belong to its former scores.

    model (Union[str, Path]): The pipeline: its folder, or the name of an installed package.
    gold (Path): Gold in any format, which is held in memory. Documents with sentences that were used to train the
        pipeline, or to choose it, are left out; and if there are any, short documents.
    output_path (Path): Folder for the calibrated pipeline.
    fit (Sequence[str]): The settings to fit, of `FITS`.
    precision (float): The wanted precision, in (0, 1).
    delta (float): The probability that the precision at a label's threshold is lower than wanted, in (0, 0.25].
    min_entities (int): Labels with fewer predicted entities in the gold are pooled.
    strict (bool): Predict only certain entities of labels for which the precision cannot be guaranteed.
    component (Optional[str]): Name of the component; None: the last one that supports the fit.
    overwrite (bool): Replace an output that was edited.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    RETURNS (CalibrateReport): The fitted settings.
    RAISES (WeaknerError): For invalid settings, missing input, a pipeline without such a component, a pipeline in which
        another component decides on the entities of its heads, and gold that cannot be used, such as too few sentences
        that the pipeline was not trained on.
    """
    for name in fit or [""]:
        check_choice("fit", name, FITS)
    check_range("precision", precision, 1e-6, 1.0 - 1e-6)
    check_range("delta", delta, 1e-12, 0.25)
    check_range("min_entities", min_entities, 0, None)
    gold, output_path = Path(gold), Path(output_path)
    with on_device(gpu_id):
        predictor = _predictor(model, component, fit)
        every: List[Doc] = list(read_corpus(gold, predictor.nlp, Reading(sentences=False)))
        docs, unknown = unseen(predictor.nlp, every)
        seen = len(every) - len(docs)
        if not docs:
            raise WeaknerError(Errors.WK728.format(path=gold, n=seen, of=seen, left="0 documents"))
        for_numbers, for_thresholds = docs, docs
        if THRESHOLD in fit and len({*fit}) > 1:
            parts = split_folds(docs, 2)
            if len(parts) < 2:
                reason = f"{len(parts)} sentences are too few"
                raise WeaknerError(Errors.WK361.format(path=gold, reason=reason, instead=""))
            for_numbers, for_thresholds = parts[0]
        if isinstance(predictor.pipe, EntityThresholds):
            predictor.pipe.set_thresholds({})
        temperature = bias = thresholds = None
        examples: List[Example] = []
        if {TEMPERATURE, BIAS} & {*fit}:
            examples = _complete_examples(predictor, for_numbers, gold)
            bias = fit_bias(predictor.pipe, examples) if BIAS in fit else None
            temperature = fit_temperature(predictor.pipe, examples) if TEMPERATURE in fit else None
        if THRESHOLD in fit:
            scores = _score_entities(predictor, for_thresholds, gold, progress)
            thresholds = scores.set_thresholds(predictor.pipe, precision, delta, min_entities, strict)
            entities = sum(found.entities for found in {*thresholds.labels.values()})
            if seen and entities < convincing(precision, delta):
                left = f"{entities} predicted entities"
                raise WeaknerError(Errors.WK728.format(path=gold, n=seen, of=len(every), left=left))
        with made_folder(output_path) as temporary:
            predictor.nlp.to_disk(temporary)
        return CalibrateReport(predictor.name, len(examples), temperature, bias, thresholds, seen, unknown)


def _predictor(model: Union[str, Path], component: Optional[str], fit: Sequence[str]) -> Predictor:
    kind: Any = EntityHead if {TEMPERATURE, BIAS} & {*fit} else EntityThresholds
    what, heads = "supports this calibration", "a head for entities" + " or an ent_combiner" * ({*fit} == {THRESHOLD})
    predictor = Predictor(model, component, lambda pipe: isinstance(pipe, kind), what, heads)
    decides = getattr(predictor.pipe, "annotate_ents", True)
    # A temperature alone is useful for components that read the head's probabilities.
    if not decides and (component is None or {*fit} != {TEMPERATURE}):
        raise WeaknerError(Errors.WK703.format(name=predictor.name))
    return predictor


def make_complete(doc: Doc) -> bool:
    """Copy the gold of a Doc to `doc.ents`. Return False if it has no tokens, or some of them have no gold."""
    found = find_gold(doc)
    if not len(doc) or found is None or found.missing:
        return False
    set_entities(doc, sorted(found.entities), [True] * len(doc))
    return True


def _complete_examples(predictor: Predictor, docs: Iterable[Doc], gold: Path) -> List[Example]:
    """Return examples of the Docs with complete gold, with the output of the components before this one."""
    complete = [doc for doc in docs if make_complete(doc)]
    if not complete:
        cure = "Give held-out gold that the model was not trained on"
        raise WeaknerError(Errors.WK407.format(path=gold, what="sentence with complete gold", cure=cure))
    labels = predictor.pipe.labels
    for label in (ent.label_ for doc in complete for ent in doc.ents):
        if label not in labels:
            listed = ", ".join(labels)
            raise WeaknerError(Errors.WK003.format(name=predictor.name, kind="entity", label=label, labels=listed))
    return [Example(copy, doc) for copy, doc in zip(predictor.bare(complete), complete, strict=True)]


def _score_entities(predictor: Predictor, docs: Sequence[Doc], gold: Path, progress: bool) -> "ScoredEntities":
    """Return the scores of the entities that the pipeline predicts in the gold."""
    scores = ScoredEntities()
    for batch in minibatch(Progress(docs, desc="calibrate", unit="doc", enabled=progress), BATCH_SIZE):
        for doc, predicted in zip(batch, predictor.nlp.pipe(predictor.copies(batch)), strict=True):
            scores.add(doc, predicted)
    if not scores.docs:
        raise WeaknerError(Errors.WK407.format(path=gold, what="gold", cure="Give held-out gold"))
    if not any(scores.scored.values()):
        raise WeaknerError(Errors.WK727.format(pipeline=predictor.model, path=gold))
    return scores


class ScoredEntities:
    """The scores of predicted entities by label, and whether they are right."""

    def __init__(self) -> None:
        self.docs = self.left_out = self.unscored = 0
        self.scored: Dict[str, List[ScoredEntity]] = {}

    def add(self, doc: Doc, predicted: Doc) -> None:
        """Add the entities predicted in a Doc with gold."""
        known = find_gold(doc)
        if known is None or not len(doc):
            self.left_out += 1
            return
        self.docs += 1
        for _, _, label in known.entities:
            self.scored.setdefault(label, [])
        scores = {(ent.start, ent.end, ent.label_): ent._.weakner_score for ent in predicted.ents}
        for entity in known.scorable(doc_entities(predicted)):
            score = scores[entity]
            if score is None or not numpy.isfinite(score):
                self.unscored += 1
            else:
                self.scored.setdefault(entity[2], []).append((float(score), entity in known.entities))

    def set_thresholds(
        self,
        pipe: EntityThresholds,
        precision: float,
        delta: float = DELTA,
        min_entities: int = MIN_ENTITIES,
        strict: bool = False,
    ) -> ThresholdReport:
        """Fit thresholds, and set those of the labels of a component; see `calibrate`."""
        found = fit_thresholds(self.scored, precision, delta, min_entities, strict)
        by_label = {label: found.labels.get(label, found.others).threshold for label in pipe.labels}
        pipe.set_thresholds({k: NEVER if value is None else value for k, value in by_label.items()})
        return ThresholdReport(self.docs, self.left_out, self.unscored, *found)


def format_thresholds(report: ThresholdReport) -> Tuple[List[str], List[Tuple[str, ...]]]:
    """Return thresholds as a table: header and cells."""
    header = ["", "entities", "precision", "threshold", "kept", "precision of kept", "lower bound", "right kept"]
    rows = list(report.labels.items())
    if any(found.pooled for _, found in rows):
        rows = [*((label, found) for label, found in rows if not found.pooled), ("all others", report.others)]
    return header, [
        (
            label,
            f"{found.entities:,}",
            _percent(found.right / found.entities if found.entities else None),
            "none" if found.threshold is None else f"{found.threshold:.4f}",
            f"{found.kept:,}",
            *map(_percent, (found.precision, found.bound, found.recall if found.kept else None)),
        )
        for label, found in rows
    ]


def _percent(share: Optional[float]) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"

"""Completes weak labels with the predictions of a model, and says how far the result is to be trusted."""

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.util import minibatch

from ..annotations import weak
from ..annotations.entities import set_entities, trim_whitespace
from ..annotations.tags import IntTags, TagScheme
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..needle.completion import BROKEN, is_broken, matched, soften
from ..needle.completion import complete as complete_tags
from ..needle.confidence import CAP, Calibration, confidence
from ..ty import Entity, PathScore
from .runtime.devices import on_device
from .runtime.hashes import hash_file, hash_model
from .runtime.predictions import PathPredictor
from .runtime.shards import run_shards

RULES = ("unmatched", "all")
BATCH_SIZE = 256


class CompleteReport(NamedTuple):
    """What was completed.

    docs (int): Docs written.
    tokens (int): Their tokens.
    matched (int): Tokens that kept their weak label.
    completed (int): Tokens that were in no weak entity, and are in one now.
    broken (int): Docs whose completed tags broke the tag scheme.
    dropped (int): Those of them that were left out.
    entities (Dict[str, int]): Entities per label.
    confidence (Optional[float]): Mean over the Docs; None without a calibration.
    skipped (int): Shards that were finished already.
    unestimated (int): With `estimate_accuracy`, how often an entity stands in no source whose accuracy is known, so
        that the mean of all sources was taken.
    """

    docs: int
    tokens: int
    matched: int
    completed: int
    broken: int
    dropped: int
    entities: Dict[str, int]
    confidence: Optional[float]
    skipped: int
    unestimated: int = 0


def complete(
    input_path: Path,
    output_path: Path,
    model: Union[str, Path],
    *,
    component: Optional[str] = None,
    rule: str = "unmatched",
    broken: str = "keep",
    calibration: Optional[Path] = None,
    weak_accuracy: float = 1.0,
    estimate_accuracy: bool = False,
    cap: float = CAP,
    soft: bool = False,
    gpu_id: int = -1,
    progress: bool = False,
) -> CompleteReport:
    """Fill in what weak labels leave open (Jiang et al. 2021, Equation 2), and estimate the confidence of the result
    (Appendix A).

    The weak entities move to the span group "matched", the model's to "pred:<component>"; the completed ones stand in
    `doc.ents`. A corpus that was completed before starts from its weak entities again.

    input_path (Path): A weak corpus with aggregated labels: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    model (Union[str, Path]): Pipeline that was trained on gold.
    component (Optional[str]): Name of its component; None: the first that scores tag sequences.
    rule (str): "unmatched": the model decides where the weak labels have no entity (Equation 2); "all": everywhere, as
        in self-training.
    broken (str): What becomes of sentences whose tags, decided token by token, break the tag scheme: "keep" (the paper;
        they are stored beside the entities, and need a component with `constrain = "decoding"` to learn from), "repair"
        (read leniently: a tag that cannot continue the entity before it begins a new one), or "drop".
    calibration (Optional[Path]): What `calibrate` has made; without it no confidence is set.
    weak_accuracy (float): Chance that a matched token's weak label is right. The paper takes 1.
    estimate_accuracy (bool): Take instead what `calibrate` has found for each source.
    cap (float): Upper bound of the confidence.
    soft (bool): Write soft labels too, with the model's probabilities instead of its decisions, for `SoftLabelCRF`; a
        matched token has its weak label with the chance that it is right (to which `cap` does not apply). Our
        variant.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (CompleteReport): What was done.
    RAISES (WeaknerError): For missing input, a corpus that is not weakly labelled, and unusable settings.
    """
    _check(rule, broken, weak_accuracy, cap)
    fitted = None if calibration is None else Calibration.load(Path(calibration))
    if estimate_accuracy and fitted is None:
        raise WeaknerError(Errors.WK346)
    if estimate_accuracy and fitted is not None and not fitted.sources:
        raise WeaknerError(Errors.WK345.format(path=calibration))
    with on_device(gpu_id):
        predictor = PathPredictor(model, component)
        counts: Counter[str] = Counter()
        trust = _Trust(fitted, weak_accuracy, estimate_accuracy, cap, counts)
        settings: Dict[str, Any] = {
            "model": hash_model(model),
            "component": predictor.name,
            "rule": rule,
            "broken": broken,
            "calibration": None if calibration is None else hash_file(Path(calibration)),
            "weak_accuracy": None if estimate_accuracy else weak_accuracy,
            "cap": cap,
            "soft": soft,
        }
        transform = _Complete(predictor, rule, broken, trust, soft, counts, str(input_path))
        report = run_shards(
            input_path,
            output_path,
            "complete",
            transform,
            settings,
            predictor.nlp.vocab,
            memory_zone=predictor.nlp.memory_zone,
            progress=progress,
            counts=counts,
        )
    found = report.counts
    total = found["confidence"] / 1e6 / max(1, report.docs_out)
    return CompleteReport(
        docs=report.docs_out,
        tokens=found["tokens"],
        matched=found["matched"],
        completed=found["completed"],
        broken=found["broken"],
        dropped=found["dropped"],
        entities={key[len("label:") :]: n for key, n in sorted(found.items()) if key.startswith("label:")},
        confidence=None if fitted is None else total,
        skipped=report.skipped,
        unestimated=found["unestimated"],
    )


class _Trust(NamedTuple):
    """How the confidence of a sentence is estimated: see `complete`."""

    calibration: Optional[Calibration]
    weak_accuracy: float
    estimate_accuracy: bool
    cap: float
    counts: "Counter[str]"

    def confidence(self, doc: Doc, entities: List[Entity], path: PathScore) -> Optional[float]:
        """Confidence of a completed Doc.

        doc (Doc): The Doc, with what its sources say.
        entities (List[Entity]): Weak entities that were kept.
        path (PathScore): The model's best path.
        RETURNS (Optional[float]): None without a calibration.
        """
        if self.calibration is None:
            return None
        if not len(doc):
            return self.cap
        chances = self.chances(doc, entities)
        chances = chances[~numpy.isnan(chances)]
        return confidence(chances.tolist(), len(doc), self.calibration.predicted(path), self.cap)

    def chances(self, doc: Doc, entities: List[Entity]) -> NDArray[numpy.float64]:
        """How likely the weak label of each token is to be right.

        doc (Doc): The Doc, with what its sources say.
        entities (List[Entity]): Weak entities that were kept.
        RETURNS (NDArray[numpy.float64]): Shape (n_tokens,); NaN outside of the entities.
        """
        result = numpy.full(len(doc), numpy.nan)
        for entity in entities:
            result[entity[0] : entity[1]] = self._chance(doc, entity)
        return result

    def _chance(self, doc: Doc, entity: Entity) -> float:
        if not self.estimate_accuracy or self.calibration is None:
            return self.weak_accuracy
        # The best of the sources that propose it; they may be too alike to count as witnesses for each other.
        known = self.calibration.sources
        saying = [s for s in weak.weak_sources(doc) if entity in weak.group_entities(doc, weak.weak_group(s))]
        found = [known[s] for s in saying if s in known]
        if not found:
            # Combined from parts of several sources, or of one that labelled nothing in the gold.
            self.counts["unestimated"] += 1
            return sum(known.values()) / len(known)
        return max(found)


class _Complete:
    """The transform.

    predictor (PathPredictor): The model.
    rule, broken: See `complete`.
    trust (_Trust): Gives the confidences.
    soft (bool): See `complete`.
    counts (Counter[str]): Where to count.
    path (str): The corpus, for messages.
    """

    def __init__(
        self,
        predictor: PathPredictor,
        rule: str,
        broken: str,
        trust: _Trust,
        soft: bool,
        counts: "Counter[str]",
        path: str,
    ) -> None:
        self.predictor = predictor
        self.rule = rule
        self.broken = broken
        self.trust = trust
        self.soft = soft
        self.counts = counts
        self.path = path

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for batch in minibatch(docs, BATCH_SIZE):
            schemes = [self.predictor.scheme(_weak_entities(doc)) for doc in batch]
            paths = self.predictor(batch)
            soft = self.predictor.distributions(batch, schemes) if self.soft else [None] * len(batch)
            for doc, scheme, path, probabilities in zip(batch, schemes, paths, soft, strict=True):
                if not numpy.isfinite(path.score):
                    raise WeaknerError(Errors.WK343.format(text=doc.text[:50], pipeline=self.predictor.model))
                if self._complete(doc, scheme, path, probabilities):
                    yield doc

    def _complete(
        self, doc: Doc, scheme: TagScheme, path: PathScore, probabilities: Optional[NDArray[numpy.float64]]
    ) -> bool:
        """Complete one Doc; False if it is to be left out."""
        if len(doc) and not weak.is_weak(doc) and doc.has_annotation("ENT_IOB"):
            raise WeaknerError(Errors.WK344.format(path=self.path, text=doc.text[:50]))
        given = _weak_entities(doc)
        kept = given if self.rule == "unmatched" else []
        labelled: IntTags = scheme.encode(kept, numpy.zeros(len(doc), dtype=bool))
        predicted = scheme.tag_ids(path.tags)
        tags = complete_tags(labelled, predicted)
        broken = is_broken(tags, scheme)
        self.counts["broken"] += broken
        if broken and self.broken == "drop":
            self.counts["dropped"] += 1
            return False
        entities = scheme.decode(tags.tolist())
        weak.set_group(doc, weak.MATCHED_GROUP, given)
        weak.set_group(doc, weak.PREDICTED_PREFIX + self.predictor.name, scheme.decode(predicted.tolist()))
        set_entities(doc, trim_whitespace(doc, entities), [True] * len(doc))
        weak.set_weak(doc)
        weak.set_tags(doc, [scheme.tags[tag] for tag in tags] if broken and self.broken == "keep" else None)
        soft = None
        if probabilities is not None:
            mixed: Any = soften(labelled, probabilities, self.trust.chances(doc, kept)).astype("float32")
            soft = weak.SoftLabels(scheme.tags, scheme.name, mixed)
        weak.set_soft_labels(doc, soft)
        trust = self.trust.confidence(doc, kept, path)
        unit = None if self.trust.calibration is None else self.trust.calibration.unit
        weak.set_confidence(doc, trust, unit)
        self.counts["tokens"] += len(doc)
        self.counts["matched"] += int(matched(labelled).sum())
        self.counts["completed"] += int((~matched(labelled) & (tags > 0)).sum())
        self.counts["confidence"] += round((trust or 0.0) * 1e6)
        self.counts.update(f"label:{label}" for _, _, label in entities)
        return True


def _weak_entities(doc: Doc) -> List[Entity]:
    if weak.MATCHED_GROUP in doc.spans:
        return weak.group_entities(doc, weak.MATCHED_GROUP)
    return weak.doc_entities(doc)


def _check(rule: str, broken: str, weak_accuracy: float, cap: float) -> None:
    for setting, value, choices in (("rule", rule, RULES), ("broken", broken, BROKEN)):
        check_choice(setting, value, choices)
    for setting, chance in (("weak_accuracy", weak_accuracy), ("cap", cap)):
        check_range(setting, chance, 0.0, 1.0)

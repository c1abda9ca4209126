"""Completes weak labels with the predictions of a model, and estimates the confidence of the result (NEEDLE)."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus import weak
from ..corpus.entities import set_entities, trim_whitespace
from ..corpus.tags import IntTags, TagScheme
from ..encoders.bfloat16 import use_bfloat16
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..needle.completion import ALL, BROKEN, NONE, RULES, UNMATCHED, apply_rule, is_broken, matched, mix_labels
from ..needle.confidence import CAP, Calibration, confidence
from ..runtime.executor import Executor
from ..runtime.hashes import hash_model, hash_settings
from ..runtime.lock import holding
from ..runtime.predictions import TagPredictor
from ..runtime.stage import Report, Stage
from ..ty import Entity, Floats, PathScore
from .given import check_given

AUTO = "auto"
BATCH_SIZE = 256


@dataclass
class CompleteReport(Report):
    """Counts of `complete`, beside those of `Report`."""

    tokens: int = 0  # tokens of the Docs written
    matched: int = 0  # tokens that kept their weak label
    completed: int = 0  # tokens that were in no weak entity and are now in an entity
    broken: int = 0  # Docs whose completed tags broke the tag scheme
    entities: "Counter[str]" = field(default_factory=Counter)
    confident: int = 0  # Docs with a confidence
    total_confidence: float = 0.0
    rules: "Counter[str]" = field(default_factory=Counter)  # Docs by the rule that completed them

    @property
    def rule(self) -> str:
        """The rule; empty if there are no Docs."""
        return ", ".join(self.rules)

    @property
    def confidence(self) -> Optional[float]:
        """Mean confidence; None without a calibration."""
        return self.total_confidence / self.confident if self.confident else None


@holding("output_path")
def complete(
    input_path: Path,
    output_path: Path,
    model: Union[str, Path],
    *,
    component: Optional[str] = None,
    rule: str = "unmatched",
    broken: str = "keep",
    calibration: Optional[Calibration] = None,
    weak_accuracy: float = 1.0,
    cap: float = CAP,
    soft: bool = False,
    bfloat16: bool = False,
    gpu_id: int = -1,
    workers: int = 1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> CompleteReport:
    """Complete weak labels with predictions where they have no entities (Jiang et al. 2021, Equation 2), and estimate
    the confidence of the result (Appendix A).

    The weak entities are moved to the span group "matched", and the model's entities are written to "pred:<component>";
    `doc.ents` holds the completed entities. A completed corpus is completed again from its weak entities.

    input_path (Path): A weak corpus with aggregated labels: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder in which each shard keeps its name.
    model (Union[str, Path]): Pipeline that was trained on gold.
    component (Optional[str]): Name of its component; None: the last one that scores tag sequences.
    rule (str): "unmatched": the model decides where the weak labels have no entity (Equation 2 of the paper); "all": it
        decides everywhere, as in self-training; "none": nowhere, so that the labels are kept, and missing tokens become
        "O"; "auto": "unmatched" or "none", whichever labels had the better F1 on the gold of the calibration. ("all" is
        never chosen: a model learns nothing from its own labels alone.)
    broken (str): Handling of sentences whose tags, decided token by token, break the tag scheme: "keep" (the paper; the
        tags are stored beside the entities, and only a component with `constrain = "decoding"` can learn from them), or
        "repair" (read leniently: a tag that cannot continue the preceding entity begins a new one).
    calibration (Optional[Calibration]): From `calibrate_confidence`; without it, no confidence is set. If labels are
        kept unchanged, their confidence is the share of the gold on which such labels were right.
    weak_accuracy (float): The probability that tokens with a weak label have the right one; 1 in the paper.
    cap (float): Maximum confidence.
    soft (bool): Also write soft labels for `SoftLabelCRF`, with the model's probabilities instead of its decisions; a
        matched token keeps its weak label. Our variant.
    bfloat16 (bool): Compute the model's Transformer in bfloat16; see `encoders.bfloat16.use_bfloat16`.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    workers, ray: See `runtime.executor.Executor`.
    progress (bool): Show progress.
    RETURNS (CompleteReport): What was done.
    RAISES (WeaknerError): For missing input, a corpus that is not weakly labeled, and invalid settings.
    """
    for setting, value, choices in (("rule", rule, (*RULES, AUTO)), ("broken", broken, BROKEN)):
        check_choice(setting, value, choices)
    for setting, share in (("weak_accuracy", weak_accuracy), ("cap", cap)):
        check_range(setting, share, 0.0, 1.0)
    if rule == AUTO:
        rule = _best_rule(calibration)
    if rule == NONE and soft:
        where = "with a rule that changes labels ('none', which 'auto' may choose, does not)"
        raise WeaknerError(Errors.WK331.format(setting="soft", where=where, instead=", or give another rule"))
    if rule == NONE and calibration is not None and calibration.given is None:
        raise WeaknerError(Errors.WK701.format(what=f"The rule '{rule}'", instead="another rule"))
    options = {"rule": rule, "broken": broken, "soft": soft, "bfloat16": bfloat16}
    options.update(weak_accuracy=weak_accuracy, cap=cap)
    make = partial(Complete, str(model), component, calibration, Path(input_path), options)
    return Executor(workers, ray, gpu_id).run_on_corpus(make, input_path, output_path, progress=progress)


class Complete(Stage[CompleteReport]):
    """The stage, with the options of `complete`: rule, broken, weak_accuracy, cap, soft and bfloat16. `path` is that
    of the corpus, for messages."""

    name = "complete"
    report = CompleteReport

    def __init__(
        self,
        model: str,
        component: Optional[str],
        calibration: Optional[Calibration],
        path: Path,
        options: Dict[str, Any],
    ) -> None:
        self.predictor = TagPredictor(model, component)
        self.calibration = calibration
        self.path = path
        if options["bfloat16"]:
            use_bfloat16(self.predictor.nlp)
        learned = None if calibration is None else hash_settings(calibration.to_json())
        settings = {"model": hash_model(model), "component": self.predictor.name, **options, "calibration": learned}
        super().__init__(settings, self.predictor.nlp.vocab)

    def zones(self) -> List[Language]:
        return [self.predictor.nlp]

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for batch in minibatch(docs, BATCH_SIZE):
            schemes = [self.predictor.scheme(_weak_entities(doc)) for doc in batch]
            scored = self.predictor.with_distributions(batch, schemes)
            for doc, scheme, (path, probabilities) in zip(batch, schemes, scored, strict=True):
                self._complete(doc, scheme, path, probabilities)
                yield doc

    def _complete(self, doc: Doc, scheme: TagScheme, path: PathScore, probabilities: Floats) -> None:
        check_given(doc, self.path)
        given, ids = _weak_entities(doc), {**weak.doc_ids(doc), **weak.group_ids(doc, weak.MATCHED_GROUP)}
        rule = self.settings["rule"]
        kept = given if rule != ALL else []
        labeled: IntTags = scheme.encode(kept, numpy.zeros(len(doc), dtype=bool))
        predicted = scheme.tag_ids(path.tags)
        tags = numpy.maximum(apply_rule(labeled, predicted, rule), 0)
        broken = is_broken(tags, scheme)
        self.stats.broken += broken
        self.stats.rules[rule] += 1
        entities = scheme.decode(tags.tolist())
        weak.remove_group(doc, weak.SUSPECT_GROUP)
        weak.set_group(doc, weak.MATCHED_GROUP, given, ids=ids)
        weak.set_group(doc, weak.PREDICTED_PREFIX + self.predictor.name, scheme.decode(predicted.tolist()))
        set_entities(doc, trim_whitespace(doc, entities), [True] * len(doc))
        weak.give_ids(doc, ids)
        weak.add_ids(doc)
        weak.set_weak(doc)
        weak.set_tags(doc, [scheme.tags[tag] for tag in tags] if broken and self.settings["broken"] == "keep" else None)
        soft = None
        if self.settings["soft"]:
            mixed: Any = mix_labels(labeled, probabilities).astype("float32")
            soft = weak.TagDistributions(scheme.tags, scheme.name, mixed)
        weak.set_soft_labels(doc, soft)
        n_matched = int(matched(labeled).sum())
        self._set_confidence(doc, n_matched, path)
        self.stats.tokens += len(doc)
        self.stats.matched += n_matched
        self.stats.completed += int((~matched(labeled) & (tags > 0)).sum())
        self.stats.entities.update(label for _, _, label in entities)

    def _set_confidence(self, doc: Doc, n_matched: int, path: PathScore) -> None:
        if self.calibration is None:
            weak.set_confidence(doc, None, None)
            return
        if self.settings["rule"] == NONE:
            value = min(self.settings["cap"], self.calibration.given or 0.0)
        elif len(doc):
            predicted, how = self.calibration.predicted(path), (self.settings["weak_accuracy"], self.settings["cap"])
            value = confidence(n_matched, len(doc), predicted, *how)
        else:
            value = self.settings["cap"]
        weak.set_confidence(doc, value, self.calibration.unit)
        self.stats.confident += 1
        self.stats.total_confidence += value


def _best_rule(calibration: Optional[Calibration]) -> str:
    if calibration is None or not calibration.rules:
        raise WeaknerError(Errors.WK701.format(what=f"The rule '{AUTO}'", instead="another rule"))
    # Of equally good rules, the one that changes least. ALL is no candidate, however good its labels are: the model
    # that made them learns nothing from them.
    return max((NONE, UNMATCHED), key=lambda rule: calibration.rules.get(rule, 0.0))


def _weak_entities(doc: Doc) -> List[Entity]:
    if weak.MATCHED_GROUP in doc.spans:
        return weak.group_entities(doc, weak.MATCHED_GROUP)
    return weak.doc_entities(doc)

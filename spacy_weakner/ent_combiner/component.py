"""The component that chooses entities from the candidates of sources and components."""

import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy
import srsly
from spacy import util
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ..corpus.documents import group_keys
from ..corpus.gold import find_gold
from ..corpus.parts import Parts
from ..corpus.tags import TagScheme, make_scheme
from ..corpus.weak import PREDICTED_PREFIX, WEAK_PREFIX, absent_groups, group_scores, is_weak, weak_group
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..files import existing
from ..heads.entities import Prediction, checked_thresholds, write_entities
from ..heads.factories import ENTITIES, ENTITY_SCORES, default_config, takes_settings_of
from ..training.batches import BatchPipe
from ..ty import Entity, Floats, Ints, TagScores
from .candidates import Candidates, ScoredCandidates, Sentences, choose_spans, read_candidates
from .features import FeatureSpace, WordCounts, read_words
from .fitting import COMBINED, FitReport, choose_alone, fit_combiner, read_fit_doc

_LITTLE = 1e-9


class EntCombiner(BatchPipe):
    """A component that chooses entities from the candidates in the span groups `weak:<source>` and `pred:<component>`:
    a stacking ensemble of term lists, rules, language models and trained components.

    The model is a logistic regression over sets of non-overlapping spans. The odds of a candidate depend on its
    features: the groups that have it, its probabilities there, overlapping entities of groups, its words and those
    around it (see `features`). The probability of a set is proportional to the product of its candidates' odds.
    Variants of matches with one border shifted are also candidates, so that borders are corrected. The set with the
    best expected F1 is written; `ent._.weakner_score` is the sum of the probabilities of all sets with the entity.

    It is fitted in `initialize` or `fit` on gold, and on the groups in the same Docs. Predictions of trained components
    in these Docs must come from training without them (`train --folds`). If a source is better alone in
    cross-validation than the combination, or a component clearly better, its entities are used alone (those of a
    component with a score above one half).

    Like the heads, it processes each sentence separately if a Doc has sentence bounds, and ignores white space tokens.

    vocab (Vocab): The shared vocabulary.
    name (str): Name of the component.
    sources (Optional[List[str]]): The weak sources to read; None: all sources in the Docs of `fit`.
    predictions (Optional[List[str]]): The components whose predictions are read; None: all.
    border (int): Maximum number of tokens by which one border of a candidate may differ from a match of a source.
    threshold (Optional[float]): Minimum probability of a candidate that overlaps no other; None: chosen in `fit`.
    penalty (Optional[float]): L2 penalty of the weights; None: chosen in `fit`.
    folds (int): Number of folds in `fit` to choose these settings. Sentences of one document are in one fold or, if ids
        do not name that many documents, copies of a sentence.
    scheme (str): Tag scheme of `score_tags`: "IO", "BIO" or "IOBES".
    overwrite (bool): Whether to replace existing entities in `doc.ents`. If not, others are only added between them.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): If a setting is out of range.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str = "ent_combiner",
        *,
        sources: Optional[List[str]] = None,
        predictions: Optional[List[str]] = None,
        border: int = 1,
        threshold: Optional[float] = None,
        penalty: Optional[float] = None,
        folds: int = 5,
        scheme: str = "BIO",
        overwrite: bool = False,
        scorer: Optional[Callable] = None,
    ) -> None:
        check_range("border", border, 0, None)
        check_range("threshold", 0.0 if threshold is None else threshold, 0.0, 1.0)
        check_range("penalty", 1.0 if penalty is None else penalty, 1e-6, None)
        check_range("folds", folds, 2, None)
        self.tag_scheme = make_scheme(scheme, ()).name  # raises an error for an unknown scheme
        self.vocab = vocab
        self.name = name
        self.sources = sources
        self.predictions = predictions
        self.border = border
        self.threshold = threshold
        self.penalty = penalty
        self.folds = folds
        self.overwrite = overwrite
        self.scorer = scorer
        self._space = FeatureSpace([], [], [])
        self._weights: Floats = numpy.zeros(len(self._space.names))
        self._counts = WordCounts()
        self._thresholds: Dict[str, float] = {}
        self._report: Optional[FitReport] = None

    # State

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels of candidates, sorted."""
        return self._space.labels

    @property
    def label_data(self) -> List[str]:
        """RETURNS (List[str]): The labels in the format of `spacy init labels`."""
        return list(self.labels)

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): True if the component is fitted."""
        return self._report is not None

    @property
    def report(self) -> FitReport:
        """RETURNS (FitReport): The result of the last `fit`.
        RAISES (WeaknerError): If the component is not fitted."""
        if self._report is None:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        return self._report

    @property
    def choice(self) -> str:
        """RETURNS (str): "combined", or the group that is used alone."""
        return self.report.choice

    @property
    def sources_read(self) -> List[str]:
        """RETURNS (List[str]): The weak sources whose entities are candidates."""
        return [group[len(WEAK_PREFIX) :] for group in self._space.groups if group.startswith(WEAK_PREFIX)]

    @property
    def weights(self) -> Dict[str, float]:
        """RETURNS (Dict[str, float]): The weight of every feature."""
        return dict(zip(self._space.names, self._weights.tolist(), strict=True))

    @property
    def thresholds(self) -> Dict[str, float]:
        """RETURNS (Dict[str, float]): The thresholds of single labels."""
        return dict(self._thresholds)

    def set_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Set the thresholds of some labels; they are saved with the component. Candidates with smaller probabilities
        are not chosen.

        thresholds (Mapping[str, float]): Thresholds in [0, 1] by label. Those of all other labels are removed.
        RAISES (WeaknerError): If a label is unknown, or a threshold is out of range.
        """
        self._thresholds = checked_thresholds(self.name, self.labels, thresholds)

    # Fitting

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Fit the component on the gold and the span groups of the reference Docs of examples.

        get_examples (Callable[[], Iterable[Example]]): Returns all examples. Weakly labeled ones are skipped, even if
            they have gold in the group "gold", which is for evaluation.
        nlp (Optional[Language]): Not used.
        labels (Optional[Sequence[str]]): The labels; None: those of the gold and of the groups.
        RAISES (WeaknerError): As for `fit`.
        """
        self.fit((eg.reference for eg in get_examples() if not is_weak(eg.reference)), labels)

    def fit(self, docs: Iterable[Doc], labels: Optional[Sequence[str]] = None) -> FitReport:
        """Fit the component on gold, replacing an earlier fit. Thresholds of labels are removed.

        docs (Iterable[Doc]): Docs with gold in `doc.ents` or the group "gold", and with the groups of the candidates.
            Docs without gold are skipped.
        labels (Optional[Sequence[str]]): The labels; None: those of the gold and of the groups.
        RETURNS (FitReport): The result.
        RAISES (WeaknerError): If no Doc has gold, or there are no candidates.
        """
        parts = (part for doc in docs for part in Parts.of([doc]).docs)
        pairs = [(doc, gold) for doc in parts if len(doc) and (gold := find_gold(doc)) is not None]
        used = [doc for doc, _ in pairs]
        if not used:
            reason = "no Doc has gold (doc.ents that are not weak, or the span group 'gold')"
            raise WeaknerError(Errors.WK715.format(name=self.name, reason=reason))
        groups = self._find_groups(used)
        if labels is None:
            found = {label for _, gold in pairs for _, _, label in gold.entities}
            found |= {span.label_ for doc in used for group in groups for span in doc.spans.get(group, ())}
            labels = sorted(found)
        scored = [any(s is not None for doc in used for s in group_scores(doc, group)) for group in groups]
        space = FeatureSpace(groups, scored, sorted(set(labels)))
        rows = [read_fit_doc(doc, gold, self._read([doc], space), space) for doc, gold in pairs]
        if not any(len(row.spans) for row in rows):
            reason = f"{len(rows)} Docs with gold have no candidates in the span groups {', '.join(groups) or 'none'}"
            raise WeaknerError(Errors.WK715.format(name=self.name, reason=reason))
        keys = group_keys(used, self.folds)
        settings = self.folds, self.penalty, self.threshold
        self._weights, self._counts, self._report = fit_combiner(rows, keys, space.main, *settings)
        self._space, self._thresholds = space, {}
        self._log(self._report)
        return self._report

    def _find_groups(self, docs: Sequence[Doc]) -> List[str]:
        there = sorted({group for doc in docs for group in doc.spans} - {PREDICTED_PREFIX + self.name})
        weak = [weak_group(source) for source in self.sources or ()]
        predicted = [PREDICTED_PREFIX + name for name in self.predictions or ()]
        if self.sources is None:
            weak = [group for group in there if group.startswith(WEAK_PREFIX)]
        if self.predictions is None:
            predicted = [group for group in there if group.startswith(PREDICTED_PREFIX)]
        absent = [group for group in [*weak, *predicted] if group not in there]
        if absent:
            reason = f"no Doc has the span group '{absent[0]}' (groups there: {', '.join(there) or 'none'})"
            raise WeaknerError(Errors.WK715.format(name=self.name, reason=reason))
        return [*weak, *predicted]

    def _log(self, report: FitReport) -> None:
        alone = ", ".join(f"{name} {f1:.1f}" for name, f1 in report.alone.items())
        util.logger.info(
            "'%s': fitted to %d sentences with %d candidates, which contain %.1f %% of the gold. F1 in "
            "cross-validation: %s; alone: %s. Chosen: %s",
            self.name,
            report.sentences,
            report.candidates,
            100 * report.reach,
            "none" if report.f1 is None else f"{report.f1:.1f}",
            alone,
            report.choice,
        )

    # Prediction

    def _predict(self, docs: List[Doc]) -> List[Prediction]:
        self._check_complete(docs)
        scored = self._score(docs, not self.overwrite)
        self._check_labels(scored.candidates.unknown, docs)
        probabilities = scored.probabilities()
        index = self._choose(scored.candidates, probabilities)
        chosen = scored.candidates.select(index)
        entities, scores = chosen.entities(self.labels), probabilities[index].tolist()
        return list(map(Prediction, chosen.split(entities), chosen.split(scores)))

    def _check_complete(self, docs: Sequence[Doc]) -> None:
        """Warn of components that did not run: scores depend on all of them. Groups that some of the gold lacked may be
        absent: this has a weight."""
        weights = self.weights
        absent = absent_groups(docs, [group for group in self._space.groups if not weights[f"{group} absent"]])
        if absent:
            warnings.warn(Warnings.WK907.format(name=self.name, missing=", ".join(absent)), stacklevel=2)

    def _check_labels(self, unknown: Set[int], docs: Sequence[Doc]) -> None:
        """Warn of unknown labels, which occur if the terms were changed after fitting."""
        if unknown:
            labels = ", ".join(f"'{label}'" for label in sorted(docs[0].vocab.strings[label] for label in unknown))
            warnings.warn(Warnings.WK908.format(name=self.name, labels=labels), stacklevel=2)

    def _choose(self, candidates: Candidates, probabilities: Floats) -> Ints:
        """Return the indices of the candidates that are entities, by start."""
        combined = self.choice == COMBINED
        usual = self.threshold if self.threshold is not None else self.report.threshold if combined else 0.0
        least = numpy.array([self._thresholds.get(label, usual) for label in self.labels])[candidates.spans[:, 2]]
        if combined:
            # Weights are positive, so that a candidate that exactly reaches its threshold is chosen without overlaps.
            weights = numpy.maximum(probabilities - numpy.minimum(least, usual), _LITTLE)
            return choose_spans(candidates.spans, numpy.where(probabilities >= least, weights, 0.0))
        alone = choose_alone(candidates, self._space.groups.index(self.choice))
        return alone[probabilities[alone] >= least[alone]]

    def annotate(self, docs: List[Doc]) -> None:
        for doc, prediction in zip(docs, self._predict(docs), strict=True):
            write_entities(doc, prediction, self.overwrite)

    # For other components and stages. Existing entities of the Docs are ignored here.

    def score_candidates(self, docs: Iterable[Doc]) -> List[List[Tuple[Entity, float]]]:
        """Return each Doc's candidates, sorted by end, start and label, with their probabilities; Docs do not
        change."""
        return self._score(list(docs)).pairs()

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The columns of the distributions."""
        return self._scheme.tags

    def score_tags(self, docs: Iterable[Doc]) -> List[TagScores]:
        """Return, for every Doc, the most probable set of entities as tags, with the sum of its log-odds and its
        log-probability; and the distribution over the tags of every token, marginalized over all sets. (The set with
        the best expected F1 is written to `doc.ents`.) The Docs are not changed."""
        scored = self._score(list(docs))
        rows: List[Any] = scored.distributions(self._scheme)
        return list(zip(scored.paths(self._scheme), rows, strict=True))

    @property
    def _scheme(self) -> TagScheme:
        return make_scheme(self.tag_scheme, self.labels)

    def _read(self, docs: Sequence[Doc], space: FeatureSpace) -> Candidates:
        return read_candidates(Sentences.of(docs), space.groups, space.labels, self.border)

    def _score(self, docs: Sequence[Doc], respect_preset: bool = False) -> ScoredCandidates:
        if not self.is_initialized:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        candidates = self._read(docs, self._space)
        odds = self._space.matrix(read_words(candidates.sentences), candidates, self._counts) @ self._weights
        if respect_preset:
            taken = numpy.cumsum(numpy.concatenate([[0], candidates.sentences.preset()]))
            free = taken[candidates.spans[:, 0]] == taken[candidates.spans[:, 1]]
            candidates, odds = candidates.select(free), odds[free]
        return ScoredCandidates(candidates, odds, self.labels)

    # Serialization. Settings are not stored here: they belong to the config, which may be overridden at load time.

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the fitted state; `exclude` may name "model"."""
        data: bytes = util.to_bytes({"model": lambda: srsly.msgpack_dumps(self._state())}, exclude)
        return data

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "EntCombiner":
        """Load the output of `to_bytes`; raises an error if it is damaged."""
        util.from_bytes(bytes_data, {"model": self._load}, exclude)
        return self

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write the fitted state to a folder; `exclude` may name "model"."""
        util.to_disk(path, {"model": lambda p: srsly.write_msgpack(p, self._state())}, exclude)

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "EntCombiner":
        """Load the output of `to_disk`; raises an error if a file is damaged."""
        util.from_disk(path, {"model": lambda p: self._load(existing(p).read_bytes())}, exclude)
        return self

    def _state(self) -> Dict[str, Any]:
        return {
            "groups": list(self._space.groups),
            "scored": list(self._space.scored),
            "labels": list(self._space.labels),
            "weights": self.weights,
            "counts": self._counts.rows,
            "thresholds": self._thresholds,
            "report": None if self._report is None else self._report._asdict(),
        }

    def _load(self, data: bytes) -> None:
        try:
            state = srsly.msgpack_loads(data)
            space = FeatureSpace(state["groups"], state["scored"], state["labels"])
            names, weights = list(state["weights"]), numpy.array(list(state["weights"].values()), dtype="float64")
            counts, thresholds = WordCounts(state["counts"]), dict(state["thresholds"])
            report = None if state["report"] is None else FitReport(**state["report"])
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            reason = f"'model' does not contain a fitted state ({type(error).__name__}: {error})"
            raise WeaknerError(Errors.WK800.format(name=self.name, reason=reason)) from error
        if list(space.names) != names:
            raise WeaknerError(Errors.WK800.format(name=self.name, reason="its weights belong to other features"))
        self._space, self._weights, self._counts = space, weights, counts
        self._thresholds, self._report = thresholds, report


@Language.factory(
    "ent_combiner",
    assigns=ENTITIES,
    requires=["doc.spans"],
    default_config=default_config(EntCombiner),
    default_score_weights=ENTITY_SCORES,
)
@takes_settings_of(EntCombiner)
def make_ent_combiner(nlp: Language, name: str, **settings: Any) -> EntCombiner:
    """Create the component with the settings of `EntCombiner`."""
    return EntCombiner(nlp.vocab, name=name, **settings)

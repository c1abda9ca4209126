"""The base of all heads that predict entities."""

import math
from abc import abstractmethod
from copy import copy
from itertools import pairwise
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from ..corpus.alignment import reference_spans, span_group
from ..corpus.entities import blocked_tokens, preset_tokens
from ..corpus.parts import Part, merge_entities
from ..corpus.sentences import is_divided_name
from ..corpus.weak import PREDICTED_PREFIX, add_ids, get_soft_labels, set_group
from ..errors import Errors, WeaknerError, check_range
from ..ty import Array, BoolMask, Entity
from .head import OutputsT, TargetT, TrainableHead
from .layers import to_host

_LARGEST_BIAS = 1e6


class Prediction(NamedTuple):
    """The prediction of a head for one Doc.

    entities (List[Entity]): Non-overlapping entities.
    scores (List[Optional[float]]): Probability of each entity; None if it was not computed.
    candidates (Optional[List[Entity]]): Candidates for the group `pred:<name>`; None: write no group.
    candidate_scores (List[Optional[float]]): Probability of each candidate.
    """

    entities: List[Entity]
    scores: List[Optional[float]]
    candidates: Optional[List[Entity]] = None
    candidate_scores: Sequence[Optional[float]] = ()


def make_predictions(
    n_docs: int, spans: NDArray[numpy.int64], labels: Sequence[str], scores: Optional[Array] = None
) -> List[Prediction]:
    """Make predictions for several Docs.

    n_docs (int): Number of Docs.
    spans (NDArray[numpy.int64]): Shape (n, 4): number of the Doc (ascending), start, end and number of the label.
    labels (Sequence[str]): The labels.
    scores (Optional[Array]): Shape (n,): probabilities of the spans, if known.
    RETURNS (List[Prediction]): One prediction per Doc.
    """
    docs, starts, ends, numbers = spans.T
    names = [labels[number] for number in numbers.tolist()]
    entities = list(zip(starts.tolist(), ends.tolist(), names, strict=True))
    known: List[Optional[float]] = [None] * len(names) if scores is None else scores.tolist()
    borders = pairwise(numpy.searchsorted(docs, numpy.arange(n_docs + 1)).tolist())
    return [Prediction(entities[first:last], known[first:last]) for first, last in borders]


def checked_thresholds(name: str, labels: Sequence[str], thresholds: Mapping[str, float]) -> Dict[str, float]:
    """Check thresholds of a component, and sort them by label.

    RAISES (WeaknerError): If a label is unknown, or a threshold is out of range.
    """
    for label, value in thresholds.items():
        if label not in labels:
            raise WeaknerError(Errors.WK003.format(name=name, kind="entity", label=label, labels=", ".join(labels)))
        check_range(f"threshold of {label}", value, 0.0, 1.0)
    return {label: float(value) for label, value in sorted(thresholds.items())}


def above_thresholds(prediction: Prediction, thresholds: Mapping[str, float]) -> Prediction:
    """Remove entities whose score is below the threshold of their label."""
    if not thresholds:
        return prediction
    pairs = zip(prediction.entities, prediction.scores, strict=True)
    kept = [(entity, score) for entity, score in pairs if score is None or score >= thresholds.get(entity[2], 0.0)]
    return prediction._replace(entities=[entity for entity, _ in kept], scores=[score for _, score in kept])


def write_entities(doc: Doc, prediction: Prediction, overwrite: bool) -> None:
    """Write `doc.ents` and `ent._.weakner_score`.

    doc (Doc): The Doc.
    prediction (Prediction): The entities to write.
    overwrite (bool): Replace existing entities; otherwise these, and blocked tokens, are kept, and predicted entities
        with any of their tokens are left out. (Heads read no white space, which may have annotation, too.)
    """
    kept = numpy.zeros(len(doc), dtype=bool) if overwrite else preset_tokens(doc)
    ents, blocked = (list(doc.ents), blocked_tokens(doc)) if kept.any() else ([], [])
    for (start, end, label), score in zip(prediction.entities, prediction.scores, strict=True):
        if kept[start:end].any():
            continue
        ent = Span(doc, start, end, label=label)
        if score != ent._.weakner_score:  # an earlier run may have set one
            ent._.weakner_score = score
        ents.append(ent)
    doc.set_ents(sorted(ents, key=lambda ent: ent.start), blocked=blocked)
    add_ids(doc)


class EntityHead(TrainableHead[OutputsT, TargetT, Prediction]):
    """Base of the heads that write `doc.ents`: existing annotations, probabilities and their calibration.

    vocab (Vocab): The shared vocabulary.
    model (Model): The model.
    name (str): Name of the component in the pipeline.
    head_learn_rate (float): Factor on the learning rate of all weights outside the encoder.
    overwrite (bool): Whether to replace existing entities in `doc.ents`. If not, they are kept, and predicted entities
        are added between them.
    scorer (Optional[Callable]): The scoring method.
    """

    # Span group of the training examples to learn from; None: `doc.ents`.
    spans_key: Optional[str] = None
    # True if `doc.ents` are written. Otherwise only the group `pred:<name>` is written: with the candidates or, if
    # there are none, the entities.
    annotate_ents: bool = True
    # True if all candidates are written to the group `pred:<name>`.
    nested: bool = False

    def __init__(
        self,
        vocab: Vocab,
        model: Model[Any, OutputsT],
        name: str,
        *,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, scorer=scorer)
        self.overwrite = overwrite
        self.cfg.update({"temperature": 1.0, "bias": 0.0, "thresholds": {}})

    # Calibration

    @property
    def temperature(self) -> float:
        """RETURNS (float): Divisor of the scores before they become probabilities; 1 until it is calibrated."""
        return float(self.cfg["temperature"])

    def set_temperature(self, temperature: float) -> None:
        """Change the temperature; it is saved with the component.

        temperature (float): The temperature, above 0.
        RAISES (WeaknerError): If it is out of range.
        """
        if not 0.0 < temperature < math.inf:
            raise WeaknerError(Errors.WK005.format(setting="temperature", value=temperature, expected="above 0"))
        self.cfg["temperature"] = float(temperature)

    @property
    def bias(self) -> float:
        """RETURNS (float): Added to the scores of "O" in prediction: above 0, recall decreases and precision increases;
        0 until it is fitted. It is not used in training."""
        return float(self.cfg["bias"])

    def set_bias(self, bias: float) -> None:
        """Change the bias; it is saved with the component.

        bias (float): The bias, at most a million in size.
        RAISES (WeaknerError): If it is out of range.
        """
        check_range("bias", bias, -_LARGEST_BIAS, _LARGEST_BIAS)
        self.cfg["bias"] = float(bias)

    @property
    def thresholds(self) -> Dict[str, float]:
        """RETURNS (Dict[str, float]): Minimum score of written entities by label; empty until they are fitted. Entities
        without a score are always written."""
        return dict(self.cfg["thresholds"])

    def set_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Change the thresholds; they are saved with the component.

        thresholds (Mapping[str, float]): Thresholds in [0, 1] by label. Those of all other labels are removed.
        RAISES (WeaknerError): If a label is unknown, or a threshold is out of range.
        """
        self.cfg["thresholds"] = checked_thresholds(self.name, self.labels, thresholds)

    def entities_under(self, docs: Iterable[Doc], biases: Sequence[float]) -> List[List[List[Entity]]]:
        """Predict entities under several biases, running the encoder once.

        docs (Iterable[Doc]): The Docs; not changed.
        biases (Sequence[float]): The biases.
        RETURNS (List[List[List[Entity]]]): The entities of each Doc under each bias.
        """
        heads = [copy(self) for _ in biases]
        for head, bias in zip(heads, biases, strict=True):
            head.cfg = {**self.cfg, "bias": bias}

        def read(docs: List[Doc], outputs: OutputsT) -> List[List[List[Entity]]]:
            found = [[prediction.entities for prediction in head.decode(docs, outputs)] for head in heads]
            return [list(by_bias) for by_bias in zip(*found, strict=True)]

        def merge(_: Doc, parts: List[Part], found: List[List[List[Entity]]]) -> List[List[Entity]]:
            return [merge_entities(parts, [by_bias[n] for by_bias in found]) for n in range(len(biases))]

        return self.map_sentences(docs, read, [[] for _ in biases], merge)

    def _check_stored(self) -> None:
        super()._check_stored()
        try:
            self.set_temperature(self.temperature)
            self.set_bias(self.bias)
            self.set_thresholds(self.thresholds)
        except (TypeError, ValueError) as error:
            reason = f"its temperature, bias or thresholds in 'cfg' are damaged ({error})"
            raise WeaknerError(Errors.WK800.format(name=self.name, reason=reason)) from error

    @abstractmethod
    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        """Measure the fit of the probabilities on held-out gold.

        examples (Iterable[Example]): The gold; the model runs on it once.
        RETURNS (Callable[[float], float]): Maps a temperature to the mean negative log-likelihood.
        RAISES (WeaknerError): If none of the examples is annotated.
        """

    def annotated(self, examples: Iterable[Example]) -> List[Example]:
        """Select the annotated examples.

        examples (Iterable[Example]): The examples.
        RETURNS (List[Example]): Those that have tokens and are annotated, split into sentences as in prediction.
        RAISES (WeaknerError): If no example is annotated.
        """
        _, split = self.split_examples(list(examples))
        used = [eg for eg in split if len(eg.predicted) and self.is_annotated(eg)]
        if not used:
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return used

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model. The calibration is reset. With `spans_key`, the score of the group
        counts in training, unless the config has a weight for it.

        get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; None: those of the examples, sorted.
        RAISES (WeaknerError): If there are no labels.
        """
        self.cfg.pop("names", None)
        super().initialize(get_examples, nlp=nlp, labels=labels)
        self.set_temperature(1.0)
        self.set_bias(0.0)
        self.set_thresholds({})
        if self.spans_key is not None and nlp is not None:
            weights = nlp.config["training"]["score_weights"]
            if not any(score.startswith(f"spans_{self.spans_key}_") for score in weights):
                weights[f"spans_{self.spans_key}_f"] = 1.0

    def note_example(self, example: Example) -> None:
        """Note the entities that contain the end of a sentence: pipelines do not split texts there."""
        for span in reference_spans(example.reference, self.spans_key):
            if is_divided_name(span) and span.text not in self.divided_names:
                self.cfg["names"] = [*self.divided_names, span.text]

    @property
    def divided_names(self) -> List[str]:
        """RETURNS (List[str]): The entities of the training examples that contain the end of a sentence."""
        names: List[str] = self.cfg.get("names", [])
        return names

    def example_labels(self, example: Example) -> Iterable[str]:
        """Return the labels in an example; by default those of its entities."""
        return (span.label_ for span in reference_spans(example.reference, self.spans_key))

    def is_annotated(self, example: Example) -> bool:
        """Return True if an example is annotated with entities."""
        if self.spans_key is not None:
            return self.spans_key in example.reference.spans
        return bool(example.reference.has_annotation("ENT_IOB"))

    def has_targets(self, example: Example) -> bool:
        """Return True if an example can be used for training: it has annotated entities or soft labels."""
        return self.is_annotated(example) or get_soft_labels(example.reference) is not None

    # Prediction

    @property
    def empty_prediction(self) -> Prediction:
        """RETURNS (Prediction): The prediction for a Doc without tokens."""
        return Prediction([], [], [] if self.nested else None)

    def merge(self, doc: Doc, parts: List[Part], predictions: List[Prediction]) -> Prediction:
        listed = [found.candidates or [] for found in predictions]
        return Prediction(
            merge_entities(parts, [found.entities for found in predictions]),
            [score for found in predictions for score in found.scores],
            merge_entities(parts, listed) if self.nested else None,
            [score for found in predictions for score in found.candidate_scores],
        )

    def token_outputs(self, docs: Iterable[Doc], model: Optional[Model[Any, OutputsT]] = None) -> List[Array]:
        """Run a model that returns one row per token.

        docs (Iterable[Doc]): The Docs.
        model (Optional[Model]): The model; None: the component's current model.
        RETURNS (List[Array]): The outputs of each Doc, on the host; (0, n_outputs) for Docs without tokens.
        """
        nothing: Array = numpy.zeros((0, self.n_outputs), dtype="float32")

        def read(_: List[Doc], outputs: Any) -> List[Array]:
            return to_host(self.model.ops, outputs)

        return self.map_outputs(docs, read, nothing, model=model)

    def set_annotations(self, docs: Iterable[Doc], predictions: List[Prediction]) -> None:
        """Write `doc.ents` and `ent._.weakner_score` if `annotate_ents` is set; the span group `pred:<name>` if
        there are candidates or `doc.ents` is not written; and the group `spans_key`, if it is set, with the candidates
        or, if there are none, the entities.

        docs (Iterable[Doc]): The Docs.
        predictions (List[Prediction]): The output of `predict`.
        """
        for doc, prediction in zip(docs, predictions, strict=True):
            candidates, scores = prediction.candidates, prediction.candidate_scores
            groups = [] if candidates is None and self.annotate_ents else [PREDICTED_PREFIX + self.name]
            if self.annotate_ents:
                write_entities(doc, above_thresholds(prediction, self.thresholds), self.overwrite)
            if candidates is None:
                candidates, scores = prediction.entities, prediction.scores
            for key in (*groups, *([] if self.spans_key is None else [self.spans_key])):
                set_group(doc, key, candidates, list(scores))

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        """Score the entities if the head writes `doc.ents`, and the group `spans_key`, as "spans_<spans_key>_f"."""
        examples = list(examples)
        scores = dict(super().score(examples, **kwargs)) if self.annotate_ents else {}
        key = self.spans_key
        if self.scorer is not None and key is not None:
            settings: Dict[str, Any] = {
                "getter": lambda doc, _: span_group(doc, key),
                "has_annotation": lambda doc: key in doc.spans,
            }
            scores.update(Scorer.score_spans(examples, f"spans_{key}", allow_overlap=True, **settings))
        return scores

    def preset_tokens(self, doc: Doc) -> BoolMask:
        """Find the tokens whose annotation must not change: blocked tokens and those of existing entities; no tokens if
        entities are overwritten or `doc.ents` is not written.

        doc (Doc): The Doc.
        RETURNS (BoolMask): Mask of these tokens, shape (n_tokens,).
        """
        if self.overwrite or not self.annotate_ents:
            return numpy.zeros(len(doc), dtype=bool)
        return preset_tokens(doc)

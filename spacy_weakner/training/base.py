"""What all trainable components of this package share. A head adds targets, loss and decoding."""

import math
import warnings
from abc import abstractmethod
from itertools import islice
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate
from thinc.types import Floats2d

from ..annotations.tags import BoolMask
from ..annotations.weak import PREDICTED_PREFIX, get_soft_labels, set_group
from ..batching import group_by_length
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..ty import Entity, Tick

T = TypeVar("T")
# Value of ENT_IOB.
BEGINS = 3
# Size of the batches in prediction.
PADDED_TOKENS = 2000

if not Span.has_extension("weakner_score"):
    Span.set_extension("weakner_score", default=None)


class Prediction(NamedTuple):
    """What a head predicts for one Doc.

    entities (List[Entity]): Without overlaps.
    scores (List[Optional[float]]): Probability of each entity; None where it was not asked for.
    candidates (Optional[List[Entity]]): For the group `pred:<name>`; None: write no group.
    candidate_scores (List[Optional[float]]): Probability of each candidate.
    """

    entities: List[Entity]
    scores: List[Optional[float]]
    candidates: Optional[List[Entity]] = None
    candidate_scores: Sequence[Optional[float]] = ()


class TrainableHead(TrainablePipe):
    """Base of the heads: labels, initialisation, the update protocol, annotation and serialisation.

    The model is a Model[List[Doc], List[Floats2d]], with one row per token, and has the references "tok2vec" (the
    encoder, or a listener) and "head" (all that is the component's own). In `cfg`, which is saved, stands only what
    training creates; settings are plain attributes, so that those of the loading config win.

    vocab (Vocab): The shared vocabulary.
    model (Model): The model.
    name (str): Name of the component in the pipeline.
    head_learn_rate (float): Factor on the learning rate for all that does not belong to the encoder.
    overwrite (bool): Whether entities that stand in `doc.ents` already are replaced. If not they are kept, and
        predicted entities fill the rest.
    scorer (Optional[Callable]): The scoring method.
    """

    needs_clock = False
    # Whether the weights know which label is which.
    labels_have_weights = True
    # The parts of the model that learn at the head's own rate, by their references; a model need not have them all.
    head_parts: Tuple[str, ...] = ("head",)
    # Whether `decode` and its like want the model's output on the host.
    outputs_on_host = True

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str,
        *,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        scorer: Optional[Callable] = None,
    ) -> None:
        check_range("head_learn_rate", head_learn_rate, 0.0, None)
        self.vocab = vocab
        self.model = model
        self.name = name
        self.head_learn_rate = head_learn_rate
        self.overwrite = overwrite
        self.scorer = scorer
        self.cfg: Dict[str, Any] = {"labels": [], "temperature": 1.0}
        self._tick: Optional[Tick] = None

    # Labels

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The entity labels, in the order that fixes the model's outputs."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> List[str]:
        """RETURNS (List[str]): The labels as `spacy init labels` stores them."""
        return list(self.cfg["labels"])

    @property
    def temperature(self) -> float:
        """RETURNS (float): Divides the scores before they become probabilities; 1 until it is calibrated."""
        return float(self.cfg["temperature"])

    def set_temperature(self, temperature: float) -> None:
        """Change the temperature; it is saved with the component.

        temperature (float): Above 0.
        RAISES (WeaknerError): If it is not.
        """
        if not 0.0 < temperature < math.inf:
            raise WeaknerError(Errors.WK005.format(setting="temperature", value=temperature, expected="above 0"))
        self.cfg["temperature"] = float(temperature)

    @abstractmethod
    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        """How badly the probabilities fit gold that was not trained on.

        examples (Iterable[Example]): The gold; the model runs over it once.
        RETURNS (Callable[[float], float]): From a temperature to the mean negative log-likelihood.
        RAISES (WeaknerError): If none of the examples is annotated.
        """

    def add_label(self, label: str) -> int:
        """Add a label before the component is initialised.

        label (str): The label.
        RETURNS (int): 0 if it was there already, else 1.
        RAISES (ValueError): If it is not a string, or the component is initialised already.
        """
        if not isinstance(label, str):
            raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a string"))
        if label in self.labels:
            return 0
        if self.is_initialized:
            listed = ", ".join(self.labels)
            raise WeaknerError(Errors.WK002.format(name=self.name, labels=listed, label=label))
        self.cfg["labels"] = [*self.cfg["labels"], label]
        self.vocab.strings.add(label)
        return 1

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): Whether the model has its weights."""
        return bool(self.model.get_ref("head").maybe_get_dim("nO"))

    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels that an example shows; by default those of its entities."""
        return (ent.label_ for ent in example.reference.ents)

    def is_annotated(self, example: Example) -> bool:
        """Whether an example can teach the component anything; by default, whether it says anything on entities."""
        return bool(example.reference.has_annotation("ENT_IOB"))

    def annotated(self, examples: Iterable[Example]) -> List[Example]:
        """The examples that say something.

        examples (Iterable[Example]): Some examples.
        RETURNS (List[Example]): Those that have tokens and are annotated.
        RAISES (WeaknerError): If there are none.
        """
        used = [eg for eg in examples if len(eg.predicted) and self.is_annotated(eg)]
        if not used:
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return used

    # Initialisation

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model.

        get_examples (Callable[[], Iterable[Example]]): Gives a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; without them those of the examples, sorted. Labels that were
            added before come first.
        RAISES (WeaknerError): If there are no labels.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        if labels is None:
            labels = sorted({label for eg in get_examples() for label in self.example_labels(eg)})
        for label in labels:
            self.add_label(label)
        if not self.labels:
            raise WeaknerError(Errors.WK001.format(name=self.name))
        # nlp.initialize() without examples makes one up.
        given = len(list(islice(get_examples(), 2))) > 1
        if given and not any(self.is_annotated(eg) or get_soft_labels(eg.reference) for eg in get_examples()):
            warnings.warn(Warnings.WK900.format(name=self.name), stacklevel=2)
        docs = [eg.reference for eg in islice(get_examples(), 10) if len(eg.reference)]
        docs = docs or [Doc(self.vocab, words=["x"])]
        ops = self.model.ops
        outputs = [ops.alloc2f(len(doc), self.n_outputs) for doc in docs]
        self.model.initialize(X=docs, Y=outputs)

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """RETURNS (int): Width of the model's output."""

    # Training

    @abstractmethod
    def encode_target(self, example: Example) -> Any:
        """The target of one example, on the tokens of its predicted Doc."""

    def encode_targets(self, examples: Iterable[Example]) -> List[Any]:
        """The targets of some examples.

        examples (Iterable[Example]): The examples.
        RETURNS (List[Any]): One each, as `encode_target` gives it.
        RAISES (WeaknerError): For an unknown label.
        """
        targets = []
        for example in examples:
            try:
                targets.append(self.encode_target(example))
            except KeyError as error:
                labels = ", ".join(self.labels)
                message = Errors.WK003.format(name=self.name, label=error.args[0], labels=labels)
                raise WeaknerError(message) from error
        return targets

    def training_docs(self, examples: List[Example]) -> List[Doc]:
        """The Docs that the model reads in an update: those of the examples, and after them perhaps others."""
        return [eg.predicted for eg in examples]

    @abstractmethod
    def compute_loss(self, scores: List[Floats2d], targets: List[Any]) -> Tuple[float, List[Floats2d]]:
        """The mean loss per sentence, and the gradient of the sum over sentences with respect to the scores."""

    def get_loss(self, examples: Iterable[Example], scores: List[Floats2d]) -> Tuple[float, List[Floats2d]]:
        """Compute loss and gradient. Heads with parameters outside the model's forward pass (a CRF) accumulate
        their gradient here.

        examples (Iterable[Example]): The batch.
        scores (List[Floats2d]): The model's output; not written to.
        RETURNS (Tuple[float, List[Floats2d]]): Mean loss per sentence, and gradient per Doc.
        RAISES (WeaknerError): For an unknown label, or if the loss is not a number.
        """
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.get_loss")
        loss, gradient = self.compute_loss(scores, self.encode_targets(examples))
        if not math.isfinite(loss):
            raise WeaknerError(Errors.WK006.format(name=self.name, loss=loss))
        return loss, gradient

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Learn from a batch. Backpropagates even if the batch teaches nothing, since a shared encoder gets its
        gradient only when its last listener calls back.

        examples (Iterable[Example]): The batch.
        drop (float): Dropout rate.
        sgd (Optional[Optimizer]): If given, the weights are updated.
        losses (Optional[Dict[str, float]]): Losses by component, added to.
        RETURNS (Dict[str, float]): The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        if not self.is_initialized:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        if self.needs_clock and self._tick is None:
            raise WeaknerError(Errors.WK004.format(name=self.name))
        set_dropout_rate(self.model, drop)
        scores, backprop = self.model.begin_update(self.training_docs(examples))
        loss, gradient = self.get_loss(examples, scores)
        backprop(gradient)
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights from the gradients, the head's at its own learning rate.

        sgd (Optimizer): The optimizer.
        """

        def scaled(key: Any, weights: Any, gradient: Any) -> Any:
            return sgd(key, weights, gradient, lr_scale=self.head_learn_rate)

        self.model.get_ref("tok2vec").finish_update(sgd)
        for part in filter(self.model.has_ref, self.head_parts):
            self.model.get_ref(part).finish_update(scaled)  # type: ignore[arg-type]

    def tick(self, tick: Tick) -> None:
        """Take note of how far the training is; called by the training clock at every step."""
        self._tick = tick

    # Prediction

    @abstractmethod
    def decode(self, docs: List[Doc], scores: List[Floats2d]) -> List[Prediction]:
        """Turn the model's output into predictions.

        docs (List[Doc]): Docs of like length, none of them empty.
        scores (List[Floats2d]): The model's output per Doc; see `outputs_on_host`.
        RETURNS (List[Prediction]): One per Doc.
        """

    @property
    def nothing(self) -> Prediction:
        """RETURNS (Prediction): The prediction for a Doc without tokens."""
        return Prediction([], [])

    def map_scores(
        self,
        docs: Iterable[Doc],
        function: Callable[[List[Doc], List[Floats2d]], Sequence[T]],
        nothing: T,
        model: Optional[Model[List[Doc], List[Floats2d]]] = None,
    ) -> List[T]:
        """Run the model and apply a function, on Docs of like length together: a batch costs as much time and memory as
        its longest Doc times their number.

        docs (Iterable[Doc]): The Docs; not changed.
        function (Callable[[List[Doc], List[Floats2d]], Sequence[T]]): From Docs and the model's output (see
            `outputs_on_host`) to one result per Doc.
        nothing (T): The result for Docs without tokens.
        model (Optional[Model]): The model; None: the component's own, as it is.
        RETURNS (List[T]): One per Doc.
        RAISES (WeaknerError): If the component is not initialised.
        """
        if not self.is_initialized:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        model = self.model if model is None else model
        docs = list(docs)
        results = [nothing for _ in docs]
        for group in group_by_length([len(doc) for doc in docs], PADDED_TOKENS):
            some = [docs[i] for i in group]
            scores = model.predict(some)
            if self.outputs_on_host:
                scores = [self.model.ops.to_numpy(output) for output in scores]
            for i, result in zip(group, function(some, scores), strict=True):
                results[i] = result
        return results

    def score_tokens(self, docs: Iterable[Doc]) -> List[Floats2d]:
        """Run the model.

        docs (Iterable[Doc]): The Docs.
        RETURNS (List[Floats2d]): Per Doc (n_tokens, n_outputs), on the host.
        """
        nothing: Any = numpy.zeros((0, self.n_outputs), dtype="float32")
        return self.map_scores(docs, lambda _, scores: scores, nothing)

    def predict(self, docs: Iterable[Doc]) -> List[Prediction]:
        """Predict without changing the Docs.

        docs (Iterable[Doc]): The Docs.
        RETURNS (List[Prediction]): One per Doc.
        """
        return self.map_scores(docs, self.decode, self.nothing)

    def set_annotations(self, docs: Iterable[Doc], predictions: List[Prediction]) -> None:
        """Write `doc.ents`, `ent._.weakner_score` and, where there are candidates, the span group `pred:<name>`.

        docs (Iterable[Doc]): The Docs.
        predictions (List[Prediction]): As `predict` gave them.
        """
        for doc, prediction in zip(docs, predictions, strict=True):
            ents = [] if self.overwrite else list(doc.ents)
            blocked = [] if self.overwrite else _blocked_tokens(doc)
            for (start, end, label), score in zip(prediction.entities, prediction.scores, strict=True):
                ent = Span(doc, start, end, label=label)
                if score != ent._.weakner_score:  # an earlier run may have left one
                    ent._.weakner_score = score
                ents.append(ent)
            doc.set_ents(sorted(ents, key=lambda ent: ent.start), blocked=blocked)
            if prediction.candidates is not None:
                group = PREDICTED_PREFIX + self.name
                set_group(doc, group, prediction.candidates, list(prediction.candidate_scores))

    def preset_tokens(self, doc: Doc) -> BoolMask:
        """Tokens whose annotation has to stay: those of entities that stand in a Doc already, and blocked ones.

        doc (Doc): The Doc.
        RETURNS (BoolMask): Shape (n_tokens,).
        """
        if self.overwrite:
            return numpy.zeros(len(doc), dtype=bool)
        annotation = doc.to_array([ENT_IOB, ENT_TYPE])
        preset: BoolMask = (annotation[:, 1] != 0) | (annotation[:, 0] == BEGINS)
        return preset


def _blocked_tokens(doc: Doc) -> List[Span]:
    # A token that begins an entity without a type is one that must not be part of any.
    annotation = doc.to_array([ENT_IOB, ENT_TYPE])
    found = numpy.flatnonzero((annotation[:, 0] == BEGINS) & (annotation[:, 1] == 0)).tolist()
    return [doc[i : i + 1] for i in found]


def trim_whitespace(doc: Doc, entities: Iterable[Entity]) -> List[Entity]:
    """Take white-space tokens off the ends of entities, and drop entities that consist of nothing else.

    doc (Doc): The Doc of the entities.
    entities (Iterable[Entity]): The entities.
    RETURNS (List[Entity]): What remains.
    """
    result = []
    for start, end, label in entities:
        while start < end and doc[start].is_space:
            start += 1
        while start < end and doc[end - 1].is_space:
            end -= 1
        if start < end:
            result.append((start, end, label))
    return result

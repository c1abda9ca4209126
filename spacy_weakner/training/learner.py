"""What all trainable components of this package share, whatever they predict."""

import math
import warnings
from abc import abstractmethod
from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, TypeVar

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..batching import group_by_length
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..ty import Tick

T = TypeVar("T")
# Size of the batches in prediction.
PADDED_TOKENS = 2000


class Learner(TrainablePipe):
    """Base of all trainable components: labels, initialisation, the update protocol, batches in prediction.

    The model has the references "tok2vec" (the encoder, or a listener) and "head" (all that is the component's own). Its
    output has one item per Doc: an array of scores. In `cfg`, which is saved, stands only what training creates;
    settings are plain attributes, so that those of the loading config win.

    vocab (Vocab): The shared vocabulary.
    model (Model): The model.
    name (str): Name of the component in the pipeline.
    head_learn_rate (float): Factor on the learning rate for all that does not belong to the encoder.
    scorer (Optional[Callable]): The scoring method.
    """

    needs_clock = False
    # Whether the weights know which label is which.
    labels_have_weights = True
    # What the head consists of, by references of the model, which need not have them all: these parts learn at the head's
    # own rate, and are loaded together.
    head_parts: Tuple[str, ...] = ("head",)
    # Whether the functions given to `map_scores` want the model's output on the host.
    outputs_on_host = True
    # What the labels are labels of, for messages; and what to say if the examples have none.
    kind = "entity"
    nothing_to_learn = Warnings.WK900

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], Any],
        name: str,
        *,
        head_learn_rate: float = 1.0,
        scorer: Optional[Callable] = None,
    ) -> None:
        check_range("head_learn_rate", head_learn_rate, 0.0, None)
        self.vocab = vocab
        self.model = model
        self.name = name
        self.head_learn_rate = head_learn_rate
        self.scorer = scorer
        self.cfg: Dict[str, Any] = {"labels": []}
        self._tick: Optional[Tick] = None
        self._hook: Optional[Callable[[Optimizer], None]] = None

    # Labels

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels, in the order that fixes the model's outputs."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> List[str]:
        """RETURNS (List[str]): The labels as `spacy init labels` stores them."""
        return list(self.cfg["labels"])

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
        head = self.model.get_ref("head")
        return any(node.has_param(name) for node in head.walk() for name in node.param_names)

    @abstractmethod
    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels that an example shows."""

    @abstractmethod
    def is_annotated(self, example: Example) -> bool:
        """Whether an example is annotated for what the component predicts."""

    def teaches(self, example: Example) -> bool:
        """Whether an example can teach the component anything; by default, whether it is annotated."""
        return self.is_annotated(example)

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
        self.check_labels()
        # nlp.initialize() without examples makes one up.
        given = len(list(islice(get_examples(), 2))) > 1
        if given and not any(self.teaches(eg) for eg in get_examples()):
            warnings.warn(self.nothing_to_learn.format(name=self.name), stacklevel=2)
        docs = [eg.reference for eg in islice(get_examples(), 10) if len(eg.reference)]
        docs = docs or [Doc(self.vocab, words=["x"])]
        self.model.initialize(X=docs, Y=self.sample_output(docs))

    def check_labels(self) -> None:
        """Make sure that the component can work with its labels.

        RAISES (WeaknerError): If there are none.
        """
        if not self.labels:
            raise WeaknerError(Errors.WK001.format(name=self.name, kind=self.kind))

    @abstractmethod
    def sample_output(self, docs: List[Doc]) -> Any:
        """Zeros in the shape of the model's output."""

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
                message = Errors.WK003.format(name=self.name, kind=self.kind, label=error.args[0], labels=labels)
                raise WeaknerError(message) from error
        return targets

    def training_docs(self, examples: List[Example]) -> List[Doc]:
        """The Docs that the model reads in an update: those of the examples, and after them perhaps others."""
        return [eg.predicted for eg in examples]

    @abstractmethod
    def compute_loss(self, scores: Any, targets: List[Any]) -> Tuple[float, Any]:
        """The mean loss per sentence, and the gradient of the sum over sentences with respect to the scores."""

    def get_loss(self, examples: Iterable[Example], scores: Any) -> Tuple[float, Any]:
        """Compute loss and gradient. Heads with parameters outside the model's forward pass (a CRF) accumulate
        their gradient here.

        examples (Iterable[Example]): The batch.
        scores (Any): The model's output; not written to.
        RETURNS (Tuple[float, Any]): Mean loss per sentence, and the gradient of the scores.
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

    def at_head_rate(self, sgd: Optimizer) -> Any:
        """An optimizer at the head's own learning rate.

        sgd (Optimizer): The optimizer.
        RETURNS (Any): What `finish_update` of a model may be called with.
        """

        def scaled(key: Any, weights: Any, gradient: Any) -> Any:
            return sgd(key, weights, gradient, lr_scale=self.head_learn_rate)

        return scaled

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights from the gradients, the head's at its own learning rate.

        sgd (Optimizer): The optimizer.
        """
        self.model.get_ref("tok2vec").finish_update(sgd)
        for part in filter(self.model.has_ref, self.head_parts):
            self.model.get_ref(part).finish_update(self.at_head_rate(sgd))
        hook, self._hook = self._hook, None
        if hook is not None:
            hook(sgd)

    def on_next_update(self, hook: Callable[[Optimizer], None]) -> None:
        """Have a function called with the optimizer at the end of the next update, and then forgotten.

        hook (Callable[[Optimizer], None]): The function.
        """
        self._hook = hook

    def tick(self, tick: Tick) -> None:
        """Take note of how far the training is; called by the training clock at every step."""
        self._tick = tick

    # Prediction

    @abstractmethod
    def decode(self, docs: List[Doc], scores: Any) -> Sequence[Any]:
        """Turn the model's output into predictions.

        docs (List[Doc]): Docs of like length, none of them empty.
        scores (Any): The model's output, one item per Doc; see `outputs_on_host`.
        RETURNS (Sequence[Any]): One prediction per Doc.
        """

    @property
    @abstractmethod
    def nothing(self) -> Any:
        """RETURNS (Any): The prediction for a Doc without tokens."""

    def map_scores(
        self,
        docs: Iterable[Doc],
        function: Callable[[List[Doc], Any], Sequence[T]],
        nothing: T,
        model: Optional[Model[List[Doc], Any]] = None,
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

    def predict(self, docs: Iterable[Doc]) -> List[Any]:
        """Predict without changing the Docs.

        docs (Iterable[Doc]): The Docs.
        RETURNS (List[Any]): One prediction per Doc.
        """
        return self.map_scores(docs, self.decode, self.nothing)

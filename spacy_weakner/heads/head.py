"""The base of all heads, which are the trainable components of this package."""

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Generic, Iterable, List, Optional, Sequence, Set, Tuple, TypeVar, Union

import numpy
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..batching import group_by_length
from ..corpus.parts import Merge, Part, Parts, split_examples
from ..errors import Errors, UnknownLabel, Warnings, WeaknerError, check_range
from ..files import is_text, reading_stored
from ..linear.sparse import check_readable
from ..ty import TrainingProgress
from .factories import require_extras
from .layers import is_listener, lack_encoder, needs_whole_docs

T = TypeVar("T")
# Types of the model's outputs for a batch, of the target of one example, and of the prediction for one Doc.
OutputsT = TypeVar("OutputsT")
TargetT = TypeVar("TargetT")
PredictionT = TypeVar("PredictionT")
# The mean loss per sentence, and a callback that backpropagates the gradient of the sum over sentences.
Loss = Tuple[float, Callable[[], None]]
# Loss of a batch without tokens.
NO_LOSS: Loss = (0.0, lambda: None)
# Number of examples that are searched for names, and for spans that cannot be learned, if the labels are given.
SEARCHED = 10_000
# Maximum padded tokens of a batch in prediction: by default, and on a GPU, which small batches leave idle.
PADDED_TOKENS = 2000
PADDED_GPU = 20_000


@dataclass
class TrainingBatch(Generic[TargetT]):
    """The sentences and targets of an update.

    texts (Parts): The predicted Docs and their sentences.
    examples (List[Example]): One per sentence.
    targets (List[TargetT]): One per sentence.
    """

    texts: Parts
    examples: List[Example]
    targets: List[TargetT]

    @property
    def n_sentences(self) -> int:
        """RETURNS (int): Number of sentences that have tokens."""
        return sum(len(eg.predicted) > 0 for eg in self.examples)


class TrainableHead(TrainablePipe, Generic[OutputsT, TargetT, PredictionT]):
    """Base of all heads: labels, initialization, the update protocol, batches in prediction. A head adds targets, loss
    and decoding.

    If a Doc has sentence bounds, each sentence is processed separately, without white space tokens, so that predictions
    do not depend on how a text is split into Docs or wrapped into lines. (A shared encoder reads whole Docs.)

    The model has the references "tok2vec" (the encoder, or a listener) and "head" (the component's own layers). Its
    outputs have one item per Doc, from which the head makes predictions: scores of tokens or of the Doc, or vectors
    which the head scores itself. `cfg`, which is saved, contains only results of training; settings are plain
    attributes, so that those in the config at load time take effect.

    vocab (Vocab): The shared vocabulary.
    model (Model): The model.
    name (str): Name of the component in the pipeline.
    head_learn_rate (float): Factor on the learning rate of all weights outside the encoder.
    scorer (Optional[Callable]): The scoring method.
    """

    # True if the head needs the training clock.
    needs_clock = False
    # False if labels have no weights of their own.
    labels_have_weights = True
    # True if each sentence of a Doc is processed separately.
    by_sentence = True
    # The kind of labels, for messages; and the warning for examples without annotation.
    kind = "entity"
    nothing_to_learn = Warnings.WK900

    def __init__(
        self,
        vocab: Vocab,
        model: Model[Any, OutputsT],
        name: str,
        *,
        head_learn_rate: float = 1.0,
        scorer: Optional[Callable] = None,
    ) -> None:
        check_range("head_learn_rate", head_learn_rate, 0.0, None)
        check_readable(name, model)
        self.vocab = vocab
        self.model = model
        self.name = name
        self.head_learn_rate = head_learn_rate
        self.scorer = scorer
        self.cfg: Dict[str, Any] = {"labels": []}
        self._tick: Optional[TrainingProgress] = None
        self._hook: Optional[Callable[[Optimizer], None]] = None

    # Serialization

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "TrainableHead":
        """Load the component like `TrainablePipe`.

        RAISES (WeaknerError): If the data are damaged.
        """
        with reading_stored(self.name):
            super().from_bytes(bytes_data, exclude=exclude)
        if "cfg" not in exclude:
            self._check_stored()
        return self

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "TrainableHead":
        """Load the component like `TrainablePipe`.

        RAISES (WeaknerError): If the data are damaged.
        """
        with reading_stored(self.name):
            super().from_disk(path, exclude=exclude)
        if "cfg" not in exclude:
            self._check_stored()
        return self

    def _check_stored(self) -> None:
        labels: Any = self.cfg.get("labels")
        are_names = isinstance(labels, list) and all(is_text(label) and label for label in labels)
        if not are_names or len({*labels}) < len(labels):
            raise WeaknerError(Errors.WK800.format(name=self.name, reason="'cfg' has no valid list of labels"))
        head = self.model.maybe_get_ref("head")
        stored = None if head is None or head.has_dim("nO") is not True else head.get_dim("nO")
        if stored is not None and stored != self.n_outputs:
            reason = f"the {len(labels)} labels in 'cfg' do not fit the weights, which have {stored} outputs"
            raise WeaknerError(Errors.WK800.format(name=self.name, reason=reason))

    # Labels

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels, in the order of the model's outputs."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> List[str]:
        """RETURNS (List[str]): The labels in the format of `spacy init labels`."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label before the component is initialized.

        label (str): The label.
        RETURNS (int): 0 if the label exists, else 1.
        RAISES (ValueError): If it is not a string, or the component is already initialized.
        """
        if not isinstance(label, str):
            raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a string"))
        if label in self.labels:
            return 0
        if self.is_initialized:
            listed = ", ".join(self.labels)
            raise ValueError(
                f"'{self.name}' was initialized with the labels {listed}, so '{label}' cannot be added. Create a "
                "new component to train it with other labels."
            )
        self.cfg["labels"] = [*self.cfg["labels"], label]
        self.vocab.strings.add(label)
        return 1

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): True if the model has weights."""
        head = self.model.get_ref("head")
        return any(node.has_param(name) for node in head.walk() for name in node.param_names)

    @abstractmethod
    def example_labels(self, example: Example) -> Iterable[str]:
        """Return the labels in an example."""

    def note_example(self, example: Example) -> None:
        """Note what else than labels is needed of an example. With given labels, only the first 10,000 are noted."""

    @abstractmethod
    def is_annotated(self, example: Example) -> bool:
        """Return True if an example has the annotation that the component predicts."""

    def has_targets(self, example: Example) -> bool:
        """Return True if an example can be used for training; by default, if it is annotated."""
        return self.is_annotated(example)

    # Initialization

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model. The state of an earlier training, except its weights, is removed.

        get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels, after those added before; None: those of the examples, sorted.
        RAISES (WeaknerError): If there are no labels.
        """
        self.reset_training()
        if nlp is not None:
            require_extras(nlp)
        # Only a few, since the validation reads all of them.
        few = (lambda: list(islice(get_examples() or (), 10))) if callable(get_examples) else get_examples
        validate_get_examples(few, f"{type(self).__name__}.initialize")
        found: Set[str] = set()
        for eg in islice(get_examples(), None if labels is None else SEARCHED):
            found.update(self.example_labels(eg) if labels is None else ())
            self.note_example(eg)
        for label in sorted(found) if labels is None else labels:
            self.add_label(label)
        self.check_labels()
        # nlp.initialize() without examples creates a single artificial one.
        given = len(list(islice(get_examples(), 2))) > 1
        if given and not any(self.has_targets(eg) for eg in get_examples()):
            warnings.warn(self.nothing_to_learn.format(name=self.name), stacklevel=2)
        docs = [eg.reference for eg in islice(get_examples(), 10) if len(eg.reference)]
        docs = docs or [Doc(self.vocab, words=["x"])]
        # Only the width of Y is used.
        scores: Any = [self.model.ops.alloc2f(len(doc), self.n_outputs) for doc in docs]
        self.model.initialize(X=self.model_inputs(docs), Y=scores)

    def reset_training(self) -> None:
        """Remove the state of an earlier training, except its weights."""
        self._tick = None

    def check_labels(self) -> None:
        """Check that the component can use its labels.

        RAISES (WeaknerError): If there are no labels.
        """
        if not self.labels:
            raise WeaknerError(Errors.WK001.format(name=self.name, kind=self.kind))

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """RETURNS (int): The number of scores that the reference "head" computes for a token, span or Doc."""

    def model_inputs(self, docs: List[Doc]) -> Any:
        """Return the model's inputs for some Docs; by default, the Docs."""
        return docs

    # Training

    @abstractmethod
    def encode_target(self, example: Example) -> TargetT:
        """Return the target of an example, aligned to the tokens of its predicted Doc; `UnknownLabel` for an
        unknown label."""

    def read_batch(self, examples: List[Example]) -> TrainingBatch[TargetT]:
        """Split examples into sentences, and encode their targets.

        RAISES (WeaknerError): If a label is unknown.
        """
        texts, sentences = self.split_examples(examples)
        try:
            return TrainingBatch(texts, sentences, [self.encode_target(eg) for eg in sentences])
        except UnknownLabel as error:
            labels = ", ".join(self.labels)
            message = Errors.WK003.format(name=self.name, kind=self.kind, label=error.args[0], labels=labels)
            raise WeaknerError(message) from error

    @abstractmethod
    def forward_loss(self, batch: TrainingBatch[TargetT]) -> Loss:
        """Run the model on a batch with `begin_update`, and compute the loss. Gradients change only when the callback
        is called; it is called even if no target has a loss.

        batch (TrainingBatch[TargetT]): The batch; it has tokens.
        RETURNS (Loss): The mean loss per sentence; and a callback that backpropagates the gradient of the sum over
            sentences.
        """

    def begin_update(
        self, batch: TrainingBatch[TargetT], more: Sequence[Doc] = ()
    ) -> Tuple[OutputsT, Callable[[Any], Any]]:
        """Run the model on the sentences of a batch.

        batch (TrainingBatch[TargetT]): The batch.
        more (Sequence[Doc]): Further Docs for the model to read after these; not for a head on a shared encoder.
        RETURNS (Tuple[OutputsT, Callable]): The model's outputs, and a callback that takes their gradient.
        """
        texts, model = batch.texts, self.model
        if texts.are_whole or not needs_whole_docs(model):
            return model.begin_update(self.model_inputs([*texts.docs, *more]))
        whole: Any
        whole, backprop = model.begin_update(self.model_inputs(texts.texts))
        rows: Any = texts.select(whole)
        return rows, lambda gradient: backprop(texts.spread(gradient, whole))  # type: ignore[arg-type]

    def batch_loss(self, examples: List[Example]) -> Loss:
        """Read a batch and compute its loss; see `forward_loss`.

        RAISES (WeaknerError): If a label is unknown, or the loss is not finite.
        """
        batch = self.read_batch(examples)
        loss, backprop = self.forward_loss(batch) if batch.n_sentences else NO_LOSS
        self.check_loss(loss)
        return loss, backprop

    def check_loss(self, loss: float) -> None:
        """Raise an error if a loss is not finite."""
        if not math.isfinite(loss):
            raise WeaknerError(Errors.WK006.format(name=self.name, loss=loss))

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Train on a batch. Gradients are backpropagated even if no target has a loss, since a shared encoder gets its
        gradient only when its last listener calls back; but not if the batch has no visible token.

        examples (Iterable[Example]): The batch.
        drop (float): Dropout rate.
        sgd (Optional[Optimizer]): The optimizer; without it, weights are not updated.
        losses (Optional[Dict[str, float]]): Losses by component, to which this loss is added.
        RETURNS (Dict[str, float]): The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not self.is_initialized:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        if self.needs_clock and self._tick is None:
            raise WeaknerError(Errors.WK004.format(name=self.name))
        set_dropout_rate(self.model, drop)
        loss, backprop = self.batch_loss(examples)
        backprop()
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the weights from the gradients: the encoder's at the learning rate, all others at the head's rate.

        sgd (Optimizer): The optimizer.
        """

        def scaled(key: Any, weights: Any, gradient: Any) -> Any:
            return sgd(key, weights, gradient, lr_scale=self.head_learn_rate)

        encoder = self.model.get_ref("tok2vec")
        encoder.finish_update(sgd)
        below: Set[int] = {id(node) for node in encoder.walk()}
        for node in self.model.walk():
            if id(node) not in below:
                _finish_node(node, scaled)
        hook, self._hook = self._hook, None
        if hook is not None:
            hook(sgd)

    def on_next_update(self, hook: Callable[[Optimizer], None]) -> None:
        """Register a function that is called once, with the optimizer, at the end of the next update.

        hook (Callable[[Optimizer], None]): The function.
        """
        self._hook = hook

    def tick(self, tick: TrainingProgress) -> None:
        """Note the progress of training; the training clock calls this method at every step."""
        self._tick = tick

    # Sentences

    def split_examples(self, examples: List[Example]) -> Tuple[Parts, List[Example]]:
        """Split examples into the parts that the head trains on separately.

        examples (List[Example]): The examples.
        RETURNS (Tuple[Parts, List[Example]]): The parts of the predicted Docs, and an example for each part.
        """
        if self._reads_whole():
            return self.split_docs(eg.predicted for eg in examples), examples
        parts, split = split_examples(examples, self.by_sentence)
        if is_listener(self.model):
            parts.share_encoding()
        return parts, split

    def split_docs(self, docs: Iterable[Doc]) -> Parts:
        """Split Docs into the parts that the head processes separately.

        docs (Iterable[Doc]): The Docs.
        RETURNS (Parts): Their parts.
        """
        docs = list(docs)
        if self._reads_whole():
            return Parts(docs, [[Part(doc, numpy.arange(len(doc)))] for doc in docs])
        parts = Parts.of(docs, self.by_sentence)
        if is_listener(self.model):
            parts.share_encoding()
        return parts

    def _reads_whole(self) -> bool:
        # The output for a whole text has no rows for its parts to select.
        return not self.by_sentence and is_listener(self.model)

    # Prediction

    @abstractmethod
    def decode(self, docs: List[Doc], outputs: Any) -> List[PredictionT]:
        """Turn the model's outputs into predictions.

        docs (List[Doc]): Docs of similar length, none of them empty.
        outputs (Any): The model's outputs, one item per Doc, on its device.
        RETURNS (List[PredictionT]): One prediction per Doc.
        """

    @property
    @abstractmethod
    def empty_prediction(self) -> PredictionT:
        """RETURNS (PredictionT): The prediction for a Doc without tokens."""

    @abstractmethod
    def merge(self, doc: Doc, parts: List[Part], predictions: List[PredictionT]) -> PredictionT:
        """Merge the predictions for the parts of a Doc.

        doc (Doc): The Doc.
        parts (List[Part]): Its parts; none if it has no visible tokens.
        predictions (List[PredictionT]): One prediction per part.
        RETURNS (PredictionT): The prediction for the Doc.
        """

    def predict(self, docs: Iterable[Doc]) -> List[PredictionT]:
        """Predict without changing the Docs.

        docs (Iterable[Doc]): The Docs.
        RETURNS (List[PredictionT]): One prediction per Doc.
        """
        return self.map_sentences(docs, self.decode, self.empty_prediction, self.merge)

    def map_sentences(
        self, docs: Iterable[Doc], function: Callable[..., Sequence[T]], nothing: T, merge: Merge[T]
    ) -> List[T]:
        """Run the model and apply a function to the sentences of some Docs, and merge the results.

        docs (Iterable[Doc]): The Docs; not changed.
        function, nothing: As in `map_outputs`.
        merge (Merge[T]): Maps a Doc, its parts and their results to the result of the Doc.
        RETURNS (List[T]): One result per Doc.
        RAISES (WeaknerError): If the component is not initialized.
        """
        parts = self.split_docs(docs)
        return parts.merge(self.map_outputs(parts.docs, function, nothing), merge)

    def map_outputs(
        self,
        docs: Iterable[Doc],
        function: Callable[..., Sequence[T]],
        nothing: T,
        *others: Sequence[Any],
        model: Optional[Model[Any, OutputsT]] = None,
    ) -> List[T]:
        """Run the model and apply a function in batches of Docs of similar length, since the time and memory of a batch
        are proportional to the length of its longest Doc times its number of Docs.

        docs (Iterable[Doc]): The Docs, which are not split; not changed.
        function (Callable[..., Sequence[T]]): Maps a list of Docs, the model's outputs, on its device, and lists of
            the others to one result per Doc.
        nothing (T): The result for Docs without tokens.
        *others (Sequence[Any]): Further arguments of the function, one item per Doc.
        model (Optional[Model]): The model; None: the component's current model.
        RETURNS (List[T]): One result per Doc.
        RAISES (WeaknerError): If the component is not initialized.
        """
        if not self.is_initialized:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        model = self.model if model is None else model
        docs = list(docs)
        results = [nothing for _ in docs]
        for group in group_by_length([len(doc) for doc in docs], self._padded_tokens(model)):
            some, *more = ([items[i] for i in group] for items in (docs, *others))
            if lack_encoder(model, some):
                raise WeaknerError(Errors.WK009.format(name=self.name))
            found = function(some, model.predict(self.model_inputs(some)), *more)
            if len(found) != len(some):
                raise ValueError(
                    f"'{self.name}' made {len(found)} results for {len(some)} Docs: 'decode' must make one each."
                )
            for i, result in zip(group, found, strict=True):
                results[i] = result
        return results

    @property
    def outputs_per_token(self) -> int:
        """RETURNS (int): Number of rows of the model's output for each token; on a GPU, batches are smaller by this."""
        return 1

    def _padded_tokens(self, model: Model) -> int:
        return PADDED_TOKENS if model.ops.device_type == "cpu" else PADDED_GPU // self.outputs_per_token


def _finish_node(node: Model, step: Any) -> None:
    """Update the weights of one node of a model, without its layers."""
    for shim in node.shims:
        shim.finish_update(step)
    for name in node.param_names:
        if node.has_grad(name):
            weights, _ = step((node.id, name), node.get_param(name), node.get_grad(name))
            node.set_param(name, weights)

"""The base of all heads: the trainable components of this package, whatever they predict."""

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
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..files import is_text, reading_stored
from ..linear.sparse import check_readable
from ..ty import Tick
from .layers import is_listener, to_host

T = TypeVar("T")
# What the model gives of a batch, what one example teaches, and what is predicted for one Doc.
OutputsT = TypeVar("OutputsT")
TargetT = TypeVar("TargetT")
PredictionT = TypeVar("PredictionT")
# The mean loss per sentence, and what backpropagates the gradient of the sum over sentences.
Loss = Tuple[float, Callable[[], None]]
# That of a batch without tokens.
NO_LOSS: Loss = (0.0, lambda: None)
# Padded tokens of a batch in prediction; with spacy-transformers on a CPU, where padding costs more than many batches
# (`TransformerEncoder` makes its own); and on a GPU, which small batches leave idle.
PADDED_TOKENS = 2000
PADDED_TRANSFORMER = 400
PADDED_GPU = 20_000


@dataclass
class TrainingBatch(Generic[TargetT]):
    """What a head learns from in an update.

    texts (Parts): The predicted Docs and their sentences.
    examples (List[Example]): One per sentence.
    targets (List[TargetT]): One per sentence.
    """

    texts: Parts
    examples: List[Example]
    targets: List[TargetT]

    @property
    def n_sentences(self) -> int:
        """RETURNS (int): How many sentences have tokens."""
        return sum(len(eg.predicted) > 0 for eg in self.examples)


class TrainableHead(TrainablePipe, Generic[OutputsT, TargetT, PredictionT]):
    """Base of all heads: labels, initialization, the update protocol, batches in prediction. A head adds targets, loss
    and decoding.

    A head learns and predicts sentence by sentence, if a Doc has sentence bounds, and sees visible tokens alone, so
    that a text gives what its sentences give, however it is wrapped. (An encoder that is shared reads whole Docs.)

    The model has the references "tok2vec" (the encoder, or a listener) and "head" (all that is the component's own).
    Its outputs are whatever the head makes its predictions of, one item per Doc: scores of tokens or of the Doc, or
    vectors which the head scores itself. `cfg`, which is saved, holds only what training creates; settings are plain
    attributes, so that those of the loading config win.

    vocab (Vocab): The shared vocabulary.
    model (Model): The model.
    name (str): Name of the component in the pipeline.
    head_learn_rate (float): Factor on the learning rate for all that does not belong to the encoder.
    scorer (Optional[Callable]): The scoring method.
    """

    # True if the training clock has to tell how far the training is.
    needs_clock = False
    # False if the weights are the same for all labels.
    labels_have_weights = True
    # True if the function given to `map_outputs` wants the model's outputs on the host.
    outputs_on_host = True
    # True if each sentence of a Doc is read by itself.
    by_sentence = True
    # What the labels name, for messages; and the warning for examples without any annotation.
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
        self._tick: Optional[Tick] = None
        self._hook: Optional[Callable[[Optimizer], None]] = None

    # Serialization

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "TrainableHead":
        """As `TrainablePipe` does it.

        RAISES (WeaknerError): If what is stored is damaged.
        """
        with reading_stored(self.name):
            super().from_bytes(bytes_data, exclude=exclude)
        if "cfg" not in exclude:
            self._check_stored()
        return self

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "TrainableHead":
        """As `TrainablePipe` does it.

        RAISES (WeaknerError): If what is stored is damaged.
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
            raise WeaknerError(Errors.WK800.format(name=self.name, reason="its labels in 'cfg' are no list of names"))
        head = self.model.maybe_get_ref("head")
        stored = None if head is None or head.has_dim("nO") is not True else head.get_dim("nO")
        if stored is not None and stored != self.n_outputs:
            reason = f"the {len(labels)} labels in 'cfg' do not fit the weights, which have {stored} outputs"
            raise WeaknerError(Errors.WK800.format(name=self.name, reason=reason))

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
        """Add a label before the component is initialized.

        label (str): The label.
        RETURNS (int): 0 if it was there already, else 1.
        RAISES (ValueError): If it is not a string, or the component is initialized already.
        """
        if not isinstance(label, str):
            raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a string"))
        if label in self.labels:
            return 0
        if self.is_initialized:
            listed = ", ".join(self.labels)
            raise ValueError(
                f"'{self.name}' was initialized with the labels {listed}, so '{label}' cannot be added. Create the "
                "component anew to train it with other labels."
            )
        self.cfg["labels"] = [*self.cfg["labels"], label]
        self.vocab.strings.add(label)
        return 1

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): True if the model has its weights."""
        head = self.model.get_ref("head")
        return any(node.has_param(name) for node in head.walk() for name in node.param_names)

    @abstractmethod
    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels that an example shows."""

    @abstractmethod
    def is_annotated(self, example: Example) -> bool:
        """True if an example is annotated for what the component predicts."""

    def teaches(self, example: Example) -> bool:
        """True if an example can teach the component anything; by default, if it is annotated."""
        return self.is_annotated(example)

    # Initialization

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model. What an earlier training has left beside the weights is forgotten.

        get_examples (Callable[[], Iterable[Example]]): Gives a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; without them those of the examples, sorted. Labels that were
            added before come first.
        RAISES (WeaknerError): If there are no labels.
        """
        self.reset_training()
        # A few, since it reads all that it is given.
        few = (lambda: list(islice(get_examples() or (), 10))) if callable(get_examples) else get_examples
        validate_get_examples(few, f"{type(self).__name__}.initialize")
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
        # Of Y only the width is read.
        scores: Any = [self.model.ops.alloc2f(len(doc), self.n_outputs) for doc in docs]
        self.model.initialize(X=self.model_inputs(docs), Y=scores)

    def reset_training(self) -> None:
        """Forget what an earlier training has left beside the weights."""
        self._tick = None

    def check_labels(self) -> None:
        """Make sure that the component can work with its labels.

        RAISES (WeaknerError): If there are none.
        """
        if not self.labels:
            raise WeaknerError(Errors.WK001.format(name=self.name, kind=self.kind))

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """RETURNS (int): The number of scores that the reference "head" makes of a token, span or Doc."""

    def model_inputs(self, docs: List[Doc]) -> Any:
        """What the model reads of some Docs; by default, the Docs."""
        return docs

    # Training

    @abstractmethod
    def encode_target(self, example: Example) -> TargetT:
        """The target of one example, on the tokens of its predicted Doc. (A KeyError names an unknown label.)"""

    def read_batch(self, examples: List[Example]) -> TrainingBatch[TargetT]:
        """Split examples into sentences, and encode their targets.

        RAISES (WeaknerError): For an unknown label.
        """
        texts, sentences = self.split_examples(examples)
        try:
            return TrainingBatch(texts, sentences, [self.encode_target(eg) for eg in sentences])
        except KeyError as error:
            labels = ", ".join(self.labels)
            message = Errors.WK003.format(name=self.name, kind=self.kind, label=error.args[0], labels=labels)
            raise WeaknerError(message) from error

    @abstractmethod
    def forward_loss(self, batch: TrainingBatch[TargetT]) -> Loss:
        """Run the model on a batch, by `begin_update`, and compute the loss. No gradient changes before the callback is
        called; it is called even if the batch teaches nothing.

        batch (TrainingBatch[TargetT]): The batch; there are tokens in it.
        RETURNS (Loss): The mean loss per sentence; and a callback that backpropagates the gradient of the sum over
            sentences.
        """

    def begin_update(
        self, batch: TrainingBatch[TargetT], more: Sequence[Doc] = ()
    ) -> Tuple[OutputsT, Callable[[Any], Any]]:
        """Run the model on the sentences of a batch.

        batch (TrainingBatch[TargetT]): The batch.
        more (Sequence[Doc]): Other Docs that the model reads after them; not for a head on a shared encoder.
        RETURNS (Tuple[OutputsT, Callable]): The model's outputs, and a callback that takes their gradient.
        """
        texts = batch.texts
        if texts.are_whole or not is_listener(self.model):
            return self.model.begin_update(self.model_inputs([*texts.docs, *more]))
        # A shared encoder has to be asked for the very Docs that it was given.
        whole, backprop = self.model.begin_update(self.model_inputs(texts.texts))
        rows: Any = whole
        selected: Any = texts.select(rows)

        def backprop_rows(gradient: Any) -> Any:
            by_text: Any = texts.spread(gradient, rows)
            return backprop(by_text)

        return selected, backprop_rows

    def get_loss(self, examples: Iterable[Example], scores: Any = None) -> Loss:
        """Compute the loss of a batch, without the dropout of thinc's layers. Unlike that of spaCy's components, it
        runs the model and gives a callback in place of a gradient: no weight's gradient changes unless that is called.

        examples (Iterable[Example]): The batch.
        scores (Any): Not read.
        RETURNS (Loss): As `forward_loss` gives it.
        RAISES (WeaknerError): For an unknown label, or if the loss is not a number.
        """
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.get_loss")
        set_dropout_rate(self.model, 0.0)
        return self.batch_loss(examples)

    def batch_loss(self, examples: List[Example]) -> Loss:
        """Read a batch and compute its loss, as `forward_loss` gives it.

        RAISES (WeaknerError): For an unknown label, or if the loss is not a number.
        """
        batch = self.read_batch(examples)
        loss, backprop = self.forward_loss(batch) if batch.n_sentences else NO_LOSS
        self.check_loss(loss)
        return loss, backprop

    def check_loss(self, loss: float) -> None:
        """Refuse a loss that is not a number."""
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
        """Learn from a batch. Backpropagates even if the batch teaches nothing, since a shared encoder gets its
        gradient only when its last listener calls back; but not if it has no visible token.

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
        """Update the weights from the gradients: those of the encoder at the learning rate, all others at the head's.

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
        """Have a function called with the optimizer at the end of the next update, and then forgotten.

        hook (Callable[[Optimizer], None]): The function.
        """
        self._hook = hook

    def tick(self, tick: Tick) -> None:
        """Take note of how far the training is; the training clock calls this at every step."""
        self._tick = tick

    # Sentences

    def split_examples(self, examples: List[Example]) -> Tuple[Parts, List[Example]]:
        """Split examples into what the head learns from one by one.

        examples (List[Example]): The examples.
        RETURNS (Tuple[Parts, List[Example]]): The parts of the predicted Docs, and for each part an example.
        """
        if self._reads_whole():
            return self.split_docs(eg.predicted for eg in examples), examples
        return split_examples(examples, self.by_sentence)

    def split_docs(self, docs: Iterable[Doc]) -> Parts:
        """Split Docs into what the head reads one by one.

        docs (Iterable[Doc]): The Docs.
        RETURNS (Parts): Their parts.
        """
        docs = list(docs)
        if self._reads_whole():
            return Parts(docs, [[Part(doc, numpy.arange(len(doc)))] for doc in docs])
        return Parts.of(docs, self.by_sentence)

    def _reads_whole(self) -> bool:
        # What a shared encoder gives of a text as a whole has no rows to choose from.
        return not self.by_sentence and is_listener(self.model)

    # Prediction

    @abstractmethod
    def decode(self, docs: List[Doc], outputs: Any) -> List[PredictionT]:
        """Turn the model's outputs into predictions.

        docs (List[Doc]): Docs of like length, none of them empty.
        outputs (Any): The model's, one item per Doc; see `outputs_on_host`.
        RETURNS (List[PredictionT]): One per Doc.
        """

    @property
    @abstractmethod
    def nothing(self) -> PredictionT:
        """RETURNS (PredictionT): The prediction for a Doc without tokens."""

    @abstractmethod
    def merge(self, doc: Doc, parts: List[Part], predictions: List[PredictionT]) -> PredictionT:
        """Put the predictions for the parts of a Doc together.

        doc (Doc): The Doc.
        parts (List[Part]): Its parts; none if it has no visible tokens.
        predictions (List[PredictionT]): One per part.
        RETURNS (PredictionT): The prediction.
        """

    def predict(self, docs: Iterable[Doc]) -> List[PredictionT]:
        """Predict without changing the Docs.

        docs (Iterable[Doc]): The Docs.
        RETURNS (List[PredictionT]): One prediction per Doc.
        """
        return self.map_sentences(docs, self.decode, self.nothing, self.merge)

    def map_sentences(
        self, docs: Iterable[Doc], function: Callable[..., Sequence[T]], nothing: T, merge: Merge[T]
    ) -> List[T]:
        """Run the model and apply a function to the sentences of some Docs, and put the results together.

        docs (Iterable[Doc]): The Docs; not changed.
        function, nothing: As in `map_outputs`.
        merge (Merge[T]): From a Doc, its parts and their results to its result.
        RETURNS (List[T]): One per Doc.
        RAISES (WeaknerError): If the component is not initialized.
        """
        parts = self.split_docs(docs)
        return parts.merge(self.map_outputs(parts.docs, function, nothing, outputs=self.known_outputs(parts)), merge)

    def known_outputs(self, parts: Parts) -> Optional[List[Any]]:
        """The model's outputs for the parts of texts that a shared encoder has read as a whole.

        parts (Parts): The parts.
        RETURNS (Optional[List[Any]]): One per part; None where the model reads the parts themselves.
        """
        if parts.are_whole or not is_listener(self.model) or not self.is_initialized:
            return None
        rows: Any = self.model.predict(self.model_inputs(parts.texts))
        return parts.select(rows)

    def map_outputs(
        self,
        docs: Iterable[Doc],
        function: Callable[..., Sequence[T]],
        nothing: T,
        *others: Sequence[Any],
        model: Optional[Model[Any, OutputsT]] = None,
        outputs: Optional[Sequence[Any]] = None,
    ) -> List[T]:
        """Run the model and apply a function, on Docs of like length together: a batch costs as much time and memory as
        its longest Doc times their number.

        docs (Iterable[Doc]): The Docs, which are read as they are; not changed.
        function (Callable[..., Sequence[T]]): From a list of Docs, the model's outputs (see `outputs_on_host`) and
            lists of the others to one result per Doc.
        nothing (T): The result for Docs without tokens.
        *others (Sequence[Any]): Other arguments of the function, one item per Doc.
        model (Optional[Model]): The model; None: the component's own, as it is.
        outputs (Optional[Sequence[Any]]): What it gives, if that is known: one item per Doc.
        RETURNS (List[T]): One per Doc.
        RAISES (WeaknerError): If the component is not initialized.
        """
        if not self.is_initialized:
            raise WeaknerError(Errors.WK008.format(name=self.name))
        model = self.model if model is None else model
        docs = list(docs)
        results = [nothing for _ in docs]
        for group in group_by_length([len(doc) for doc in docs], _padded_tokens(model, docs)):
            some, *more = ([items[i] for i in group] for items in (docs, *others))
            rows: Any = model.predict(self.model_inputs(some)) if outputs is None else [outputs[i] for i in group]
            if self.outputs_on_host:
                rows = to_host(self.model.ops, rows)
            for i, result in zip(group, function(some, rows, *more), strict=True):
                results[i] = result
        return results


def _padded_tokens(model: Model, docs: Sequence[Doc]) -> int:
    if model.ops.device_type != "cpu":
        return PADDED_GPU
    few = sum(map(len, docs)) <= PADDED_TRANSFORMER
    # So spacy-transformers calls its layer.
    return PADDED_TOKENS if few or all(node.name != "transformer" for node in model.walk()) else PADDED_TRANSFORMER


def _finish_node(node: Model, step: Any) -> None:
    """Update the weights of one node of a model, not those of its layers."""
    for shim in node.shims:
        shim.finish_update(step)
    for name in node.param_names:
        if node.has_grad(name):
            weights, _ = step((node.id, name), node.get_param(name), node.get_grad(name))
            node.set_param(name, weights)

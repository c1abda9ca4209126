"""A teacher: an earlier state of a component's model, whose predictions are targets."""

from abc import abstractmethod
from copy import deepcopy
from hashlib import blake2b
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..corpus.weak import is_bare
from ..errors import Errors, WeaknerError
from ..ty import Array, TrainingProgress
from .head import OutputsT, PredictionT, TargetT, TrainableHead, TrainingBatch
from .layers import is_listener

# Batch size, in sentences, with which a new teacher reads the corpus.
RENEWAL_BATCH = 256
# Maximum bytes of cached predictions: those of some hundred thousand sentences.
KEPT = 100_000_000
# Bytes of a cached sentence besides its numbers: the array object, its key and the dictionary entry.
_OVERHEAD = 300
# Attributes that can differ between tokens of the same word; all others belong to the word.
_ATTRS = [
    "ORTH",
    "SPACY",
    "NORM",
    "TAG",
    "POS",
    "MORPH",
    "LEMMA",
    "DEP",
    "HEAD",
    "SENT_START",
    "ENT_IOB",
    "ENT_TYPE",
    "ENT_ID",
    "ENT_KB_ID",
]


class PredictionCache:
    """Predictions of a model that does not change, one array for each sentence, within a memory limit. (Attributes of
    words must not change either: the keys are the ids of words.)"""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Remove all predictions."""
        self._kept: Dict[Optional[bytes], Array] = {}  # None is never among the keys
        self._room = KEPT

    def predict(self, docs: List[Doc], read: Callable[[List[Doc]], List[Array]]) -> List[Array]:
        """Return the predictions for Docs; no Doc is read twice.

        docs (List[Doc]): The Docs.
        read (Callable[[List[Doc]], List[Array]]): Runs the model on Docs, and returns an array per Doc.
        RETURNS (List[Array]): One array per Doc.
        """
        keys = [_key(doc) for doc in docs]
        unread = [n for n, key in enumerate(keys) if key not in self._kept]
        new = dict(zip(unread, read([docs[n] for n in unread]) if unread else [], strict=True))
        result = [new[n] if n in new else self._kept[key] for n, key in enumerate(keys)]
        for n, prediction in new.items():
            self._keep(keys[n], prediction)
        return result

    def _keep(self, key: Optional[bytes], prediction: Array) -> None:
        size = prediction.nbytes + _OVERHEAD
        if key is not None and key not in self._kept and size <= self._room:
            self._kept[key] = prediction.copy()  # not a view, which would keep its whole batch in memory
            self._room -= size


class Teacher(PredictionCache):
    """A copy of a model, on the same device, at the last renewal by the training clock, and its predictions since then.
    It is not stored with the component.

    at_start (bool): True if the initial model is the first teacher; otherwise the first teacher is the model at the
        first renewal after the start.
    """

    def __init__(self, at_start: bool = False) -> None:
        self.at_start = at_start
        self.reset()

    def reset(self) -> None:
        """Remove the teacher, for a new training."""
        self.model: Optional[Model] = None
        self.step = 0
        self.forget()

    def is_due(self, tick: Optional[TrainingProgress]) -> bool:
        """Return True if a renewal creates a teacher: after the first update, or from the start if `at_start`.

        tick (Optional[TrainingProgress]): The last tick of the training clock.
        """
        return self.at_start or (tick is not None and tick.step > 0)

    def of_update(self, tick: Optional[TrainingProgress], name: str) -> Optional[Model]:
        """Return the teacher for an update.

        tick (Optional[TrainingProgress]): The last tick of the training clock.
        name (str): Name of the component.
        RETURNS (Optional[Model]): The model; None before the first renewal.
        RAISES (WeaknerError): If there should be a teacher, or the training clock never renews it.
        """
        if self.model is None and (self.at_start or tick is None or tick.interval == 0):
            raise WeaknerError(
                f"'{name}' learns from an earlier state of its model, but the training clock never renews it. "
                "Set 'interval' (steps between renewals) and 'corpus' in [training.before_update]."
            )
        return self.model

    def renew(self, model: Model, tick: Optional[TrainingProgress] = None) -> None:
        """Copy a model, which becomes the teacher.

        model (Model): The model; later changes of the model do not affect the teacher, and vice versa.
        tick (Optional[TrainingProgress]): The last tick of the training clock; its step is stored, 0 without one.
        """
        self.step = 0 if tick is None else tick.step
        self.forget()
        self.model = None  # frees memory, so that there are never three models
        self.model = deepcopy(model)


def _key(doc: Doc) -> Optional[bytes]:
    """Hash the attributes of a Doc that a model may read; None if it may read more than its tokens."""
    if not is_bare(doc):
        return None
    values: Any = doc.to_array(_ATTRS)  # type: ignore[arg-type]
    return blake2b(values.tobytes(), digest_size=16).digest()


def require_own_encoder(name: str, model: Model, why: str, section: str = "tok2vec") -> None:
    """Check that a model does not listen to another component's encoder, which cannot be copied with it.

    name (str): Name of the component.
    model (Model): The component's model.
    why (str): What the component does that needs its own encoder.
    section (str): Section of the encoder in the model's config.
    RAISES (WeaknerError): If it is a listener.
    """
    if is_listener(model):
        raise WeaknerError(Errors.WK011.format(name=name, why=why, section=section))


class HeadWithTeacher(TrainableHead[OutputsT, TargetT, PredictionT]):
    """Mixin for heads that can learn from a teacher: if `needs_clock` is True, the training clock renews it."""

    _teacher: Teacher

    @abstractmethod
    def add_predictions(self, teacher: Model, docs: List[Doc], targets: List[TargetT]) -> List[TargetT]:
        """Change targets according to the teacher's predictions.

        teacher (Model): The teacher's model.
        docs (List[Doc]): The sentences.
        targets (List[TargetT]): Their targets.
        RETURNS (List[TargetT]): The targets to train on.
        """

    @abstractmethod
    def observe(self, batches: Iterator[TrainingBatch[TargetT]]) -> None:
        """Read the corpus with a new teacher.

        batches (Iterator[TrainingBatch[TargetT]]): The sentences of the corpus.
        RAISES (WeaknerError): If the corpus has no tokens but the head needs to observe it.
        """

    def reset_training(self) -> None:
        super().reset_training()
        self._teacher.reset()

    def targets_with_teacher(self, batch: TrainingBatch[TargetT]) -> List[TargetT]:
        """Return the targets of a batch; if there is a teacher, changed by its predictions.

        RAISES (WeaknerError): If a teacher is needed, and the training clock never renews it.
        """
        teacher = self._teacher.of_update(self._tick, self.name) if self.needs_clock else None
        return batch.targets if teacher is None else self.add_predictions(teacher, batch.texts.docs, batch.targets)

    def renew(self, examples: Iterable[Example]) -> None:
        """Make the current model the teacher, and read the corpus with it. The training clock calls this method.

        examples (Iterable[Example]): The corpus.
        RAISES (WeaknerError): See `observe`.
        """
        if self.needs_clock and self._teacher.is_due(self._tick):
            self._teacher.renew(self.model, self._tick)
            self.observe(self.read_batch(list(batch)) for batch in minibatch(examples, RENEWAL_BATCH))

"""An earlier state of a component's model, to learn from."""

from abc import abstractmethod
from copy import deepcopy
from hashlib import blake2b
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..corpus.weak import is_bare
from ..errors import WeaknerError
from ..losses import Array
from ..ty import Tick
from .head import OutputsT, PredictionT, TargetT, TrainableHead, TrainingBatch
from .layers import is_listener

# Sentences of the corpus that a teacher reads at once, at a renewal.
RENEWAL_BATCH = 256
# Bytes of its predictions that are kept, at most: those of some hundred thousand sentences.
KEPT = 100_000_000
# What one sentence takes beside its numbers: the array, its key and their place.
_OVERHEAD = 300
# What can differ between tokens of one word; the rest is the word's.
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


class Teacher:
    """A model as it was at the last renewal by the training clock: a copy on the same device. It is not stored with the
    component.

    Its predictions for a sentence are kept until the next renewal, as far as there is room, so that no sentence is read
    twice. (Words must not change between: sentences are known by the ids of their words.)

    at_start (bool): Whether the model that training begins with teaches; otherwise the first teacher is that of the
        first renewal after the start.
    """

    def __init__(self, at_start: bool = False) -> None:
        self.at_start = at_start
        self.reset()

    def reset(self) -> None:
        """Another training begins, with no teacher yet."""
        self.model: Optional[Model] = None
        self.step = 0
        self._forget()

    def _forget(self) -> None:
        self._kept: Dict[Optional[bytes], Array] = {}  # None is never among the keys
        self._room = KEPT

    def is_due(self, tick: Optional[Tick]) -> bool:
        """True if a renewal makes a teacher: not before the first update, unless there has to be one from the start.

        tick (Optional[Tick]): The last tick of the training clock.
        """
        return self.at_start or (tick is not None and tick.step > 0)

    def of_update(self, tick: Optional[Tick], name: str) -> Optional[Model]:
        """The teacher of an update.

        tick (Optional[Tick]): The last tick of the training clock.
        name (str): Name of the component.
        RETURNS (Optional[Model]): The model; None before the first renewal.
        RAISES (WeaknerError): If there should be one already, or never will be.
        """
        if self.model is None and (self.at_start or tick is None or tick.interval == 0):
            raise WeaknerError(
                f"'{name}' learns from an earlier state of its model, and the training clock never renews it. "
                "Set 'interval' (steps between renewals) and 'corpus' in [training.before_update]."
            )
        return self.model

    def renew(self, model: Model, tick: Optional[Tick] = None) -> None:
        """Take over the weights of a model.

        model (Model): The model; not changed later by what happens to the teacher, nor the other way round.
        tick (Optional[Tick]): The last tick of the training clock; its step is kept, 0 without one.
        """
        self.step = 0 if tick is None else tick.step
        self._forget()
        self.model = None  # there are never three at a time
        self.model = deepcopy(model)

    def predict(self, docs: List[Doc], read: Callable[[List[Doc]], List[Array]]) -> List[Array]:
        """Its predictions for Docs.

        docs (List[Doc]): The Docs.
        read (Callable[[List[Doc]], List[Array]]): Runs it on Docs, and gives an array per Doc.
        RETURNS (List[Array]): One per Doc.
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
            self._kept[key] = prediction.copy()  # not a view, which would keep its whole batch
            self._room -= size


def _key(doc: Doc) -> Optional[bytes]:
    """What a model reads of a Doc, as a hash; None if that may be more than its tokens."""
    if not is_bare(doc):
        return None
    values: Any = doc.to_array(_ATTRS)  # type: ignore[arg-type]
    return blake2b(values.tobytes(), digest_size=16).digest()


def require_own_encoder(name: str, model: Model) -> None:
    """Refuse a model that listens to another component's encoder, of which no copy can be taken.

    name (str): Name of the component.
    model (Model): Its model.
    RAISES (WeaknerError): If it listens.
    """
    if is_listener(model):
        raise WeaknerError(
            f"'{name}' learns from earlier states of its model or from augmented sentences, which it cannot while it "
            "listens to the encoder of another component. Give it an encoder of its own in its [model.tok2vec]."
        )


class TaughtHead(TrainableHead[OutputsT, TargetT, PredictionT]):
    """Mixin of the heads that can learn from a teacher: if `needs_clock`, the training clock renews it."""

    _teacher: Teacher

    @abstractmethod
    def add_predictions(self, teacher: Model, docs: List[Doc], targets: List[TargetT]) -> List[TargetT]:
        """Change targets by what the teacher predicts.

        teacher (Model): Its model.
        docs (List[Doc]): The sentences.
        targets (List[TargetT]): Their targets.
        RETURNS (List[TargetT]): Those to learn.
        """

    @abstractmethod
    def observe(self, batches: Iterator[TrainingBatch[TargetT]]) -> None:
        """Read the corpus with a new teacher.

        batches (Iterator[TrainingBatch[TargetT]]): The sentences of the corpus.
        RAISES (WeaknerError): If it has no tokens, and there is something to find.
        """

    def reset_training(self) -> None:
        super().reset_training()
        self._teacher.reset()

    def taught(self, batch: TrainingBatch[TargetT]) -> List[TargetT]:
        """The targets of a batch; once there is a teacher, with what it predicts.

        RAISES (WeaknerError): If there should be a teacher and never will be.
        """
        teacher = self._teacher.of_update(self._tick, self.name) if self.needs_clock else None
        return batch.targets if teacher is None else self.add_predictions(teacher, batch.texts.docs, batch.targets)

    def renew(self, examples: Iterable[Example]) -> None:
        """Make the model as it is now the teacher, and read the corpus with it. The training clock calls this.

        examples (Iterable[Example]): The corpus.
        RAISES (WeaknerError): See `observe`.
        """
        if self.needs_clock and self._teacher.is_due(self._tick):
            self._teacher.renew(self.model, self._tick)
            self.observe(self.read_batch(list(batch)) for batch in minibatch(examples, RENEWAL_BATCH))

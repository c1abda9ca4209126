"""An earlier state of a component's model, to learn from."""

from copy import deepcopy
from hashlib import blake2b
from typing import Any, Callable, Dict, List, Optional

from spacy.tokens import Doc
from thinc.api import Model

from ..corpus.weak import is_bare
from ..errors import Errors, WeaknerError, check_range
from ..losses import Array
from ..ty import Tick

# Sentences of the corpus that a teacher reads at once, at a renewal.
RENEWAL_BATCH = 256
# Bytes that it keeps of what it has said, at most: that of some hundred thousand sentences.
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
    """A model as it was at the last renewal by the training clock. It is not stored with the component.

    At a renewal it reads the corpus, and what it says of it holds until the next one: it is kept, as far as there is
    room, and no sentence is read again in an update. (Words must not change between: they are known by their ids.)

    decay (float): How much of the old teacher stays at a renewal: 0 replaces it, and above that the teacher is a moving
        average of the weights (Tarvainen and Valpola 2017).
    at_start (bool): Whether the model that training begins with teaches; otherwise the first teacher is that of the
        first renewal after the start.
    RAISES (WeaknerError): If the decay is not between 0 and 1.
    """

    def __init__(self, decay: float = 0.0, at_start: bool = False) -> None:
        check_range("teacher_decay", decay, 0.0, 1.0)
        self.decay = decay
        self.at_start = at_start
        self.reset()

    def reset(self) -> None:
        """Another training begins, with no teacher yet."""
        self.model: Optional[Model] = None
        self.step = 0
        self._forget()

    def _forget(self) -> None:
        self._said: Dict[Optional[bytes], Array] = {}  # None is never among them
        self._room = KEPT

    def is_due(self, tick: Optional[Tick]) -> bool:
        """Whether a renewal makes a teacher.

        tick (Optional[Tick]): What the training clock has told last.
        RETURNS (bool): Not before the first update, unless there has to be one from the start.
        """
        return self.at_start or (tick is not None and tick.step > 0)

    def of_update(self, tick: Optional[Tick], name: str) -> Optional[Model]:
        """Who teaches an update.

        tick (Optional[Tick]): What the training clock has told last.
        name (str): Name of the component.
        RETURNS (Optional[Model]): The model; None before the first renewal.
        RAISES (WeaknerError): If there should be one already, or never will be.
        """
        if self.model is None and (self.at_start or tick is None or tick.interval == 0):
            raise WeaknerError(Errors.WK029.format(name=name))
        return self.model

    def renew(self, model: Model, tick: Optional[Tick] = None) -> None:
        """Take over the weights of a model.

        model (Model): The model; not changed later by what happens to the teacher, nor the other way round.
        tick (Optional[Tick]): What the training clock has told last; its step is kept, 0 without one.
        """
        self.step = 0 if tick is None else tick.step
        self._forget()
        if self.decay == 0.0:
            self.model = None  # there are never three at a time
        if self.model is None:
            self.model = deepcopy(model)
            return
        for own, new in zip(self.model.walk(), model.walk(), strict=True):
            for name in own.param_names:
                if own.has_param(name):
                    mixed = self.decay * own.get_param(name) + (1.0 - self.decay) * new.get_param(name)
                    own.set_param(name, mixed)
            for old_shim, new_shim in zip(own.shims, new.shims, strict=True):
                self._mix(old_shim._model, new_shim._model)

    def says(self, docs: List[Doc], read: Callable[[List[Doc]], List[Array]]) -> List[Array]:
        """What it says of Docs.

        docs (List[Doc]): The Docs.
        read (Callable[[List[Doc]], List[Array]]): Lets it read Docs, and gives an array each.
        RETURNS (List[Array]): One each.
        """
        keys = [_key(doc) for doc in docs]
        unread = [n for n, key in enumerate(keys) if key not in self._said]
        new = dict(zip(unread, read([docs[n] for n in unread]) if unread else [], strict=True))
        result = [new[n] if n in new else self._said[key] for n, key in enumerate(keys)]
        for n, said in new.items():
            self._keep(keys[n], said)
        return result

    def _keep(self, key: Optional[bytes], said: Array) -> None:
        size = said.nbytes + _OVERHEAD
        if key is not None and key not in self._said and size <= self._room:
            self._said[key] = said.copy()  # not a view, which would keep its whole batch
            self._room -= size

    def _mix(self, old: Any, new: Any) -> None:
        # Parameters of torch modules; whole numbers, such as position ids, do not change.
        theirs = new.state_dict()
        old.load_state_dict(
            {
                key: self.decay * value + (1.0 - self.decay) * theirs[key] if value.is_floating_point() else value
                for key, value in old.state_dict().items()
            }
        )


def _key(doc: Doc) -> Optional[bytes]:
    """What tells a Doc from those of which a model may say something else; None if there is more than its tokens."""
    if not is_bare(doc):
        return None
    values: Any = doc.to_array(_ATTRS)  # type: ignore[arg-type]
    return blake2b(values.tobytes(), digest_size=16).digest()


def require_own_encoder(name: str, model: Model) -> None:
    """Refuse a model that listens to another component's encoder, of which no snapshot can be taken.

    name (str): Name of the component.
    model (Model): Its model.
    RAISES (WeaknerError): If it listens.
    """
    if is_listener(model):
        raise WeaknerError(Errors.WK028.format(name=name))


def is_listener(model: Model) -> bool:
    """Whether a model listens to the encoder of another component."""
    return any(hasattr(node, "upstream_name") for node in model.walk())

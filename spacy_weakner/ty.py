"""Structural types: what stages may ask of any pipe, and small types that several rooms share."""

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Protocol, Sequence, Tuple, runtime_checkable

from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Optimizer
from thinc.types import Floats2d

# (start, end, label): token offsets, end exclusive.
Entity = Tuple[int, int, str]


class Tick(NamedTuple):
    """What the training clock tells at every step.

    step (int): Steps done so far.
    epoch (int): Epochs done so far; stays 0 while a corpus streams.
    progress (float): Share of the training done, in [0, 1].
    interval (int): Steps between renewals; 0: there are none.
    """

    step: int
    epoch: int
    progress: float
    interval: int = 0


class PathScore(NamedTuple):
    """The best tag sequence of a Doc.

    tags (List[str]): One tag per token.
    score (float): Its unnormalised (Viterbi) score.
    log_probability (float): score - log Z, at most 0.
    """

    tags: List[str]
    score: float
    log_probability: float


@runtime_checkable
class TokenDistributions(Protocol):
    """A pipe that gives a distribution over tags for every token."""

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """The columns of the distributions: contains "O"."""

    @property
    def tag_scheme(self) -> str:
        """Name of the scheme that the columns are written in."""

    def distributions(self, docs: Iterable[Doc]) -> List[Floats2d]:
        """Per Doc float32 (n_tokens, n_labels), on the host; rows sum to 1."""


@runtime_checkable
class PathScorer(Protocol):
    """A pipe that scores whole tag sequences."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The entity labels of its tags."""

    @property
    def tag_scheme(self) -> str:
        """Name of the scheme that its tags are written in."""

    def score_paths(self, docs: Iterable[Doc]) -> List[PathScore]:
        """Best path per Doc with its score and log-probability."""


@runtime_checkable
class Tempered(Protocol):
    """A component whose probabilities can be calibrated by a temperature."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The entity labels."""

    @property
    def temperature(self) -> float:
        """Divides the scores before they become probabilities."""

    def set_temperature(self, temperature: float) -> None:
        """Change it; it is saved with the component."""

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        """Negative log-likelihood of gold, as a function of the temperature."""


# Which ends a picker tries with a start: the nearest one, or all, of which the most probable ones stay.
NEAREST, PROBABLE = PAIRINGS = ("nearest", "probable")


@runtime_checkable
class Picker(Protocol):
    """A component that finds entities with a probability above a threshold, which can be set, as can be which ends
    it tries with a start."""

    threshold: float
    pairing: str

    @property
    def queries(self) -> Dict[str, str]:
        """What is asked for each label."""

    def predict(self, docs: Iterable[Doc]) -> List[Any]:
        """Find entities: objects whose `entities` do not overlap."""


@runtime_checkable
class Clocked(Protocol):
    """A component that wants to know how far the training is."""

    def tick(self, tick: Tick) -> None: ...


@runtime_checkable
class Updated(Protocol):
    """A component that can tell which optimizer updates it."""

    def on_next_update(self, hook: Callable[[Optimizer], None]) -> None: ...


@runtime_checkable
class Renewable(Protocol):
    """A component that renews something (teacher, statistics) from the corpus at intervals."""

    def renew(self, examples: Iterable[Example]) -> None: ...


Entities = Sequence[Entity]


@runtime_checkable
class Statistician(Protocol):
    """A component that counts what happens in training."""

    def training_statistics(self) -> Dict[str, float]:
        """What was counted since the last call, by name."""

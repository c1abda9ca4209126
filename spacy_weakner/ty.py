"""Structural types: what stages may ask of any pipe, and small types that several rooms share."""

from typing import Iterable, List, Mapping, NamedTuple, Protocol, Sequence, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

# (start, end, label): token offsets, end exclusive.
Entity = Tuple[int, int, str]
Entities = Sequence[Entity]
# Which ends a start of an entity is tried with: the nearest one, or all, of which the most probable ones stay.
NEAREST, PROBABLE = PAIRINGS = ("nearest", "probable")
# How exactly torch multiplies matrices of 32 bits.
PRECISIONS = ("highest", "high", "medium")


class Tick(NamedTuple):
    """What the training clock tells at every step.

    step (int): Steps done so far.
    epoch (int): Epochs done so far; stays 0 while a corpus streams.
    progress (float): Share of the training done, in [0, 1].
    interval (int): Steps between renewals; 0: there are none.
    n_epochs (float): How many epochs the training will have, as far as is known: while the first one lasts, as many as
        if it ended now.
    """

    step: int
    epoch: int
    progress: float
    interval: int = 0
    n_epochs: float = 1.0


class PathScore(NamedTuple):
    """The best tag sequence of a Doc.

    tags (List[str]): One tag per token.
    score (float): Its unnormalized (Viterbi) score.
    log_probability (float): score - log Z, at most 0.
    """

    tags: List[str]
    score: float
    log_probability: float


# The best tag sequence of a Doc; and float32 (n_tokens, n_tags), on the host: a distribution over tags for each token.
TagScores = Tuple[PathScore, NDArray[numpy.float32]]


@runtime_checkable
class TagScorer(Protocol):
    """A pipe that scores tags: whole sequences, and those of each token."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The entity labels of its tags."""

    @property
    def tag_scheme(self) -> str:
        """Name of the scheme that its tags are written in."""

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """The columns of the distributions: contains "O"."""

    def score_tags(self, docs: Iterable[Doc]) -> List[TagScores]:
        """Per Doc the best sequence with its score and log-probability, and the distributions. The Docs are not
        changed."""


@runtime_checkable
class CandidateScorer(Protocol):
    """A pipe that knows the probability of what may be an entity, whether or not it writes it."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of its candidates."""

    def score_candidates(self, docs: Iterable[Doc]) -> List[List[Tuple[Entity, float]]]:
        """Per Doc the candidates, which may overlap, with their probabilities. The Docs are not changed."""


@runtime_checkable
class EntityThresholds(Protocol):
    """A pipe that writes only entities whose score reaches the threshold of their label."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of its entities."""

    def set_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Change the thresholds, each in [0, 1]; they are saved with the pipe."""

"""Structural types: interfaces of pipes for stages, and small types that several packages share."""

from typing import Any, Callable, Iterable, List, Mapping, NamedTuple, Protocol, Sequence, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.types import Floats2d

# Arrays on the host. Docstrings have their shapes.
Array = NDArray[Any]
BoolMask = NDArray[numpy.bool_]
Floats = NDArray[numpy.float64]
Ints = NDArray[numpy.int64]
Hashes = NDArray[numpy.uint64]
SpanArray = NDArray[numpy.int64]  # (n_spans, 2) or (n_spans, 3): start, end and, with several labels, label
# The vectors of the tokens of each Doc, (n_tokens, width).
Vectors = List[Floats2d]
# Reads the examples of a corpus.
CorpusReader = Callable[[Language], Iterable[Example]]
# (start, end, label): token offsets, end exclusive.
Entity = Tuple[int, int, str]
Entities = Sequence[Entity]
# Precision of float32 matrix multiplication in torch.
PRECISIONS = ("highest", "high", "medium")


class TrainingProgress(NamedTuple):
    """The state of the training clock at a step.

    step (int): Steps done so far.
    epoch (int): Epochs done so far; stays 0 if the corpus is a stream without end.
    progress (float): Share of the training done, in [0, 1].
    interval (int): Steps between renewals; 0: no renewals.
    n_epochs (float): Number of epochs of the training, as far as known: during the first epoch, as if the training
        ended now.
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


# The best tag sequence of a Doc, and float32 (n_tokens, n_tags), on the host: a distribution over tags for each token.
TagScores = Tuple[PathScore, NDArray[numpy.float32]]


@runtime_checkable
class TagScorer(Protocol):
    """A pipe that scores whole tag sequences, and the tags of each token."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The entity labels of its tags."""

    @property
    def tag_scheme(self) -> str:
        """The name of the scheme of its tags."""

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """The columns of the distributions, including "O"."""

    def score_tags(self, docs: Iterable[Doc]) -> List[TagScores]:
        """Return the best sequence of each Doc with its score and log-probability, and the distributions. The Docs are
        not changed."""


@runtime_checkable
class CandidateScorer(Protocol):
    """A pipe that gives the probabilities of possible entities, whether or not it writes them."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of its candidates."""

    def score_candidates(self, docs: Iterable[Doc]) -> List[List[Tuple[Entity, float]]]:
        """Return the candidates of each Doc, which may overlap, with their probabilities. The Docs are not changed."""


@runtime_checkable
class EntityThresholds(Protocol):
    """A pipe that writes only entities whose score reaches the threshold of their label."""

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of its entities."""

    def set_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Set the thresholds, each in [0, 1]; they are saved with the pipe."""

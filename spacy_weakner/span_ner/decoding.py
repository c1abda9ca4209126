"""From classified spans to entities without overlaps."""

from typing import List, NamedTuple

import numpy
from numpy.typing import NDArray

from ..corpus.overlaps import without_overlaps
from .candidates import Spans


class Candidates(NamedTuple):
    """Spans that are rather an entity than not.

    spans (Spans): Shape (n, 2).
    labels (NDArray[numpy.int64]): Shape (n,): the most probable label of each, from 1 on.
    probabilities (NDArray[numpy.float64]): Shape (n,): of this label.
    ranks (NDArray[numpy.float64]): Shape (n,): what they are ordered by, the highest first: the logarithm of the
        probability at temperature 1, so that calibration changes no entity.
    """

    spans: Spans
    labels: NDArray[numpy.int64]
    probabilities: NDArray[numpy.float64]
    ranks: NDArray[numpy.float64]


def select(candidates: Candidates, n_tokens: int) -> List[int]:
    """Keep the most probable spans, each if it overlaps none that is kept already (Li et al. 2021, Section 3.3).

    candidates (Candidates): The spans; of equally probable ones the first comes first.
    n_tokens (int): Length of the sentence.
    RETURNS (List[int]): Indices, by start.
    """
    return without_overlaps(candidates.spans.tolist(), candidates.ranks, n_tokens)

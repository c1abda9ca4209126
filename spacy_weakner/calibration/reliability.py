"""Reliability of scores: whether about 80 % of the spans with a score of about 0.8 are right."""

import math
from typing import List, NamedTuple, Optional, Sequence

from ..corpus.gold import Gold
from ..ty import Entities

N_BINS = 10


class ReliabilityBin(NamedTuple):
    """Spans with scores in [low, high), or [low, high] in the last bin: their number, their mean score and the share of
    right ones, both None if there are no spans."""

    low: float
    high: float
    spans: int
    score: Optional[float]
    right: Optional[float]


class Reliability(NamedTuple):
    """Scores of spans compared with gold."""

    spans: int  # spans with a score, where gold is available
    unscored: int  # spans without a score
    outside: int  # spans left out because their score is not in [0, 1]
    # Expected calibration error (Naeini et al. 2015): the mean of |score - share of right spans| over bins, weighted by
    # their numbers of spans; in [0, 1].
    error: float
    bins: List[ReliabilityBin]


class CalibrationCounter:
    """A counter of spans by score, in bins of equal width."""

    def __init__(self, n_bins: int = N_BINS) -> None:
        self.unscored = self.outside = 0
        self._spans, self._scores, self._right = [0] * n_bins, [0.0] * n_bins, [0] * n_bins

    def add(self, entities: Entities, scores: Sequence[Optional[float]], gold: Gold) -> None:
        """Count the spans of a Doc with their scores; spans that contain tokens without gold are left out."""
        for entity, score in zip(entities, scores, strict=True):
            if not gold.scorable([entity]):
                continue
            if score is None:
                self.unscored += 1
            elif math.isnan(score) or not 0 <= score <= 1:
                self.outside += 1
            else:
                i = min(int(score * len(self._spans)), len(self._spans) - 1)
                self._spans[i] += 1
                self._scores[i] += score
                self._right[i] += entity in gold.entities

    def result(self) -> Optional[Reliability]:
        """Return the counts; None if no span had a score."""
        n, width = sum(self._spans), len(self._spans)
        if not n + self.outside:
            return None
        counts = list(zip(self._spans, self._scores, self._right, strict=True))
        error = sum(abs(score - right) for _, score, right in counts) / max(1, n)
        means = [(score / spans, right / spans) if spans else (None, None) for spans, score, right in counts]
        bins = [ReliabilityBin(i / width, (i + 1) / width, self._spans[i], *means[i]) for i in range(width)]
        return Reliability(n, self.unscored, self.outside, error, bins)

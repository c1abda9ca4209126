"""Calibration of scores: of the spans that got a score of about 0.8, are about 80 % right?"""

import math
from typing import List, NamedTuple, Optional, Sequence

from ..annotations.gold import Gold
from ..ty import Entities

N_BINS = 10


class ReliabilityBin(NamedTuple):
    """Spans whose scores lie in [low, high), or [low, high] in the last bin.

    low (float): Lower bound of the scores.
    high (float): Upper bound.
    spans (int): Number of spans.
    score (Optional[float]): Their mean score; None if there are none.
    right (Optional[float]): The share of them that is right; None if there are none.
    """

    low: float
    high: float
    spans: int
    score: Optional[float]
    right: Optional[float]


class Reliability(NamedTuple):
    """Scores of spans against gold.

    spans (int): Spans with a score, where gold is known.
    unscored (int): Spans without one.
    outside (int): Spans left out, since their score is no number in [0, 1].
    error (float): Expected calibration error (Naeini et al. 2015): the mean of |score - share that is right| over the
        bins, weighted by their numbers of spans; in [0, 1].
    bins (List[ReliabilityBin]): Bins of equal width.
    """

    spans: int
    unscored: int
    outside: int
    error: float
    bins: List[ReliabilityBin]


class CalibrationCounter:
    """Counts while Docs pass by."""

    def __init__(self) -> None:
        self.unscored = self.outside = 0
        self._spans = [0] * N_BINS
        self._scores = [0.0] * N_BINS
        self._right = [0] * N_BINS

    def add(self, entities: Entities, scores: Sequence[Optional[float]], gold: Gold) -> None:
        """Count the spans of one Doc; those that touch tokens without gold are left out.

        entities (Entities): The spans.
        scores (Sequence[Optional[float]]): One per span; None where there is none.
        gold (Gold): What is right.
        """
        for entity, score in zip(entities, scores, strict=True):
            if not gold.scorable([entity]):
                continue
            if score is None:
                self.unscored += 1
            elif math.isnan(score) or not 0 <= score <= 1:
                self.outside += 1
            else:
                number = min(int(score * N_BINS), N_BINS - 1)
                self._spans[number] += 1
                self._scores[number] += score
                self._right[number] += entity in gold.entities

    def result(self) -> Optional[Reliability]:
        """RETURNS (Optional[Reliability]): What was counted; None if no span had a score."""
        n = sum(self._spans)
        if not n + self.outside:
            return None
        bins = []
        for i, (spans, score, right) in enumerate(zip(self._spans, self._scores, self._right, strict=True)):
            means = (score / spans, right / spans) if spans else (None, None)
            bins.append(ReliabilityBin(i / N_BINS, (i + 1) / N_BINS, spans, *means))
        gaps = sum(abs(score - right) for score, right in zip(self._scores, self._right, strict=True))
        return Reliability(n, self.unscored, self.outside, gaps / max(1, n), bins)

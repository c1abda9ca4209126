"""Calibration of scores: of the spans that got a score of about 0.8, are about 80 % right?"""

import math
from typing import Dict, List, NamedTuple, Optional, Sequence

from ..corpus.gold import Gold
from ..ty import Entities

N_BINS = 10


class ReliabilityBin(NamedTuple):
    """Spans whose scores lie in [low, high), or [low, high] in the last bin: their number, their mean score and the
    share of them that is right, None if there are none."""

    low: float
    high: float
    spans: int
    score: Optional[float]
    right: Optional[float]


class LabelReliability(NamedTuple):
    """Spans of one label: their number, their mean score, the share of them that is right, and the expected calibration
    error, in [0, 1]."""

    spans: int
    score: float
    right: float
    error: float


class Reliability(NamedTuple):
    """Scores of spans against gold."""

    spans: int  # spans with a score, where gold is known
    unscored: int  # spans without one
    outside: int  # spans left out, since their score is no number in [0, 1]
    # Expected calibration error (Naeini et al. 2015): the mean of |score - share that is right| over the bins, weighted
    # by their numbers of spans; in [0, 1].
    error: float
    bins: List[ReliabilityBin]
    labels: Dict[str, LabelReliability]  # per label, sorted


def expected_calibration_error(scores: Sequence[float], right: Sequence[bool], bins: int = N_BINS) -> float:
    """How far scores are from the share that is right (Naeini et al. 2015):

        sum over bins b of n_b / n |mean score of b - share of b that is right|

    scores (Sequence[float]): Probabilities.
    right (Sequence[bool]): Whether each of the spans is right.
    bins (int): Bins of equal width in [0, 1]; the last one holds 1.
    RETURNS (float): In [0, 1]; 0 if there are none.
    RAISES (ValueError): If a score is no probability, or the lengths differ.
    """
    counts = _Bins(bins)
    for score, hit in zip(scores, right, strict=True):
        if not 0 <= score <= 1:
            raise ValueError(f"a score must be a probability, not {score}")
        counts.add(float(score), bool(hit))
    return counts.error


class _Bins:
    """Scores by bins of equal width."""

    def __init__(self, n: int = N_BINS) -> None:
        self.spans, self.scores, self.right = [0] * n, [0.0] * n, [0] * n

    def add(self, score: float, right: bool) -> None:
        number = min(int(score * len(self.spans)), len(self.spans) - 1)
        self.spans[number] += 1
        self.scores[number] += score
        self.right[number] += right

    @property
    def n(self) -> int:
        return sum(self.spans)

    @property
    def error(self) -> float:
        return sum(abs(score - right) for score, right in zip(self.scores, self.right, strict=True)) / max(1, self.n)

    def rows(self) -> List[ReliabilityBin]:
        result = []
        for i, (spans, score, right) in enumerate(zip(self.spans, self.scores, self.right, strict=True)):
            means = (score / spans, right / spans) if spans else (None, None)
            result.append(ReliabilityBin(i / len(self.spans), (i + 1) / len(self.spans), spans, *means))
        return result

    def summary(self) -> LabelReliability:
        return LabelReliability(self.n, sum(self.scores) / self.n, sum(self.right) / self.n, self.error)


class CalibrationCounter:
    """Counts while Docs pass by."""

    def __init__(self) -> None:
        self.unscored = self.outside = 0
        self._all = _Bins()
        self._labels: Dict[str, _Bins] = {}

    def add(self, entities: Entities, scores: Sequence[Optional[float]], gold: Gold) -> None:
        """Count the spans of one Doc with their scores; those that touch tokens without gold are left out."""
        for entity, score in zip(entities, scores, strict=True):
            if not gold.scorable([entity]):
                continue
            if score is None:
                self.unscored += 1
            elif math.isnan(score) or not 0 <= score <= 1:
                self.outside += 1
            else:
                for bins in (self._all, self._labels.setdefault(entity[2], _Bins())):
                    bins.add(score, entity in gold.entities)

    def result(self) -> Optional[Reliability]:
        """What was counted; None if no span had a score."""
        if not self._all.n + self.outside:
            return None
        labels = {label: bins.summary() for label, bins in sorted(self._labels.items())}
        return Reliability(self._all.n, self.unscored, self.outside, self._all.error, self._all.rows(), labels)

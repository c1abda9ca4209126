"""Confidence of completed labels (Jiang et al. 2021, Appendix A): how likely they are to be right."""

import json
import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy

from ..errors import Errors, WeaknerError
from ..files import existing, parse_json, write_text
from ..ty import PathScore
from .binning import Steps

SCORES = ("viterbi", "log_probability")
UNITS = ("sentence", "token")
# "Always make a conservative estimation": the smoothing parameter of the paper.
CAP = 0.95
_MAX_COUNT = 2**53  # what a float counts exactly


class Calibration(NamedTuple):
    """What held-out sentences say about a model's scores, and about the weak sources.

    score (str): The score of a sentence, per word: "viterbi" (its Viterbi score, as in the paper), or
        "log_probability" (the same, less log Z).
    unit (str): What is right or wrong: the tags of a whole "sentence" (as in the paper), or each "token".
    steps (Steps): From score to chance of being right.
    sources (Dict[str, float]): For each weak source, the share of right tokens among those that it labels; empty if the
        held-out sentences had no weak labels.
    rules (Dict[str, float]): For each rule of `complete`, F1 in [0, 100] of the labels that it makes of what sources
        say of the held-out sentences, those together that most name; empty if none has looked at any.
    given (Optional[float]): The chance that weak labels are right as they are, where what they do not name is "O";
        None: it is not known.
    """

    score: str
    unit: str
    steps: Steps
    sources: Dict[str, float]
    rules: Dict[str, float] = {}
    given: Optional[float] = None

    def predicted(self, path: PathScore) -> float:
        """The chance that the tags a model predicts for a sentence are right.

        path (PathScore): Best tag sequence with its scores; at least one token.
        RETURNS (float): In [0, 1].
        """
        return self.steps(score_per_word(path, self.score))

    def save(self, path: Path) -> None:
        """Write it as JSON, whole or not at all.

        path (Path): The file.
        """
        row = {
            "score": self.score,
            "unit": self.unit,
            "edges": self.steps.edges.tolist(),
            "values": self.steps.values.tolist(),
            "counts": self.steps.counts.tolist(),
            "sources": self.sources,
            "rules": self.rules,
            "given": self.given,
        }
        write_text(Path(path), json.dumps(row, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Calibration":
        """Read what `save` wrote.

        path (Path): The file.
        RETURNS (Calibration): The same.
        RAISES (WeaknerError): If there is no such file, or it holds something else.
        """
        path = existing(Path(path), "make it with 'spacy weakner calibrate'")
        if path.is_dir():
            raise WeaknerError(Errors.WK109.format(path=path))
        try:
            row = parse_json(path.read_bytes())
            sources, rules, given = dict(row["sources"]), dict(row.get("rules", {})), row.get("given")
            result = cls(str(row["score"]), str(row["unit"]), _read_steps(row), sources, rules, given)
            values = [*result.steps.values, *sources.values(), *(f1 / 100.0 for f1 in rules.values()), given or 0.0]
            if result.score not in SCORES or result.unit not in UNITS or not all(0.0 <= p <= 1.0 for p in values):
                raise ValueError("a value is out of range")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise WeaknerError(Errors.WK340.format(path=path, reason=error)) from error
        return result


def score_per_word(path: PathScore, score: str) -> float:
    """The score that sentences are binned by.

    path (PathScore): Best tag sequence with its scores; at least one token.
    score (str): One of `SCORES`.
    RETURNS (float): The score divided by the number of tokens.
    """
    return (path.score if score == "viterbi" else path.log_probability) / len(path.tags)


def confidence(matched: Sequence[float], n_tokens: int, predicted: float, cap: float = CAP) -> float:
    """Confidence of a completed sentence (Appendix A):

        P(Y^c = Y) = m/n P(Y^w = Y) + (1 - m/n) P(Y^p = Y),  and at most `cap`

    with m of n tokens matched. The paper takes P(Y^w = Y) = 1; here it is the mean over the matched tokens, so that
    each can have the accuracy of its source.

    matched (Sequence[float]): For each matched token, the chance that its weak label is right.
    n_tokens (int): Number of tokens, at least 1.
    predicted (float): The chance that the model's tags are right.
    cap (float): Upper bound.
    RETURNS (float): In [0, cap].
    """
    return min(cap, (math.fsum(matched) + (n_tokens - len(matched)) * predicted) / n_tokens)


def _read_steps(row: Dict[str, Any]) -> Steps:
    columns: List[Any] = [numpy.asarray(row[name], dtype="float64") for name in ("edges", "values", "counts")]
    edges, values, counts = columns
    if any(column.ndim != 1 or not numpy.isfinite(column).all() for column in columns):
        raise ValueError("edges, values and counts must be lists of numbers")
    if not len(edges) + 1 == len(values) == len(counts) or (numpy.diff(edges) <= 0).any():
        raise ValueError("edges must ascend, and be one fewer than values and counts")
    if (counts < 0).any() or (counts > _MAX_COUNT).any():
        raise ValueError(f"counts must be between 0 and {_MAX_COUNT:,}")
    return Steps(edges, values, counts.astype("int64"))

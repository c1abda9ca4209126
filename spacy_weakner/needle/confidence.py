"""Confidence of completed labels (Jiang et al. 2021, Appendix A): how likely they are to be right."""

from typing import Any, Dict, NamedTuple, Optional

from ..ty import PathScore
from .binning import Steps

SCORES = ("viterbi", "log_probability")
UNITS = ("sentence", "token")
# "Always make a conservative estimation": the smoothing parameter of the paper.
CAP = 0.95


class Calibration(NamedTuple):
    """What held-out sentences say about a model's scores, and about weak labels.

    score (str): The score of a sentence, per word: "viterbi" (its Viterbi score, as in the paper), or
        "log_probability" (the same, less log Z).
    unit (str): What is right or wrong: the tags of a whole "sentence" (as in the paper), or each "token".
    steps (Steps): From score to chance of being right.
    rules (Dict[str, float]): For each rule of `complete`, F1 in [0, 100] of the labels that it makes of what sources
        say of the held-out sentences, those together that most name; empty if none has looked at any.
    given (Optional[float]): The chance that weak labels are right as they are, where what they do not name is "O";
        None: it is not known.
    """

    score: str
    unit: str
    steps: Steps
    rules: Dict[str, float] = {}
    given: Optional[float] = None

    def predicted(self, path: PathScore) -> float:
        """The chance that the tags a model predicts for a sentence are right.

        path (PathScore): Best tag sequence with its scores; at least one token.
        RETURNS (float): In [0, 1].
        """
        return self.steps(score_per_word(path, self.score))

    def to_json(self) -> Dict[str, Any]:
        """What JSON can hold."""
        steps = {name: values.tolist() for name, values in self.steps._asdict().items()}
        return {**self._asdict(), "steps": steps}


def score_per_word(path: PathScore, score: str) -> float:
    """The score that sentences are binned by.

    path (PathScore): Best tag sequence with its scores; at least one token.
    score (str): One of `SCORES`.
    RETURNS (float): The score divided by the number of tokens.
    """
    return (path.score if score == "viterbi" else path.log_probability) / len(path.tags)


def confidence(n_matched: int, n_tokens: int, predicted: float) -> float:
    """Confidence of a completed sentence (Appendix A):

        P(Y^c = Y) = m/n + (1 - m/n) P(Y^p = Y),  and at most `CAP`

    with m of n tokens matched, whose weak labels are taken to be right.

    n_matched (int): Number of tokens that keep their weak label.
    n_tokens (int): Number of tokens, at least 1.
    predicted (float): The chance that the model's tags are right.
    RETURNS (float): In [0, CAP].
    """
    return min(CAP, (n_matched + (n_tokens - n_matched) * predicted) / n_tokens)

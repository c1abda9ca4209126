"""Confidence of completed labels (Jiang et al. 2021, Appendix A): their probability of being right."""

from typing import Any, Dict, NamedTuple, Optional

from ..ty import PathScore
from .binning import Steps

SCORES = ("viterbi", "log_probability")
UNITS = ("sentence", "token")
# "Always make a conservative estimation": the smoothing parameter of the paper.
CAP = 0.95


class Calibration(NamedTuple):
    """The calibration of a model's scores and of weak labels on held-out sentences.

    score (str): The score of a sentence, per word: "viterbi" (its Viterbi score, as in the paper), or
        "log_probability" (its Viterbi score minus log Z).
    unit (str): The unit that is right or wrong: the tags of a whole "sentence" (as in the paper), or each "token".
    steps (Steps): Maps a score to the probability of being right.
    rules (Dict[str, float]): F1 in [0, 100], for each rule of `complete`, of its labels from the combined labels of
        sources on the held-out sentences; empty if no source has labeled them.
    given (Optional[float]): The probability that weak labels are right if unlabeled tokens are taken as "O"; None:
        unknown.
    """

    score: str
    unit: str
    steps: Steps
    rules: Dict[str, float] = {}
    given: Optional[float] = None

    def predicted(self, path: PathScore) -> float:
        """Return the probability that the tags a model predicts for a sentence are right.

        path (PathScore): Best tag sequence with its scores; at least one token.
        RETURNS (float): In [0, 1].
        """
        return self.steps(score_per_word(path, self.score))

    def to_json(self) -> Dict[str, Any]:
        """Return the calibration as JSON."""
        steps = {name: values.tolist() for name, values in self.steps._asdict().items()}
        return {**self._asdict(), "steps": steps}


def score_per_word(path: PathScore, score: str) -> float:
    """Return the score for the binning of sentences.

    path (PathScore): Best tag sequence with its scores; at least one token.
    score (str): One of `SCORES`.
    RETURNS (float): The score divided by the number of tokens.
    """
    return (path.score if score == "viterbi" else path.log_probability) / len(path.tags)


def confidence(n_matched: int, n_tokens: int, predicted: float, weak_accuracy: float = 1.0, cap: float = CAP) -> float:
    """Compute the confidence of a completed sentence (Appendix A):

        P(Y^c = Y) = a m/n + (1 - m/n) P(Y^p = Y),  and at most `cap`

    with m of n tokens matched, whose weak labels are right with the probability a.

    n_matched (int): Number of tokens that keep their weak label.
    n_tokens (int): Number of tokens, at least 1.
    predicted (float): The probability that the model's tags are right.
    weak_accuracy (float): a; the paper assumes that weak labels are right: 1.
    cap (float): The largest confidence.
    RETURNS (float): In [0, cap].
    """
    return min(cap, (weak_accuracy * n_matched + (n_tokens - n_matched) * predicted) / n_tokens)

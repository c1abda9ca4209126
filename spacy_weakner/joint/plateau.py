"""Reduces the learning rate when the score on dev does not improve.

spaCy's learning-rate schedules do not depend on scores. This callback does: it reads the score that spaCy stores in the
pipeline's meta data at each evaluation, and gets the optimizer from a component, to which it is passed at each update.
"""

import math
from typing import Any, Dict, Optional

from spacy.language import Language
from thinc.api import Optimizer

from ..errors import check_range

# Scores below this are chance: an untrained model also makes some right predictions.
_MIN_SCORE = 0.01


class ReduceOnPlateau:
    """A callback for `[training.before_update]` that multiplies the learning rate by `factor` after more than
    `patience` consecutive epochs without a better score (Kruengkrai et al. 2020, Section 3.2, as in Flair).

    When the rate falls below `min_rate`, it becomes 0, and weights no longer change until `training.patience`,
    `max_epochs` or `max_steps` ends the training. The rate is not reduced while all scores are below 0.01, since
    learning has not begun. Only the first score of each epoch counts, so that the rate does not depend on the amount of
    gold; a stream (`max_epochs = -1`) has no epochs, and all its scores count. Since `training.patience` counts
    updates, set it to 0, or to the updates of many epochs.

    score (str): The score to watch, one of [training.score_weights].
    factor (float): Factor on the learning rate, between 0 and 1.
    patience (int): Number of epochs without a better score before a reduction.
    min_rate (float): The minimum learning rate.
    RAISES (WeaknerError): If a setting is out of range.
    """

    def __init__(self, score: str = "ents_f", factor: float = 0.5, patience: int = 3, min_rate: float = 1e-5) -> None:
        check_range("factor", factor, 0.0, 1.0)
        check_range("patience", patience, 0, None)
        check_range("min_rate", min_rate, 0.0, None)
        self.score = score
        self.factor = factor
        self.patience = patience
        self.min_rate = min_rate
        self.best, self.n_without_gain = -math.inf, 0
        self.optimizer: Optional[Optimizer] = None
        self._seen: Any = None
        self._epoch = -1  # of the last score that counts

    def __call__(self, nlp: Language, args: Dict[str, Any]) -> None:
        """Report the first score of an epoch; spaCy calls this method before every update.

        nlp (Language): The pipeline in training.
        args (Dict[str, Any]): "step" and "epoch".
        RAISES (ValueError): If there is no such score, or no learning rate to reduce.
        """
        performance = nlp.meta.get("performance")
        if args["step"] == 0:
            self.best, self.n_without_gain, self.optimizer, self._epoch = -math.inf, 0, None, -1
            for _, pipe in nlp.pipeline:
                if hasattr(pipe, "on_next_update"):
                    pipe.on_next_update(self._keep_optimizer)
        elif performance is not self._seen:  # spaCy makes a new one at each evaluation
            score = self._read(performance)
            if args["epoch"] != self._epoch or nlp.config["training"]["max_epochs"] < 0:
                self._epoch = args["epoch"]
                self.report(score)
        self._seen = performance

    def report(self, score: float) -> None:
        """Note a score, and reduce the learning rate if necessary.

        score (float): Score of an evaluation.
        RAISES (ValueError): If there is no learning rate to reduce.
        """
        if self.optimizer is None:
            raise ValueError(
                "The plateau of the training finds no optimizer whose learning rate it can lower: no component of "
                "spacy_weakner is trained."
            )
        if score > self.best:
            self.best, self.n_without_gain = score, 0
        elif self.best >= _MIN_SCORE:  # before that, there is no plateau
            self.n_without_gain += 1
        if self.n_without_gain > self.patience:
            self.n_without_gain = 0
            self.optimizer.learn_rate *= self.factor
            if self.optimizer.learn_rate < self.min_rate:
                self.optimizer.learn_rate = 0.0

    def _keep_optimizer(self, optimizer: Optimizer) -> None:
        if "learn_rate" in optimizer.schedules:
            reason = "it follows a schedule. Set 'learn_rate' in [training.optimizer] to a number"
            raise ValueError(
                f"The plateau of the training finds no optimizer whose learning rate it can lower: {reason}."
            )
        self.optimizer = optimizer

    def _read(self, performance: Any) -> float:
        score = performance.get(self.score) if performance else None
        if not isinstance(score, (int, float)):
            numbers = [name for name, value in (performance or {}).items() if isinstance(value, (int, float))]
            raise ValueError(
                f"The plateau of the training needs the score '{self.score}', but dev has {', '.join(numbers)}. "
                "Correct 'score' in [training.before_update]; it must also be in [training.score_weights]."
            )
        return float(score)

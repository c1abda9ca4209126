"""The learning rate is lowered where the score on dev no longer rises.

spaCy's learning-rate schedules do not hear of scores. This callback does: it reads the score that spaCy notes in the
pipeline's meta data at each evaluation, and gets the optimizer from a component, which is handed it at each update.
"""

import math
from typing import Any, Dict, Optional

from spacy.language import Language
from thinc.api import Optimizer

from ..errors import check_range

# A score below this is chance: the guesses of a model that has learned nothing hit something, too.
_BEGUN = 0.01


class ReduceOnPlateau:
    """Callback for `[training.before_update]`: multiply the learning rate by `factor` once more than `patience`
    evaluations in a row have brought no better score (Kruengkrai et al. 2020, Section 3.2, as Flair does it).

    When the rate falls below `min_rate` the training is over: the rate becomes 0, and nothing changes any more until
    `training.patience`, `max_epochs` or `max_steps` ends it. Nothing is lowered as long as every score is below 0.01:
    learning has not begun. The paper evaluates once an epoch: set `training.eval_frequency` to the number of batches in
    one, and `training.patience`, which counts updates, to many times that.

    score (str): The score to watch, one of [training.score_weights].
    factor (float): Between 0 and 1.
    patience (int): Evaluations without a better score that are let pass.
    min_rate (float): The least learning rate.
    RAISES (WeaknerError): For settings that cannot be.
    """

    def __init__(self, score: str = "ents_f", factor: float = 0.5, patience: int = 3, min_rate: float = 1e-5) -> None:
        check_range("factor", factor, 0.0, 1.0)
        check_range("patience", patience, 0, None)
        check_range("min_rate", min_rate, 0.0, None)
        self.score = score
        self.factor = factor
        self.patience = patience
        self.min_rate = min_rate
        self.best, self.waited = -math.inf, 0
        self.optimizer: Optional[Optimizer] = None
        self._seen: Any = None

    def __call__(self, nlp: Language, args: Dict[str, Any]) -> None:
        """Look whether there has been an evaluation; spaCy calls this before every update.

        nlp (Language): The pipeline in training.
        args (Dict[str, Any]): "step" and "epoch".
        RAISES (ValueError): If there is no such score, or no learning rate to lower.
        """
        performance = nlp.meta.get("performance")
        if args["step"] == 0:
            self.best, self.waited, self.optimizer = -math.inf, 0, None
            for _, pipe in nlp.pipeline:
                if hasattr(pipe, "on_next_update"):
                    pipe.on_next_update(self._meet)
        elif performance is not self._seen:  # spaCy makes a new one at each evaluation
            self.report(self._read(performance))
        self._seen = performance

    def report(self, score: float) -> None:
        """Take note of a score, and lower the learning rate if it is time.

        score (float): Score of an evaluation.
        RAISES (ValueError): If there is no learning rate to lower.
        """
        if self.optimizer is None:
            raise ValueError(
                "The plateau of the training finds no optimizer whose learning rate it can lower: no component of "
                "spacy_weakner is trained."
            )
        if score > self.best:
            self.best, self.waited = score, 0
        elif self.best >= _BEGUN:  # there is no plateau before
            self.waited += 1
        if self.waited > self.patience:
            self.waited = 0
            self.optimizer.learn_rate *= self.factor
            if self.optimizer.learn_rate < self.min_rate:
                self.optimizer.learn_rate = 0.0

    def _meet(self, optimizer: Optimizer) -> None:
        if "learn_rate" in optimizer.schedules:
            reason = "it follows a schedule. Make [training.optimizer] learn_rate a number"
            raise ValueError(
                f"The plateau of the training finds no optimizer whose learning rate it can lower: {reason}."
            )
        self.optimizer = optimizer

    def _read(self, performance: Any) -> float:
        score = performance.get(self.score) if performance else None
        if not isinstance(score, (int, float)):
            numbers = [name for name, value in (performance or {}).items() if isinstance(value, (int, float))]
            raise ValueError(
                f"The plateau of the training needs the score '{self.score}', and dev gives {', '.join(numbers)}. "
                "Correct 'score' in [training.before_update]; it must also stand in [training.score_weights]."
            )
        return float(score)

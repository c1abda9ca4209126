"""A clock for components that change with the progress of training.

spaCy does not pass the length of training or the corpus to components; this callback does. A stream without end
(`max_epochs = -1`) has only one epoch, so the length has to be given in steps.
"""

import warnings
from typing import Any, Dict, Optional

from spacy.language import Language

from ..errors import Warnings, check_range
from ..ty import CorpusReader, TrainingProgress
from .annotating import annotated


class TrainingClock:
    """A callback for `[training.before_update]` that calls the method `tick` of components, if they have one, with a
    `TrainingProgress`, and at each interval their method `renew` with the corpus, unless they are frozen.

    corpus (Optional[CorpusReader]): The corpus for renewals.
    total_steps (Optional[int]): Length of the training in steps; 0 or None if it is given in epochs.
    total_epochs (Optional[int]): Length of the training in epochs; 0 or None if it is given in steps.
    interval (int): Steps between renewals; 0: no renewals.
    RAISES (ValueError): If the length is not given in exactly one way, or an interval is given without a corpus.
    """

    def __init__(
        self,
        corpus: Optional[CorpusReader] = None,
        total_steps: Optional[int] = None,
        total_epochs: Optional[int] = None,
        interval: int = 0,
    ) -> None:
        if (total_steps or 0) < 0 or (total_epochs or 0) < 0 or bool(total_steps) == bool(total_epochs):
            raise ValueError(
                "The training clock needs exactly one of 'total_steps' and 'total_epochs'. Got "
                f"total_steps={total_steps}, total_epochs={total_epochs}. (If the corpus is a stream without end, "
                "use total_steps.)"
            )
        check_range("interval", interval, 0, None)
        if interval and corpus is None:
            raise ValueError(
                "The training clock has an 'interval' but no 'corpus' to renew components with. Add a nested reader: "
                "[training.before_update.corpus]."
            )
        if total_steps and interval >= total_steps:
            warnings.warn(Warnings.WK903.format(interval=interval, total_steps=total_steps), stacklevel=2)
        self.corpus = corpus
        self.total_steps = total_steps
        self.total_epochs = total_epochs
        self.interval = interval
        self._steps_per_epoch: Optional[float] = None

    def __call__(self, nlp: Language, args: Dict[str, Any]) -> None:
        """Call `tick` and `renew` of the components; spaCy calls this method before every update."""
        step, epoch = int(args["step"]), int(args["epoch"])
        done = step / self.total_steps if self.total_steps else epoch / (self.total_epochs or 1)
        tick = TrainingProgress(step, epoch, min(1.0, done), self.interval, self._n_epochs(step, epoch))
        for _, pipe in nlp.pipeline:
            if hasattr(pipe, "tick"):
                pipe.tick(tick)
        if self.interval and self.corpus is not None and step % self.interval == 0:
            frozen = nlp.config["training"]["frozen_components"]
            for name, pipe in nlp.pipeline:
                if hasattr(pipe, "renew") and name not in frozen:
                    pipe.renew(annotated(nlp, name, self.corpus(nlp)))

    def _n_epochs(self, step: int, epoch: int) -> float:
        if not self.total_steps:
            return float(self.total_epochs or 1)
        if not epoch:
            self._steps_per_epoch = None
        elif self._steps_per_epoch is None:
            self._steps_per_epoch = step / epoch
        return self.total_steps / (self._steps_per_epoch or step + 1)

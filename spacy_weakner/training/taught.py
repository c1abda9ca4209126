"""A head that may learn from an earlier state of itself."""

from abc import abstractmethod
from typing import Any, Callable, Iterable, Optional, Sequence

from spacy.language import Language
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from ..errors import Errors, WeaknerError
from .base import TrainableHead
from .teacher import Teacher

# Sentences of the corpus that the teacher reads at once.
RENEWAL_BATCH = 256


class TaughtHead(TrainableHead):
    """A head with a teacher, the model as it was at the last renewal by the training clock.

    teacher_decay (float): How much of the old teacher stays at a renewal; see `Teacher`.
    RAISES (WeaknerError): If it is not between 0 and 1.
    """

    def __init__(
        self, vocab: Vocab, model: Model[Any, Any], name: str, *, teacher_decay: float = 0.0, **settings: Any
    ) -> None:
        super().__init__(vocab, model, name, **settings)
        self._teacher = Teacher(teacher_decay)

    @property
    @abstractmethod
    def teacher_at_start(self) -> bool:
        """RETURNS (bool): Whether the model that training begins with teaches; otherwise the first teacher is that of
        the first renewal after the start."""

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model. An earlier training leaves no teacher.

        get_examples (Callable[[], Iterable[Example]]): Gives a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; without them those of the examples, sorted.
        RAISES (WeaknerError): If there are no labels.
        """
        self._teacher = Teacher(self._teacher.decay)
        self._tick = None
        super().initialize(get_examples, nlp=nlp, labels=labels)

    @property
    def has_begun(self) -> bool:
        """RETURNS (bool): Whether the training clock has told of an update."""
        return self._tick is not None and self._tick.step > 0

    def renew(self, examples: Iterable[Example]) -> None:
        """Make the model as it is now the teacher, and look at the corpus through its eyes. The training clock calls
        this.

        examples (Iterable[Example]): The corpus.
        RAISES (WeaknerError): If there is nothing to see in it.
        """
        if self.needs_clock and (self.has_begun or self.teacher_at_start):
            self._teacher.renew(self.model)
            self.look_through_teacher(examples)

    def look_through_teacher(self, examples: Iterable[Example]) -> None:
        """Find what the corpus as a whole has to tell, after a renewal."""

    def ask_for_teacher(self) -> Optional[Model]:
        """The teacher of an update.

        RETURNS (Optional[Model]): The model; None before the first renewal.
        RAISES (WeaknerError): If there should be one already, or never will be.
        """
        if self._teacher.model is None and (self.teacher_at_start or self._tick is None or self._tick.interval == 0):
            raise WeaknerError(Errors.WK029.format(name=self.name))
        return self._teacher.model

"""Other labels for sentences, by what an earlier state of the model says: the form that such methods have."""

from typing import Protocol, runtime_checkable

from ..losses import Array
from .boundaries import Boundaries


@runtime_checkable
class Relabeller(Protocol):
    """Labels sentences anew. If it has an attribute `at_start` that is true, it does so from the first update on, by
    what the model says that the training begins with; or else not before the first renewal after it.
    """

    def __call__(self, target: Boundaries, probabilities: Array) -> Boundaries:
        """Label a sentence.

        target (Boundaries): Its annotation.
        probabilities (Array): Shape (n_tokens, n_labels, 2): of starts and ends, by the teacher.
        RETURNS (Boundaries): What to learn.
        """

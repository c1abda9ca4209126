"""Other labels for sentences, by what an earlier state of the model says: the form that such methods have."""

from typing import Callable, Optional, Protocol, runtime_checkable

from ..losses import Array
from .boundaries import Boundaries
from .decoding import Spans

# From starts and ends with their labels, shape (n, 3), to the probabilities that they belong together, shape (n,).
Matches = Callable[[Spans], Array]


@runtime_checkable
class Relabeller(Protocol):
    """Labels sentences anew. If it has an attribute `at_start` that is true, it does so from the first update on, by
    what the model says that the training begins with; or else not before the first renewal after it.
    """

    def __call__(self, target: Boundaries, probabilities: Array, matches: Optional[Matches] = None) -> Boundaries:
        """Label a sentence.

        target (Boundaries): Its annotation.
        probabilities (Array): Shape (n_tokens, n_labels, 2): of starts and ends, by the teacher.
        matches (Optional[Matches]): What the teacher says of starts and ends together; None: it has no matcher.
        RETURNS (Boundaries): What to learn.
        """

"""Losses on probabilities, one row a token."""

from dataclasses import dataclass
from typing import Any, Protocol, Tuple, runtime_checkable

from thinc.api import get_array_module

Array = Any  # numpy or CuPy: floats


@runtime_checkable
class ProbabilityLoss(Protocol):
    """A loss on probabilities."""

    def __call__(self, guesses: Array, truths: Array) -> Tuple[Array, float]:
        """Compute the loss.

        guesses (Array): Shape (n_tokens, n_classes): the model's probabilities.
        truths (Array): Same shape: the wanted ones.
        RETURNS (Tuple[Array, float]): Gradient with respect to the guesses, of the sum over tokens; and the mean loss.
            0 for no tokens.
        """


@dataclass(frozen=True)
class MeanSquaredError:
    """Squared distance between probabilities and labels (Ghosh et al. 2017, Section 3.3):

        L = sum_k (p_k - y_k)^2

    It is bounded by 2, so that no wrong label pulls without limit, as it does under cross-entropy.
    """

    def __call__(self, guesses: Array, truths: Array) -> Tuple[Array, float]:
        difference = guesses - truths
        return 2.0 * difference, float((difference**2).sum()) / max(1, len(guesses))


def softmax_gradient(probabilities: Array, gradient: Array) -> Array:
    """Take a gradient with respect to probabilities back to the logits of their softmax.

    probabilities (Array): Shape (n_tokens, n_classes).
    gradient (Array): Same shape.
    RETURNS (Array): Same shape.
    """
    return probabilities * (gradient - (probabilities * gradient).sum(-1, keepdims=True))


def softmax(logits: Array) -> Array:
    """Probabilities of each row, in the precision of the logits.

    logits (Array): Shape (n_tokens, n_classes); at least one class.
    RETURNS (Array): Same shape.
    """
    xp = get_array_module(logits)
    exponentials = xp.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def make_mean_squared_error() -> MeanSquaredError:
    """Create the loss; registered as `spacy_weakner.MeanSquaredError.v1`."""
    return MeanSquaredError()

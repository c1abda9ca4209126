"""Losses on probabilities, with one row per token. They take log-probabilities, so that none fails at 0 or 1."""

import inspect
from dataclasses import dataclass
from typing import Protocol, Tuple, runtime_checkable

import numpy

from .errors import check_range
from .ty import Array


@runtime_checkable
class ProbabilityLoss(Protocol):
    """A loss on probabilities."""

    def __call__(self, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
        """Compute the loss.

        log_probabilities (Array): Shape (n_tokens, n_classes): log p of the model.
        truths (Array): Same shape: the target probabilities y.
        RETURNS (Tuple[Array, Array]): Loss of each token, shape (n_tokens,); and its gradient with respect to the
            log-probabilities, which is finite even where a probability is 0.
        """


def loss_of_tokens(loss: ProbabilityLoss, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
    """Compute a loss, which may be user-defined, and check the form of its result: numpy would broadcast a gradient of
    a wrong shape over all tokens."""
    shape = tuple(truths.shape)
    try:
        result = loss(log_probabilities, truths)
    except TypeError:
        try:
            inspect.signature(loss).bind(log_probabilities, truths)
        except TypeError as error:
            raise _wrong_form(loss, f"cannot be called with two arrays ({error})", shape) from None
        raise
    if not isinstance(result, tuple) or len(result) != 2:
        raise _wrong_form(loss, f"returns {type(result).__name__}", shape)
    shapes = [getattr(part, "shape", None) for part in result]
    if shapes != [shape[:1], shape]:
        given = " and ".join(type(p).__name__ if s is None else str(s) for p, s in zip(result, shapes, strict=True))
        raise _wrong_form(loss, f"returns {given}", shape)
    return result


def _wrong_form(loss: object, given: str, shape: Tuple[int, ...]) -> ValueError:
    name = getattr(loss, "__qualname__", type(loss).__qualname__)
    return ValueError(
        f"The loss '{name}' {given}. A loss of tokens takes log-probabilities and target probabilities (shape "
        f"{shape} here), and returns a tuple: the loss of each token (shape {shape[:1]}) and the gradient (shape "
        f"{shape}). Correct it, or choose a loss of tokens."
    )


@dataclass(frozen=True)
class CategoricalCrossentropy:
    """The cross-entropy of labels and probabilities:

        L = -sum_k y_k log p_k

    It converges best, but the gradient of a wrong label is not bounded.
    """

    def __call__(self, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
        return _expected(truths, -log_probabilities), -truths


@dataclass(frozen=True)
class KLDivergence:
    """The divergence of probabilities from soft labels: the cross-entropy minus the entropy of the labels.

        L = KL(y || p) = sum_k y_k (log y_k - log p_k)

    It is 0 if both are equal, and equals the cross-entropy for a hard label.
    """

    def __call__(self, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
        logs = numpy.log(numpy.where(truths > 0.0, truths, 1.0))
        return _expected(truths, logs - log_probabilities), -truths


@dataclass(frozen=True)
class MeanAbsoluteError:
    """The absolute distance between probabilities and labels, halved (Ghosh et al. 2017):

        L = 1/2 sum_k |p_k - y_k|,  which is 1 - p_y for a hard label

    All wrong labels have the same influence, however certain the model is that they are wrong; but it converges slowly.
    """

    def __call__(self, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
        probabilities = numpy.exp(log_probabilities)
        difference = probabilities - truths
        return 0.5 * numpy.abs(difference).sum(-1), 0.5 * numpy.sign(difference) * probabilities


@dataclass(frozen=True)
class MeanSquaredError:
    """The squared distance between probabilities and labels (Ghosh et al. 2017, Section 3.3):

        L = sum_k (p_k - y_k)^2

    It is bounded by 2, so that no wrong label has unlimited influence, as under cross-entropy.
    """

    def __call__(self, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
        probabilities = numpy.exp(log_probabilities)
        difference = probabilities - truths
        return (difference**2).sum(-1), 2.0 * difference * probabilities


@dataclass(frozen=True)
class GeneralizedCrossEntropy:
    """A loss between cross-entropy, which converges well, and mean absolute error, which is robust to wrong labels
    (Zhang and Sabuncu 2018; Meng et al. 2021, Equation 3):

        L = sum_k y_k (1 - p_k^q) / q

    q (float): 0 is the cross-entropy, 1 the mean absolute error of hard labels.
    RAISES (WeaknerError): If q is not between 0 and 1.
    """

    q: float = 0.7

    def __post_init__(self) -> None:
        check_range("q", self.q, 0.0, 1.0)

    def __call__(self, log_probabilities: Array, truths: Array) -> Tuple[Array, Array]:
        if self.q == 0.0:
            return CategoricalCrossentropy()(log_probabilities, truths)
        # (1 - p^q) / q, also for q near 0
        values = -numpy.expm1(self.q * log_probabilities) / self.q
        return _expected(truths, values), -truths * numpy.exp(self.q * log_probabilities)


def log_softmax(scores: Array, temperature: float = 1.0) -> Array:
    """Return the log-probabilities of each row of scores, divided by the temperature; float64."""
    scaled = numpy.asarray(scores, dtype="float64") / temperature
    shifted = scaled - scaled.max(-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(-1, keepdims=True))


def log_softmax_gradient(log_probabilities: Array, gradient: Array) -> Array:
    """Convert a gradient with respect to log-probabilities to one with respect to the scores of their softmax."""
    return gradient - numpy.exp(log_probabilities) * gradient.sum(-1, keepdims=True)


def sigmoid(scores: Array) -> Array:
    """Return the probabilities of log-odds, without overflow."""
    return numpy.exp(-numpy.logaddexp(0.0, -scores))


def binary_cross_entropy(scores: Array, truths: Array) -> Tuple[Array, Array]:
    """Return -y log p - (1 - y) log(1 - p), where p is the sigmoid of a score, and its gradient with respect to the
    scores, of the same shape, in float64."""
    wide = numpy.asarray(scores, dtype="float64")
    # log(1 + exp(s)) - y s, in terms that are not negative if y is 0 or 1, so that nothing cancels.
    values = numpy.logaddexp(0.0, -numpy.abs(wide)) + (numpy.maximum(wide, 0.0) - truths * wide)
    return values, sigmoid(wide) - truths


def _expected(truths: Array, values: Array) -> Array:
    # 0 times infinity is 0 here.
    return (truths * numpy.where(truths > 0.0, values, 0.0)).sum(-1)

"""Probabilities from the outputs of a token classifier, and their gradients (Meng et al. 2021, Appendix C).

For every token, the model returns a score b for being in an entity, and a score z_k for each tag except "O", given that
the token is in an entity:

    s = sigmoid(b)        P(O) = 1 - s        P(k) = s softmax(z)_k
"""

from typing import NamedTuple

import numpy

from ..losses import log_softmax, log_softmax_gradient
from ..ty import Array


class TokenScores(NamedTuple):
    """Log-probabilities of some tokens.

    entity (Array): Shape (n_tokens, 2): of "O", and of being in an entity.
    types (Array): Shape (n_tokens, n_tags - 1): of the tags except "O", given that a token is in an entity.
    """

    entity: Array
    types: Array

    def joint(self) -> Array:
        """RETURNS (Array): Shape (n_tokens, n_tags): log-probabilities of all tags, "O" first."""
        return numpy.concatenate([self.entity[:, :1], self.entity[:, 1:] + self.types], axis=1)

    def gradient(self, entity: Array, types: Array) -> Array:
        """Backpropagate gradients to the outputs of the model.

        entity (Array): Gradient with respect to `entity`.
        types (Array): Gradient with respect to `types`.
        RETURNS (Array): Shape (n_tokens, n_tags).
        """
        d_entity = log_softmax_gradient(self.entity, entity)[:, 1:]
        return numpy.concatenate([d_entity, log_softmax_gradient(self.types, types)], axis=1)

    def joint_gradient(self, joint: Array) -> Array:
        """Backpropagate a gradient with respect to the log-probabilities of all tags to the outputs of the model.

        joint (Array): The gradient, shape (n_tokens, n_tags).
        RETURNS (Array): Gradient of the outputs, of the same shape.
        """
        entity = numpy.stack([joint[:, 0], joint[:, 1:].sum(axis=1)], axis=1)
        return self.gradient(entity, joint[:, 1:])


def token_scores(outputs: Array, temperature: float = 1.0, bias: float = 0.0) -> TokenScores:
    """Compute log-probabilities of some tokens.

    outputs (Array): Shape (n_tokens, n_tags), on the host: b, then z.
    temperature (float): Divisor of the outputs.
    bias (float): Added to the score of "O", that is, subtracted from b.
    RETURNS (TokenScores): The log-probabilities, in float64.
    """
    outputs = numpy.asarray(outputs, dtype="float64")
    binary = outputs[:, :1] - bias
    entity = numpy.concatenate([numpy.zeros_like(binary), binary], axis=1)
    return TokenScores(log_softmax(entity, temperature), log_softmax(outputs[:, 1:], temperature))

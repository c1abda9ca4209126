"""From the outputs of a token classifier to probabilities, and back with gradients (Meng et al. 2021, Appendix C).

Of every token the model gives one score b, whether it belongs to an entity, and one score z_k for each tag but "O",
given that it does:

    s = sigmoid(b)        P(O) = 1 - s        P(k) = s softmax(z)_k
"""

from typing import NamedTuple

import numpy

from ..losses import Array, log_softmax, log_softmax_gradient


class TokenScores(NamedTuple):
    """Log-probabilities of some tokens.

    entity (Array): Shape (n_tokens, 2): that a token is "O", and that it belongs to an entity.
    types (Array): Shape (n_tokens, n_tags - 1): of the tags but "O", given that it belongs to an entity.
    """

    entity: Array
    types: Array

    def joint(self) -> Array:
        """RETURNS (Array): Shape (n_tokens, n_tags): log-probabilities of all tags, "O" first."""
        return numpy.concatenate([self.entity[:, :1], self.entity[:, 1:] + self.types], axis=1)

    def gradient(self, entity: Array, types: Array) -> Array:
        """Take gradients back to the outputs of the model.

        entity (Array): Gradient with respect to `entity`.
        types (Array): Gradient with respect to `types`.
        RETURNS (Array): Shape (n_tokens, n_tags).
        """
        d_entity = log_softmax_gradient(self.entity, entity)[:, 1:]
        return numpy.concatenate([d_entity, log_softmax_gradient(self.types, types)], axis=1)

    def joint_gradient(self, joint: Array) -> Array:
        """Take a gradient with respect to the log-probabilities of all tags back to the outputs of the model.

        joint (Array): Shape (n_tokens, n_tags).
        RETURNS (Array): Same shape.
        """
        entity = numpy.stack([joint[:, 0], joint[:, 1:].sum(axis=1)], axis=1)
        return self.gradient(entity, joint[:, 1:])


def read_scores(outputs: Array, temperature: float = 1.0, bias: float = 0.0) -> TokenScores:
    """Log-probabilities of some tokens.

    outputs (Array): Shape (n_tokens, n_tags), on the host: b, then z.
    temperature (float): Divides them.
    bias (float): Added to the score of "O": what b loses.
    RETURNS (TokenScores): In float64.
    """
    outputs = numpy.asarray(outputs, dtype="float64")
    binary = outputs[:, :1] - bias
    entity = numpy.concatenate([numpy.zeros_like(binary), binary], axis=1)
    return TokenScores(log_softmax(entity, temperature), log_softmax(outputs[:, 1:], temperature))

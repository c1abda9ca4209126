"""Weak label completion (Jiang et al. 2021, Equation 2): what the term list left open is filled in by a model."""

import numpy
from numpy.typing import NDArray

from ..corpus.tags import BoolMask, IntTags, TagScheme

BROKEN = ("keep", "repair")
# Where the model decides: nowhere, where there is no weak entity (the paper), or everywhere (self-training).
NONE, UNMATCHED, ALL = "none", "unmatched", "all"
RULES = (UNMATCHED, ALL, NONE)


def complete(weak: IntTags, predicted: IntTags) -> IntTags:
    """Complete the weak labels of a sentence, token by token:

        y^c_i = y^p_i  if y^w_i = O,  else y^w_i

    A token that the weak labels know nothing about is completed like one that they call "O". Since each token is
    decided by itself, a B-x of one side may be followed by an I-y of the other: see `is_broken`.

    weak (IntTags): Shape (n_tokens,): ids of the weak tags, `MISSING` where there are none.
    predicted (IntTags): Shape (n_tokens,): ids of the model's tags, in the same scheme.
    RETURNS (IntTags): Shape (n_tokens,).
    """
    return numpy.where(matched(weak), weak, predicted)


def decide(weak: IntTags, predicted: IntTags, rule: str) -> IntTags:
    """The labels that a rule makes of the weak ones.

    weak (IntTags): Shape (n_tokens,): as in `complete`.
    predicted (IntTags): Shape (n_tokens,): ids of the model's tags, in the same scheme.
    rule (str): One of `RULES`.
    RETURNS (IntTags): Shape (n_tokens,).
    """
    if rule == ALL:
        return predicted
    return weak if rule == NONE else complete(weak, predicted)


def matched(weak: IntTags) -> BoolMask:
    """Which tokens keep their weak label: those inside of weak entities."""
    result: BoolMask = weak > 0
    return result


def mix(weak: IntTags, predicted: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Complete the weak labels of a sentence by probabilities, our variant of Equation 2: a token in a weak entity has
    its weak label, another one what the model thinks of it.

    weak (IntTags): Shape (n_tokens,): as in `complete`.
    predicted (NDArray[numpy.float64]): Shape (n_tokens, n_tags): the model's distribution.
    RETURNS (NDArray[numpy.float64]): Shape (n_tokens, n_tags).
    """
    return numpy.where(matched(weak)[:, None], weak[:, None] == numpy.arange(predicted.shape[1]), predicted)


def is_broken(tags: IntTags, scheme: TagScheme) -> bool:
    """Whether a tag sequence breaks its scheme.

    tags (IntTags): Shape (n_tokens,).
    scheme (TagScheme): The scheme of the ids.
    RETURNS (bool): True if it starts, goes on or ends as the scheme does not allow.
    """
    if not len(tags):
        return False
    opens, follows, closes = scheme.allowed_transitions()
    return not (opens[tags[0]] and follows[tags[:-1], tags[1:]].all() and closes[tags[-1]])

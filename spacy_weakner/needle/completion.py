"""Weak label completion (Jiang et al. 2021, Equation 2): a model labels the tokens that the term list does not."""

import numpy
from numpy.typing import NDArray

from ..corpus.tags import IntTags, TagScheme
from ..ty import BoolMask

BROKEN = ("keep", "repair")
# Tokens that the model labels: none, those in no weak entity (the paper), or all (self-training).
NONE, UNMATCHED, ALL = "none", "unmatched", "all"
RULES = (UNMATCHED, ALL, NONE)


def apply_rule(weak: IntTags, predicted: IntTags, rule: str) -> IntTags:
    """Return the labels of a sentence by a rule. That of the paper, "unmatched", completes the weak labels:

        y^c_i = y^p_i  if y^w_i = O,  else y^w_i

    A missing weak label is completed like an "O". Since each token is completed separately, a B-x of one side may be
    followed by an I-y of the other: see `is_broken`.

    weak (IntTags): Shape (n_tokens,): ids of the weak tags, or `MISSING`.
    predicted (IntTags): Shape (n_tokens,): ids of the model's tags, in the same scheme.
    rule (str): One of `RULES`.
    RETURNS (IntTags): Shape (n_tokens,).
    """
    if rule == ALL:
        return predicted
    return weak if rule == NONE else numpy.where(matched(weak), weak, predicted)


def matched(weak: IntTags) -> BoolMask:
    """Return a mask of the tokens that keep their weak label: those in weak entities."""
    result: BoolMask = weak > 0
    return result


def mix_labels(weak: IntTags, predicted: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Complete the weak labels of a sentence with probabilities, our variant of Equation 2: a token in a weak entity
    keeps its weak label, other tokens get the model's distribution.

    weak (IntTags): Shape (n_tokens,): as in `complete`.
    predicted (NDArray[numpy.float64]): Shape (n_tokens, n_tags): the model's distribution.
    RETURNS (NDArray[numpy.float64]): Shape (n_tokens, n_tags).
    """
    return numpy.where(matched(weak)[:, None], weak[:, None] == numpy.arange(predicted.shape[1]), predicted)


def is_broken(tags: IntTags, scheme: TagScheme) -> bool:
    """Return whether a tag sequence breaks its scheme.

    tags (IntTags): Shape (n_tokens,).
    scheme (TagScheme): The scheme of the ids.
    RETURNS (bool): True if the scheme does not allow its start, its end or a transition.
    """
    if not len(tags):
        return False
    opens, follows, closes = scheme.allowed_transitions()
    return not (opens[tags[0]] and follows[tags[:-1], tags[1:]].all() and closes[tags[-1]])

"""`crf_ner` as a token classifier."""

import numpy
import pytest

from spacy_weakner.corpus.tags import MISSING
from spacy_weakner.crf_ner.losses import TokenwiseLoss
from spacy_weakner.losses import MeanSquaredError

from .test_losses import make_case, on_tags, random_tags, with_holes

LOSS = TokenwiseLoss(MeanSquaredError())


def brute_force(emissions, tags):
    """Sum over tokens, one by one."""
    total = 0.0
    for scores, own in zip(emissions, tags, strict=True):
        for row, tag in zip(scores, own, strict=True):
            if tag != MISSING:
                exponentials = [numpy.exp(float(score)) for score in row]
                chances = [e / sum(exponentials) for e in exponentials]
                total += sum((chance - (k == tag)) ** 2 for k, chance in enumerate(chances))
    return total


@pytest.mark.parametrize("lengths", [(4, 5, 1), (1,), (3, 0, 2)], ids=str)
def test_equals_brute_force(lengths):
    parameters, emissions = make_case(lengths=lengths)
    tags = with_holes(random_tags(emissions[0].shape[1], lengths))
    result = on_tags(LOSS)(parameters, emissions, tags)
    assert result.loss * sum(n > 0 for n in lengths) == pytest.approx(brute_force(emissions, tags))


def test_transitions_are_not_used():
    parameters, emissions = make_case()
    tags = random_tags(emissions[0].shape[1], (4, 5, 1))
    other = parameters._replace(transitions=parameters.transitions + 3.0)
    assert on_tags(LOSS)(parameters, emissions, tags).loss == on_tags(LOSS)(other, emissions, tags).loss
    assert not any(g.any() for g in on_tags(LOSS)(parameters, emissions, tags).parameters)

"""`crf_ner` as a token classifier."""

import numpy
import pytest

from spacy_weakner.corpus.tags import MISSING
from spacy_weakner.crf_ner.likelihood import Target
from spacy_weakner.crf_ner.losses import TokenwiseLoss
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import MeanSquaredError

from .test_losses import check_finite_differences, close, make_case, on_tags, random_tags, with_holes

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


def test_finite_differences():
    parameters, emissions = make_case()
    tags = with_holes(random_tags(emissions[0].shape[1], (4, 5, 1)))
    check_finite_differences(on_tags(LOSS), parameters, emissions, tags)


@pytest.mark.parametrize("tags", [[], [numpy.full(4, MISSING)]], ids=["no sentences", "all missing"])
def test_nothing_to_learn(tags):
    parameters, emissions = make_case(lengths=(4,))
    result = on_tags(LOSS)(parameters, emissions[: len(tags)], tags)
    assert result.loss == 0.0 and not any(g.any() for g in [*result.emissions, *result.parameters])


def test_transitions_are_not_used():
    parameters, emissions = make_case()
    tags = random_tags(emissions[0].shape[1], (4, 5, 1))
    other = parameters._replace(transitions=parameters.transitions + 3.0)
    assert on_tags(LOSS)(parameters, emissions, tags).loss == on_tags(LOSS)(other, emissions, tags).loss
    assert not any(g.any() for g in on_tags(LOSS)(parameters, emissions, tags).parameters)


def test_weights():
    parameters, emissions = make_case(lengths=(4,))
    (tags,) = random_tags(emissions[0].shape[1], (4,))
    whole = LOSS(parameters, emissions, [Target(tags)])
    half = LOSS(parameters, emissions, [Target(tags, 0.5)])
    assert half.loss == pytest.approx(whole.loss / 2)
    close(half.emissions[0], whole.emissions[0] / 2)


def test_unusable_weight():
    with pytest.raises(WeaknerError, match="weak_weight"):
        TokenwiseLoss(MeanSquaredError(), -1.0)

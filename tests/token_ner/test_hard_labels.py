"""Learning from tags."""

import numpy
import pytest

from spacy_weakner.annotations.tags import MISSING
from spacy_weakner.losses import CategoricalCrossentropy, GeneralizedCrossEntropy
from spacy_weakner.token_ner.hard_labels import HardLabels
from spacy_weakner.token_ner.objective import Objective, TokenBatch

from .util import chances, check_finite_differences, outputs, softmax

TAGS = numpy.asarray([0, 2, MISSING, 1, 0])


def gce(p):
    return (1 - p**0.7) / 0.7


def test_cross_entropy_is_that_of_the_joint_distribution():
    given = outputs(5, 4)
    found = HardLabels(CategoricalCrossentropy())(TokenBatch(given, TAGS))
    expected = sum(-numpy.log(chances(row)[tag]) for row, tag in zip(given, TAGS, strict=True) if tag != MISSING)
    assert found.loss == pytest.approx(expected)


def test_other_losses_count_each_head_for_itself():
    given = outputs(5, 4)
    expected = 0.0
    for row, tag in zip(given, TAGS, strict=True):
        s = 1 / (1 + numpy.exp(-row[0]))
        if tag == 0:
            expected += gce(1 - s)
        elif tag > 0:
            expected += gce(s) + gce(softmax(row[1:])[tag - 1])
    assert HardLabels(GeneralizedCrossEntropy())(TokenBatch(given, TAGS)).loss == pytest.approx(expected)


@pytest.mark.parametrize("loss", [CategoricalCrossentropy(), GeneralizedCrossEntropy()])
def test_finite_differences(loss):
    given, objective = outputs(5, 4), HardLabels(loss)
    gradient = objective(TokenBatch(given, TAGS)).outputs
    check_finite_differences(lambda at: objective(TokenBatch(at, TAGS)).loss, gradient, given)
    assert not gradient[2].any(), "missing tags teach nothing"


@pytest.mark.parametrize("tags", [[], [MISSING, MISSING], [0, 0], [1, 1]], ids=str)
def test_parts_may_be_absent(tags):
    tags = numpy.asarray(tags, dtype="int64")
    found = HardLabels(GeneralizedCrossEntropy())(TokenBatch(outputs(len(tags), 3), tags))
    assert numpy.isfinite(found.loss) and numpy.isfinite(found.outputs).all()
    assert bool(found.loss) == bool((tags != MISSING).any())


def test_is_an_objective():
    assert isinstance(HardLabels(CategoricalCrossentropy()), Objective)

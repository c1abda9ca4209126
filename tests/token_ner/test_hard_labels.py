"""Learning from one tag per token."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import MISSING, TagScheme
from spacy_weakner.corpus.weak import set_tags
from spacy_weakner.errors import UnknownLabel
from spacy_weakner.losses import (
    CategoricalCrossentropy,
    GeneralizedCrossEntropy,
    MeanAbsoluteError,
)
from spacy_weakner.token_ner.objective import HardLabels, TokenBatch, hard_label_loss

from ..util import make_example, numeric_gradient
from .util import joint, probabilities, random_outputs

NLP = spacy.blank("xx")
# Each loss of a hard label, as a function of the probability of that label (of two classes, for the squared error).
LOSSES = {
    "cross-entropy": (CategoricalCrossentropy(), lambda p: -math.log(p)),
    "generalized": (GeneralizedCrossEntropy(0.7), lambda p: (1 - p**0.7) / 0.7),
    "absolute": (MeanAbsoluteError(), lambda p: 1 - p),
}
TAGS = numpy.asarray([0, 1, 2, MISSING, 0, 2, 1])


def naive(loss, outputs, tags):
    """One token and one head after the other."""
    total = 0.0
    for row, tag in zip(outputs, tags, strict=True):
        s, types = probabilities(row)
        if tag == 0:
            total += loss(1 - s)
        elif tag > 0:
            total += loss(s) + loss(types[tag - 1])
    return total


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tags", [TAGS, [0] * 7, [MISSING] * 7, [1] * 7, [3, 3, 1, 2, 0, 0, MISSING]])
def test_equals_brute_force(name, tags):
    loss, formula = LOSSES[name]
    outputs = random_outputs(len(TAGS))
    result = HardLabels(loss)(TokenBatch(outputs, numpy.asarray(tags)))
    assert result.loss == pytest.approx(naive(formula, outputs, tags), abs=1e-9)
    assert type(result.loss) is float
    assert result.augmented is None


def test_under_cross_entropy_it_is_the_loss_of_the_joint_distribution():
    outputs = random_outputs(len(TAGS))
    expected = -sum(math.log(joint(row)[tag]) for row, tag in zip(outputs, TAGS, strict=True) if tag != MISSING)
    assert HardLabels(CategoricalCrossentropy())(TokenBatch(outputs, TAGS)).loss == pytest.approx(expected)


@pytest.mark.parametrize("loss", [CategoricalCrossentropy(), GeneralizedCrossEntropy(0.7)])
def test_the_loss_of_the_whole_tag(loss):
    """Equations 3 and 5 as they are written: on the probability of the tag, "O" or not."""
    random = numpy.random.RandomState(3)
    outputs, tags = random.normal(size=(6, 4)), numpy.asarray([0, 1, 3, 0, 2, MISSING])
    known = tags != MISSING

    def value(outputs):
        return hard_label_loss(loss, outputs, tags, known, whole_tag=True).loss

    entity = 1.0 / (1.0 + numpy.exp(-outputs[:, 0]))
    types = numpy.exp(outputs[:, 1:]) / numpy.exp(outputs[:, 1:]).sum(axis=1, keepdims=True)
    f = numpy.concatenate([1.0 - entity[:, None], entity[:, None] * types], axis=1)[known, tags[known]]
    expected = -numpy.log(f) if isinstance(loss, CategoricalCrossentropy) else (1.0 - f**0.7) / 0.7
    assert value(outputs) == pytest.approx(expected.sum())
    found = hard_label_loss(loss, outputs, tags, known, whole_tag=True).outputs
    numpy.testing.assert_allclose(found, numeric_gradient(value, outputs), atol=1e-6)
    two = hard_label_loss(loss, outputs, tags, known).loss
    assert (value(outputs) == pytest.approx(two)) is isinstance(loss, CategoricalCrossentropy)


def test_what_is_read_off_an_example():
    objective, scheme = HardLabels(CategoricalCrossentropy()), TagScheme("BIO", ["LOC", "PER"])
    example = make_example(NLP, "Anna went to New York", [(3, 5, "LOC")], missing=[1])
    assert objective.encode(example, scheme).tolist() == [0, MISSING, 0, 1, 2]
    assert objective.labels(example.reference) == {"LOC"}
    set_tags(example.reference, ["B-PER", None, "O", "O", "O"])
    assert objective.encode(example, scheme).tolist() == [3, MISSING, 0, 0, 0]
    assert objective.labels(example.reference) == {"LOC", "PER"}
    with pytest.raises(UnknownLabel, match="ORG"):
        objective.encode(make_example(NLP, "Anna went", [(0, 1, "ORG")]), scheme)

"""Learning from a distribution over tags per token."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.corpus.weak import TagDistributions as StoredLabels
from spacy_weakner.corpus.weak import set_soft_labels
from spacy_weakner.errors import UnknownLabel, WeaknerError
from spacy_weakner.losses import CategoricalCrossentropy, MeanSquaredError
from spacy_weakner.token_ner.objective import HardLabels, SoftLabels, TokenBatch

from ..util import make_example, numeric_gradient
from .util import joint, random_outputs

NLP = spacy.blank("xx")
SCHEME = TagScheme("IO", ["LOC", "PER"])
# The probabilities of a model, and the mean of two others.
OUTPUTS = numpy.asarray([[0.4, 2.0, 0.5, -0.5]])
MEAN = numpy.asarray([[0.35, 0.4, 0.175, 0.075]])


def random_case(n_tokens=5, n_tags=4, seed=0):
    wanted = numpy.random.RandomState(seed).dirichlet(numpy.ones(n_tags), n_tokens)
    return random_outputs(n_tokens, n_tags, seed), wanted


def naive(outputs, wanted):
    """One token at a time."""
    pairs = [pair for row, own in zip(outputs, wanted, strict=True) for pair in zip(own, joint(row), strict=True)]
    return sum(q * math.log(q / p) for q, p in pairs if q)


def loss(outputs, wanted):
    return SoftLabels()(TokenBatch(numpy.asarray(outputs), numpy.asarray(wanted))).loss


def test_a_case_by_hand():
    assert numpy.mean([[0.5, 0.3, 0.15, 0.05], [0.2, 0.5, 0.2, 0.1]], axis=0) == pytest.approx(MEAN[0])
    assert loss(OUTPUTS, MEAN) == pytest.approx(0.042911, abs=1e-6)


def test_another_loss():
    outputs, wanted = random_case()
    result = SoftLabels(loss=MeanSquaredError())(TokenBatch(outputs, wanted))
    joints = numpy.asarray([joint(row) for row in outputs])
    values, _ = MeanSquaredError()(numpy.log(joints), wanted)
    assert result.loss == pytest.approx(values.sum())

    def of(x):
        return SoftLabels(loss=MeanSquaredError())(TokenBatch(x, wanted)).loss

    numpy.testing.assert_allclose(result.outputs, numeric_gradient(of, outputs), atol=1e-6)


def test_equals_brute_force():
    outputs, wanted = random_case()
    wanted[1] = 0.0
    wanted[2] = [1, 0, 0, 0]
    wanted[3] = [0, 0, 1, 0]
    assert loss(outputs, wanted) == pytest.approx(naive(outputs, wanted), abs=1e-9)


def test_hard_soft_labels_are_hard_labels():
    outputs, _ = random_case()
    tags = numpy.asarray([0, 1, 2, 3, 0])
    soft = SoftLabels()(TokenBatch(outputs, numpy.eye(4)[tags]))
    hard = HardLabels(CategoricalCrossentropy())(TokenBatch(outputs, tags))
    assert soft.loss == pytest.approx(hard.loss)
    numpy.testing.assert_allclose(soft.outputs, hard.outputs, atol=1e-12)


# What is read off examples


def soft_example(labels=("O", "I-PER", "I-LOC"), scheme="IO", rows=((0.2, 0.5, 0.3), (0, 0, 0)), text="Anna went"):
    example = make_example(NLP, text, [(0, 1, "ORG")])
    set_soft_labels(example.reference, StoredLabels(labels, scheme, numpy.asarray(rows, dtype="float32")))
    return example


def test_soft_labels_come_before_hard_ones_and_into_the_columns_of_the_component():
    example = soft_example()
    numpy.testing.assert_allclose(SoftLabels().encode(example, SCHEME), [[0.2, 0.3, 0.5], [0, 0, 0]], atol=1e-6)
    assert SoftLabels().labels(example.reference) == {"LOC", "PER"}


def test_sentences_without_soft_labels_are_learned_from_by_their_tags():
    example = make_example(NLP, "Anna went home", [(0, 1, "PER")], missing=[1])
    assert SoftLabels().encode(example, SCHEME).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert SoftLabels().labels(example.reference) == {"PER"}


@pytest.mark.parametrize(
    "example, message",
    [
        (soft_example(scheme="BIO"), r"\[WK020\].*BIO.*IO"),
        (soft_example(rows=[(0.9, 0.9, 0.9), (1, 0, 0)]), r"\[WK022\]"),
    ],
)
def test_soft_labels_that_cannot_be_used(example, message):
    with pytest.raises(WeaknerError, match=message):
        SoftLabels().encode(example, SCHEME)


def test_soft_labels_of_unknown_labels():
    with pytest.raises(UnknownLabel, match="ORG"):
        SoftLabels().encode(soft_example(labels=("O", "I-ORG", "I-LOC")), SCHEME)

"""Learning from a distribution over tags per token."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.corpus.weak import SoftLabels as StoredLabels
from spacy_weakner.corpus.weak import set_soft_labels
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import CategoricalCrossentropy, KLDivergence, MeanSquaredError
from spacy_weakner.token_ner.objective import HardLabels, SoftLabels, TokenBatch

from ..util import make_example, numeric_gradient
from .util import joint, probabilities, random_outputs

NLP = spacy.blank("xx")
SCHEME = TagScheme("IO", ["LOC", "PER"])
# The probabilities of a model, and the mean of two others.
OUTPUTS = numpy.asarray([[0.4, 2.0, 0.5, -0.5]])
MEAN = numpy.asarray([[0.35, 0.4, 0.175, 0.075]])
both_forms = pytest.mark.parametrize("separate", [False, True])


def random_case(n_tokens=5, n_tags=4, seed=0):
    wanted = numpy.random.RandomState(seed).dirichlet(numpy.ones(n_tags), n_tokens)
    return random_outputs(n_tokens, n_tags, seed), wanted


def naive(outputs, wanted, separate):
    """Both forms, one token at a time."""
    total = 0.0
    for row, own in zip(outputs, wanted, strict=True):
        if not any(own):
            continue
        s, types = probabilities(row)
        chance = sum(own[1:])
        if separate:
            total -= own[0] * math.log(1 - s) + chance * math.log(s)
            total += sum(q / chance * math.log(q / chance / p) for q, p in zip(own[1:], types, strict=True) if q)
        else:
            total += sum(q * math.log(q / p) for q, p in zip(own, joint(row), strict=True) if q)
    return total


def loss(outputs, wanted, separate=False):
    return SoftLabels(separate)(TokenBatch(numpy.asarray(outputs), numpy.asarray(wanted))).loss


@pytest.mark.parametrize("separate, expected", [(False, 0.042911), (True, 0.710465)])
def test_a_case_by_hand(separate, expected):
    assert numpy.mean([[0.5, 0.3, 0.15, 0.05], [0.2, 0.5, 0.2, 0.1]], axis=0) == pytest.approx(MEAN[0])
    assert loss(OUTPUTS, MEAN, separate) == pytest.approx(expected, abs=1e-6)


def test_another_loss():
    outputs, wanted = random_case()
    result = SoftLabels(loss=MeanSquaredError())(TokenBatch(outputs, wanted))
    joints = numpy.asarray([joint(row) for row in outputs])
    values, _ = MeanSquaredError()(numpy.log(joints), wanted)
    assert result.loss == pytest.approx(values.sum())

    def of(x):
        return SoftLabels(loss=MeanSquaredError())(TokenBatch(x, wanted)).loss

    numpy.testing.assert_allclose(result.outputs, numeric_gradient(of, outputs), atol=1e-6)


@both_forms
def test_equals_brute_force(separate):
    outputs, wanted = random_case()
    wanted[1] = 0.0
    wanted[2] = [1, 0, 0, 0]
    wanted[3] = [0, 0, 1, 0]
    assert loss(outputs, wanted, separate) == pytest.approx(naive(outputs, wanted, separate), abs=1e-9)


def test_only_the_separate_form_learns_tags_of_tokens_that_are_hardly_entities():
    outputs, _ = random_case(n_tokens=1)
    wanted = numpy.asarray([[1 - 3e-6, 1e-6, 2e-6, 0.0]])
    gradient = {form: SoftLabels(form)(TokenBatch(outputs, wanted)).outputs[0, 1:] for form in (False, True)}
    assert abs(gradient[False]).max() < 1e-5
    assert abs(gradient[True]).max() > 0.1


@both_forms
def test_hard_soft_labels_are_hard_labels(separate):
    outputs, _ = random_case()
    tags = numpy.asarray([0, 1, 2, 3, 0])
    soft = SoftLabels(separate)(TokenBatch(outputs, numpy.eye(4)[tags]))
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
    with pytest.raises(KeyError, match="ORG"):
        SoftLabels().encode(soft_example(labels=("O", "I-ORG", "I-LOC")), SCHEME)


def test_a_loss_beside_the_authors_form_is_refused():
    with pytest.raises(ValueError, match=r"Leave 'loss' out"):
        SoftLabels(separate=True, loss=KLDivergence())

"""Learning from labels that miss entities."""

import math

import numpy
import pytest

from spacy_weakner.annotations.tags import MISSING
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import CategoricalCrossentropy, GeneralizedCrossEntropy, MeanAbsoluteError
from spacy_weakner.token_ner.hard_labels import HardLabels
from spacy_weakner.token_ner.objective import Objective, TokenBatch
from spacy_weakner.token_ner.positive_unlabelled import PositiveUnlabelled

from ..util import make_examples, numeric_gradient, train
from .util import GCE, loss_of, probabilities, random_outputs, token_pipeline

# Each loss of "O", as a function of the probability of "O".
LOSSES = {
    "cross-entropy": (CategoricalCrossentropy(), lambda p: -math.log(p)),
    "generalised": (GeneralizedCrossEntropy(0.7), lambda p: (1 - p**0.7) / 0.7),
    "absolute": (MeanAbsoluteError(), lambda p: 1 - p),
}
TAGS = numpy.asarray([0, 1, 2, MISSING, 0, 0, 1])
MANY = [TAGS, [0] * 7, [MISSING] * 7, [1] * 7, [3, 3, 1, 2, 0, 0, MISSING], [0, 0, 0, 0, 0, 0, 1]]


def naive(loss, share, outputs, tags):
    """One token after the other."""
    positive, outside = 0.0, 0.0
    for row, tag in zip(outputs, tags, strict=True):
        s, types = probabilities(row)
        if tag > 0:
            positive += (-math.log(s) - math.log(types[tag - 1])) / share
            outside -= (1 / share - 1) * loss(1 - s)
        elif tag == 0:
            outside += loss(1 - s)
    return positive + max(0.0, outside), outside


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("tags", MANY)
def test_equals_brute_force(name, share, tags):
    loss, formula = LOSSES[name]
    outputs = random_outputs(len(TAGS))
    result = PositiveUnlabelled(loss, share)(TokenBatch(outputs, numpy.asarray(tags)))
    assert result.loss == pytest.approx(naive(formula, share, outputs, tags)[0], abs=1e-9)
    assert type(result.loss) is float and result.augmented is None


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("n_tags", [2, 4])
def test_gradient_by_finite_differences(name, share, n_tags):
    objective, outputs = PositiveUnlabelled(LOSSES[name][0], share), random_outputs(len(TAGS), n_tags)
    for tags in MANY:
        tags = numpy.minimum(tags, n_tags - 1)
        found = objective(TokenBatch(outputs, tags)).outputs
        expected = numeric_gradient(lambda moved, tags=tags: objective(TokenBatch(moved, tags)).loss, outputs)
        numpy.testing.assert_allclose(found, expected, atol=1e-5)


def test_with_all_entities_labelled_it_learns_hard_labels():
    outputs, loss = random_outputs(len(TAGS)), CategoricalCrossentropy()
    found, expected = (own(TokenBatch(outputs, TAGS)) for own in (PositiveUnlabelled(loss, 1.0), HardLabels(loss)))
    assert found.loss == pytest.approx(expected.loss)
    numpy.testing.assert_allclose(found.outputs, expected.outputs)


def test_what_would_be_less_than_nothing_teaches_no_outside():
    outputs = random_outputs(len(TAGS))
    outputs[TAGS > 0, 0], outputs[TAGS == 0, 0] = 5.0, -5.0  # surely an entity where labelled, surely none elsewhere
    loss, formula = LOSSES["generalised"]
    assert naive(formula, 0.2, outputs, TAGS)[1] < 0.0
    result = PositiveUnlabelled(loss, 0.2)(TokenBatch(outputs, TAGS))
    assert (result.outputs[TAGS == 0] == 0.0).all()
    assert (result.outputs[TAGS > 0, 0] < 0.0).all()


def test_the_fewer_are_labelled_the_less_is_outside():
    """Where a token might be an entity, a lower share pushes more towards that."""
    outputs = numpy.zeros((len(TAGS), 3))
    slopes = [
        PositiveUnlabelled(MeanAbsoluteError(), share)(TokenBatch(outputs, TAGS)).outputs[:, 0].sum()
        for share in (1.0, 0.8, 0.6)
    ]
    assert slopes == sorted(slopes, reverse=True) and slopes[0] > slopes[-1]


def test_missing_tags_teach_nothing():
    outputs, objective = random_outputs(len(TAGS)), PositiveUnlabelled(GeneralizedCrossEntropy(), 0.7)
    result, known = objective(TokenBatch(outputs, TAGS)), TAGS != MISSING
    assert (result.outputs[~known] == 0.0).all()
    alone = objective(TokenBatch(outputs[known], TAGS[known]))
    assert result.loss == pytest.approx(alone.loss)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_labels_that_are_impossible_to_the_model_give_numbers(name, scale):
    outputs = numpy.full((3, 3), scale)
    outputs[:, 1] = -scale
    result = PositiveUnlabelled(LOSSES[name][0], 0.5)(TokenBatch(outputs, numpy.asarray([0, 1, 2])))
    assert numpy.isfinite(result.loss) and numpy.isfinite(result.outputs).all()


@pytest.mark.parametrize("n_tokens", [0, 1])
def test_few_tokens(n_tokens):
    objective = PositiveUnlabelled(GeneralizedCrossEntropy(), 0.5)
    result = objective(TokenBatch(random_outputs(n_tokens), numpy.zeros(n_tokens, "int64")))
    assert result.outputs.shape == (n_tokens, 4)
    assert (result.loss > 0.0) is bool(n_tokens)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.1, math.nan])
def test_no_share(share):
    with pytest.raises(WeaknerError, match=r"\[WK005\].*share"):
        PositiveUnlabelled(GeneralizedCrossEntropy(), share)


def test_it_is_an_objective():
    assert isinstance(PositiveUnlabelled(GeneralizedCrossEntropy(), 0.5), Objective)


def test_each_setting_has_an_effect_in_a_pipeline():
    def loss(share, q):
        objective = {"@misc": "spacy_weakner.PositiveUnlabelled.v1", "loss": {**GCE, "q": q}, "share": share}
        nlp = token_pipeline(objective)
        return loss_of(nlp, make_examples(nlp))

    assert len({loss(0.9, 0.7), loss(0.8, 0.7), loss(0.9, 0.5)}) == 3


def test_it_finds_what_it_was_taught():
    nlp = token_pipeline({"@misc": "spacy_weakner.PositiveUnlabelled.v1", "loss": GCE, "share": 1.0})
    examples = make_examples(nlp)
    before = loss_of(nlp, examples)
    train(nlp, examples)
    assert loss_of(nlp, examples) < 0.1 * before

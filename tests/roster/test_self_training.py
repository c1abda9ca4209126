"""Self-training."""

import numpy
import pytest
import spacy

from spacy_weakner.annotations.tags import make_scheme
from spacy_weakner.annotations.weak import SoftLabels, set_soft_labels
from spacy_weakner.errors import WeaknerError
from spacy_weakner.roster.self_training import SelfTraining, sharpen
from spacy_weakner.token_ner.objective import Augmented, Objective, TokenBatch

from ..token_ner.util import check_finite_differences, outputs
from ..util import make_example

F = numpy.asarray([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])


def as_outputs(entity, types):
    """Outputs of a model that give these probabilities."""
    entity = numpy.asarray(entity)
    return numpy.concatenate([numpy.log(entity / (1 - entity))[:, None], numpy.log(types)], axis=1)


def entropy(p):
    return -(p * numpy.log(p) + (1 - p) * numpy.log(1 - p)).sum()


@pytest.mark.parametrize(
    "rows, expected",
    [
        (
            4,
            [
                [0.880051, 0.076331, 0.043618],
                [0.750140, 0.199256, 0.050605],
                [0.014000, 0.952000, 0.034000],
                [0.156741, 0.166537, 0.676722],
            ],
        ),
        (
            3,
            [
                [0.845201, 0.074303, 0.080495],
                [0.714868, 0.192464, 0.092668],
                [0.013407, 0.924029, 0.062564],
            ],
        ),
    ],
)
def test_soft_labels_by_hand(rows, expected):
    found = sharpen(numpy.log(F[:rows]), F[:rows].sum(axis=0))
    numpy.testing.assert_allclose(found, expected, atol=1e-6)


def test_tags_that_never_occur_get_nothing():
    with numpy.errstate(divide="ignore"):
        found = sharpen(numpy.log([[1.0, 0.0], [1.0, 0.0]]), numpy.asarray([2.0, 0.0]))
    assert found.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert sharpen(numpy.log([[0.5, 0.5]]), numpy.zeros(2)).tolist() == [[0.0, 0.0]]


def test_a_step_by_hand():
    """Three tokens, of which the second is no entity to the teacher; the augmented third gets another tag."""
    given = as_outputs([0.95, 0.5, 0.85], [[0.6, 0.4], [0.9, 0.1], [0.3, 0.7]])
    augmented = as_outputs([0.5, 0.5], [[0.55, 0.45], [0.8, 0.2]])
    targets = numpy.asarray([0.9, 0.4, 0.7])
    binary, types, more = 3 * 0.573928, 2 * 0.037318, 0.071434
    objective = SelfTraining(threshold=0.8, agreement=True)
    objective.renew(iter([(targets[:2], given[:2]), (targets[2:], given[2:])]))
    found = objective(TokenBatch(given, targets, given))
    assert found.loss == pytest.approx(binary + types, abs=5e-6)
    batch = TokenBatch(given, targets, given, Augmented(augmented, numpy.asarray([0, 2])))
    assert objective(batch).loss == pytest.approx(binary + types + more, abs=5e-6)
    disagreeing = objective(batch)
    assert disagreeing.augmented[0].any() and not disagreeing.augmented[1].any()
    everything = SelfTraining(threshold=0.8)
    everything.renew(iter([(targets, given)]))
    assert everything(batch).augmented[1].any()


@pytest.mark.parametrize("settings", [{}, {"threshold": 0.5}, {"agreement": True}, {"include_outside": True}], ids=str)
def test_finite_differences(settings):
    given, teacher, other = outputs(5, 4), outputs(5, 4, seed=1), outputs(3, 4, seed=2)
    targets = numpy.asarray([0.2, numpy.nan, 1.0, 0.0, 0.7])
    objective = SelfTraining(**settings)
    objective.renew(iter([(targets, teacher)]))

    def batch(at, augmented=other):
        return TokenBatch(at, targets, teacher, Augmented(augmented, numpy.asarray([0, 1, 4])))

    found = objective(batch(given))
    check_finite_differences(lambda at: objective(batch(at)).loss, found.outputs, given)
    if not settings.get("agreement"):  # which steps where the best tag changes
        check_finite_differences(lambda at: objective(batch(given, at)).loss, found.augmented, other)


def test_frequencies_are_those_of_the_corpus():
    objective = SelfTraining()
    parts = [outputs(4, 4, seed=seed) for seed in range(3)]
    objective.renew(iter([(None, part) for part in parts]))
    expected = sum(numpy.exp(row[1:]) / numpy.exp(row[1:]).sum() for part in parts for row in part)
    numpy.testing.assert_allclose(objective._frequencies, expected)


def test_the_entity_head_stays_as_the_teacher_has_it():
    given = outputs(4, 3)
    objective = SelfTraining(threshold=1.0)
    unknown = numpy.full(4, numpy.nan)
    objective.renew(iter([(unknown, given)]))
    found = objective(TokenBatch(given, unknown, given))
    numpy.testing.assert_allclose(found.outputs, 0.0, atol=1e-12)
    assert found.loss == pytest.approx(entropy(1 / (1 + numpy.exp(-given[:, 0]))))


def test_targets_come_from_soft_labels_where_there_are_any():
    nlp, scheme = spacy.blank("xx"), make_scheme("IO", ("PER",))
    example = make_example(nlp, "Bob runs", [(0, 1, "PER")])
    assert numpy.isnan(SelfTraining().encode(example, scheme)).all()
    rows = numpy.asarray([[0.25, 0.75], [0.0, 0.0]], dtype="float32")
    set_soft_labels(example.reference, SoftLabels(("O", "I-PER"), "IO", rows))
    found = SelfTraining().encode(example, scheme)
    assert found[0] == 0.75 and numpy.isnan(found[1])


@pytest.mark.parametrize("score", [1e4, -1e4])
@pytest.mark.parametrize("include_outside", [False, True])
def test_no_nan(score, include_outside):
    given = numpy.asarray([[score, score, 0.0], [-score, 0.0, 0.0]])
    objective = SelfTraining(include_outside=include_outside)
    unknown = numpy.full(2, numpy.nan)
    objective.renew(iter([(unknown, given)]))
    found = objective(TokenBatch(given, unknown, given))
    assert numpy.isfinite(found.loss) and numpy.isfinite(found.outputs).all()


def test_no_tokens_and_no_teacher():
    objective = SelfTraining()
    objective.renew(iter([]))
    empty = numpy.zeros((0, 3))
    assert objective(TokenBatch(empty, numpy.zeros(0), empty)).loss == 0.0
    assert objective(TokenBatch(outputs(2, 3), numpy.zeros(2))).loss == 0.0


def test_statistics():
    objective = SelfTraining(threshold=0.5)
    given = numpy.asarray([[9.0, 0.0], [-9.0, 0.0]])
    unknown = numpy.full(2, numpy.nan)
    objective.renew(iter([(unknown, given)]))
    objective(TokenBatch(given, unknown, given))
    assert objective.statistics() == {"used": 0.5}
    assert objective.statistics() == {}


def test_unusable_threshold():
    with pytest.raises(WeaknerError, match="threshold"):
        SelfTraining(threshold=1.5)


def test_is_an_objective():
    assert isinstance(SelfTraining(), Objective)

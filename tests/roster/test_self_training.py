"""Learning from one's own confident predictions."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.corpus.weak import TagDistributions, set_soft_labels
from spacy_weakner.roster.self_training import SelfTraining, sharpen
from spacy_weakner.token_ner.objective import Augmented, TokenBatch

from ..token_ner.util import joint, probabilities, random_outputs
from ..util import make_example

NLP = spacy.blank("xx")
SCHEME = TagScheme("IO", ["LOC", "PER"])
N_TAGS = 4
with_and_without_outside = pytest.mark.parametrize("outside", [False, True])


def to_outputs(chances, types):
    """Outputs of a model that says with these probabilities: an entity, and which."""
    chances = numpy.asarray(chances)
    return numpy.column_stack([numpy.log(chances / (1 - chances)), numpy.log(types)])


def read(row, outside):
    """The distribution that is sharpened, and how sure the model is."""
    s, types = probabilities(row)
    return (joint(row), max(joint(row))) if outside else (types, s)


def naive_frequencies(teacher, threshold=0.0, outside=False):
    rows = [read(row, outside) for row in teacher]
    used = [f for f, sure in rows if sure >= threshold]
    if threshold == 0.0 and not outside:
        # Where all tokens count, so does what no entity counts.
        used = [joint(row)[1:] for row in teacher]
    return [sum(column) for column in zip(*used, strict=True)]


def naive_targets(teacher, frequencies, threshold=0.0, outside=False):
    """Equation 8, one token at a time; None for tokens that teach nothing."""
    found = []
    for row in teacher:
        f, sure = read(row, outside)
        weights = [p * p / g for p, g in zip(f, frequencies, strict=True)]
        found.append([w / sum(weights) for w in weights] if sure >= threshold else None)
    return found


def kl(wanted, p):
    return sum(a * math.log(a / b) for a, b in zip(wanted, p, strict=True) if a)


def naive(outputs, targets, chances, augmented=None, tokens=(), outside=False):
    """Equation 9, one token at a time, and what the entity head is to keep."""
    total = 0.0
    for row, wanted, chance in zip(outputs, targets, chances, strict=True):
        s, _ = probabilities(row)
        total += kl(wanted, read(row, outside)[0]) if wanted else 0.0
        total -= 0.0 if outside else chance * math.log(s) + (1 - chance) * math.log(1 - s)
    for row, token in zip(() if augmented is None else augmented, tokens, strict=True):
        total += kl(targets[token], read(row, outside)[0]) if targets[token] else 0.0
    return total


def taught(objective, teacher, batches=1):
    """The objective after a look at the corpus."""
    parts = numpy.array_split(teacher, batches)
    objective.renew((numpy.full(len(part), numpy.nan), part) for part in parts)
    return objective


def batch(outputs, teacher, augmented=None, tokens=None, chances=None):
    more = None
    if augmented is not None:
        more = Augmented(augmented, numpy.arange(len(augmented)) if tokens is None else numpy.asarray(tokens))
    targets = numpy.full(len(outputs), numpy.nan) if chances is None else numpy.asarray(chances)
    return TokenBatch(outputs, targets, teacher, more)


def own_chances(teacher):
    return [probabilities(row)[0] for row in teacher]


# Equation 8

F = numpy.asarray([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])


@pytest.mark.parametrize(
    "rows, frequencies, expected",
    [
        (
            F,
            [1.7, 1.6, 0.7],
            [
                [0.880051, 0.076331, 0.043618],
                [0.750140, 0.199256, 0.050605],
                [0.014000, 0.952000, 0.034000],
                [0.156741, 0.166537, 0.676722],
            ],
        ),
        (
            F[:3],
            [1.4, 1.3, 0.3],
            [[0.845201, 0.074303, 0.080495], [0.714868, 0.192464, 0.092668], [0.013407, 0.924029, 0.062564]],
        ),
    ],
)
def test_soft_labels_by_hand(rows, frequencies, expected):
    numpy.testing.assert_allclose(rows.sum(axis=0), frequencies)
    numpy.testing.assert_allclose(sharpen(numpy.log(rows), rows.sum(axis=0)), expected, atol=1e-6)


def test_a_tag_that_never_occurs_gets_nothing():
    log_f = numpy.log([[0.6, 0.4], [0.9, 0.1]])
    assert sharpen(log_f, numpy.asarray([1.5, 0.0])).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert sharpen(log_f, numpy.zeros(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    nothing = numpy.asarray([[0.0, -numpy.inf]])
    assert sharpen(nothing, numpy.asarray([1.0, 0.0])).tolist() == [[1.0, 0.0]]


# A step by hand

CHANCES, TYPES, OTHERS = [0.95, 0.5, 0.85], [[0.6, 0.4], [0.9, 0.1], [0.3, 0.7]], [[0.55, 0.45], [0.5, 0.5], [0.8, 0.2]]


def step(**settings):
    """The objective, and what its teacher (the model itself) says of three tokens."""
    teacher = to_outputs(CHANCES, TYPES)
    return taught(SelfTraining(threshold=0.8, **settings), teacher), teacher


def test_losses_of_a_step_by_hand():
    """Means in the authors' code, sums here: two tokens teach their tag, three whether they are entities."""
    objective, teacher = step()
    wanted = [0.9, 0.4, 0.7]
    alone = objective(batch(teacher, teacher, chances=wanted)).loss
    assert alone == pytest.approx(2 * 0.037318 + 3 * 0.573928, abs=1e-5)
    both = objective(batch(teacher, teacher, to_outputs(CHANCES, OTHERS), chances=wanted)).loss
    assert both - alone == pytest.approx(0.071434 + 0.878873, abs=1e-6)


# Equation 9


@with_and_without_outside
@pytest.mark.parametrize("threshold", [0.0, 0.6])
@pytest.mark.parametrize("batches", [1, 2, 6])
def test_equals_brute_force(outside, threshold, batches):
    outputs, teacher, augmented = (random_outputs(6, seed=seed) for seed in range(3))
    tokens = [1, 2, 3, 5]
    # Every renewal counts anew.
    objective = taught(taught(SelfTraining(threshold, outside), outputs), teacher, batches)
    targets = naive_targets(teacher, naive_frequencies(teacher, threshold, outside), threshold, outside)
    assert (None in targets) is bool(threshold)
    given = [0.3, numpy.nan, 0.9, numpy.nan, 1.0, 0.0]
    chances = [a if a == a else b for a, b in zip(given, own_chances(teacher), strict=True)]
    expected = naive(outputs, targets, chances, augmented[:4], tokens, outside)
    result = objective(batch(outputs, teacher, augmented[:4], tokens, given))
    assert result.loss == pytest.approx(expected, abs=1e-9)
    assert type(result.loss) is float
    assert result.augmented.shape == (4, N_TAGS)


# What the entity head learns


def encode(example):
    return SelfTraining().encode(example, SCHEME)


def test_the_probability_of_an_entity_is_read_off_soft_labels():
    example = make_example(NLP, "Anna went home", [(0, 1, "ORG")])
    rows = numpy.asarray([[0.2, 0.5, 0.3], [0, 0, 0], [1, 0, 0]], dtype="float32")
    set_soft_labels(example.reference, TagDistributions(("O", "I-PER", "I-LOC"), "IO", rows))
    numpy.testing.assert_allclose(encode(example), [0.8, numpy.nan, 0.0], atol=1e-6)
    assert SelfTraining().labels(example.reference) == {"LOC", "PER"}


@pytest.mark.parametrize("annotated", [False, True])
def test_without_soft_labels_it_is_the_teachers(annotated):
    example = make_example(NLP, "Anna went", [(0, 1, "PER")], annotated=annotated)
    assert numpy.isnan(encode(example)).all()
    assert SelfTraining().labels(example.reference) == ({"PER"} if annotated else set())


# Numbers


@with_and_without_outside
def test_a_teacher_that_is_sure_of_nothing(outside):
    outputs, teacher = random_outputs(6), numpy.zeros((6, N_TAGS))
    objective = taught(SelfTraining(threshold=0.9, include_outside=outside), teacher)
    result = objective(batch(outputs, teacher, outputs))
    assert numpy.isfinite(result.loss)
    assert not result.outputs[:, 1:].any()
    assert not result.augmented.any()


@with_and_without_outside
def test_a_tag_that_never_occurs_teaches_numbers(outside):
    # To the last bit: probabilities of exp(-2000) are 0 when they are added up.
    teacher = random_outputs(6)
    teacher[:, 2] = -2000.0
    objective = taught(SelfTraining(include_outside=outside), teacher)
    result = objective(batch(random_outputs(6, seed=1), teacher, random_outputs(6, seed=2)))
    assert numpy.isfinite([result.loss, *result.outputs.ravel(), *result.augmented.ravel()]).all()


def test_before_the_first_renewal_there_is_nothing_to_learn():
    result = SelfTraining()(batch(random_outputs(6), None, random_outputs(6)))
    assert result.loss == 0.0
    assert not result.outputs.any()

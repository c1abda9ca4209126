"""Learning from labels many of which are wrong."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import MISSING, TagScheme
from spacy_weakner.corpus.weak import set_tags
from spacy_weakner.losses import CategoricalCrossentropy, GeneralizedCrossEntropy, MeanAbsoluteError
from spacy_weakner.roster.noise_robust import NoiseRobustLearning
from spacy_weakner.token_ner.objective import HardLabels, TokenBatch

from ..token_ner.util import probabilities, random_outputs
from ..util import make_example

NLP = spacy.blank("xx")
SCHEME = TagScheme("IO", ["LOC", "ORG", "PER"])
GCE = GeneralizedCrossEntropy(0.7)
N_TAGS = len(SCHEME)
# Two tokens of each, and missing ones.
TAGS = numpy.asarray([0, 1, 2, 3, MISSING, 0, 1, 2, 3, MISSING, 0, 0])


def gce(p, q=0.7):
    return (1 - p**q) / q


def naive_weights(teacher, tags, threshold, kept=()):
    """Whether each token teaches."""
    found = []
    for row, tag in zip(teacher, tags, strict=True):
        s, types = probabilities(row)
        if tag == MISSING:
            found.append(False)
        elif tag == 0:
            found.append(1 - s > threshold)
        else:
            found.append(tag in kept or s * types[tag - 1] > threshold)
    return found


def naive(outputs, tags, weights):
    total = 0.0
    for row, tag, used in zip(outputs, tags, weights, strict=True):
        s, types = probabilities(row)
        total += used * (gce(1 - s) if tag == 0 else gce(s) + gce(types[tag - 1]))
    return total


def learn(objective, outputs, teacher=None, tags=TAGS):
    return objective(TokenBatch(outputs, numpy.asarray(tags), teacher))


def no_dropping(**settings):
    return NoiseRobustLearning(GCE, **{"drop_outside": 0.0, **settings})


def pressed(tag, chance):
    """Outputs of a token that has a tag with a given probability; the other entity tags share the rest."""
    logits = numpy.full(N_TAGS, 0.0)
    if tag == 0:
        logits[0] = math.log((1 - chance) / chance)
        return logits
    logits[0] = 50.0  # an entity, for sure
    logits[tag] = math.log(chance * (N_TAGS - 2) / (1 - chance))
    return logits


# Equation 5


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.7])
def test_equals_brute_force(threshold):
    objective = no_dropping(threshold=threshold, minority=1.0)
    outputs, teacher = random_outputs(12), random_outputs(12, seed=1)
    weights = naive_weights(teacher, TAGS, threshold)
    assert learn(objective, outputs, teacher).loss == pytest.approx(naive(outputs, TAGS, weights), abs=1e-9)
    # Something is removed, and not everything.
    assert 0 < sum(weights) < (TAGS != MISSING).sum()


@pytest.mark.parametrize("loss", [CategoricalCrossentropy(), MeanAbsoluteError(), GeneralizedCrossEntropy(0.3)])
def test_the_loss_decides(loss):
    objective = NoiseRobustLearning(loss, drop_outside=0.0, threshold=None)
    expected = HardLabels(loss)(TokenBatch(random_outputs(12), TAGS))
    found = learn(objective, random_outputs(12))
    assert found.loss == expected.loss
    assert (found.outputs == expected.outputs).all()


# Thresholds


def test_nothing_is_removed_before_the_first_renewal():
    objective = no_dropping(threshold=1.0)
    assert objective.uses_teacher and not objective.teacher_at_start
    assert learn(objective, random_outputs(12)).loss == HardLabels(GCE)(TokenBatch(random_outputs(12), TAGS)).loss


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("threshold, removed", [(0.0, False), (1.0, True)])
def test_thresholds_at_the_ends(scale, threshold, removed):
    """No label is improbable enough for 0, and none probable enough for 1."""
    objective = no_dropping(threshold=threshold)
    result = learn(objective, random_outputs(12), random_outputs(12, seed=1, scale=scale))
    assert result.outputs.any(axis=1).tolist() == [tag != MISSING and not removed for tag in TAGS]


# Dropping


def encode(text, entities=(), **settings):
    example = make_example(NLP, text, entities)
    return NoiseRobustLearning(GCE, **settings).encode(example, SCHEME).tolist()


def sentences(n):
    return [f"sentence number {i} of many" for i in range(n)]


def test_dropping_takes_about_its_share_of_the_tokens_outside():
    for share in (0.25, 0.5):
        tags = [tag for text in sentences(400) for tag in encode(text, drop_outside=share)]
        assert tags.count(MISSING) / len(tags) == pytest.approx(share, abs=0.03)
        assert {*tags} == {0, MISSING}


@pytest.mark.parametrize("share, expected", [(0.0, [0, 3, 0]), (1.0, [MISSING, 3, MISSING])])
def test_dropping_of_nothing_and_of_everything(share, expected):
    assert encode("a Bob b", [(1, 2, "PER")], drop_outside=share) == expected


def test_dropping_is_constant_and_does_not_depend_on_what_came_before():
    texts = sentences(20)
    objective, scheme = NoiseRobustLearning(GCE, seed=1), SCHEME
    examples = {text: make_example(NLP, text) for text in texts}
    first = {text: objective.encode(examples[text], scheme).tolist() for text in texts}
    numpy.random.seed(5)
    again = {text: objective.encode(examples[text], scheme).tolist() for text in reversed(texts)}
    other_process = {text: encode(text, seed=1) for text in texts}
    assert first == again == other_process


def test_dropping_is_another_for_another_seed_and_another_sentence():
    by_seed = [[encode(text, seed=seed) for text in sentences(20)] for seed in range(3)]
    assert by_seed[0] != by_seed[1] != by_seed[2] != by_seed[0]
    assert len({tuple(tags) for tags in by_seed[0]}) > 10


def test_labels_are_those_of_entities_and_of_completed_tags():
    example = make_example(NLP, "Anna went", [(0, 1, "PER")])
    set_tags(example.reference, ["I-LOC", "O"])
    assert no_dropping().labels(example.reference) == {"LOC", "PER"}
    assert no_dropping().encode(example, SCHEME).tolist() == [1, 0]


# Minority labels


def renewed(objective, tags, teacher, batches=1):
    objective.renew(
        (numpy.asarray(own), rows)
        for own, rows in zip(numpy.array_split(tags, batches), numpy.array_split(teacher, batches), strict=True)
    )
    return objective


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("doubted, kept", [(9, False), (10, True)])
def test_labels_that_are_almost_all_doubted_are_kept(batches, doubted, kept):
    """More than nine of ten tokens."""
    tags = numpy.asarray([2] * 10 + [1] * 10)
    teacher = numpy.stack(
        [pressed(2, 0.1)] * doubted
        + [pressed(2, 0.99)] * (10 - doubted)
        + [pressed(1, 0.1)] * 5
        + [pressed(1, 0.99)] * 5
    )
    objective = renewed(no_dropping(), tags, teacher, batches)
    outputs = random_outputs(20)
    weights = naive_weights(teacher, tags, 0.7, kept=(2,) if kept else ())
    assert learn(objective, outputs, teacher, tags).loss == pytest.approx(naive(outputs, tags, weights), abs=1e-9)
    assert weights.count(False) == 5 + (0 if kept else doubted)


@pytest.mark.parametrize("minority, removed", [(0.4, [False, False]), (0.5, [True, False]), (1.0, [True, False])])
def test_minority_is_the_share_that_may_be_removed(minority, removed):
    teacher = numpy.stack([pressed(1, 0.1), pressed(1, 0.99)])
    objective = renewed(no_dropping(minority=minority), [1, 1], teacher)
    result = learn(objective, random_outputs(2), teacher, [1, 1])
    assert [not row.any() for row in result.outputs] == removed


def test_outside_is_no_minority():
    teacher = numpy.stack([pressed(0, 0.1)] * 10)
    objective = renewed(no_dropping(), [0] * 10, teacher)
    assert not learn(objective, random_outputs(10), teacher, [0] * 10).outputs.any()


def test_every_renewal_counts_anew():
    objective = renewed(no_dropping(), [1, 1], numpy.stack([pressed(1, 0.1)] * 2))
    renewed(objective, [1, 1], numpy.stack([pressed(1, 0.99)] * 2))
    assert not learn(objective, random_outputs(1), pressed(1, 0.1)[None], [1]).outputs.any()

"""Noise-robust learning."""

import numpy
import pytest
import spacy

from spacy_weakner.annotations.tags import MISSING, make_scheme
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import CategoricalCrossentropy, GeneralizedCrossEntropy
from spacy_weakner.roster.noise_robust import NoiseRobustLearning
from spacy_weakner.token_ner.hard_labels import HardLabels
from spacy_weakner.token_ner.objective import Objective, TokenBatch

from ..token_ner.util import chances, check_finite_differences, outputs, softmax
from ..util import make_example

LOSS = GeneralizedCrossEntropy()
TAGS = numpy.asarray([0, 2, MISSING, 1, 0, 3, 1, 0])


def gce(p):
    return (1 - p**0.7) / 0.7


def learning(**settings):
    return NoiseRobustLearning(LOSS, **{"drop_outside": 0.0, **settings})


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7])
def test_removal_by_brute_force(separate, threshold):
    given, teacher = outputs(8, 4), outputs(8, 4, seed=1)
    expected = 0.0
    for row, other, tag in zip(given, teacher, TAGS, strict=True):
        if tag == MISSING:
            continue
        s = 1 / (1 + numpy.exp(-row[0]))
        joint = chances(other)[tag]
        if tag == 0:
            expected += gce(1 - s) * (joint > threshold)
            continue
        sure = softmax(other[1:])[tag - 1] if separate else joint
        expected += gce(s) * (separate or joint > threshold)
        expected += gce(softmax(row[1:])[tag - 1]) * (sure > threshold)
    objective = learning(threshold=threshold, separate=separate)
    assert objective(TokenBatch(given, TAGS, teacher)).loss == pytest.approx(expected)
    gradient = objective(TokenBatch(given, TAGS, teacher)).outputs
    check_finite_differences(lambda at: objective(TokenBatch(at, TAGS, teacher)).loss, gradient, given)


def test_nothing_is_removed_before_there_is_a_teacher_or_without_a_threshold():
    given, teacher = outputs(8, 4), outputs(8, 4, seed=1)
    plain = HardLabels(LOSS)(TokenBatch(given, TAGS)).loss
    assert learning()(TokenBatch(given, TAGS)).loss == plain
    assert learning(threshold=None)(TokenBatch(given, TAGS, teacher)).loss == plain
    assert not learning(threshold=None).uses_teacher and learning().uses_teacher


def test_threshold_1_removes_all():
    given, teacher = outputs(8, 4), outputs(8, 4, seed=1)
    found = learning(threshold=1.0)(TokenBatch(given, TAGS, teacher))
    assert found.loss == 0.0 and not found.outputs.any()


@pytest.mark.parametrize("separate", [False, True])
def test_minority_labels_are_kept(separate):
    objective = learning(separate=separate)
    # 20 tokens of tag 1, of which the teacher doubts 18 or 19; all of tag 2 are sure
    sure, unsure = [9.0, 0.0, 0.0], [9.0, 0.0, 9.0]
    tags = numpy.asarray([1] * 20 + [2] * 5)
    for doubted, kept in ((18, False), (19, True)):
        teacher = numpy.asarray([unsure] * doubted + [[9.0, 9.0, 0.0]] * (20 - doubted) + [[9.0, 0.0, 9.0]] * 5)
        # by and by, as a corpus comes
        objective.renew(iter([(tags[:7], teacher[:7]), (tags[7:], teacher[7:])]))
        gradient = objective(TokenBatch(numpy.zeros((25, 3)), tags, teacher)).outputs
        assert bool(gradient[0].all()) == kept, sure
        assert gradient[21].all()


def test_an_empty_corpus_has_no_minorities():
    objective = learning()
    objective.renew(iter([]))
    teacher = outputs(8, 4, seed=1)
    before = learning()(TokenBatch(outputs(8, 4), TAGS, teacher)).loss
    assert objective(TokenBatch(outputs(8, 4), TAGS, teacher)).loss == before


@pytest.mark.parametrize("tags", [[], [0, 0], [MISSING], [1]], ids=str)
@pytest.mark.parametrize("score", [0.0, 1e4, -1e4])
def test_no_nan(tags, score):
    tags = numpy.asarray(tags, dtype="int64")
    given = numpy.full((len(tags), 3), score)
    objective = learning()
    objective.renew(iter([(tags, given)]))
    found = objective(TokenBatch(given, tags, given))
    assert numpy.isfinite(found.loss) and numpy.isfinite(found.outputs).all()


def encode(text, **settings):
    example = make_example(spacy.blank("xx"), text, [(0, 2, "PER")])
    return NoiseRobustLearning(LOSS, **settings).encode(example, make_scheme("IO", ("PER",)))


def test_dropping():
    text = " ".join(f"w{i}" for i in range(2000))
    tags = encode(text, drop_outside=0.5)
    assert tags[:2].tolist() == [1, 1], "entities are never dropped"
    assert 0.45 < (tags == MISSING).mean() < 0.55
    assert encode(text, drop_outside=0.5).tolist() == tags.tolist(), "the same in every epoch"
    assert encode(text, drop_outside=0.5, seed=1).tolist() != tags.tolist()
    assert encode(f"{text} x", drop_outside=0.5)[:2000].tolist() != tags.tolist(), "each sentence its own"
    assert (encode(text, drop_outside=0.0) != MISSING).all()
    assert (encode(text, drop_outside=1.0)[2:] == MISSING).all()


def test_statistics():
    objective = learning(threshold=0.5)
    teacher = numpy.asarray([[-9.0, 0.0], [9.0, 0.0], [-9.0, 0.0], [9.0, 0.0]])
    objective(TokenBatch(numpy.zeros((4, 2)), numpy.asarray([0, 0, 1, 1]), teacher))
    assert objective.statistics() == {"entity_removed": 0.5, "outside_removed": 0.5}
    assert objective.statistics() == {}


@pytest.mark.parametrize("setting", ["drop_outside", "threshold", "minority"])
@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_unusable_settings(setting, value):
    with pytest.raises(WeaknerError, match=setting):
        NoiseRobustLearning(LOSS, **{setting: value})


def test_is_an_objective():
    assert isinstance(NoiseRobustLearning(CategoricalCrossentropy()), Objective)

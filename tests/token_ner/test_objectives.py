"""What all objectives promise."""

import numpy
import pytest

from spacy_weakner.corpus.tags import MISSING
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import (
    CategoricalCrossentropy,
    GeneralizedCrossEntropy,
    MeanAbsoluteError,
    MeanSquaredError,
)
from spacy_weakner.roster.noise_robust import NoiseRobustLearning
from spacy_weakner.roster.self_training import SelfTraining
from spacy_weakner.token_ner.objective import Augmented, HardLabels, Objective, SoftLabels, TokenBatch

from ..util import numeric_gradient
from .util import random_outputs

GCE = GeneralizedCrossEntropy(0.7)
TAGS = numpy.asarray([0, 1, 2, MISSING, 0, 2, 1])
N = len(TAGS)
# The chances of self-training that soft labels give; elsewhere those of the teacher are taken.
CHANCES = numpy.asarray([0.3, numpy.nan, 0.9, numpy.nan, 1.0, 0.0, numpy.nan])


def robust(**settings):
    return NoiseRobustLearning(GCE, drop_outside=0.0, **{"threshold": 0.2, **settings})


OBJECTIVES = {
    "hard": lambda: HardLabels(CategoricalCrossentropy()),
    "hard, generalized": lambda: HardLabels(GCE),
    "hard, absolute": lambda: HardLabels(MeanAbsoluteError()),
    "hard, squared": lambda: HardLabels(MeanSquaredError()),
    "hard, whole tag": lambda: HardLabels(GCE, whole_tag=True),
    "soft": SoftLabels,
    "soft, squared": lambda: SoftLabels(loss=MeanSquaredError()),
    "robust": robust,
    "self": lambda: SelfTraining(0.5),
    "self, outside": lambda: SelfTraining(0.5, include_outside=True),
}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


def targets_of(name, n_tags, n=N):
    if name.startswith("self"):
        return CHANCES[:n]
    tags = numpy.minimum(TAGS, n_tags - 1)[:n]
    if not name.startswith("soft"):
        return tags
    wanted = numpy.random.RandomState(0).dirichlet(numpy.ones(n_tags), n)
    wanted[tags == MISSING] = 0.0
    wanted[4:5] = numpy.eye(n_tags)[0]
    return wanted


def learn(name, outputs, teacher=None, augmented=None, tokens=()):
    """A batch of an objective that has seen the corpus."""
    objective, targets = OBJECTIVES[name](), targets_of(name, outputs.shape[1], len(outputs))
    teacher = random_outputs(*outputs.shape, seed=1) if teacher is None else teacher
    objective.renew(iter([(targets, teacher)]))
    more = None if augmented is None else Augmented(augmented, numpy.asarray(tokens, dtype="int64"))
    return objective(TokenBatch(outputs, targets, teacher, more))


@every_objective
@pytest.mark.parametrize("n_tags", [2, 4])
def test_gradient_by_finite_differences(name, n_tags):
    outputs = random_outputs(N, n_tags)
    found = learn(name, outputs)
    expected = numeric_gradient(lambda moved: learn(name, moved).loss, outputs)
    numpy.testing.assert_allclose(found.outputs, expected, atol=1e-6)
    assert found.outputs.any() and found.augmented is None and type(found.loss) is float


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name.startswith("self")])
def test_gradient_of_augmented_sentences_by_finite_differences(name):
    outputs, noise, tokens = random_outputs(N), random_outputs(4, seed=2), [1, 2, 3, 5]
    augmented = outputs[tokens] + noise / 4  # they agree on some
    found = learn(name, outputs, None, augmented, tokens)
    expected = numeric_gradient(lambda moved: learn(name, moved, None, augmented, tokens).loss, outputs)
    numpy.testing.assert_allclose(found.outputs, expected, atol=1e-6)
    expected = numeric_gradient(lambda moved: learn(name, outputs, None, moved, tokens).loss, augmented)
    numpy.testing.assert_allclose(found.augmented, expected, atol=1e-6)
    assert found.augmented.any() and found.augmented[:, 0].any() == (name == "self, outside")


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if not name.startswith("self")])
def test_tokens_of_which_nothing_is_known_teach_nothing(name):
    outputs, known = random_outputs(N), TAGS != MISSING
    objective, targets = OBJECTIVES[name](), targets_of(name, 4)
    result = objective(TokenBatch(outputs, targets))
    assert result.outputs.any(axis=1).tolist() == known.tolist()
    assert result.loss == pytest.approx(objective(TokenBatch(outputs[known], targets[known])).loss)
    nothing = objective(TokenBatch(outputs[3:4], targets[3:4]))
    assert nothing.loss == 0.0 and not nothing.outputs.any()


@every_objective
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_extreme_outputs_give_numbers(name, scale):
    outputs = numpy.full((N, 4), scale)
    outputs[:, 1] = -scale
    for teacher in (outputs, -outputs):
        result = learn(name, outputs, teacher, outputs if name.startswith("self") else None, range(N))
        assert numpy.isfinite(result.loss) and numpy.isfinite(result.outputs).all()
        assert result.augmented is None or numpy.isfinite(result.augmented).all()


@every_objective
@pytest.mark.parametrize("n_tokens", [0, 1])
def test_few_tokens(name, n_tokens):
    result = learn(name, random_outputs(n_tokens))
    assert result.outputs.shape == (n_tokens, 4) and numpy.isfinite(result.loss) and (n_tokens or result.loss == 0.0)


@every_objective
def test_what_the_component_asks_of_them(name):
    objective = OBJECTIVES[name]()
    assert isinstance(objective, Objective)
    flags = (objective.uses_teacher, objective.teacher_at_start, objective.uses_augmented)
    assert flags == (name[:4] in ("robu", "self"), name.startswith("self"), name.startswith("self"))
    # Equal settings are equal whatever was seen of a corpus.
    counted = OBJECTIVES[name]()
    counted.renew(iter([(targets_of(name, 4), random_outputs(N))]))
    counted(TokenBatch(random_outputs(N), targets_of(name, 4), random_outputs(N, seed=1)))
    if name[:4] in ("robu", "self"):
        assert counted == objective != robust(threshold=0.1)


@pytest.mark.parametrize(
    "setting",
    [
        *({"drop_outside": value} for value in (1.1, -0.1)),
        *({"threshold": value} for value in (1.5, float("nan"))),
        {"minority": 2.0},
        {"seed": -1},
    ],
    ids=str,
)
def test_settings_out_of_range(setting):
    (name,) = setting
    for make in (lambda **given: NoiseRobustLearning(GCE, **given), *([SelfTraining] if name == "threshold" else [])):
        with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}'"):
            make(**setting)

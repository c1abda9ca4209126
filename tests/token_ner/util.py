"""What the tests of the token classifier share."""

import numpy
import spacy
from spacy.util import fix_random_seed

from ..util import TOK2VEC, make_examples

CE = {"@losses": "spacy_weakner.CategoricalCrossentropy.v1"}
GCE = {"@losses": "spacy_weakner.GeneralizedCrossEntropy.v1"}
HARD = {"@misc": "spacy_weakner.HardLabels.v1", "loss": CE}
ROBUST = {"@misc": "spacy_weakner.NoiseRobustLearning.v1", "loss": GCE, "drop_outside": 0.0}
SELF = {"@misc": "spacy_weakner.SelfTraining.v1"}


def token_pipeline(objective=HARD, tok2vec=TOK2VEC, seed=0, **settings):
    """An initialised pipeline with a small token_ner."""
    fix_random_seed(seed)
    nlp = spacy.blank("xx")
    model = {"@architectures": "spacy_weakner.TokenClassifier.v1", "tok2vec": tok2vec}
    nlp.add_pipe("token_ner", config={"model": model, "objective": objective, **settings})
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def outputs(n_tokens, n_tags, seed=0, scale=2.0):
    """Random outputs of a model."""
    return numpy.random.RandomState(seed).normal(size=(n_tokens, n_tags)) * scale


def softmax(row):
    """One number after the other."""
    exponents = [numpy.exp(x - max(row)) for x in row]
    return [x / sum(exponents) for x in exponents]


def chances(row):
    """P(O) and P(k), as the equations say."""
    s = 1 / (1 + numpy.exp(-row[0]))
    return [1 - s, *(s * p for p in softmax(row[1:]))]


def check_finite_differences(value, gradient, at, step=1e-6, tolerance=1e-6):
    """Compare a gradient with differences of the value."""
    for index in numpy.ndindex(*at.shape):
        sides = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * step
            sides.append(value(moved))
        numpy.testing.assert_allclose(gradient[index], (sides[0] - sides[1]) / (2 * step), atol=tolerance, rtol=1e-5)

"""The weights, against slow descent."""

import random

import numpy

from spacy_weakner.ent_combiner.regression import fit_weights

from .util import all_sets, competition_of, random_entities


def world(seed, n_docs=20):
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    entities = [random_entities(rng, 5, rng.randint(0, 6)) for _ in range(n_docs)]
    right = [[float(i in rng.choice(list(all_sets(own)))) for i in range(len(own))] for own in entities]
    chosen = [rng.choice(list(all_sets(own))) for own in entities]
    right = numpy.array([float(i in sets) for own, sets in zip(entities, chosen, strict=True) for i in range(len(own))])
    return numbers.normal(size=(len(right), 4)), right, competition_of(entities)


def test_steps_end_where_slow_descent_does():
    features, right, competition = world(0)
    penalty = numpy.array([0.5, 1.0, 2.0, 4.0])
    weights = numpy.zeros(4)
    for _ in range(3000):
        found = competition.probabilities(features @ weights)
        weights += 0.02 * (features.T @ (right - found) - penalty * weights)
    numpy.testing.assert_allclose(fit_weights(features, right, competition, penalty), weights, atol=1e-4)
    start = numpy.array([3.0, -3.0, 3.0, -3.0])
    numpy.testing.assert_allclose(fit_weights(features, right, competition, penalty, start), weights, atol=1e-4)


def test_stronger_penalties_give_smaller_weights():
    features, right, competition = world(1)
    norms = [numpy.abs(fit_weights(features, right, competition, numpy.full(4, p))).sum() for p in (0.1, 1, 10, 1e6)]
    assert norms == sorted(norms, reverse=True) and norms[-1] < 1e-3


def test_what_separates_stays_finite():
    competition = competition_of([[(0, 1, "X"), (2, 3, "X")]] * 50)
    right = numpy.tile([1.0, 0.0], 50)
    weights = fit_weights(right[:, None] * 2 - 1, right, competition, numpy.array([1e-3]))
    assert 3.0 < weights[0] < 20.0

"""Sets without overlaps and their probabilities, against all sets one by one; weights, against slow descent."""

import random

import numpy

from spacy_weakner.corpus.tags import make_scheme
from spacy_weakner.ent_combiner.candidates import ScoredCandidates, Sentences, read_candidates
from spacy_weakner.ent_combiner.span_partition import fit_weights

from .util import all_sets, doc_of, partition_of, random_entities, split


def world(seed, n_docs=6):
    rng = random.Random(seed)
    entities = [random_entities(rng, 5, rng.randint(0, 7)) for _ in range(n_docs)]
    odds = numpy.array([rng.gauss(0.0, 2.0) for own in entities for _ in own])
    return entities, odds, partition_of(entities)


def slow(entities, odds):
    """The log-partition, the probability of each candidate, and the most probable set."""
    sets = list(all_sets(entities))
    weights = numpy.array([numpy.exp(odds[list(chosen)].sum()) for chosen in sets])
    found = [sum(weights[[i in chosen for chosen in sets]]) / weights.sum() for i in range(len(entities))]
    return numpy.log(weights.sum()), found, (sets[int(weights.argmax())], weights.max() / weights.sum())


def test_partitions_and_probabilities_are_sums_over_all_sets():
    for seed in range(5):
        entities, odds, partition = world(seed)
        totals, found = partition.log_totals(odds), split(entities, partition.probabilities(odds))
        for own, parts, total, probabilities in zip(entities, split(entities, odds), totals, found, strict=True):
            expected_total, expected, _ = slow(own, parts)
            numpy.testing.assert_allclose(total, expected_total, atol=1e-10)
            numpy.testing.assert_allclose(probabilities, expected, atol=1e-10)


def test_probabilities_are_the_gradient_of_the_partition():
    _, odds, partition = world(7)
    for i in range(0, len(odds), 5):
        step = numpy.eye(len(odds))[i] * 1e-5
        rise = partition.log_totals(odds + step).sum() - partition.log_totals(odds - step).sum()
        numpy.testing.assert_allclose(rise / 2e-5, partition.probabilities(odds)[i], atol=1e-8)


def test_extreme_odds_and_nothing():
    partition = partition_of([[(0, 2, "X"), (1, 3, "X")], []])
    for odds in ([900.0, -900.0], [900.0, 900.0], [-900.0, -900.0]):
        assert numpy.isfinite(partition.log_totals(numpy.array(odds))).all()
        assert 0.0 <= partition.probabilities(numpy.array(odds)).sum() <= 1.0
    for empty in (partition_of([]), partition_of([[], []])):
        assert len(empty.probabilities(numpy.zeros(0))) == 0
        assert not empty.log_totals(numpy.zeros(0)).any()


def test_tags_and_paths_are_those_of_all_sets():
    entities, odds, _ = world(3)
    docs = [doc_of(list("abcde"), weak__a=own) for own in entities]
    scored = ScoredCandidates(read_candidates(Sentences.of(docs), ["weak:a"], "XY", 0), odds, "XY")
    for name in ("IO", "BIO", "IOBES"):
        scheme = make_scheme(name, ("X", "Y"))
        rows = zip(entities, split(entities, odds), scored.distributions(scheme), scored.paths(scheme), strict=True)
        for own, parts, found, path in rows:
            total, _, (best, probability) = slow(own, parts)
            expected = numpy.zeros((5, len(scheme)))
            for chosen in all_sets(own):
                tags = scheme.encode([own[i] for i in chosen], numpy.ones(5, dtype=bool))
                expected[numpy.arange(5), tags] += numpy.exp(parts[list(chosen)].sum() - total)
            numpy.testing.assert_allclose(found, expected, atol=1e-6)
            tags = scheme.encode([own[i] for i in best], numpy.ones(5, dtype=bool))
            assert path.tags == [scheme.tags[tag] for tag in tags]
            numpy.testing.assert_allclose(numpy.exp(path.log_probability), probability, atol=1e-10)


# Weights


def learnable(seed, n_docs=20):
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    entities = [random_entities(rng, 5, rng.randint(0, 6)) for _ in range(n_docs)]
    chosen = [rng.choice(list(all_sets(own))) for own in entities]
    right = numpy.array([float(i in sets) for own, sets in zip(entities, chosen, strict=True) for i in range(len(own))])
    return numbers.normal(size=(len(right), 4)), right, partition_of(entities)


def test_steps_end_where_slow_descent_does():
    features, right, partition = learnable(0)
    penalty = numpy.array([0.5, 1.0, 2.0, 4.0])
    weights = numpy.zeros(4)
    for _ in range(3000):
        found = partition.probabilities(features @ weights)
        weights += 0.02 * (features.T @ (right - found) - penalty * weights)
    numpy.testing.assert_allclose(fit_weights(features, right, partition, penalty), weights, atol=1e-4)
    start = numpy.array([3.0, -3.0, 3.0, -3.0])
    numpy.testing.assert_allclose(fit_weights(features, right, partition, penalty, start), weights, atol=1e-4)


def test_what_separates_stays_finite():
    partition = partition_of([[(0, 1, "X"), (2, 3, "X")]] * 50)
    right = numpy.tile([1.0, 0.0], 50)
    weights = fit_weights(right[:, None] * 2 - 1, right, partition, numpy.array([1e-3]))
    assert 3.0 < weights[0] < 20.0

"""Sets without overlaps and their probabilities, against all sets one by one."""

import random

import numpy

from spacy_weakner.corpus.tags import make_scheme
from spacy_weakner.ent_combiner.candidates import read_candidates
from spacy_weakner.ent_combiner.scored import Scored

from .util import all_sets, competition_of, doc_of, random_entities, split


def world(seed, n_docs=6):
    rng = random.Random(seed)
    entities = [random_entities(rng, 5, rng.randint(0, 7)) for _ in range(n_docs)]
    odds = numpy.array([rng.gauss(0.0, 2.0) for own in entities for _ in own])
    return entities, odds, competition_of(entities)


def slow(entities, odds):
    """The log-partition, the probability of each candidate, and the most probable set."""
    sets = list(all_sets(entities))
    weights = numpy.array([numpy.exp(odds[list(chosen)].sum()) for chosen in sets])
    found = [sum(weights[[i in chosen for chosen in sets]]) / weights.sum() for i in range(len(entities))]
    return numpy.log(weights.sum()), found, (sets[int(weights.argmax())], weights.max() / weights.sum())


def test_partitions_and_probabilities_are_sums_over_all_sets():
    for seed in range(5):
        entities, odds, competition = world(seed)
        totals, found = competition.log_partitions(odds), split(entities, competition.probabilities(odds))
        for own, parts, total, probabilities in zip(entities, split(entities, odds), totals, found, strict=True):
            expected_total, expected, _ = slow(own, parts)
            numpy.testing.assert_allclose(total, expected_total, atol=1e-10)
            numpy.testing.assert_allclose(probabilities, expected, atol=1e-10)


def test_probabilities_are_the_gradient_of_the_partition():
    _, odds, competition = world(7)
    for i in range(0, len(odds), 5):
        step = numpy.eye(len(odds))[i] * 1e-5
        rise = competition.log_partitions(odds + step).sum() - competition.log_partitions(odds - step).sum()
        numpy.testing.assert_allclose(rise / 2e-5, competition.probabilities(odds)[i], atol=1e-8)


def test_candidates_that_do_not_overlap_are_independent():
    competition = competition_of([[(0, 1, "X"), (1, 3, "X"), (4, 5, "X")]])
    odds = numpy.array([0.3, -2.0, 50.0])
    numpy.testing.assert_allclose(competition.probabilities(odds), 1 / (1 + numpy.exp(-odds)), atol=1e-12)


def test_extreme_odds_and_nothing():
    competition = competition_of([[(0, 2, "X"), (1, 3, "X")], []])
    for odds in ([900.0, -900.0], [900.0, 900.0], [-900.0, -900.0]):
        assert numpy.isfinite(competition.log_partitions(numpy.array(odds))).all()
        assert 0.0 <= competition.probabilities(numpy.array(odds)).sum() <= 1.0
    for empty in (competition_of([]), competition_of([[], []])):
        assert len(empty.probabilities(numpy.zeros(0))) == 0
        assert not empty.log_partitions(numpy.zeros(0)).any()


def test_tags_and_paths_are_those_of_all_sets():
    entities, odds, _ = world(3)
    docs = [doc_of(list("abcde"), weak__a=own) for own in entities]
    scored = Scored(read_candidates(docs, ["weak:a"], "XY", 0), odds, "XY")
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

"""Clusters of entities."""

import itertools

import numpy
import pytest

from spacy_weakner.cofee.clusters import Clusters, cluster_weights, find_clusters, match_clusters, spread

POINTS = numpy.asarray([[1.0, 2.0], [3.0, 4.0], [2.0, 6.0]])


def blobs(centers, n=20, seed=0):
    random = numpy.random.RandomState(seed)
    return numpy.concatenate([center + random.normal(size=(n, 2)) * 0.1 for center in centers]).astype("float32")


def test_spread_by_hand():
    # the squared distances sum to 10, over three points and two dimensions
    assert spread(POINTS) == pytest.approx(1.666667, abs=1e-6)


def test_weights_by_hand():
    found = cluster_weights(numpy.asarray([0.5, 1.0, 2.0]))
    numpy.testing.assert_allclose(found / 3, [0.628532, 0.231224, 0.140244], atol=1e-6)


def test_dropped_clusters_have_no_weight():
    assert cluster_weights(numpy.asarray([1.0, numpy.inf, 1.0])).tolist() == [1.0, 0.0, 1.0]
    assert cluster_weights(numpy.asarray([numpy.inf, numpy.inf])).tolist() == [0.0, 0.0]


def test_finds_what_is_there():
    centers = [[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]]
    vectors = blobs(centers)
    found = find_clusters(vectors, 3, seed=0)
    types = found.assign(vectors)
    assert all(len({*types[i : i + 20]}) == 1 for i in (0, 20, 40)) and len({*types}) == 3
    for k in range(3):
        assert found.spreads[k] == pytest.approx(spread(vectors[types == k]))
    again = find_clusters(vectors, 3, seed=0)
    assert all((a == b).all() for a, b in zip(found, again, strict=True))


def test_a_single_entity_is_no_type():
    vectors = numpy.concatenate([blobs([[0.0, 0.0]]), [[99.0, 99.0]]])
    found = find_clusters(vectors, 2, seed=0)
    (single,) = found.assign(numpy.asarray([[99.0, 99.0]]))
    assert found.weights[single] == 0.0 and found.weights[1 - single] == 1.0


def test_nearest_by_brute_force():
    random = numpy.random.RandomState(0)
    centers, vectors = random.normal(size=(5, 3)), random.normal(size=(40, 3))
    found = Clusters(centers, numpy.ones(5), numpy.ones(5)).assign(vectors)
    assert found.tolist() == [min(range(5), key=lambda k: ((own - centers[k]) ** 2).sum()) for own in vectors]


def test_matching_by_brute_force():
    random = numpy.random.RandomState(0)
    old, new = (Clusters(random.normal(size=(4, 3)), numpy.ones(4), numpy.ones(4)) for _ in range(2))
    found = match_clusters(old, new)

    def cost(parents):
        return sum(((new.centers[j] - old.centers[k]) ** 2).sum() for j, k in enumerate(parents))

    assert cost(found) == pytest.approx(min(map(cost, itertools.permutations(range(4)))))
    assert match_clusters(None, new) == [0, 1, 2, 3]


def test_too_few_entities():
    with pytest.raises(ValueError, match=r"3 entities.*4 types"):
        find_clusters(POINTS, 4, seed=0)


def test_equal_vectors_do_not_break_the_weights():
    assert numpy.isfinite(cluster_weights(numpy.asarray([0.0, 1.0]))).all()

"""Types within labels, and how mrc_ner learns them."""

import itertools

import numpy
import pytest
from thinc.api import Linear

from spacy_weakner.cofee.clusters import Clusters, cluster_weights, find_clusters, match_clusters, spread
from spacy_weakner.cofee.fine_typing import FineTyping
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner.entity_types import EntityTyping, Mentions
from spacy_weakner.ty import TrainingProgress

from ..mrc_ner.util import mrc_pipeline
from ..util import TEXTS, entities_of, make_examples, numeric_gradient

P = numpy.asarray([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25]])
TYPING = {"@misc": "spacy_weakner.FineTyping.v1", "n_types": 2, "gamma": 0.5}


def with_clusters(weights, gamma=1.0):
    """Types whose centers are the axes."""
    typing = FineTyping(len(weights), gamma)
    typing._clusters = Clusters(numpy.eye(len(weights)), numpy.ones(len(weights)), numpy.asarray(weights))
    return typing


def linear():
    """A layer that is recognized by its weights."""
    layer = Linear(3, 2)
    layer.initialize()
    layer.set_param("W", numpy.arange(6, dtype="f").reshape(3, 2))
    layer.set_param("b", numpy.ones(3, dtype="f"))
    return layer


def test_loss_by_hand():
    """Equation 9 of an oracle: alpha = softmax(1 / V) for V = [.5, 1, 2], targets 0, 1, 2, 1."""
    typing = with_clusters([0.628532, 0.231224, 0.140244])
    values, _ = typing(numpy.log(P), numpy.eye(3)[[0, 1, 2, 1]])
    assert values.mean() == pytest.approx(0.154092, abs=1e-6)


def test_gradient_by_finite_differences():
    typing, vectors = with_clusters([2.0, 0.0, 1.0], gamma=0.7), numpy.eye(3)[[0, 1, 2, 0]]
    scores = numpy.random.RandomState(0).normal(size=(4, 3))
    _, gradient = typing(scores, vectors)
    expected = numeric_gradient(lambda moved: typing(moved, vectors)[0].sum(), scores)
    numpy.testing.assert_allclose(gradient, expected, atol=1e-7)
    assert not gradient[1].any(), "dropped types teach nothing"


def test_nothing_is_learned_before_there_are_types():
    values, gradient = FineTyping(3)(numpy.zeros((2, 3)), numpy.zeros((2, 5)))
    assert not values.any() and not gradient.any()


def test_renewal_keeps_the_numbers_of_types():
    random = numpy.random.RandomState(0)
    vectors = numpy.concatenate([random.normal(size=(30, 2)) * 0.1 + center for center in ([0, 0], [9, 0], [0, 9])])
    typing, layer = FineTyping(3), linear()
    typing.renew(layer, iter([vectors[:10], vectors[10:]]))
    before = typing._clusters
    numbers = before.assign(vectors)
    for seed in range(1, 6):
        typing.seed = seed
        typing.renew(layer, iter([vectors[::-1] + 0.01]))
        numpy.testing.assert_allclose(typing._clusters.centers, before.centers, atol=0.1)
        numpy.testing.assert_allclose(typing._clusters.spreads, before.spreads, rtol=1e-3)
        assert (typing._clusters.assign(vectors) == numbers).all()
    assert layer.get_param("W").max() == 5.0
    FineTyping(3, realign=False).renew(layer, iter([vectors]))
    assert numpy.abs(layer.get_param("W")).max() < 1.2 and not layer.get_param("b").any()
    typing.reset()
    assert typing._clusters is None


def test_draws_from_the_whole_corpus():
    typing = FineTyping(2, max_entities=50)
    drawn = typing._draw(numpy.arange(2000.0).reshape(100, 20, 1)[i] for i in range(100))
    assert len(drawn) == 50 and drawn.max() > 1000 and len({*drawn[:, 0].tolist()}) == 50
    assert (drawn == typing._draw(iter([numpy.arange(2000.0)[:, None]]))).all(), "however it comes"


@pytest.mark.parametrize("settings", [{"n_types": 1}, {"gamma": -1.0}, {"max_entities": 3}], ids=str)
def test_unusable_settings(settings):
    with pytest.raises(WeaknerError, match=next(iter(settings))):
        FineTyping(**settings)


def test_vectors_of_entities():
    vectors = numpy.arange(4 * 2 * 3, dtype="f").reshape(4, 2, 3)
    found = FineTyping(2).pool(vectors, numpy.asarray([[0, 2, 0], [3, 4, 0], [1, 2, 1]]))
    numpy.testing.assert_allclose(found, [vectors[0, 0] + vectors[1, 0], vectors[3, 0], vectors[1, 1]])
    assert FineTyping(2).pool(vectors, numpy.zeros((0, 3), dtype="int64")).shape == (0, 3)


def test_learning_by_brute_force():
    """Value, and gradient of vectors and weights, one entity at a time."""
    random = numpy.random.RandomState(0)
    vectors = [random.normal(size=(n, 2, 4)).astype("f") for n in (3, 0, 5)]
    spans = [numpy.asarray([[0, 2, 0], [1, 2, 1]]), numpy.zeros((0, 3), dtype="int64"), numpy.asarray([[2, 5, 1]])]
    mentions = [Mentions(own, numpy.eye(3)[[i % 3 for i in range(len(own))]]) for own in spans]
    layer = Linear(3, 4)
    layer.initialize()
    layer.set_param("W", random.normal(size=(3, 4)).astype("f"))
    typing = with_clusters([2.0, 0.5, 0.5])

    def value(vectors):
        total = 0.0
        for own, to in zip(vectors, mentions, strict=True):
            losses = []
            for (start, end, k), teacher in zip(to.spans, to.vectors, strict=True):
                scores = layer.get_param("W") @ own[start:end, k].sum(axis=0) + layer.get_param("b")
                p = numpy.exp(scores) / numpy.exp(scores).sum()
                kind = int(teacher.argmax())
                losses.append(-typing._clusters.weights[kind] * numpy.log(p[kind]))
            total += numpy.mean(losses) if losses else 0.0
        return total

    gradients = [numpy.ones_like(own) for own in vectors]
    loss, learn = typing.loss(layer, vectors, mentions)
    assert loss == pytest.approx(value(vectors), rel=1e-5) and not layer.has_grad("W")
    learn(gradients)
    for i, gradient in enumerate(gradients):
        expected = numeric_gradient(
            lambda moved, i=i: value([*vectors[:i], moved, *vectors[i + 1 :]]), vectors[i].astype("float64")
        )
        numpy.testing.assert_allclose(gradient - 1.0, expected, atol=1e-4)
    assert layer.get_grad("W").any()


def test_no_entities():
    vectors = [numpy.zeros((2, 1, 4), dtype="f")]
    nothing = Mentions(numpy.zeros((0, 3), dtype="int64"), numpy.zeros((0, 4)))
    for mentions in (nothing, None):
        assert with_clusters([1.0, 1.0]).loss(Linear(2, 4), vectors, [mentions])[0] == 0.0


# In the component


def typed_pipeline(**settings):
    return mrc_pipeline(typing={**TYPING, **settings}, n_types=2)


def test_the_component_learns_both():
    nlp = typed_pipeline()
    ner = nlp.get_pipe("mrc_ner")
    assert isinstance(ner.typing, EntityTyping)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.02
    losses = []
    for step in range(40):
        ner.tick(TrainingProgress(step, 0, step / 40, 10))
        if step % 10 == 0:
            ner.renew(make_examples(nlp))
        losses.append(nlp.update(make_examples(nlp), sgd=optimizer, losses={})["mrc_ner"])
    assert losses[-1] < 0.1 * losses[0]
    assert entities_of(nlp, TEXTS)[0] == [(0, 1, "PER"), (3, 5, "LOC")]
    docs = [eg.predicted for eg in make_examples(nlp)]
    targets = ner.targets_with_teacher(ner.read_batch(make_examples(nlp)))
    mentions = ner._mentions(ner.typing, docs, targets)
    kinds = [ner.typing._clusters.assign(own.vectors).tolist() for own in mentions if len(own.spans)]
    assert {kind for own in kinds for kind in own} == {0, 1}


def test_types_are_those_of_the_text_not_of_the_question():
    """The vectors that are grouped do not change with the question."""
    nlp = typed_pipeline()
    ner = nlp.get_pipe("mrc_ner")
    ner.tick(TrainingProgress(0, 0, 0.0, 10))
    ner.renew(make_examples(nlp))
    docs = [eg.predicted for eg in make_examples(nlp)]
    targets = ner.targets_with_teacher(ner.read_batch(make_examples(nlp)))
    before = ner._mentions(ner.typing, docs, targets)
    for label in ner.labels:
        ner.set_question(label, "something else?")
    for own, other in zip(before, ner._mentions(ner.typing, docs, targets), strict=True):
        numpy.testing.assert_allclose(own.vectors, other.vectors, rtol=1e-5)


def test_another_training_forgets_the_types():
    nlp = typed_pipeline()
    ner = nlp.get_pipe("mrc_ner")
    ner.tick(TrainingProgress(0, 0, 0.0, 10))
    ner.renew(make_examples(nlp))
    assert ner.typing._clusters is not None
    nlp.initialize(lambda: make_examples(nlp))
    assert ner.typing._clusters is None and ner._teacher.model is None


def test_there_must_be_a_layer_and_a_clock():
    with pytest.raises(ValueError, match=r"'mrc_ner'.*n_types"):
        mrc_pipeline(typing=TYPING)
    with pytest.raises(ValueError, match=r"'mrc_ner'.*n_types"):
        mrc_pipeline(typing=TYPING, n_types=3)
    nlp = typed_pipeline()
    with pytest.raises(WeaknerError, match="WK004"):
        nlp.update(make_examples(nlp), sgd=False)
    nlp.get_pipe("mrc_ner").tick(TrainingProgress(0, 0, 0.0, 10))
    with pytest.raises(ValueError, match=r"'mrc_ner'.*interval"):
        nlp.update(make_examples(nlp), sgd=False)


def test_the_loss_is_that_of_both():
    nlp, plain = typed_pipeline(), mrc_pipeline()
    ner = nlp.get_pipe("mrc_ner")
    plain.get_pipe("mrc_ner").model.get_ref("tok2vec").from_bytes(ner.model.get_ref("tok2vec").to_bytes())
    plain.get_pipe("mrc_ner").model.get_ref("head").from_bytes(ner.model.get_ref("head").to_bytes())
    ner.tick(TrainingProgress(0, 0, 0.0, 10))
    ner.renew(make_examples(nlp))
    both = nlp.update(make_examples(nlp), sgd=False, losses={})["mrc_ner"]
    alone = plain.update(make_examples(plain), sgd=False, losses={})["mrc_ner"]
    assert both > alone


# Clusters of entities


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
    assert found.tolist() == [min(range(5), key=lambda k: ((vector - centers[k]) ** 2).sum()) for vector in vectors]


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

"""Which start belongs to which end: the equation, and the pairs that are tried."""

import numpy
import pytest
from thinc.api import set_dropout_rate

from spacy_weakner.mrc_ner import matching
from spacy_weakner.mrc_ner.boundaries import Boundaries, mark
from spacy_weakner.mrc_ner.decoding import nearest_ends, pair_boundaries
from spacy_weakner.mrc_ner.matching import Pairs, build_matcher, candidate_pairs, learn_matches, match_odds
from spacy_weakner.mrc_ner.scoring import as_rows

from ..util import all_zero, gradients
from .util import IDS, loss_by_hand, odds_by_hand


@pytest.fixture
def matcher():
    result = build_matcher(5)
    result.initialize(X=numpy.zeros((1, 4), dtype="float32"))
    random = numpy.random.RandomState(0)
    for node in result.walk():
        for name in node.param_names:
            node.set_param(name, random.normal(size=node.get_param(name).shape).astype("float32"))
    return result


@pytest.fixture
def case():
    """Vectors of three sentences, one of them empty, and pairs of them."""
    random = numpy.random.RandomState(1)
    vectors = [random.normal(size=(n, 2, 4)).astype("float32") for n in (3, 0, 5)]
    spans = [[(0, 1, 0), (0, 3, 0), (1, 3, 1)], [], [(0, 5, 1), (2, 5, 1), (2, 3, 1), (4, 5, 0)]]
    wanted = [[True, False, True], [], [True, False, False, True]]
    arrays = [numpy.asarray(own, dtype="int64").reshape(-1, 3) for own in spans]
    return vectors, [Pairs(a, numpy.asarray(b, dtype=bool)) for a, b in zip(arrays, wanted, strict=True)]


# The equation


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_scores_by_hand(monkeypatch, matcher, case, chunk):
    monkeypatch.setattr(matching, "CHUNK", chunk)
    vectors, pairs = case
    found = match_odds(matcher, vectors, [own.spans for own in pairs])
    assert [len(own) for own in found] == [3, 0, 4]
    for own, odds, to in zip(vectors, found, pairs, strict=True):
        assert odds.tolist() == pytest.approx([odds_by_hand(matcher, own, span) for span in to.spans.tolist()])


def learn(matcher, vectors, pairs, weight):
    return learn_matches(matcher, as_rows(numpy, vectors), [own.shape for own in vectors], pairs, weight)


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_loss_is_a_mean_over_the_pairs_of_a_question(matcher, case, weight):
    vectors, pairs = case
    loss, gradient = learn(matcher, vectors, pairs, weight)
    assert loss == pytest.approx(loss_by_hand(matcher, vectors, pairs, weight), rel=1e-5)
    assert type(loss) is float and gradient.shape == (16, 4) and gradient.dtype == "float32"


def test_gradients_by_finite_differences(matcher, case):
    vectors, pairs = case
    _, gradient = learn(matcher, vectors, pairs, 0.7)
    arrays = [(own, part) for own, part in zip(vectors, numpy.split(gradient.reshape(-1, 2, 4), [3, 3]), strict=True)]
    for node in matcher.walk():
        arrays += [(node.get_param(name), node.get_grad(name)) for name in node.param_names]
    assert len(arrays) == 3 + 6
    for values, found in arrays:
        for index in numpy.ndindex(*values.shape):
            sides = []
            for sign in (1, -1):
                values[index] += sign * 1e-2
                sides.append(loss_by_hand(matcher, vectors, pairs, 0.7))
                values[index] -= sign * 1e-2
            assert found[index] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=1e-2, abs=1e-3)


def test_tokens_that_stand_in_no_pair_have_no_gradient(matcher, case):
    vectors, pairs = case
    gradient = learn(matcher, vectors, pairs, 1.0)[1].reshape(-1, 2, 4)
    used = {(0, 0), (2, 0), (1, 1), (2, 1), (3, 1), (7, 1), (5, 1), (7, 0)}
    assert {(i, k) for i in range(8) for k in range(2) if gradient[i, k].any()} == used


def test_no_pairs(matcher, case):
    vectors, _ = case
    nothing = [Pairs(numpy.zeros((0, 3), dtype="int64"), numpy.zeros(0, dtype=bool))] * 3
    loss, gradient = learn(matcher, vectors, nothing, 1.0)
    assert loss == 0.0 and not gradient.any() and all_zero(gradients(matcher))
    assert [len(own) for own in match_odds(matcher, vectors, [own.spans for own in nothing])] == [0, 0, 0]


def test_dropout(matcher, case):
    vectors, pairs = case
    alike = {}
    for rate in (0.0, 0.5):
        set_dropout_rate(matcher, rate)
        losses = [learn(matcher, vectors, pairs, 1.0)[0] for _ in range(2)]
        alike[rate] = losses[0] == losses[1]
    assert alike == {0.0: True, 0.5: False}
    odds = [match_odds(matcher, vectors, [own.spans for own in pairs])[0].tolist() for _ in range(2)]
    assert odds[0] == odds[1]


# Which pairs are tried


def random_target(seed, n=8):
    random = numpy.random.RandomState(seed)
    spans = {tuple(sorted(random.choice(n + 1, 2, replace=False))) for _ in range(5)}
    entities = [(int(a), int(b), "PER" if random.rand() < 0.5 else "LOC") for a, b in sorted(spans)]
    known = numpy.repeat(random.rand(n, 1, 1) < 0.8, 2, axis=1).repeat(2, axis=2)
    ids = sorted(((a, b, IDS[label]) for a, b, label in entities), key=lambda own: own[2])
    target = Boundaries(mark(entities, n, IDS), known, numpy.asarray(ids).reshape(-1, 3))
    return target, random.rand(n, 2, 2) < 0.3


@pytest.mark.parametrize("max_width", [None, 3])
@pytest.mark.parametrize("seed", range(10))
def test_candidates_by_brute_force(max_width, seed):
    target, predicted = random_target(seed)
    if max_width is not None:
        kept = target.spans[:, 1] - target.spans[:, 0] <= max_width
        target = target._replace(spans=target.spans[kept])
    true, expected = set(map(tuple, target.spans.tolist())), {}
    for k in range(2):
        for i in range(8):
            for j in range(i, 8):
                starts = target.wanted[i, k, 0] or predicted[i, k, 0]
                ends = target.wanted[j, k, 1] or predicted[j, k, 1]
                near = max_width is None or j + 1 - i <= max_width
                if starts and ends and near and target.known[i, k, 0] and target.known[j, k, 1]:
                    expected[i, j + 1, k] = (i, j + 1, k) in true
    found = candidate_pairs(target, predicted, max_width)
    assert dict(zip(map(tuple, found.spans.tolist()), found.wanted.tolist(), strict=True)) == expected
    assert len(found.spans) == len(expected)


def test_without_spans_every_start_has_its_nearest_end():
    target = Boundaries(mark([(0, 3, "PER"), (1, 3, "PER")], 4, IDS), numpy.ones((4, 2, 2), dtype=bool))
    found = candidate_pairs(target, numpy.zeros_like(target.wanted), None)
    assert found.spans.tolist() == [[0, 3, 0], [1, 3, 0]] and found.wanted.all()


@pytest.mark.parametrize("n_tokens", [10, 100, 400])
@pytest.mark.parametrize("max_width", [None, 10])
def test_the_number_of_pairs_grows_with_that_of_tokens(n_tokens, max_width):
    everywhere = numpy.ones((n_tokens, 2, 2), dtype=bool)
    far = numpy.asarray([[0, n_tokens, 1]])
    found = candidate_pairs(Boundaries(mark([], n_tokens, IDS), everywhere, far), everywhere, max_width)
    assert len(found.spans) <= 2 * n_tokens * min(matching.N_ENDS, max_width or n_tokens) + 1
    assert [0, n_tokens, 1] in found.spans[found.wanted].tolist(), "entities always take part"
    assert len(numpy.unique(found.spans, axis=0)) == len(found.spans)


@pytest.mark.parametrize("n_ends", [1, 2, 3, 100])
@pytest.mark.parametrize("max_width", [None, 1, 4])
def test_several_ends_by_brute_force(n_ends, max_width):
    random = numpy.random.RandomState(0)
    for _ in range(30):
        boundaries = random.rand(9, 3, 2) < random.rand()
        expected = []
        for k in range(3):
            for i in numpy.flatnonzero(boundaries[:, k, 0]):
                ends = [j + 1 for j in range(i, 9) if boundaries[j, k, 1]][:n_ends]
                expected += [[i, end, k] for end in ends if max_width is None or end - i <= max_width]
        assert pair_boundaries(boundaries, max_width, n_ends).tolist() == expected
        by_label = [
            [start, end, k]
            for k in range(3)
            for start, end in nearest_ends(boundaries[:, k, 0], boundaries[:, k, 1], max_width, n_ends)
        ]
        assert by_label == expected

import math

import numpy
import pytest
import torch
from hypothesis import given, settings
from torchcrf import CRF

from spacy_weakner.corpus.tags import SCHEMES, TagScheme
from spacy_weakner.crf.decoding import entity_log_probabilities, k_best, viterbi
from spacy_weakner.crf.kernel import CRFParameters, forward_backward, pad

from . import brute_force
from .brute_force import CASES, TOLERANCE, close, random_case
from .test_kernel import ORACLE, ORACLE_CONSTRAINED, ORACLE_EMISSIONS, hypothesis_cases, inf


def check_k_best(parameters, emissions, k):
    for e, paths in zip(emissions, k_best(parameters, pad(emissions), k), strict=True):
        expected = brute_force.all_paths(parameters, e)[:k]
        assert len(paths) == len(expected)
        close([path.score for path in paths], [s for s, _ in expected])
        # Ties may come in any order, so that each path is asked for its own score.
        close([brute_force.score(parameters, e, path.tags) for path in paths], [path.score for path in paths])
        assert len({tuple(path.tags) for path in paths}) == len(paths)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_viterbi_equals_enumeration(case, seed):
    parameters, emissions = random_case(case, seed)
    for e, path in zip(emissions, viterbi(parameters, pad(emissions)), strict=True):
        best_score, best_tags = max(brute_force.all_paths(parameters, e), default=(-inf, tuple(path.tags)))
        close(path.score, best_score)
        assert tuple(path.tags) == best_tags


@settings(max_examples=60, deadline=None)
@given(hypothesis_cases())
def test_viterbi_equals_enumeration_for_generated_cases(case):
    parameters, emissions = case
    for e, path in zip(emissions, viterbi(parameters, pad(emissions)), strict=True):
        close(path.score, max((s for s, _ in brute_force.all_paths(parameters, e)), default=-inf))
        close(path.score, brute_force.score(parameters, e, path.tags) if path.score > -inf else -inf)


@pytest.mark.parametrize("n_tags", [1, 2, 5, 13])
def test_viterbi_equals_pytorch_crf(n_tags):
    torch.manual_seed(n_tags)
    module = CRF(n_tags, batch_first=True).double()
    torch.nn.init.normal_(module.transitions)
    random = numpy.random.RandomState(n_tags)
    lengths = random.randint(1, 30, size=20)
    emissions = [random.normal(size=(n, n_tags)) for n in lengths]
    padded = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(e) for e in emissions], batch_first=True)
    mask = torch.arange(int(lengths.max()))[None] < torch.from_numpy(lengths)[:, None]
    expected = module.decode(padded, mask)
    scores = (module.start_transitions, module.transitions, module.end_transitions)
    paths = viterbi(CRFParameters(*(s.detach().numpy() for s in scores)), pad(emissions))
    assert [path.tags.tolist() for path in paths] == expected


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_k_best_equals_enumeration(case, k):
    check_k_best(*random_case(case, k), k)


@settings(max_examples=60, deadline=None)
@given(hypothesis_cases())
def test_k_best_equals_enumeration_for_generated_cases(case):
    check_k_best(*case, 5)


def test_k_best_gives_fewer_where_there_are_no_more():
    parameters, emissions = random_case((2, [1, 2, 3], 1.0, 1.0, 0.0))
    assert [len(paths) for paths in k_best(parameters, pad(emissions), 100)] == [2, 4, 8]


def test_without_any_path():
    parameters, emissions = random_case((3, [2, 3], 1.0, 1.0, 0.0))
    batch = pad([emissions[0] - inf, emissions[1]])
    dead, alive = viterbi(parameters, batch)
    assert dead.score == -inf and len(dead.tags) == 2
    assert math.isfinite(alive.score)
    assert [len(paths) for paths in k_best(parameters, batch, 3)] == [0, 3]
    row = batch.order.tolist().index(0)
    lattice = forward_backward(parameters, batch)
    assert entity_log_probabilities(lattice, numpy.array([row]), [(0, 1, [1])], numpy.zeros((3, 3), dtype=bool)) == [
        -inf
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_constrained_paths_are_legal(scheme):
    tags = TagScheme(scheme, ["A", "B"])
    start, transitions, end = tags.allowed_transitions()
    parameters, emissions = random_case((len(tags), [3, 9, 1, 6], 5.0, 2.0, 0.0))
    batch = pad(emissions)
    constrained = parameters.constrained(start, transitions, end)
    paths = [path.tags for path in viterbi(constrained, batch)]
    paths += [path.tags for paths in k_best(constrained, batch, 5) for path in paths]
    assert all(start[p[0]] and transitions[p[:-1], p[1:]].all() and end[p[-1]] for p in paths)


@pytest.mark.parametrize("constrain", [True, False])
@pytest.mark.parametrize("scheme, labels, n_tokens", [("IO", "AB", 4), ("BIO", "AB", 4), ("IOBES", "A", 4)])
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_entity_probabilities_equal_enumeration(scheme, labels, n_tokens, scale, constrain):
    tags = TagScheme(scheme, labels)
    parameters, emissions = random_case((len(tags), [n_tokens, 1, 2], scale, 2.0, 0.0), seed=3)
    if constrain:
        parameters = parameters.constrained(*tags.allowed_transitions())
    batch = pad(emissions)
    lattice = forward_backward(parameters, batch)
    for row, given_index in enumerate(batch.order):
        e = emissions[given_index]
        paths = brute_force.all_paths(parameters, e)
        total = brute_force.log_sum([s for s, _ in paths])
        decoded = [(s, path, set(tags.decode(path))) for s, path in paths]
        entities = [(i, j, label) for i in range(len(e)) for j in range(i + 1, len(e) + 1) for label in labels]
        spans = [(i, j, tags.span_tags(label, j - i)) for i, j, label in entities]
        expected = [
            brute_force.log_sum(
                [
                    s
                    for s, path, found in decoded
                    if entity in found and (constrain or list(path[entity[0] : entity[1]]) == spelled)
                ]
            )
            - total
            for entity, (_, _, spelled) in zip(entities, spans, strict=True)
        ]
        actual = entity_log_probabilities(lattice, numpy.full(len(spans), row), spans, tags.continuations())
        numpy.testing.assert_allclose(actual, expected, rtol=1e-7, atol=TOLERANCE)
        assert max(actual) <= 0.0


def test_unconstrained_illegal_spellings_do_not_count():
    # "O I-A" decodes to the entity (1, 2, A), but does not spell it.
    tags = TagScheme("BIO", ["A"])
    parameters = CRFParameters(numpy.zeros(3), numpy.zeros((3, 3)), numpy.zeros(3))
    emissions = numpy.array([[0.0, -1e3, -1e3], [-1e3, -1e3, 0.0]])
    lattice = forward_backward(parameters, pad([emissions]))
    (chance,) = entity_log_probabilities(
        lattice, numpy.array([0]), [(1, 2, tags.span_tags("A", 1))], tags.continuations()
    )
    assert chance == pytest.approx(-1e3)


def test_oracle_best_paths():
    (paths,) = k_best(ORACLE, pad([ORACLE_EMISSIONS]), 5)
    assert [tuple(p.tags) for p in paths] == [(0, 1, 2), (1, 2, 2), (0, 2, 2), (1, 1, 2), (0, 0, 2)]
    assert [p.score for p in paths] == pytest.approx([3.3, 3.0, 2.8, 2.4, 2.3])
    log_z = forward_backward(ORACLE, pad([ORACLE_EMISSIONS])).log_z[0]
    assert [math.exp(p.score - log_z) for p in paths[:2]] == pytest.approx([0.202528, 0.150036], abs=1e-6)
    assert tuple(viterbi(ORACLE, pad([ORACLE_EMISSIONS]))[0].tags) == (0, 1, 2)


def test_oracle_constrained_best_path():
    batch = pad([ORACLE_EMISSIONS])
    assert tuple(viterbi(ORACLE_CONSTRAINED, batch)[0].tags) == (0, 1, 2)
    assert len(k_best(ORACLE_CONSTRAINED, batch, 27)[0]) == 13


@pytest.mark.parametrize("lengths", [[1] * 9, [30, *range(1, 30)], [12, *[2] * 20], [7] * 5], ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_batches_change_no_path(lengths, ties):
    parameters, emissions = random_case((5, lengths, 2.0, 1.0, 0.2), seed=1)
    if ties:
        parameters, emissions = CRFParameters(*map(numpy.round, parameters)), [e.round() for e in emissions]
    for e, path in zip(emissions, viterbi(parameters, pad(emissions)), strict=True):
        (alone,) = viterbi(parameters, pad([e]))
        assert path.score == alone.score and path.tags.tolist() == alone.tags.tolist()


def table_k_best(parameters, emissions, k):
    """Scores of the k best paths, by all ways to every tag."""
    n_tags = emissions.shape[1]
    ways = [[score] for score in parameters.start + emissions[0]]
    for step in emissions[1:]:
        ways = [
            sorted((w + parameters.transitions[i, j] + step[j] for i in range(n_tags) for w in ways[i]), reverse=True)[
                :k
            ]
            for j in range(n_tags)
        ]
    final = sorted((w + parameters.end[j] for j in range(n_tags) for w in ways[j]), reverse=True)[:k]
    return [score for score in final if score > -inf]


# So many tags that few sequences are decoded at a time; more paths than tags; ties; nothing allowed.
@pytest.mark.parametrize("n_tags, k", [(60, 5), (120, 3), (3, 7), (1, 4), (2, 1)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_k_best_equals_the_whole_table(n_tags, k, share):
    random = numpy.random.RandomState(n_tags)
    transitions = random.randint(-2, 3, size=(n_tags, n_tags)).astype("float64")
    transitions[random.uniform(size=transitions.shape) < share] = -inf
    parameters = CRFParameters(random.normal(size=n_tags), transitions, random.normal(size=n_tags))
    emissions = [random.normal(size=(n, n_tags)) for n in (3, 1, 6, 2, 6)]
    for e, paths in zip(emissions, k_best(parameters, pad(emissions), k), strict=True):
        close([path.score for path in paths], table_k_best(parameters, e, k))
        close([brute_force.score(parameters, e, path.tags) for path in paths], [path.score for path in paths])
        assert len({tuple(path.tags) for path in paths}) == len(paths)

from itertools import pairwise
from typing import NamedTuple

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_weakner.corpus.tags import SCHEMES, TagScheme
from spacy_weakner.crf.kernel import CRFParameters, Paths, forward_backward, pad_emissions
from spacy_weakner.crf.scaled import _scaled_partition, partition

from . import brute_force
from .brute_force import CASES, close, random_case

inf = numpy.inf
MODERATE = [case for case in CASES if case[2] < 100]


class Expectations(NamedTuple):
    log_z: numpy.ndarray
    tokens: numpy.ndarray
    counts: CRFParameters


def expectations(parameters, batch, weights=None):
    log_z, marginals = partition(parameters, batch)
    return Expectations(log_z, *marginals(weights))


def in_log_space(parameters, batch):
    lattice = forward_backward(parameters, batch)
    return Expectations(lattice.log_z, *lattice.marginals())


ROUTES = {"log_space": in_log_space, "any": expectations}
# PAPERS 1.7: three tags, three tokens
ORACLE = CRFParameters(
    numpy.array([0.2, 0.1, -0.5]),
    numpy.array([[0.1, 0.2, -0.3], [0.0, -0.1, 0.5], [0.3, -0.2, 0.4]]),
    numpy.array([0.0, -0.1, 0.1]),
)
ORACLE_EMISSIONS = numpy.array([[1.0, 0.5, -1.0], [0.2, 0.3, 0.4], [0.0, -0.5, 1.0]])
ORACLE_START = numpy.array([True, True, False])
ORACLE_TRANSITIONS = numpy.array([[True, True, False], [True, True, True], [True, True, True]])
ORACLE_CONSTRAINED = ORACLE.constrained(ORACLE_START, ORACLE_TRANSITIONS, numpy.ones(3, dtype=bool))


@st.composite
def hypothesis_cases(draw):
    n_tags = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))

    def scores(limit, *shape):
        elements = st.floats(-limit, limit) | st.just(-inf)
        return draw(arrays("float64", shape, elements=elements))

    parameters = CRFParameters(scores(50, n_tags), scores(50, n_tags, n_tags), scores(50, n_tags))
    return parameters, [scores(200, n, n_tags) for n in lengths]


def check_expectations(parameters, emissions, route):
    n_tags = len(parameters.start)
    batch = pad_emissions(emissions)
    result = route(parameters, batch)
    tokens = batch.unpad(result.tokens)
    transitions = numpy.zeros((n_tags, n_tags))
    for e, own, log_z in zip(emissions, tokens, result.log_z[numpy.argsort(batch.order)], strict=True):
        close(log_z, brute_force.log_z(parameters, e))
        close(own, brute_force.expectation(parameters, e, brute_force.tokens(n_tags), e.shape))
        shape = (len(e) - 1, n_tags, n_tags)
        transitions += brute_force.expectation(parameters, e, brute_force.edges(n_tags), shape).sum(0)
    close(result.counts.start, sum(t[0] for t in tokens))
    close(result.counts.transitions, transitions)
    close(result.counts.end, sum(t[-1] for t in tokens))


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_expectations_equal_enumeration(case, seed, route):
    check_expectations(*random_case(case, seed), route)


@settings(max_examples=60, deadline=None)
@given(hypothesis_cases())
def test_expectations_equal_enumeration_for_generated_cases(case):
    for route in ROUTES.values():
        check_expectations(*case, route)


@pytest.mark.parametrize("case", [case for case in MODERATE if case[4] == 0.0], ids=str)
def test_moderate_scores_take_the_fast_route(case):
    parameters, emissions = random_case(case)
    assert _scaled_partition(parameters, pad_emissions(emissions)) is not None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_constrained_moderate_scores_take_the_fast_route(scheme):
    tags = TagScheme(scheme, ["A", "B"])
    parameters, emissions = random_case((len(tags), [3, 9, 30], 5.0, 2.0, 0.0))
    constrained = parameters.constrained(*tags.allowed_transitions())
    assert _scaled_partition(constrained, pad_emissions(emissions)) is not None


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_weighted_expectations_are_sums_of_weighted_ones(scale):
    parameters, emissions = random_case((3, [4, 7, 1], scale, 1.0, 0.0))
    weights = numpy.array([0.5, -2.0, 0.0])
    batch = pad_emissions(emissions)
    result = expectations(parameters, batch, weights[batch.order])
    alone = [expectations(parameters, pad_emissions([e])) for e in emissions]
    for weight, own, tokens in zip(weights, alone, batch.unpad(result.tokens), strict=True):
        numpy.testing.assert_allclose(tokens, weight * own.tokens[:, 0], atol=1e-12)
    for i, counts in enumerate(result.counts):
        expected = sum(w * own.counts[i] for w, own in zip(weights, alone, strict=True))
        numpy.testing.assert_allclose(counts, expected, atol=1e-12)
    numpy.testing.assert_allclose(result.log_z, expectations(parameters, batch).log_z)


def test_fast_route_is_refused_where_it_would_lose_paths():
    parameters, emissions = random_case((4, [5, 3], 200.0, 1.0, 0.0))
    assert _scaled_partition(parameters, pad_emissions(emissions)) is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_marginals_are_zero_in_the_padding(case):
    parameters, emissions = random_case(case)
    batch = pad_emissions(emissions)
    lattice = forward_backward(parameters, batch)
    padding = ~batch.mask
    tokens = [lattice.token_marginals(), expectations(parameters, batch).tokens]
    assert not any(own[padding].any() for own in tokens)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_path_scores(case):
    parameters, emissions = random_case(case)
    batch = pad_emissions(emissions)
    random = numpy.random.RandomState(0)
    tags = [random.randint(0, case[0], len(e)) for e in emissions]
    scores = Paths(batch, batch.pad_like(tags, 0, "int64")).scores(parameters)
    expected = [brute_force.score(parameters, emissions[i], tags[i]) for i in batch.order]
    close(scores, expected)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_constrained_partition_sums_over_legal_sequences(scheme):
    tags = TagScheme(scheme, ["A"])
    start, transitions, end = tags.allowed_transitions()
    parameters, emissions = random_case((len(tags), [1, 4, 2, 5], 3.0, 2.0, 0.0))

    def legal(path):
        moves = pairwise(path)
        return start[path[0]] and end[path[-1]] and all(transitions[a, b] for a, b in moves)

    batch = pad_emissions(emissions)
    log_z = forward_backward(parameters.constrained(start, transitions, end), batch).log_z
    close(log_z, [brute_force.log_z(parameters, emissions[i], legal) for i in batch.order])


def test_restricted_partition_sums_over_allowed_tags():
    parameters, emissions = random_case((3, [4, 2], 3.0, 2.0, 0.0))
    random = numpy.random.RandomState(1)
    allowed = [random.uniform(size=e.shape) < 0.6 for e in emissions]
    batch = pad_emissions(emissions)
    restricted = batch.restrict(batch.pad_like(allowed, False, "bool"))
    expected = [
        brute_force.log_z(
            parameters, emissions[i], lambda path, i=i: all(allowed[i][t, tag] for t, tag in enumerate(path))
        )
        for i in batch.order
    ]
    close(forward_backward(parameters, restricted).log_z, expected)
    close(expectations(parameters, restricted).log_z, expected)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
@pytest.mark.parametrize("dead", ["start", "transitions", "end", "emissions", "token"])
def test_without_any_path_the_partition_is_empty(route, dead):
    parameters, emissions = random_case((3, [3, 2, 3], 1.0, 1.0, 0.0))
    if dead in ("emissions", "token"):
        emissions = [numpy.where(numpy.arange(len(e))[:, None] >= (dead == "token"), -inf, e) for e in emissions]
    else:
        parameters = parameters._replace(**{dead: numpy.full_like(getattr(parameters, dead), -inf)})
    result = route(parameters, pad_emissions(emissions))
    assert (result.log_z == -inf).all()
    assert not result.tokens.any()
    assert not any(counts.any() for counts in result.counts)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_a_sequence_without_path_leaves_the_others_alone(route):
    parameters, emissions = random_case((3, [3, 2, 4], 1.0, 1.0, 0.0))
    check_expectations(parameters, [emissions[0], emissions[1] - inf, emissions[2]], route)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
@pytest.mark.parametrize("gap, n_steps", [(2000.0, 1), (60.0, 40), (300.0, 7), (20.0, 100), (2.0, 1000)])
def test_chains_that_tie_after_a_wide_gap(route, gap, n_steps):
    # Two chains that cannot change into each other: the second loses `gap` per step, and then gains it again.
    separate = numpy.array([[0.0, -inf], [-inf, 0.0]])
    parameters = CRFParameters(numpy.zeros(2), separate, numpy.zeros(2))
    second = numpy.concatenate([numpy.full(n_steps, -gap), [0.0], numpy.full(n_steps, gap)])
    emissions = numpy.stack([numpy.zeros_like(second), second], axis=1)
    result = route(parameters, pad_emissions([emissions, emissions[:, ::-1], emissions[::-1]]))
    close(result.log_z, numpy.log(2))
    close(result.tokens, 0.5)
    close(result.counts.transitions, numpy.eye(2) * 3 * n_steps)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_very_low_scores_in_a_ragged_batch(route):
    parameters, emissions = random_case((2, [40, 1, 25], 1.0, 1.0, 0.0))
    shifted = route(parameters, pad_emissions([e - 1e5 for e in emissions]))
    plain = route(parameters, pad_emissions(emissions))
    # 1e5 costs five of the digits of float32 and of float64.
    numpy.testing.assert_allclose(shifted.tokens, plain.tokens, atol=5e-2)
    assert numpy.isfinite(shifted.log_z).all()


def test_oracle_partition_and_marginals():
    result = expectations(ORACLE, pad_emissions([ORACLE_EMISSIONS]))
    expected = [[0.569821, 0.384005, 0.046174], [0.211455, 0.382825, 0.405721], [0.204960, 0.093927, 0.701113]]
    assert result.log_z[0] == pytest.approx(4.896879, abs=1e-6)
    numpy.testing.assert_allclose(result.tokens[:, 0], expected, atol=1e-6)


def test_oracle_constrained_partition():
    assert forward_backward(ORACLE_CONSTRAINED, pad_emissions([ORACLE_EMISSIONS])).log_z[0] == pytest.approx(
        4.496653, abs=1e-6
    )


def test_oracle_path_score():
    tags = numpy.array([[1], [2], [0]])
    assert Paths(pad_emissions([ORACLE_EMISSIONS]), tags).scores(ORACLE)[0] == pytest.approx(1.8)


def test_pad_and_unpad_keep_the_given_order():
    sequences = [numpy.full((n, 2), i, dtype="float32") for i, n in enumerate([2, 5, 1, 5])]
    batch = pad_emissions(sequences)
    assert batch.lengths.tolist() == [5, 5, 2, 1]
    assert batch.n_running == [4, 3, 2, 2, 2]
    for given_sequence, back in zip(sequences, batch.unpad(batch.emissions), strict=True):
        numpy.testing.assert_array_equal(back, given_sequence)

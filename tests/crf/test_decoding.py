import math
import tracemalloc

import numpy
import pytest
import torch
from hypothesis import given, settings
from torchcrf import CRF

from spacy_weakner.corpus.tags import SCHEMES, TagScheme
from spacy_weakner.crf import decoding
from spacy_weakner.crf.decoding import entity_log_probabilities, probable_spans, viterbi
from spacy_weakner.crf.kernel import CRFParameters, forward_backward, pad_emissions

from . import brute_force
from .brute_force import CASES, TOLERANCE, close, random_case
from .test_kernel import ORACLE, ORACLE_CONSTRAINED, ORACLE_EMISSIONS, hypothesis_cases, inf


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_viterbi_equals_enumeration(case, seed):
    parameters, emissions = random_case(case, seed)
    for e, path in zip(emissions, viterbi(parameters, pad_emissions(emissions)), strict=True):
        best_score, best_tags = max(brute_force.all_paths(parameters, e), default=(-inf, tuple(path.tags)))
        close(path.score, best_score)
        assert tuple(path.tags) == best_tags


@settings(max_examples=60, deadline=None)
@given(hypothesis_cases())
def test_viterbi_equals_enumeration_for_generated_cases(case):
    parameters, emissions = case
    for e, path in zip(emissions, viterbi(parameters, pad_emissions(emissions)), strict=True):
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
    paths = viterbi(CRFParameters(*(s.detach().numpy() for s in scores)), pad_emissions(emissions))
    assert [path.tags.tolist() for path in paths] == expected


def test_without_any_path():
    parameters, emissions = random_case((3, [2, 3], 1.0, 1.0, 0.0))
    batch = pad_emissions([emissions[0] - inf, emissions[1]])
    dead, alive = viterbi(parameters, batch)
    assert dead.score == -inf and len(dead.tags) == 2
    assert math.isfinite(alive.score)
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
    batch = pad_emissions(emissions)
    constrained = parameters.constrained(start, transitions, end)
    paths = [path.tags for path in viterbi(constrained, batch)]
    assert all(start[p[0]] and transitions[p[:-1], p[1:]].all() and end[p[-1]] for p in paths)


@pytest.mark.parametrize("constrain", [True, False])
@pytest.mark.parametrize("scheme, labels, n_tokens", [("IO", "AB", 4), ("BIO", "AB", 4), ("IOBES", "A", 4)])
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_entity_probabilities_equal_enumeration(scheme, labels, n_tokens, scale, constrain):
    tags = TagScheme(scheme, labels)
    parameters, emissions = random_case((len(tags), [n_tokens, 1, 2], scale, 2.0, 0.0), seed=3)
    if constrain:
        parameters = parameters.constrained(*tags.allowed_transitions())
    batch = pad_emissions(emissions)
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


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("scale, least", [(0.3, 0.02), (1.0, 0.05), (3.0, 0.2)])
def test_no_probable_span_is_missed(scheme, scale, least):
    tags = TagScheme(scheme, "AB")
    parameters, emissions = random_case((len(tags), [6, 1, 9, 2], scale, 1.0, 0.0), seed=5)
    parameters = parameters.constrained(*tags.allowed_transitions())
    batch = pad_emissions(emissions)
    lattice = forward_backward(parameters, batch)
    every = [
        (row, i, j, label)
        for row, n in enumerate(batch.lengths)
        for i in range(n)
        for j in range(i + 1, n + 1)
        for label in range(2)
    ]
    spans = [(i, j, tags.span_tags("AB"[label], j - i)) for _, i, j, label in every]
    rows = numpy.array([row for row, *_ in every])
    scores = numpy.exp(entity_log_probabilities(lattice, rows, spans, tags.continuations()))
    table = numpy.array([[*tags.span_tags(label, 3)[:2], *tags.span_tags(label, 1)] for label in "AB"])
    found = list(map(tuple, probable_spans(lattice, table, least).tolist()))
    assert len(found) == len({*found}) < len(every)
    assert {span for span, score in zip(every, scores, strict=True) if score >= least} <= {*found}


def test_unconstrained_illegal_spellings_do_not_count():
    # "O I-A" decodes to the entity (1, 2, A), but does not spell it.
    tags = TagScheme("BIO", ["A"])
    parameters = CRFParameters(numpy.zeros(3), numpy.zeros((3, 3)), numpy.zeros(3))
    emissions = numpy.array([[0.0, -1e3, -1e3], [-1e3, -1e3, 0.0]])
    lattice = forward_backward(parameters, pad_emissions([emissions]))
    (chance,) = entity_log_probabilities(
        lattice, numpy.array([0]), [(1, 2, tags.span_tags("A", 1))], tags.continuations()
    )
    assert chance == pytest.approx(-1e3)


def test_oracle_best_paths():
    (path,) = viterbi(ORACLE, pad_emissions([ORACLE_EMISSIONS]))
    assert (tuple(path.tags), path.score) == ((0, 1, 2), pytest.approx(3.3))
    log_z = forward_backward(ORACLE, pad_emissions([ORACLE_EMISSIONS])).log_z[0]
    assert math.exp(path.score - log_z) == pytest.approx(0.202528, abs=1e-6)
    assert tuple(viterbi(ORACLE_CONSTRAINED, pad_emissions([ORACLE_EMISSIONS]))[0].tags) == (0, 1, 2)


@pytest.mark.parametrize("lengths", [[1] * 9, [30, *range(1, 30)], [12, *[2] * 20], [7] * 5], ids=str)
@pytest.mark.parametrize("ties", [False, True])
def test_batches_change_no_path(lengths, ties, monkeypatch):
    monkeypatch.setattr(decoding, "_CHUNK", 60)  # two sequences of five tags
    parameters, emissions = random_case((5, lengths, 2.0, 1.0, 0.2), seed=1)
    if ties:
        parameters, emissions = CRFParameters(*map(numpy.round, parameters)), [e.round() for e in emissions]
    for e, path in zip(emissions, viterbi(parameters, pad_emissions(emissions)), strict=True):
        (alone,) = viterbi(parameters, pad_emissions([e]))
        assert path.score == alone.score and path.tags.tolist() == alone.tags.tolist()


def test_memory_is_bounded():
    parameters, emissions = random_case((64, [2] * 500, 1.0, 1.0, 0.0), seed=0)
    batch = pad_emissions(emissions)
    tracemalloc.start()
    viterbi(parameters, batch)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 64 * 500 * 8 / 2

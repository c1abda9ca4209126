from itertools import pairwise, product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.aggregation import label_model, source_model
from spacy_weakner.aggregation.label_model import fit_label_model, prior_model
from spacy_weakner.aggregation.observations import ABSTAIN, UNSEEN
from spacy_weakner.corpus.tags import TagScheme

from .docs import draw_docs, make_source

BIO = TagScheme("BIO", ["A", "B"])
SOURCES = [make_source("x", "AB"), make_source("y", "A", complete=False), make_source("z", "AB", reliability=0.9)]
RATES = numpy.array([[0.1, 0.2], [0.2, 0.0], [0.05, 0.1]])
# Possible observations: a source that votes I-A has said B-A or I-A before.
GOOD = {"recall": 0.9, "false": 0.01}
MIDDLING = {"recall": 0.7, "false": 0.05, "wrong": 0.1}
BAD = {"recall": 0.4, "false": 0.1, "wrong": 0.3}


def draw_says(rng, length, n_sources, unseen=True):
    """What sources might say: well-formed tags."""
    votes = numpy.zeros((length, n_sources), dtype="int64")
    for s in range(n_sources):
        if unseen and rng.random() < 0.2:
            votes[:, s] = UNSEEN
            continue
        for t in range(length):
            votes[t, s] = rng.choice([0, 1, 3])
            if t and votes[t - 1, s] > 0 and rng.random() < 0.5:
                votes[t, s] = (votes[t - 1, s] + 1) // 2 * 2
    return votes


def probability_of(source, state, column, t, n_labels):
    """What the docstring of `source_model` votes, token by token."""
    opens, continues = source.tables()
    votes = int(column[t])
    if votes == UNSEEN:
        return 1.0
    votes, before = max(votes, 0), max(int(column[t - 1]), 0) if t else 0
    label, within = (votes + 1) // 2, (before + 1) // 2
    if votes and votes % 2 == 0:
        return continues[state, within - 1]
    return opens[state, label] * (1 - continues[state, within - 1] if within else 1.0)


def posterior_by_enumeration(model, votes):
    n_states, length = len(model.start), len(votes)
    total = numpy.zeros((length, n_states))
    for path in product(range(n_states), repeat=length):
        weight = model.start[path[0]] * numpy.prod([model.transitions[a, b] for a, b in pairwise(path)])
        for s, source in enumerate(model.sources):
            for t, state in enumerate(path):
                weight *= probability_of(source, state, votes[:, s], t, len(model.labels))
        total[range(length), path] += weight
    likelihood = total[0].sum()
    return numpy.log(likelihood), total / likelihood


def random_model(rng, sources=SOURCES, rates=RATES):
    """Parameters away from the prior."""
    means = prior_model(rates, sources, BIO.labels)
    n_events = (len(BIO.labels) + 1) * (len(BIO.labels) + 2)
    drawn = [source_model.maximize(rng.gamma(0.5, 5, (n_events, len(means.start))), m, 1.0) for m in means.sources]
    moves = label_model._normalized(means.transitions * rng.uniform(0.2, 2, means.transitions.shape))
    return label_model.LabelModel(means.labels, means.start, moves, tuple(drawn))


@pytest.mark.parametrize("seed", range(4))
def test_posterior_and_likelihood_by_enumeration(seed):
    rng = numpy.random.default_rng(seed)
    model = random_model(rng)
    docs = [draw_says(rng, length, 3) for length in (1, 3, 2)]
    docs[0][:, 1] = ABSTAIN
    expected = [posterior_by_enumeration(model, votes) for votes in docs]
    for found, (_, states) in zip(model.distributions(docs), expected, strict=True):
        tags = states[:, :-1].copy()
        tags[:, 0] += states[:, -1]
        numpy.testing.assert_allclose(found, tags, atol=1e-9)
    log_likelihood, *_ = label_model._Data(docs, 2, 3).expect(model)
    assert log_likelihood == pytest.approx(sum(ll for ll, _ in expected))


@pytest.mark.parametrize("seed", range(3))
def test_expected_counts_by_enumeration(seed):
    rng = numpy.random.default_rng(seed)
    model = random_model(rng)
    docs = [draw_says(rng, 3, 3) for _ in range(4)]
    data = label_model._Data(docs, 2, 3)
    _, start, _, counts = data.expect(model)
    expected = [numpy.zeros_like(count) for count in counts]
    first = numpy.zeros_like(start)
    for votes in docs:
        _, states = posterior_by_enumeration(model, votes)
        first += states[0]
        did = source_model.events(votes, 2)
        for s in range(3):
            for t in range(3):
                if votes[t, s] != UNSEEN:
                    expected[s][did[t, s]] += states[t]
    numpy.testing.assert_allclose(start, first, atol=1e-9)
    for found, wanted in zip(counts, expected, strict=True):
        numpy.testing.assert_allclose(found, wanted, atol=1e-9)


def test_tables_are_distributions():
    rng = numpy.random.default_rng(0)
    for model in (prior_model(RATES, SOURCES, BIO.labels), random_model(rng)):
        for source in model.sources:
            opens, continues = source.tables()
            numpy.testing.assert_allclose(opens.sum(1), 1)
            assert ((opens >= 0) & (opens <= 1)).all() and ((continues > 0) & (continues < 1)).all()
            assert numpy.isfinite(source.log_events()).all()
        numpy.testing.assert_allclose(model.transitions.sum(1), 1)
        # What the scheme forbids stays forbidden.
        assert ((model.transitions[:5, :5] > 0) == BIO.allowed_transitions()[1]).all()


def test_silence_about_unknown_labels_counts_for_nothing():
    model = prior_model(RATES, SOURCES, BIO.labels)
    silent = source_model.events(numpy.array([[0]]), 2)[0, 0]
    votes = model.sources[1].log_events()[silent]  # knows only A
    states = dict(zip([*BIO.tags, "distractor"], votes, strict=True))
    assert states["O"] == states["B-B"] == states["I-B"] != states["B-A"]


# Fitting


@pytest.mark.parametrize("qualities", [[GOOD, MIDDLING, BAD], [BAD, BAD], [GOOD]])
def test_the_objective_never_falls(qualities):
    docs = [doc["votes"] for doc in draw_docs(BIO, 60, qualities, seed=1)]
    sources = [make_source(str(i), "AB", complete=i != 0) for i in range(len(qualities))]
    for strength in (1.0, 100.0):
        fitted = fit_label_model(docs, sources, BIO.labels, strength=strength, max_iterations=25, tolerance=0.0)
        gains = numpy.diff(fitted.objective)
        assert gains.min() > -1e-6
        assert gains.max() > 0.1


def test_learns_who_is_right():
    drawn = draw_docs(BIO, 600, [GOOD, MIDDLING, BAD], seed=2)
    sources = [make_source(name, "AB") for name in ("good", "middling", "bad")]
    fitted = fit_label_model([doc["votes"] for doc in drawn], sources, BIO.labels)
    true_recall = {"good": 0.9, "middling": 0.63, "bad": 0.28}
    for accuracy in fitted.source_accuracies:
        assert accuracy.recall == pytest.approx(true_recall[accuracy.source], abs=0.08)
    precision = {accuracy.source: accuracy.precision for accuracy in fitted.source_accuracies}
    assert precision["good"] > precision["middling"] + 0.1 > precision["bad"] + 0.2
    gold = numpy.concatenate([doc["gold"] for doc in drawn])
    found = numpy.concatenate(fitted.distributions([doc["votes"] for doc in drawn])).argmax(1)
    best = numpy.concatenate([doc["votes"][:, 0] for doc in drawn])
    assert (found == gold).mean() > (best == gold).mean() + 0.005
    assert fitted.docs == 600 and 0 < fitted.iterations <= 100


def test_labels_are_not_swapped_by_sources_that_always_contradict():
    votes = numpy.zeros((4, 2), dtype="int64")
    votes[1] = [1, 3]
    sources = [make_source("x", "AB"), make_source("y", "AB")]
    (found,) = fit_label_model([votes] * 30, sources, BIO.labels).distributions([votes])
    assert found[1, 1] == pytest.approx(found[1, 3], abs=1e-6)
    assert found[1, 2] < 0.01 and found[0, 0] > 0.9


def test_a_single_source_is_believed():
    docs = [doc["votes"] for doc in draw_docs(BIO, 300, [GOOD], seed=3)]
    model = fit_label_model(docs, [make_source("s", "AB")], BIO.labels)
    votes = numpy.concatenate(docs)[:, 0]
    found = numpy.concatenate(model.distributions(docs)).argmax(1)
    opened = votes % 2 == 1
    assert (found[opened] == votes[opened]).mean() > 0.9


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_who_never_looked_changes_nothing(seed):
    docs = [doc["votes"] for doc in draw_docs(BIO, 20, [GOOD, BAD], seed=seed)]
    more = [numpy.column_stack([votes, numpy.full(len(votes), UNSEEN)]) for votes in docs]
    sources = [make_source("x", "AB"), make_source("y", "AB")]
    without = fit_label_model(docs, sources, BIO.labels, max_iterations=5)
    for absent in (make_source("none", ""), make_source("late", "A", docs=0)):
        with_it = fit_label_model(more, [*sources, absent], BIO.labels, max_iterations=5)
        for a, b in zip(without.distributions(docs), with_it.distributions(more), strict=True):
            numpy.testing.assert_allclose(a, b, atol=1e-12)


def test_order_does_not_matter():
    docs = [doc["votes"] for doc in draw_docs(BIO, 40, [GOOD, MIDDLING, BAD], seed=4)]
    sources = [make_source(name, "AB") for name in "xyz"]
    a, b, c = (fit_label_model(given, sources, BIO.labels).model for given in (docs, docs, docs[::-1]))
    numpy.testing.assert_array_equal(a.transitions, b.transitions)
    numpy.testing.assert_allclose(a.transitions, c.transitions, rtol=1e-9)
    one_by_one = [a.distributions([votes])[0] for votes in docs]
    for together, alone in zip(a.distributions(docs), one_by_one, strict=True):
        numpy.testing.assert_allclose(together, alone, atol=1e-9)


@pytest.mark.parametrize("labels", [["A"], ["A", "B"]])
def test_odd_docs(labels):
    empty, unseen = numpy.zeros((0, 2), dtype="int64"), numpy.full((3, 2), UNSEEN)
    docs = [empty, unseen, numpy.array([[1, 1]]), numpy.array([[0, ABSTAIN]]), numpy.full((3, 2), ABSTAIN)]
    sources = [make_source("x", "".join(labels)), make_source("y", "A", complete=False)]
    for given_docs in (docs, [empty], [unseen], []):
        fitted = fit_label_model(given_docs, sources, labels)
        found = fitted.distributions(docs)
        assert [x.shape for x in found] == [(len(votes), 1 + 2 * len(labels)) for votes in docs]
        for x in found:
            numpy.testing.assert_allclose(x.sum(1), 1)
        assert numpy.isfinite(fitted.objective).all()
    assert fit_label_model(docs, sources, labels, max_iterations=0).iterations == 0


@pytest.mark.parametrize("reliability", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (None, None)])
def test_extreme_declarations(reliability):
    docs = [doc["votes"] for doc in draw_docs(BIO, 20, [GOOD, BAD], seed=5)]
    docs.append(numpy.tile([[1, 3]], (50, 1)))  # they fire everywhere
    sources = [make_source(str(i), "AB", reliability=r) for i, r in enumerate(reliability)]
    fitted = fit_label_model(docs, sources, BIO.labels)
    assert numpy.isfinite(fitted.objective).all()
    for x in fitted.distributions(docs):
        numpy.testing.assert_allclose(x.sum(1), 1)

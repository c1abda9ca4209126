from itertools import combinations

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.aggregation.methods import best_entities, proposals
from spacy_weakner.corpus.tags import TagScheme

from .docs import make_doc

BIO = TagScheme("BIO", ["A", "B"])
N = 6
SPANS = [(s, e, label) for s in range(N) for e in range(s + 1, min(N, s + 3) + 1) for label in "AB"]


def value(probabilities, entities):
    """Expected number of right tags."""
    tags = BIO.encode(entities, numpy.ones(N, dtype=bool))
    return probabilities[numpy.arange(N), tags].sum()


@given(st.integers(0, 10_000), st.lists(st.sampled_from(SPANS), max_size=7, unique=True))
@settings(max_examples=60, deadline=None)
def test_best_of_all_choices(seed, candidates):
    probabilities = numpy.random.default_rng(seed).dirichlet(numpy.full(len(BIO), 0.5), size=N)
    chosen = best_entities(probabilities, candidates, BIO)
    assert set(chosen) <= set(candidates)
    choices = (c for r in range(len(candidates) + 1) for c in combinations(candidates, r))
    free = [c for c in choices if all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(c, 2))]
    assert numpy.isclose(value(probabilities, chosen), max(value(probabilities, c) for c in free))
    assert chosen == sorted(chosen)


def test_nothing_to_choose():
    assert best_entities(numpy.zeros((0, 5)), [], BIO) == []
    # "O" is as probable: an entity must gain something.
    assert best_entities(numpy.full((1, 5), 0.2), [(0, 1, "A")], BIO) == []
    # Proposals are those of the sources asked.
    doc = make_doc("a b c", {"s": [(0, 2, "A"), (0, 1, "B")], "t": [(0, 2, "A")], "u": [(2, 3, "A")]})
    assert proposals(doc, ["s", "t", "x"]) == [(0, 1, "B"), (0, 2, "A")]

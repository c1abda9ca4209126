import numpy

from spacy_weakner.aggregation.sample import DocSample
from spacy_weakner.corpus.tags import TagScheme

from .docs import make_doc

BIO = TagScheme("BIO", ["A"])


def draw(docs, size, seed=0):
    sample = DocSample(size, seed)
    for doc in docs:
        sample.add(doc)
    return [votes.tolist() for votes in sample.observations(["s"], BIO)]


def test_the_same_docs_in_any_order():
    docs = [make_doc("x " * n, {"s": [(i, i + 1, "A")]}) for n in range(4, 9) for i in range(n)]
    docs += docs[:3]
    drawn = draw(docs, 10)
    assert len(drawn) == 10
    assert draw(docs[::-1], 10) == drawn
    assert draw(docs, 10, seed=1) != drawn
    assert draw(docs, 1000) == draw(docs[::-1], 1000)
    assert len(draw(docs, 1000)) == len(docs)


def test_who_teaches_nothing_is_not_kept():
    docs = [make_doc("a", {}), make_doc("", {"s": []}), make_doc("a", {"s": []})]
    assert draw(docs, 5) == [[[-1]]]
    assert numpy.array(draw(docs[:2], 5)).size == 0


def test_copies_neither_fill_the_sample_nor_are_lost_in_it():
    different = [make_doc("x " * n, {"s": [(i, i + 1, "A")]}) for n in range(4, 9) for i in range(n)]
    docs = different + [make_doc("y y", {"s": [(0, 1, "A")]})] * 100
    for seed in range(20):
        assert draw(docs, 25, seed).count([[1], [-1]]) <= 1
        assert draw(docs[::-1], 25, seed) == draw(docs, 25, seed)
    assert draw(docs, 1000).count([[1], [-1]]) == 100

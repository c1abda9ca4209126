import random

import pytest

from spacy_weakner.evaluation.relations import SpanIndex

GOLD = [(0, 2, "A"), (3, 4, "B"), (6, 8, "A")]


@pytest.mark.parametrize(
    "entity, relation",
    [
        ((0, 2, "A"), "same"),
        ((0, 2, "B"), "type"),
        ((1, 2, "A"), "boundary"),
        ((1, 4, "B"), "boundary"),
        ((1, 2, "B"), "both"),
        ((2, 3, "A"), "none"),
        ((8, 9, "A"), "none"),
    ],
)
def test_relations(entity, relation):
    assert SpanIndex(GOLD).relation(entity) == relation


def random_entities(rng, n):
    starts = [(rng.randrange(10), rng.randint(1, 4)) for _ in range(n)]
    return [(start, start + width, rng.choice("ABC")) for start, width in starts]


def slow_relation(entity, others):
    start, end, label = entity
    if entity in others:
        return "same"
    if any((s, e) == (start, end) for s, e, _ in others):
        return "type"
    touching = [each[2] for each in others if each[0] < end and start < each[1]]
    return "boundary" if label in touching else "both" if touching else "none"


def test_equals_the_slow_twin_on_overlapping_spans():
    rng = random.Random(0)
    for _ in range(200):
        ours, theirs = random_entities(rng, rng.randint(0, 6)), random_entities(rng, rng.randint(0, 6))
        index = SpanIndex(theirs)
        assert [index.relation(each) for each in ours] == [slow_relation(each, theirs) for each in ours]
        slow = {a for a in theirs if any(a[:2] != b[:2] and a[0] < b[1] and b[0] < a[1] for b in theirs)}
        assert index.overlapping() == slow


def test_empty():
    assert SpanIndex([]).relation((0, 1, "A")) == "none"
    assert SpanIndex([]).overlapping() == set()

import random
from itertools import combinations

import pytest

from spacy_weakner.aggregation.policies import POLICIES, ProposedSpan, contested, select_spans
from spacy_weakner.errors import WeaknerError


def candidates(text):
    """ "0-2:A@s" is a candidate; "*7" gives its length in characters."""
    result = []
    for item in text.split():
        item, _, characters = item.partition("*")
        borders, _, rest = item.partition(":")
        label, _, source = rest.partition("@")
        start, end = (int(x) for x in borders.split("-"))
        result.append(ProposedSpan(start, end, label, source, int(characters or 0)))
    return result


@pytest.mark.parametrize(
    "policy, text, expected",
    [
        ("longest", "", []),
        ("longest", "0-1:A@s 2-4:B@t", [(0, 1, "A"), (2, 4, "B")]),
        ("longest", "0-2:A@s*5 1-4:B@t*9", [(1, 4, "B")]),
        ("longest", "0-1:A@s*9 0-3:B@t*5", [(0, 1, "A")]),  # characters before tokens
        ("longest", "0-2:A@s*5 1-4:B@t*5", [(1, 4, "B")]),  # tokens
        ("longest", "1-3:A@s*5 0-2:B@t*5", [(0, 2, "B")]),  # leftmost
        ("longest", "0-2:A@t*5 0-2:B@s*5", [(0, 2, "B")]),  # source
        ("longest", "0-2:B@s*5 0-2:A@s*5", [(0, 2, "A")]),  # label
        ("longest", "0-2:A@s*5 1-4:B@s*9 3-6:C@s*8", [(1, 4, "B")]),
        ("longest", "0-2:A@s*8 1-4:B@s*7 3-6:C@s*6", [(0, 2, "A"), (3, 6, "C")]),
        ("priority", "0-1:A@s*1 0-3:B@t*9", [(0, 1, "A")]),
        ("priority", "0-1:A@t*1 0-3:B@t*9 5-6:C@s", [(0, 3, "B"), (5, 6, "C")]),
        ("agreement", "0-1:A@t*1 0-1:A@u*1 0-3:B@s*9", [(0, 1, "A")]),
        ("agreement", "0-1:A@t*1 0-1:A@t*1 0-3:B@s*9", [(0, 3, "B")]),  # one source has one vote
        ("agreement", "0-1:A@t*1 0-3:B@s*9", [(0, 3, "B")]),
        ("drop", "0-2:A@s 1-3:B@t 5-6:C@s", [(5, 6, "C")]),
        ("drop", "0-2:A@s 0-2:B@t", []),
        ("drop", "0-2:A@s 0-2:A@t", [(0, 2, "A")]),
        ("drop", "0-2:A@s 1-3:A@s 3-4:B@s", [(3, 4, "B")]),
    ],
)
def test_policies(policy, text, expected):
    given = candidates(text)
    assert select_spans(given, policy, ["s", "t", "u"]) == expected
    assert select_spans(given[::-1], policy, ["s", "t", "u"]) == expected


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("policy", POLICIES)
def test_result_has_no_overlaps_and_leaves_no_room(policy, seed):
    def overlap(a, b):
        return a[0] < b[1] and b[0] < a[1]

    rng = random.Random(seed)
    given = []
    for _ in range(rng.randrange(12)):
        start, size = rng.randrange(8), rng.randrange(1, 4)
        given.append(ProposedSpan(start, start + size, rng.choice("AB"), rng.choice("st"), size))
    result = select_spans(given, policy, "st")
    entities = {c.entity for c in given}
    assert set(result) <= entities
    assert not any(overlap(a, b) for a, b in combinations(result, 2))
    naive = {a for a in entities if any(overlap(a, b) for b in entities - {a})}
    assert {c.entity for c in contested(given)} == naive
    if policy == "drop":
        assert set(result) == entities - naive
    else:
        assert all(any(overlap(a, b) for b in result) for a in entities - set(result))


def test_unknown_policy():
    with pytest.raises(WeaknerError, match=r"WK005.*policy.*agreement"):
        select_spans([], "majority", [])

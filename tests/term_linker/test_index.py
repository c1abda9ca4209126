"""The nearest terms, against an obvious computation of the same weights."""

import math
from collections import Counter

import pytest

from spacy_weakner.term_linker.index import N_FEATURES, TermIndex, compared_form

TERMS = [
    ("Anemia, Hemolytic", "D1"),
    ("Hemolytic Anemias", "D2"),
    ("heart failure", "D3"),
    ("cardiac failure", "D3"),
    ("heart attack", "D4"),
    ("x", "D5"),
]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Anemias, Hemolytic", "hemolytic anemia"),
        ("ANEMIA", "anemia"),
        ("beta-blockers", "beta blocker"),
        ("a, b, c", "a b c"),
        ("stress", "stress"),
        ("gas", "gas"),
        ("Parkinson’s  disease", "parkinson s disease"),
        ("", ""),
        ("--", ""),
    ],
)
def test_compared_form(text, expected):
    assert compared_form(text, "en") == expected


def naive(forms, mention):
    """Cosine of TF-IDF weights of the 3-grams of padded words."""

    def grams(form):
        return Counter(f" {word} "[i : i + 3] for word in form.split() for i in range(len(word)))

    n = Counter(gram for form in forms for gram in grams(form))

    def vector(form):
        weights = {g: count * (math.log((1 + len(forms)) / (1 + n[g])) + 1) for g, count in grams(form).items()}
        norm = math.sqrt(sum(w * w for w in weights.values())) or 1.0
        return {g: w / norm for g, w in weights.items()}

    own = vector(mention)
    return {form: sum(w * own.get(g, 0.0) for g, w in vector(form).items()) for form in forms}


@pytest.mark.parametrize("mention", ["heart failures", "hemolytic anaemia", "cardiac arrest", "anemia", "h"])
def test_scores_equal_a_naive_computation(mention):
    index = TermIndex.build(TERMS, "en")
    mention = compared_form(mention, "en")
    expected = naive(index.forms, mention)
    (found,) = index.nearest([mention], 10)
    best = {}
    for form, ids in zip(index.forms, index.ids, strict=True):
        for identifier in ids:
            if expected[form] > 0:
                best[identifier] = max(best.get(identifier, 0.0), expected[form])
    assert {c.id: c.score for c in found} == pytest.approx(best, abs=1e-3)
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)


def test_equal_terms_come_first_with_all_their_ids_in_the_order_of_the_list():
    index = TermIndex.build(TERMS, "en")
    (found,) = index.nearest(["hemolytic anemia"], 1)
    assert [some[:2] for some in found] == [("D1", 1.0), ("D2", 1.0)]
    assert [[c[:2] for c in some[:1]] for some in index.nearest(["x", "", "qqq"], 3)] == [[("D5", 1.0)], [], []]
    # Of equally near terms the first stay.
    index = TermIndex.build([(f"alpha beta {letter}", letter) for letter in "abcdefgh"], "en")
    (found,) = index.nearest(["alpha beta"], 2)
    assert [candidate.id for candidate in found] == ["a", "b"]


def test_mentions_together_are_mentions_one_by_one():
    index = TermIndex.build(TERMS, "en")
    mentions = [compared_form(text, "en") for text, _ in TERMS] * 40
    assert index.nearest(mentions, 2) == [index.nearest([mention], 2)[0] for mention in mentions]


def test_storage():
    index = TermIndex.build(TERMS, "en")
    arrays = index.to_arrays()
    assert sum(array.nbytes for array in arrays.values()) < 5_000
    assert TermIndex.from_parts(index.forms, index.ids, arrays, index.spelled).nearest(
        ["heart failur"], 3
    ) == index.nearest(["heart failur"], 3)
    for forms, given in (
        (index.forms[:-1], arrays),
        (index.forms, {**arrays, "indices": arrays["indices"] + N_FEATURES}),
    ):
        with pytest.raises(ValueError):
            TermIndex.from_parts(forms, index.ids, given, {})

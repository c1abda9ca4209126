"""What becomes a candidate."""

import itertools

import pytest

from spacy_weakner.ent_combiner.candidates import border_variants, read_candidates, read_votes

from .util import doc_of

LABELS = frozenset("XY")


def test_each_candidate_comes_once_sorted_by_its_end():
    doc = doc_of(list("abcd"), weak__a=[(1, 2, "X"), (1, 2, "Y")], pred__b=[(1, 2, "X", 0.5), (0, 4, "X", 0.1)])
    found = read_candidates(doc, ["weak:a", "pred:b", "weak:none"], LABELS, 0)
    assert found.entities == [(1, 2, "X"), (1, 2, "Y"), (0, 4, "X")]
    assert found.votes == [
        {(1, 2, "X"): None, (1, 2, "Y"): None},
        {(1, 2, "X"): 0.5, (0, 4, "X"): 0.1},
        None,
    ]


@pytest.mark.parametrize("border", [0, 1, 2])
def test_variants_have_one_end_elsewhere(border):
    every = list(itertools.combinations(range(6), 2))
    for start, end in every:
        expected = {
            (a, b, "X") for a, b in every if (a == start) != (b == end) and abs(a - start) + abs(b - end) <= border
        }
        found = border_variants([(start, end, "X")], border, 5)
        assert set(found) == expected and len(found) == len(expected)


def test_matches_have_variants_and_predictions_have_none():
    doc = doc_of(list("abc"), weak__a=[(1, 2, "X")], pred__b=[(0, 1, "Y", 0.5)])
    found = read_candidates(doc, ["weak:a", "pred:b"], LABELS, 1)
    assert found.entities == [(0, 1, "Y"), (0, 2, "X"), (1, 2, "X"), (1, 3, "X")]


def test_votes_with_unknown_labels_do_not_count_and_of_two_scores_the_larger_does():
    doc = doc_of(["a", "b"], weak__a=[(0, 1, "X", 0.2), (0, 1, "X", 0.6), (0, 1, "Z", 0.9)])
    assert read_votes(doc, "weak:a", LABELS) == {(0, 1, "X"): 0.6}
    assert read_votes(doc, "weak:b", LABELS) is None
    assert read_votes(doc_of([], weak__a=[]), "weak:a", LABELS) == {}

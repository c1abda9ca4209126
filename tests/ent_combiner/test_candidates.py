"""What becomes a candidate."""

import itertools

import numpy
import pytest

from spacy_weakner.ent_combiner.candidates import Sentences, border_variants, read_candidates

from .util import doc_of

LABELS = "XY"


def test_each_candidate_comes_once_sorted_by_its_end():
    doc = doc_of(list("abcd"), weak__a=[(1, 2, "X"), (1, 2, "Y")], pred__b=[(1, 2, "X", 0.5), (0, 4, "X", 0.1)])
    found = read_candidates(Sentences.of([doc]), ["weak:a", "pred:b", "weak:none"], LABELS, 0)
    assert found.entities(LABELS) == [(1, 2, "X"), (1, 2, "Y"), (0, 4, "X")]
    assert found.proposed.tolist() == [[True, True, False], [True, False, True], [False] * 3]
    nan = numpy.nan
    numpy.testing.assert_array_equal(found.scores, [[nan] * 3, [0.5, nan, 0.1], [nan] * 3])
    assert found.has_group.tolist() == [[True], [True], [False]]


@pytest.mark.parametrize("border", [0, 1, 2])
def test_variants_have_one_end_elsewhere(border):
    every = list(itertools.combinations(range(6), 2))
    for start, end in every:
        expected = {(a, b) for a, b in every if (a == start) != (b == end) and abs(a - start) + abs(b - end) <= border}
        # In the second of two Docs.
        found = border_variants(numpy.array([[start + 3, end + 3, 1]]), border, numpy.array([0, 3, 8]))
        assert {(a - 3, b - 3) for a, b, _ in found.tolist()} == expected and len(found) == len(expected)
        assert set(found[:, 2].tolist()) <= {1}


def test_matches_have_variants_and_predictions_have_none():
    doc = doc_of(list("abc"), weak__a=[(1, 2, "X")], pred__b=[(0, 1, "Y", 0.5)])
    found = read_candidates(Sentences.of([doc, doc_of([]), doc]), ["weak:a", "pred:b"], LABELS, 1)
    expected = [(0, 1, "Y"), (0, 2, "X"), (1, 2, "X"), (1, 3, "X")]
    assert found.split(found.entities(LABELS)) == [expected, [], expected]


def test_votes_with_unknown_labels_do_not_count_and_of_two_scores_the_larger_does():
    doc = doc_of(["a", "b"], weak__a=[(0, 1, "X", 0.2), (0, 1, "X", 0.6), (0, 1, "Z", 0.9)])
    found = read_candidates(Sentences.of([doc, doc_of([], weak__a=[])]), ["weak:a", "weak:b"], LABELS, 0)
    assert found.entities(LABELS) == [(0, 1, "X")] and found.scores[0].tolist() == [0.6]
    assert found.has_group.tolist() == [[True, True], [False, False]]

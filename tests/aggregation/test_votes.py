import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_weakner.aggregation.observations import ABSTAIN, UNSEEN
from spacy_weakner.aggregation.votes import (
    GoldCounts,
    VoteCounts,
    break_ties,
    log_odds,
    majority_shares,
    weighted_shares,
)
from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.errors import WeaknerError

from .docs import make_doc, make_source

BIO = TagScheme("BIO", ["A", "B"])
says_strategy = st.lists(st.lists(st.integers(UNSEEN, len(BIO) - 1), min_size=3, max_size=3), max_size=5)


@given(says_strategy)
@settings(max_examples=60, deadline=None)
def test_majority(rows):
    votes = numpy.array(rows, dtype="int64").reshape(-1, 3)
    shares = majority_shares(votes, len(BIO))
    scores = break_ties(shares, votes)
    for votes, row, score in zip(rows, shares, scores, strict=True):
        cast = [vote for vote in votes if vote >= 0]
        expected = [cast.count(tag) / len(cast) if cast else 0.0 for tag in range(len(BIO))]
        assert row.tolist() == pytest.approx(expected)
        if cast:  # that of the earliest source among equals
            assert score.argmax() == max(cast, key=cast.count)


@given(says_strategy, st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_weighted_is_naive_bayes(rows, seed):
    rng = numpy.random.default_rng(seed)
    votes = numpy.array(rows, dtype="int64").reshape(-1, 3)
    right = rng.uniform(0.1, 0.9, size=(3, 3))  # per source: O, A, B
    labels = ["O", "A", "B"]
    accuracies = [[VoteCounts("s", label, 0, 0, 0, p) for label, p in zip(labels, row, strict=True)] for row in right]
    shares = weighted_shares(votes, log_odds(accuracies, BIO), BIO)
    for votes, row in zip(rows, shares, strict=True):
        odds = [1.0] * len(BIO)
        for source, vote in enumerate(votes):
            if vote >= 0:
                p = right[source][(vote + 1) // 2]
                odds[vote] *= p / ((1 - p) / len(BIO.labels))
        # Only tags that begin entities, or stand inside of them, as some vote does.
        prefixes = {BIO.tags[vote][0] for vote in votes if vote > 0} or {"B"}
        odds = [o * (tag[0] in {*prefixes, "O"}) for o, tag in zip(odds, BIO.tags, strict=True)]
        spoken = any(vote >= 0 for vote in votes)
        assert row.tolist() == pytest.approx([spoken * o / math.fsum(odds) for o in odds])


@pytest.mark.parametrize("reliability", [0.2, 0.7, 0.95])
def test_a_single_source_is_as_likely_right_as_declared(reliability):
    accuracies = GoldCounts([make_source("s", "AB", reliability=reliability)], BIO).by_source()
    shares = weighted_shares(numpy.array([[0], [1], [4]]), log_odds(accuracies, BIO), BIO)
    assert shares[[0, 1, 2], [0, 1, 4]].tolist() == pytest.approx([reliability] * 3)


def test_agreement_about_nothing():
    votes = numpy.array([[0, 0], [0, ABSTAIN], [0, 1], [ABSTAIN, UNSEEN]])
    shares = weighted_shares(votes, numpy.ones((2, 5)), BIO, outside_accuracy=0.9)
    assert shares[:2, 0].tolist() == pytest.approx([0.9, 0.9])
    assert shares.sum(1).tolist() == pytest.approx([1, 1, 1, 0])
    odds = numpy.exp([1, 1, 0]) / numpy.exp([1, 1, 0]).sum()
    assert shares[2].tolist() == pytest.approx([odds[0], odds[1], 0, odds[2], 0])


def test_accuracies_on_gold():
    sources = [make_source("list", complete=False), make_source("model", "AB")]
    counts = GoldCounts(sources, BIO)
    doc = make_doc("a b c d e f", {"list": [(0, 2, "A")], "model": [(0, 1, "A"), (3, 4, "B")]}, complete=["model"])
    # X is a label that no source knows; the last token is missing.
    counts.add(doc, [(0, 2, "A"), (3, 4, "X")], numpy.array([True] * 5 + [False]))
    of_list, of_model = counts.by_source()
    assert [a[1:5] for a in of_list] == [("A", 2, 2, 2)]
    # Token 1: "O" is wrong. Tokens 2, 4, 5 have no proposal and do not count.
    assert [a[1:5] for a in of_model] == [("O", 0, 1, 0), ("A", 1, 1, 2), ("B", 0, 1, 0)]
    whole = (1 + 4 * 0.5) / (3 + 4)
    assert of_model[1].estimate == pytest.approx((1 + 4 * whole) / 5)
    assert of_model[1].accuracy[2:] == (of_model[1].estimate, 0.5, True)
    assert of_model[2].accuracy.recall is None
    assert counts.outside_accuracy() == pytest.approx((2 + 1) / (2 + 2))


def test_declared_reliability_without_gold():
    (accuracies,) = GoldCounts([make_source("s", reliability=0.8)], BIO).by_source()
    assert [a.estimate for a in accuracies] == pytest.approx([0.8, 0.8])
    with pytest.raises(WeaknerError, match=r"WK330.*'t'"):
        GoldCounts([make_source("t")], BIO).by_source()
    assert GoldCounts([make_source("t")], BIO).outside_accuracy() is None
    # Those that never vote need not be known.
    assert GoldCounts([make_source("t", "", complete=False, entities=0)], BIO).by_source() == [[]]

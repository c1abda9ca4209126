"""Precision and recall by threshold."""

from spacy_weakner.corpus.gold import Gold
from spacy_weakner.evaluation.tradeoff import Tradeoff, tradeoff_table

A, B, C = (0, 1, "A"), (2, 3, "A"), (4, 5, "A")


def rows(*docs):
    tradeoff = Tradeoff()
    for entities, scores, gold in docs:
        tradeoff.add(entities, scores, gold)
    return tradeoff.rows()


def test_entities_below_a_threshold_are_left_out():
    found = rows(([A, B], [0.95, 0.55], Gold(frozenset({A}))), ([C], [0.85], Gold(frozenset({B, C}))))
    # Thresholds that leave out nothing more are not repeated; the threshold itself is kept.
    assert found == [
        ["0", "66.7", "66.7", "66.7"],
        ["0.6", "100.0", "66.7", "80.0"],
        ["0.9", "100.0", "33.3", "50.0"],
        ["0.99", "0.0", "0.0", "0.0"],
    ]
    assert tradeoff_table("best", found).rows == found


def test_entities_without_a_score_are_kept():
    found = rows(([A, B], [None, 0.2], Gold(frozenset({A, B}))))
    assert [row[2] for row in found] == ["100.0", "50.0"]
    assert rows(([A], [None], Gold(frozenset({A})))) == [] == rows()


def test_entities_without_gold_do_not_count():
    found = rows(([A, B], [0.9, 0.9], Gold(frozenset({A}), frozenset({2}))))
    assert found[0] == ["0", "100.0", "100.0", "100.0"]

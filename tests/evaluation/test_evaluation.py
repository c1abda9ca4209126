import random
from collections import Counter

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.calibration.reliability import CalibrationCounter
from spacy_weakner.corpus.gold import Gold, find_gold
from spacy_weakner.corpus.weak import GOLD_GROUP, set_group, set_weak
from spacy_weakner.evaluation.evaluate import Evaluation, SpanIndex, recall_by_length
from spacy_weakner.scores import count_matches

from ..util import make_doc


def words(nlp, n):
    return Doc(nlp.vocab, words=[f"w{i}" for i in range(n)])


def random_entities(rng, most):
    starts = [(rng.randrange(10), rng.randint(1, 4)) for _ in range(rng.randint(0, most))]
    return [(start, start + width, rng.choice("AB")) for start, width in starts]


def evaluate(nlp, *pairs, missing=()):
    evaluation = Evaluation()
    for gold, predicted in pairs:
        evaluation.add(words(nlp, 14), predicted, Gold(frozenset(gold), frozenset(missing)))
    return evaluation.result()


def test_kinds_of_errors_by_hand(nlp):
    gold = [(0, 2, "A"), (3, 4, "B"), (5, 7, "A"), (8, 9, "A"), (10, 11, "B")]
    predicted = [(0, 2, "A"), (3, 4, "A"), (5, 6, "A"), (8, 10, "B"), (12, 13, "B")]
    result = evaluate(nlp, (gold, predicted))
    assert result.total.exact == (1, 4, 4)
    assert result.total.errors == (1, 1, 1, 1, 1)  # boundary, type, both, spurious, missed
    assert result.per_label["A"].errors == (1, 1, 0, 0, 0)
    assert result.per_label["B"].errors == (0, 0, 1, 1, 1)


def test_counts_equal_slow_twins_on_random_spans(nlp):
    rng = random.Random(1)
    pairs = [(random_entities(rng, 4), random_entities(rng, 5)) for _ in range(100)]
    result = evaluate(nlp, *pairs)
    total, per_label = count_matches(pairs)
    assert result.total.exact == total
    assert {label: scores.exact for label, scores in result.per_label.items()} == per_label
    assert sum(result.total.errors[:4]) == total.fp

    kinds = Counter()
    for gold, predicted in pairs:
        for start, end, label in set(predicted) - set(gold):
            touching = [g for g in gold if g[0] < end and start < g[1]]
            if any(g[:2] == (start, end) for g in touching):
                kinds["type"] += 1
            elif any(g[2] == label for g in touching):
                kinds["boundary"] += 1
            else:
                kinds["both" if touching else "spurious"] += 1
        kinds["missed"] += sum(not any(p[0] < g[1] and g[0] < p[1] for p in predicted) for g in set(gold))
    assert result.total.errors._asdict() == kinds


def test_recall_by_length(nlp):
    gold = [(0, 1, "A"), (2, 3, "A"), (4, 11, "A")]
    rows = evaluate(nlp, (gold, [(0, 1, "A"), (4, 11, "A"), (12, 13, "A")])).lengths
    names = ["1", "2", "3", "4", "5", "6-8", "9+"]
    assert [(row.length, row.gold) for row in rows] == list(zip(names, [2, 0, 0, 0, 0, 1, 0], strict=True))
    assert [row.found for row in rows] == [1, 0, 0, 0, 0, 1, 0]
    assert [round(row.cumulative, 1) for row in rows] == [66.7] * 5 + [100.0] * 2 and rows[0].recall == 50.0
    lengths = Counter({1: 1, 5: 1, 6: 1, 8: 1, 9: 1, 30: 1})
    assert [row.gold for row in recall_by_length(lengths, Counter())] == [1, 0, 0, 0, 1, 2, 2]
    assert recall_by_length(Counter(), Counter())[-1].cumulative == 0


def test_frequent_errors_with_ties_in_alphabetical_order(nlp):
    pair = ([(0, 1, "A"), (5, 6, "B")], [(2, 3, "A"), (1, 2, "A")])
    result = evaluate(nlp, pair, pair, ([(2, 3, "A")], [(2, 3, "A")]))
    assert result.false == [("w1", "A", 2, 2), ("w2", "A", 2, 3)]
    assert result.missed == [("w0", "A", 2, 2), ("w5", "B", 2, 2)]


def test_predictions_on_missing_tokens_are_not_scored(nlp):
    result = evaluate(nlp, ([(0, 1, "A")], [(0, 1, "A"), (2, 4, "A"), (3, 4, "A"), (4, 5, "A")]), missing=[3])
    assert result.total.exact == (1, 1, 0)
    assert result.unscored == 2


def test_repeated_spans_and_empty_docs(nlp):
    assert evaluate(nlp, ([], [(0, 1, "A"), (0, 1, "A")])).total.exact == (0, 1, 0)
    evaluation = Evaluation()
    evaluation.add(Doc(nlp.vocab), [], Gold(frozenset()))
    result = evaluation.result()
    assert result.docs == 1 and result.total.exact == (0, 0, 0) and result.per_label == {}


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
        ours, theirs = random_entities(rng, 6), random_entities(rng, 6)
        index = SpanIndex(theirs)
        assert [index.relation(each) for each in ours] == [slow_relation(each, theirs) for each in ours]
        slow = {a for a in theirs if any(a[:2] != b[:2] and a[0] < b[1] and b[0] < a[1] for b in theirs)}
        assert index.overlapping() == slow


def test_where_gold_is(nlp):
    doc = make_doc(nlp, "a b c", [(0, 1, "A")], missing=[2])
    assert find_gold(doc) == ({(0, 1, "A")}, {2})
    assert find_gold(make_doc(nlp, "a b", annotated=False)) is None
    assert find_gold(make_doc(nlp, "a b")) == (set(), set())
    set_weak(doc)
    assert find_gold(doc) is None
    set_group(doc, GOLD_GROUP, [(1, 2, "B")])
    assert find_gold(doc) == ({(1, 2, "B")}, set())
    assert find_gold(Doc(nlp.vocab)) == (set(), set())


def test_calibration_by_hand():
    counter = CalibrationCounter()
    gold = Gold(frozenset([(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]), frozenset([9]))
    entities = [(0, 1, "A"), (1, 2, "B"), (2, 3, "A"), (3, 4, "A"), (4, 5, "A"), (5, 6, "A"), (9, 10, "A")]
    counter.add(entities, [0.95, 0.91, 1.0, 0.0, None, float("nan"), 0.5], gold)
    result = counter.result()
    assert (result.spans, result.unscored, result.outside) == (4, 1, 1)
    first, last = result.bins[0], result.bins[-1]
    assert (first.spans, first.score, first.right) == (1, 0.0, 0.0)
    assert (last.low, last.high, last.spans) == (0.9, 1.0, 3)
    assert last.score == pytest.approx(2.86 / 3) and last.right == pytest.approx(2 / 3)
    assert result.error == pytest.approx((3 * abs(2.86 / 3 - 2 / 3) + 0) / 4)
    assert result.bins[5] == (0.5, 0.6, 0, None, None)


def test_scores_at_the_bounds_of_bins_and_none_at_all():
    counter = CalibrationCounter()
    counter.add([(0, 1, "A")], [None], Gold(frozenset()))
    assert counter.result() is None
    counter.add([(i, i + 1, "A") for i in range(11)], [i / 10 for i in range(11)], Gold(frozenset()))
    assert [group.spans for group in counter.result().bins] == [1] * 9 + [2]


def test_calibration_equals_the_definition():
    rng = numpy.random.default_rng(0)
    scores = rng.integers(0, 21, 200) / 20
    right = rng.random(200) < scores**2
    entities = [(i, i + 1, "A") for i in range(200)]
    gold = Gold(frozenset(entity for entity, is_right in zip(entities, right, strict=True) if is_right))
    for bins in (1, 4, 8):
        width, error = 1 / bins, 0.0
        for b in range(bins):
            inside = (scores >= b * width) & ((scores < (b + 1) * width) | (b == bins - 1))
            if inside.any():
                error += inside.mean() * abs(scores[inside].mean() - right[inside].mean())
        counter = CalibrationCounter(bins)
        counter.add(entities, scores.tolist(), gold)
        assert counter.result().error == pytest.approx(error)

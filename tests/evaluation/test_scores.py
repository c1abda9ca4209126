import random

import pytest

from spacy_weakner.scores import Accuracy, Counts, count_matches


def test_nothing_at_all_scores_zero():
    total, per_label = count_matches([([], [])])
    assert (total.precision, total.recall, total.f1, per_label) == (0.0, 0.0, 0.0, {})


def test_equals_the_definition_on_random_sets():
    rng = random.Random(0)
    pairs = []
    for _ in range(50):
        pool = [(i, i + 1, label) for i in range(6) for label in "AB"]
        pairs.append((rng.sample(pool, 4), rng.sample(pool, 4)))
    total, per_label = count_matches(pairs)
    right = sum(len(set(g) & set(p)) for g, p in pairs)
    assert total == Counts(right, sum(len(p) for _, p in pairs) - right, sum(len(g) for g, _ in pairs) - right)
    assert total == Counts(*map(sum, zip(per_label["A"], per_label["B"], strict=True)))
    p, r = total.precision, total.recall
    assert total.f1 == pytest.approx(2 * p * r / (p + r))


@pytest.mark.parametrize(
    "gold, predicted, tokens, sentences",
    [
        ([], [], 5, 1),
        ([(0, 2, "A")], [(0, 2, "A")], 5, 1),
        ([(0, 2, "A")], [(0, 2, "B")], 3, 0),
        ([(0, 2, "A")], [(0, 1, "A")], 4, 0),
        ([(0, 2, "A")], [(1, 2, "A")], 3, 0),  # neither begins where gold does
        ([(0, 2, "A")], [(0, 1, "A"), (1, 2, "A")], 4, 0),
        ([(0, 2, "A")], [], 3, 0),
        ([], [(4, 5, "A")], 4, 0),
    ],
)
def test_accuracy(gold, predicted, tokens, sentences):
    result = Accuracy(10, 5, 1, 0).with_sentence(gold, predicted, 5)
    assert result == (15, 5 + tokens, 2, sentences)
    assert Accuracy().with_sentence(gold, predicted, 5).of_tokens == pytest.approx(100 * tokens / 5)
    assert Accuracy().of_sentences == Accuracy().of_tokens == 0.0

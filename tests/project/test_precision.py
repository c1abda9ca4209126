"""Thresholds of the combination for a wanted precision."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.project.precision import fit_precision, measure_tradeoff

from ..util import make_doc

NLP = spacy.blank("xx")


class Combiner:
    labels = ("A", "B")
    thresholds = {}

    def set_thresholds(self, thresholds):
        self.thresholds = dict(thresholds)


def pair(label, score, is_right):
    entity = (0, 1, label)
    doc = make_doc(NLP, "x", [])
    doc.set_ents([Span(doc, *entity)])
    doc.ents[0]._.weakner_score = score
    return make_doc(NLP, "x", [entity] if is_right else []), doc


@pytest.fixture
def pairs():
    """Of A, the upper 100 of 150 are right; of B, all but 3 of 63, which is too little to be certain."""
    found = [pair("A", 0.99 - i / 1000, i < 100) for i in range(150)]
    return found + [pair("B", 0.99 - i / 1000, i % 21 != 20) for i in range(63)]


def test_the_package_is_as_precise_as_wanted(pairs):
    assert measure_tradeoff(pairs)[0][:3] == ["0", "75.1", "100.0"]
    combiner = Combiner()
    found = fit_precision(combiner, pairs, 0.95)
    kept = [doc for _, doc in pairs[:150] if doc.ents]
    assert 95 <= len(kept) <= 105 and all(doc.ents[0]._.weakner_score >= combiner.thresholds["A"] for doc in kept)
    # Not a single entity of B is lost, and it is named.
    assert found.unsure == ["B"] and all(doc.ents for _, doc in pairs[150:])
    assert found.wanted == 0.95 and [row[0] for row in found.table().rows] == ["A", "B"]
    assert "95 %" in found.lines()[0] and "B" in found.lines()[1]
    precision, recall = map(float, measure_tradeoff(pairs)[0][1:3])
    assert precision >= 94.0 and recall > 98.0


def test_entities_without_a_score_stay(pairs):
    gold, doc = pair("A", None, False)
    fit_precision(Combiner(), [*pairs, (gold, doc)], 0.95)
    assert doc.ents

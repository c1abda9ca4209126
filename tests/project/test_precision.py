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


def fit(combiner, parts, wanted=0.95):
    """Fit thresholds; predictions are those entities that reach them."""

    def decide(n, thresholds):
        calls.append((n, thresholds))
        docs = [doc.copy() for _, doc in parts[n]]
        for doc in docs:
            doc.set_ents([e for e in doc.ents if (e._.weakner_score or 1.0) >= thresholds.get(e.label_, 0.0)])
        return docs

    calls = []
    return *fit_precision(combiner, parts, wanted, decide), calls


def test_the_package_is_as_precise_as_wanted(pairs):
    assert measure_tradeoff(pairs)[0][:3] == ["0", "75.1", "100.0"]
    combiner = Combiner()
    found, decided, calls = fit(combiner, [pairs[::2], pairs[1::2]])
    # Each part with the thresholds of the other one.
    for n, thresholds in calls:
        alone = Combiner()
        fit(alone, [pairs[1 - n :: 2]])
        assert thresholds == alone.thresholds != combiner.thresholds
    assert [gold for gold, _ in decided] == [gold for gold, _ in [*pairs[::2], *pairs[1::2]]]
    kept = [doc for _, doc in pairs[:150] if doc.ents[0]._.weakner_score >= combiner.thresholds["A"]]
    assert 95 <= len(kept) <= 105
    # Not a single entity of B is lost, and it is named.
    assert found.unsure == ["B"] and all(d.ents[0]._.weakner_score >= combiner.thresholds["B"] for _, d in pairs[150:])
    assert found.wanted == 0.95 and [row[0] for row in found.table().rows] == ["A", "B"]
    assert "95 %" in found.lines()[0] and "B" in found.lines()[2]
    precision, recall = map(float, measure_tradeoff(decided)[0][1:3])
    assert found.held_out == pytest.approx([precision, recall], abs=0.1) and precision > 90.0 and recall > 90.0


def test_entities_without_a_score_stay(pairs):
    assert fit(Combiner(), [pairs, [pair("A", None, False)]])[1][-1][1].ents

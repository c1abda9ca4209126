"""What the component writes to Docs."""

import math

import numpy
import pytest

from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores

from ..util import raw
from .util import GROUP, QUERIES, give_scores, log_odds, mrc_pipeline, table

LABELS = list(QUERIES)


@pytest.fixture
def nlp():
    """Believes what it is given."""
    return mrc_pipeline(nested=True)


def brute_force(scores, threshold, max_width, temperature):
    """Candidates with their probabilities, one start at a time; and of these the entities, greedily."""
    found = {}
    n = len(scores)
    for k, label in enumerate(LABELS):
        p = [[1 / (1 + math.exp(-x)) for x in row] for row in scores[:, k]]
        cooled = [[1 / (1 + math.exp(-x / temperature)) for x in row] for row in scores[:, k]]
        for start in range(n):
            end = next((i for i in range(start, n) if p[i][1] > threshold), None)
            if p[start][0] > threshold and end is not None and (max_width is None or end - start < max_width):
                found[start, end + 1, label] = (p[start][0] * p[end][1], cooled[start][0] * cooled[end][1])
    chosen = []
    for entity in sorted(found, key=lambda entity: (-found[entity][0], entity)):
        if all(entity[1] <= other[0] or other[1] <= entity[0] for other in chosen):
            chosen.append(entity)
    return {entity: score for entity, (_, score) in found.items()}, sorted(chosen)


@pytest.mark.parametrize("threshold", [0.5, 0.1, 0.0])
@pytest.mark.parametrize("max_width", [None, 2, 10])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_equals_brute_force(nlp, threshold, max_width, temperature):
    ner = nlp.get_pipe("mrc_ner")
    ner.threshold, ner.max_width = threshold, max_width
    ner.set_temperature(temperature)
    for seed in range(10):
        n = 1 + seed
        scores = numpy.random.RandomState(seed).normal(size=(n, 2, 2)) * 3 - 1
        give_scores(nlp, scores)
        candidates, entities = brute_force(scores, threshold, max_width, temperature)
        doc = nlp(raw(nlp, "x " * n))
        found = dict(zip(group_entities(doc, GROUP), group_scores(doc, GROUP), strict=True))
        assert found == pytest.approx(candidates)
        assert list(found) == sorted(found)
        assert doc_entities(doc) == entities
        assert [ent._.weakner_score for ent in doc.ents] == [found[entity] for entity in entities]


def test_by_hand(nlp):
    start, end = [0.9, 0.05, 0.3, 0.15, 0.02], [0.05, 0.4, 0.2, 0.12, 0.6]
    scores = numpy.full((5, 2, 2), -20.0)
    scores[:, 1] = log_odds(numpy.stack([start, end], axis=1))
    give_scores(nlp, scores)
    doc = nlp(raw(nlp, "a b c d e"))
    assert doc_entities(doc) == [(0, 5, "LOC")]
    assert [ent._.weakner_score for ent in doc.ents] == pytest.approx([0.54])
    nlp.get_pipe("mrc_ner").threshold = 0.1
    doc = nlp(raw(nlp, "a b c d e"))
    assert doc_entities(doc) == [(0, 2, "LOC"), (2, 3, "LOC"), (3, 4, "LOC")]
    assert [ent._.weakner_score for ent in doc.ents] == pytest.approx([0.36, 0.06, 0.018])


def test_the_most_probable_of_what_overlaps_wins(nlp):
    scores = table(4, PER=[(0, 3)], LOC=[(2, 3)])
    scores[2, 1] = 2.0
    give_scores(nlp, scores)
    doc = nlp(raw(nlp, "a b c d"))
    assert doc_entities(doc) == [(0, 3, "PER")]
    assert group_entities(doc, GROUP) == [(0, 3, "PER"), (2, 3, "LOC")]
    scores[0, 0, 0] = 0.5
    assert doc_entities(nlp(raw(nlp, "a b c d"))) == [(2, 3, "LOC")]


def test_a_span_may_have_two_labels_among_the_candidates(nlp):
    scores = table(2, PER=[(0, 2)], LOC=[(0, 2)])
    scores[0, 0, 0] = 1.0
    give_scores(nlp, scores)
    doc = nlp(raw(nlp, "a b"))
    assert group_entities(doc, GROUP) == [(0, 2, "LOC"), (0, 2, "PER")]
    assert doc_entities(doc) == [(0, 2, "LOC")]

"""What the component writes to Docs."""

import math

import numpy
import pytest
from spacy.tokens import Span

from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner import decoding
from spacy_weakner.mrc_ner.decoding import MOST_PAIRS, N_ENDS_PROBABLE, most_probable, nearest_ends, pair_boundaries
from spacy_weakner.ty import PAIRINGS

from ..util import make_examples, raw
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


# Settings, and entities that are there already


PICKING = {"@misc": "spacy_weakner.SelfPicking.v1"}


@pytest.mark.parametrize("relabel, needed", [(None, False), (PICKING, True)])
def test_relabeling_decides_whether_a_clock_is_needed(relabel, needed):
    nlp = mrc_pipeline(relabel=relabel)
    assert nlp.get_pipe("mrc_ner").needs_clock is needed
    if needed:
        with pytest.raises(WeaknerError, match=r"\[WK004\] 'mrc_ner'"):
            nlp.update(make_examples(nlp))


# Entities that are there already


def test_candidates_do_not_touch_what_has_to_stay():
    nlp = mrc_pipeline(nested=True)
    give_scores(nlp, table(5, PER=[(0, 2), (2, 3), (4, 5)]))
    doc = raw(nlp, "a b c d e")
    doc.set_ents([Span(doc, 1, 2, "Y")], blocked=[doc[3:4]], default="missing")
    assert group_entities(nlp(doc), "pred:mrc_ner") == [(2, 3, "PER"), (4, 5, "PER")]


@pytest.mark.parametrize(
    "pairing, threshold, expected",
    [
        ("nearest", 0.5, [(0, 3, "PER")]),
        ("nearest", 0.1, [(0, 1, "PER"), (2, 3, "PER")]),
        ("probable", 0.5, [(0, 3, "PER")]),
        ("probable", 0.1, [(0, 3, "PER")]),
    ],
)
def test_at_a_low_threshold_the_nearest_end_cuts_an_entity_short(pairing, threshold, expected):
    said = numpy.full((3, 2, 2), 0.01)
    said[:, 0, 0], said[:, 0, 1] = [0.9, 0.01, 0.2], [0.2, 0.01, 0.9]
    nlp = mrc_pipeline(pairing=pairing, threshold=threshold)
    give_scores(nlp, log_odds(said))
    assert doc_entities(nlp(raw(nlp, "a b c"))) == expected


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("nested", [False, True])
def test_neighbors_of_one_label_are_not_merged(pairing, nested):
    said = numpy.full((3, 2, 2), 0.01)
    said[:, 0, 0], said[:, 0, 1] = [0.99, 0.01, 0.97], [0.98, 0.01, 0.99]
    # Of the other label, over both.
    said[0, 1, 0] = said[2, 1, 1] = 0.9
    nlp = mrc_pipeline(pairing=pairing, nested=nested)
    give_scores(nlp, log_odds(said))
    doc = nlp(raw(nlp, "a b c"))
    assert doc_entities(doc) == [(0, 1, "PER"), (2, 3, "PER")]
    if nested:
        assert group_entities(doc, "pred:mrc_ner") == [(0, 1, "PER"), (0, 3, "LOC"), (2, 3, "PER")]


# Pairing starts and ends


def pairs_of(*given):
    return list(map(tuple, nearest_ends(*given).tolist()))


P_START = numpy.asarray([0.9, 0.05, 0.3, 0.15, 0.02])
P_END = numpy.asarray([0.05, 0.4, 0.2, 0.12, 0.6])


@pytest.mark.parametrize("threshold, expected", [(0.1, [(0, 2), (2, 3), (3, 4)]), (0.5, [(0, 5)]), (0.95, [])])
def test_pairs_by_hand(threshold, expected):
    assert pairs_of(threshold < P_START, threshold < P_END) == expected


def test_a_long_text_at_a_low_threshold():
    boundaries = numpy.ones((20_000, 1, 2), dtype=bool)
    spans = pair_boundaries(boundaries, None, N_ENDS_PROBABLE)
    assert len(spans) == 20_000 * 64 - 64 * 63 // 2
    odds = numpy.random.RandomState(0).normal(size=boundaries.shape)
    kept = most_probable(spans, odds)
    sure = 1 / (1 + numpy.exp(-odds[:, 0]))
    products = [sure[own[:, 0], 0] * sure[own[:, 1] - 1, 1] for own in (spans, kept)]
    assert len(kept) == MOST_PAIRS and products[1].min() == pytest.approx(numpy.sort(products[0])[-MOST_PAIRS])
    assert most_probable(spans[:5], odds).tolist() == spans[:5].tolist()


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 20])
def test_pairs_in_parts(monkeypatch, at_a_time):
    monkeypatch.setattr(decoding, "_PAIRS_AT_A_TIME", at_a_time)
    flags = numpy.random.RandomState(0).rand(40, 2) < 0.5
    ends = numpy.flatnonzero(flags[:, 1])
    expected = [
        (start, int(end) + 1)
        for start in numpy.flatnonzero(flags[:, 0]).tolist()
        for end in ends[ends >= start][:3]
        if end + 1 - start <= 4
    ]
    assert pairs_of(*flags.T, 4, 3) == expected


@pytest.mark.parametrize("n_ends", [1, 2, 3, 100])
@pytest.mark.parametrize("max_width", [None, 1, 4])
def test_several_ends_by_brute_force(n_ends, max_width):
    random = numpy.random.RandomState(0)
    for _ in range(30):
        boundaries = random.rand(9, 3, 2) < random.rand()
        expected = []
        for k in range(3):
            for i in numpy.flatnonzero(boundaries[:, k, 0]):
                ends = [j + 1 for j in range(i, 9) if boundaries[j, k, 1]][:n_ends]
                expected += [[i, end, k] for end in ends if max_width is None or end - i <= max_width]
        assert pair_boundaries(boundaries, max_width, n_ends).tolist() == expected

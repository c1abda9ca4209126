"""What the component writes to Docs."""

import math

import numpy
import pytest
from spacy.tokens import Span

from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner import decoding
from spacy_weakner.mrc_ner.decoding import MOST_PAIRS, most_probable, pair_boundaries

from ..util import make_examples, raw
from .util import GROUP, QUERIES, give_scores, log_odds, mrc_pipeline, table

LABELS = list(QUERIES)


@pytest.fixture
def nlp():
    """Believes what it is given."""
    return mrc_pipeline(nested=True)


def best_choice(chances, n_tokens, first=0):
    """The largest sum of probabilities of entities without overlaps from a token on, and these entities, by trying
    all."""
    if first == n_tokens:
        return 0.0, []
    choices = [best_choice(chances, n_tokens, first + 1)]
    for entity, chance in chances.items():
        if entity[0] == first:
            more, others = best_choice(chances, n_tokens, entity[1])
            choices.append((chance + more, [entity, *others]))
    return max(choices)


def brute_force(scores, threshold, max_width, temperature, nested):
    """Candidates and entities, with their calibrated probabilities."""
    n = len(scores)
    chances, calibrated = {}, {}
    for k, label in enumerate(LABELS):
        p = [[1 / (1 + math.exp(-x)) for x in row] for row in scores[:, k]]
        cooled = [[1 / (1 + math.exp(-x / temperature)) for x in row] for row in scores[:, k]]
        for start in range(n):
            for end in range(start, n if max_width is None else min(n, start + max_width)):
                if min(p[start][0], p[end][1]) > threshold:
                    chances[start, end + 1, label] = p[start][0] * p[end][1]
                    calibrated[start, end + 1, label] = cooled[start][0] * cooled[end][1]
    if nested:
        by_label = [best_choice({e: p for e, p in chances.items() if e[2] == label}, n)[1] for label in LABELS]
        chances = {entity: chances[entity] for own in by_label for entity in own}
    return [{entity: calibrated[entity] for entity in own} for own in (sorted(chances), best_choice(chances, n)[1])]


@pytest.mark.parametrize("threshold", [0.5, 0.1, 0.0])
@pytest.mark.parametrize("max_width", [None, 2, 10])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("nested", [True, False])
def test_equals_brute_force(threshold, max_width, temperature, nested):
    nlp = mrc_pipeline(nested=nested)
    ner = nlp.get_pipe("mrc_ner")
    ner.threshold, ner.max_width = threshold, max_width
    ner.set_temperature(temperature)
    for seed in range(10):
        n = 1 + seed % 7
        scores = numpy.random.RandomState(seed).normal(size=(n, 2, 2)) * 3 - 1
        give_scores(nlp, scores)
        candidates, entities = brute_force(scores, threshold, max_width, temperature, nested)
        doc = nlp(raw(nlp, "x " * n))
        if nested:
            found = dict(zip(group_entities(doc, GROUP), group_scores(doc, GROUP), strict=True))
            assert found == pytest.approx(candidates)
            assert list(found) == list(candidates)
        assert doc_entities(doc) == list(entities)
        assert [ent._.weakner_score for ent in doc.ents] == pytest.approx(list(entities.values()))


def test_by_hand(nlp):
    start, end = [0.9, 0.05, 0.3, 0.15, 0.02], [0.05, 0.4, 0.2, 0.12, 0.55]
    scores = numpy.full((5, 2, 2), -20.0)
    scores[:, 1] = log_odds(numpy.stack([start, end], axis=1))
    give_scores(nlp, scores)
    doc = nlp(raw(nlp, "a b c d e"))
    assert doc_entities(doc) == [(0, 5, "LOC")]
    assert [ent._.weakner_score for ent in doc.ents] == pytest.approx([0.495])
    nlp.get_pipe("mrc_ner").threshold = 0.1
    doc = nlp(raw(nlp, "a b c d e"))
    assert doc_entities(doc) == [(0, 2, "LOC"), (2, 5, "LOC")]
    assert [ent._.weakner_score for ent in doc.ents] == pytest.approx([0.36, 0.165])


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


@pytest.mark.parametrize("threshold", [0.5, 0.1])
def test_an_improbable_end_cuts_no_entity_short(threshold):
    said = numpy.full((3, 2, 2), 0.01)
    said[:, 0, 0], said[:, 0, 1] = [0.9, 0.01, 0.2], [0.2, 0.01, 0.9]
    nlp = mrc_pipeline(threshold=threshold)
    give_scores(nlp, log_odds(said))
    assert doc_entities(nlp(raw(nlp, "a b c"))) == [(0, 3, "PER")]


@pytest.mark.parametrize("nested", [False, True])
def test_neighbors_of_one_label_are_not_merged(nested):
    said = numpy.full((3, 2, 2), 0.01)
    said[:, 0, 0], said[:, 0, 1] = [0.99, 0.01, 0.97], [0.98, 0.01, 0.99]
    # Of the other label, over both.
    said[0, 1, 0] = said[2, 1, 1] = 0.9
    nlp = mrc_pipeline(nested=nested)
    give_scores(nlp, log_odds(said))
    doc = nlp(raw(nlp, "a b c"))
    assert doc_entities(doc) == [(0, 1, "PER"), (2, 3, "PER")]
    if nested:
        assert group_entities(doc, "pred:mrc_ner") == [(0, 1, "PER"), (0, 3, "LOC"), (2, 3, "PER")]


# Pairing starts and ends


def test_a_long_text_at_a_low_threshold():
    boundaries = numpy.ones((20_000, 1, 2), dtype=bool)
    spans = pair_boundaries(boundaries, None)
    assert len(spans) == 20_000 * 64 - 64 * 63 // 2
    odds = numpy.random.RandomState(0).normal(size=boundaries.shape)
    kept = most_probable(spans, odds)
    sure = 1 / (1 + numpy.exp(-odds[:, 0]))
    products = [sure[own[:, 0], 0] * sure[own[:, 1] - 1, 1] for own in (spans, kept)]
    assert len(kept) == MOST_PAIRS and products[1].min() == pytest.approx(numpy.sort(products[0])[-MOST_PAIRS])
    assert most_probable(spans[:5], odds).tolist() == spans[:5].tolist()


@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 20])
@pytest.mark.parametrize("max_width", [None, 1, 4, 100])
def test_pairs_by_brute_force(monkeypatch, max_width, at_a_time):
    monkeypatch.setattr(decoding, "_PAIRS_AT_A_TIME", at_a_time)
    monkeypatch.setattr(decoding, "N_ENDS", 3)
    random = numpy.random.RandomState(0)
    for _ in range(30):
        boundaries = random.rand(9, 3, 2) < random.rand()
        expected = []
        for k in range(3):
            for i in numpy.flatnonzero(boundaries[:, k, 0]):
                ends = [j + 1 for j in range(i, 9) if boundaries[j, k, 1]]
                ends = ends[:3] if max_width is None else [end for end in ends if end - i <= max_width]
                expected += [[i, end, k] for end in ends]
        assert pair_boundaries(boundaries, max_width).tolist() == expected

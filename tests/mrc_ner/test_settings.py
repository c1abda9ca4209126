"""Settings, and entities that are there already."""

import numpy
import pytest
from spacy.tokens import Span

from spacy_weakner.corpus.weak import doc_entities, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.ty import PAIRINGS

from ..util import (
    make_examples,
    raw,
)
from .util import give_scores, log_odds, mrc_pipeline, table

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

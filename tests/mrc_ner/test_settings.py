"""Settings, and entities that are there already."""

import inspect

import numpy
import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.cofee.fine_typing import FineTyping
from spacy_weakner.cofee.picking import SelfPicking
from spacy_weakner.corpus.weak import doc_entities, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads.entities import EntityHead
from spacy_weakner.mrc_ner.component import make_mrc_ner
from spacy_weakner.ty import PAIRINGS

from ..util import (
    GOLD,
    TEXTS,
    make_doc,
    make_examples,
    raw,
)
from .util import empty_pipe, give_scores, log_odds, mrc_pipeline, table

PICKING = {"@misc": "spacy_weakner.SelfPicking.v1"}
SETTINGS = {
    "threshold": 0.2,
    "max_width": 3,
    "pairing": "probable",
    "positive_weight": 4.0,
    "relabel": SelfPicking(0.3),
    "typing": FineTyping(4),
    "nested": True,
    "spans_key": "x",
    "head_learn_rate": 5.0,
    "overwrite": True,
    "annotate_ents": False,
    "scorer": print,
}


def load(path, **settings):
    return spacy.load(path, config={"components": {"mrc_ner": settings}})


def test_the_factory_passes_every_setting_on():
    model = mrc_pipeline(n_types=4).get_pipe("mrc_ner").model
    ner = make_mrc_ner(mrc_pipeline(), "mine", model=model, **SETTINGS, teacher_decay=0.5)
    assert {key: getattr(ner, key) for key in SETTINGS} == SETTINGS
    assert ner.name == "mine" and ner._teacher.decay == 0.5
    assert {*SETTINGS, "teacher_decay"} == {*inspect.signature(make_mrc_ner).parameters} - {"nlp", "name", "model"}


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": -0.1},
        {"threshold": 1.1},
        {"positive_weight": -1.0},
        {"max_width": 0},
        {"pairing": "any"},
        {"teacher_decay": 1.5},
        {"head_learn_rate": -1.0},
    ],
)
def test_settings_out_of_range(settings):
    (name,) = settings
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        empty_pipe(spacy.blank("xx"), **settings)


@pytest.mark.parametrize("relabel, needed", [(None, False), (PICKING, True)])
def test_relabeling_decides_whether_a_clock_is_needed(relabel, needed):
    nlp = mrc_pipeline(relabel=relabel)
    assert nlp.get_pipe("mrc_ner").needs_clock is needed
    if needed:
        with pytest.raises(WeaknerError, match=r"\[WK004\] 'mrc_ner'"):
            nlp.update(make_examples(nlp))


def test_settings_of_the_loading_config_win(mrc_path):
    other = ("scorer", "relabel", "typing", "max_width", "annotate_ents")
    settings = {key: value for key, value in SETTINGS.items() if key not in other}
    nlp = load(mrc_path, **settings, max_width=1, relabel={**PICKING, "union": True}, scorer=None)
    ner = nlp.get_pipe("mrc_ner")
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.relabel == SelfPicking(union=True) and ner.scorer is None
    assert doc_entities(nlp(raw(nlp, TEXTS[0]))) == GOLD[0][:1]


def test_protocols(trained):
    ner = trained.get_pipe("mrc_ner")
    assert callable(ner.tick) and callable(ner.renew) and isinstance(ner, EntityHead)


# Entities that are there already


def test_preset_entities_stay_and_predictions_fill_the_rest(trained):
    doc = raw(trained, TEXTS[0])
    doc.ents = [Span(doc, 4, 5, "ORG", kb_id="Q1")]
    found = trained(doc)
    assert doc_entities(found) == [(0, 1, "PER"), (4, 5, "ORG")]
    assert found.ents[-1].kb_id_ == "Q1"


@pytest.mark.parametrize("overwrite, expected", [(False, [(0, 1, "PER")]), (True, GOLD[0])])
def test_blocked_tokens_stay_unless_overwritten(mrc_path, overwrite, expected):
    nlp = load(mrc_path, overwrite=overwrite)
    doc = make_doc(nlp, TEXTS[0])
    doc.set_ents([], blocked=[doc[4:5]], default="missing")
    assert doc_entities(nlp(doc)) == expected


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

"""The component: its terms and labels, its settings, and the config."""

import json
import logging

import pytest
import spacy
from spacy.util import logger
from thinc.api import Config

from spacy_weakner.corpus.weak import get_reliability, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler, make_gazetteer_ruler
from spacy_weakner.gazetteer_ruler.terms import Term

from .util import EXPECTED, TERMS, TEXTS, make_nlp, matched, matches

# Labels and terms


def test_labels_are_sorted_and_those_of_terms_that_count():
    for terms in (TERMS, TERMS[::-1]):
        ruler = make_nlp(terms=terms).get_pipe("gazetteer_ruler")
        assert ruler.labels == ("Chemical", "Disease", "Drug", "Measure", "Symptom")
    ruler = make_nlp(stop=["ph"], acronym_length=0, ambiguity="first").get_pipe("gazetteer_ruler")
    assert ruler.labels == ("Chemical", "Disease", "Symptom")
    assert ruler.terms == TERMS


def test_odd_labels():
    terms = [Term(label, "aspirin") for label in ("a b", "Ä:1", "品牌", "\U0001f48a", "x\0y", "weak:x", "O", "NOUN")]
    assert matched(make_nlp(terms=terms), "aspirin") == [("aspirin", label) for label in sorted(t.label for t in terms)]


def test_initialize_replaces_and_add_terms_adds():
    nlp = make_nlp(terms=[Term("X", "nothing")])
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.initialize(lambda: [], nlp=nlp, terms=TERMS[:3])
    assert ruler.labels == ("Disease", "Symptom")
    ruler.add_terms([*TERMS[2:5], *TERMS[:4]], nlp)
    ruler.add_terms([{"label": "Disease", "term": "AIDS"}, ("Measure", "pH")], nlp)
    # A failure changes nothing, and neither does an initialization without terms.
    with pytest.raises(WeaknerError, match=r"WK103.*entry"):
        ruler.add_terms([Term("X", "nothing"), Term("X", "")], nlp)
    nlp.initialize()
    # Each comes once, in the order in which they were added.
    assert ruler.terms == TERMS
    assert matches(nlp) == EXPECTED


@pytest.mark.parametrize("terms", [[], lambda: iter(())])
def test_no_terms(terms):
    nlp = make_nlp(terms=None)
    ruler = nlp.get_pipe("gazetteer_ruler")
    with pytest.raises(WeaknerError, match=r"WK202.*'gazetteer_ruler' has no terms"):
        nlp("aspirin")
    with pytest.raises(WeaknerError, match="WK202"):
        nlp.initialize()
    with pytest.raises(WeaknerError, match="WK202"):
        ruler.initialize(lambda: [], nlp=nlp, terms=terms)


def test_all_terms_skipped():
    with pytest.raises(WeaknerError, match=r"WK204.*all 2 terms \(stop list: 1, .*'min_length': 1"):
        make_nlp(terms=[Term("A", "aspirin"), Term("A", "x")], stop=["aspirin"], min_length=2)


def test_counts_are_logged(caplog, monkeypatch):
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level(logging.INFO, logger=logger.name):
        make_nlp(stop=["Aspirin"], min_length=3)
    assert caplog.messages == [
        "'gazetteer_ruler': 7 terms, 1 of them in exact case only; skipped: 2 on the stop list, "
        "1 shorter than 3 characters, 0 without tokens"
    ]


# Settings


@pytest.mark.parametrize(
    "settings, lost",
    [
        ({"stop": ["HEART  Failure", "aids"]}, [(1, 3, "Disease")]),
        ({"min_length": 8}, [(2, 3, "Symptom"), (4, 5, "Chemical"), (4, 5, "Drug")]),
        ({"min_length": 7}, []),
        ({"attr": "ORTH"}, [(0, 3, "Disease"), (4, 5, "Chemical"), (4, 5, "Drug")]),
    ],
)
def test_settings_that_lose_matches(settings, lost):
    found = matches(make_nlp(**settings))[0]
    assert found == [entity for entity in EXPECTED[0] if entity not in lost]


@pytest.mark.parametrize("reliability", [None, 0.25, 1])
def test_reliability(reliability):
    nlp = make_nlp(reliability=reliability)
    for doc in nlp.pipe(TEXTS):
        assert get_reliability(doc, "gazetteer") == reliability
    # Every group has its own
    one, other = nlp.pipe(["aspirin", "aspirin"])
    one.spans["weak:gazetteer"].attrs["reliability"] = 0.5
    assert get_reliability(other, "gazetteer") == reliability


def test_two_rulers():
    nlp = make_nlp()
    nlp.add_pipe("gazetteer_ruler", name="other", config={"source": "other"}).add_terms([Term("X", "nothing")], nlp)
    doc = nlp("nothing, aspirin")
    assert group_entities(doc, "weak:other") == [(0, 1, "X")]
    assert group_entities(doc, "weak:gazetteer") == [(2, 3, "Chemical"), (2, 3, "Drug")]


def test_two_rulers_with_the_same_source(tmp_path):
    nlp = make_nlp()
    with pytest.warns(UserWarning, match=r"WK905.*'other' and 'gazetteer_ruler'.*'source'"):
        nlp.add_pipe("gazetteer_ruler", name="other")
    nlp.remove_pipe("other")
    # The same component again is no other one.
    nlp.to_disk(tmp_path)
    spacy.load(tmp_path).replace_pipe("gazetteer_ruler", "gazetteer_ruler")


def test_factory_passes_every_setting():
    settings = {
        **{"source": "a", "attr": "NORM", "acronym_length": 3, "stop": ["x"], "min_length": 2},
        **{"ambiguity": "drop", "reliability": 0.5, "annotate_ents": True, "overwrite": True},
        "label_names": {"A": "B"},
        "scorer": print,
    }
    ruler = make_gazetteer_ruler(spacy.blank("xx"), "r", **settings)
    assert {key: getattr(ruler, key) for key in settings} == settings
    assert ruler.name == "r"
    plain = GazetteerRuler(spacy.blank("xx").vocab)
    meta = spacy.blank("xx").get_factory_meta("gazetteer_ruler")
    given = dict.fromkeys(("terms", "path", "label"))  # see test_as_spacys_rulers
    assert {**{key: getattr(plain, key) for key in settings}, **given} == {**meta.default_config, "scorer": None}
    assert {"doc.spans", "doc.ents", "token.ent_id"} <= {*meta.assigns} and meta.default_score_weights == {}


@pytest.mark.parametrize(
    "setting, value",
    [
        ("source", ""),
        ("attr", "TAG"),
        ("attr", "lower"),
        ("acronym_length", -1),
        ("min_length", 0),
        ("ambiguity", "none"),
        ("reliability", 0),
        ("reliability", 1.1),
        ("overwrite", "longer"),
    ],
)
def test_setting_out_of_range(setting, value):
    with pytest.raises(WeaknerError, match=f"WK005.*'{setting}' = "):
        make_nlp(**{setting: value})


# Config

CONFIG = """
[nlp]
lang = "xx"
pipeline = ["gazetteer_ruler"]

[components]

[components.gazetteer_ruler]
factory = "gazetteer_ruler"
source = "mesh"

[initialize]

[initialize.components]

[initialize.components.gazetteer_ruler]

[initialize.components.gazetteer_ruler.terms]
@readers = "spacy_weakner.TermList.v1"
path = {path}
"""


def test_terms_through_config(tmp_path):
    path = tmp_path / "terms.jsonl"
    config = Config().from_str(CONFIG.format(path=json.dumps(str(path))))
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    with pytest.raises(WeaknerError, match="WK100"):
        nlp.initialize()
    path.write_text("".join(json.dumps({"label": label, "term": text}) + "\n" for label, text, *_ in TERMS))
    nlp.initialize()
    assert matches(nlp, group="weak:mesh") == EXPECTED
    # The terms are part of the pipeline: their file is not needed any more.
    path.unlink()
    nlp.to_disk(tmp_path / "nlp")
    assert matches(spacy.load(tmp_path / "nlp"), group="weak:mesh") == EXPECTED


@pytest.mark.parametrize(
    "block",
    [
        {"terms": ["aspirin", "x y"], "label": "A"},
        {"terms": {"A": ["aspirin", "x y"]}},
        {"terms": [["A", "aspirin"], "x y"], "label": "A"},
        {"terms": [{"label": "A", "term": "aspirin"}, {"label": "A", "pattern": [{"LOWER": "x"}, {"LOWER": "y"}]}]},
        {"terms": "terms.txt", "label": "A"},
        {"terms": "patterns.jsonl", "label": None},
    ],
)
def test_forms_of_terms_in_a_config(tmp_path, block):
    (tmp_path / "terms.txt").write_text("aspirin\nx y\n")
    # As entity_ruler stores them.
    ruler = spacy.blank("xx").add_pipe("entity_ruler")
    ruler.add_patterns(
        [{"label": "A", "pattern": [{"LOWER": "aspirin"}], "id": "D1"}, {"label": "A", "pattern": "x y"}]
    )
    ruler.to_disk(tmp_path / "patterns.jsonl")
    if isinstance(block["terms"], str):
        path = str(tmp_path / block["terms"])
        block = {"terms": {"@readers": "spacy_weakner.TermList.v1", "path": path, "label": block["label"]}}
    nlp = spacy.blank("xx")
    nlp.add_pipe("gazetteer_ruler")
    nlp.config["initialize"]["components"]["gazetteer_ruler"] = block
    nlp = spacy.util.load_model_from_config(nlp.config)
    nlp.initialize()
    assert matched(nlp, "Aspirin x y") == [("Aspirin", "A"), ("x y", "A")]

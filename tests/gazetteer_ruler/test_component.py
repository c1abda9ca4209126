"""The component: what it matches, what its settings do, and that it survives storage."""

import copy
import json
import logging
import subprocess
import sys

import pytest
import spacy
from spacy.lookups import Lookups
from spacy.tokens import Doc
from spacy.util import logger, registry
from thinc.api import Config

from spacy_weakner.annotations.weak import group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler, make_gazetteer_ruler
from spacy_weakner.gazetteer_ruler.terms import Term, read_terms

TERMS = [
    Term("Disease", "heart failure"),
    Term("Disease", "congestive heart failure"),
    Term("Symptom", "failure"),
    Term("Chemical", "aspirin"),
    Term("Drug", "aspirin"),
    Term("Disease", "AIDS"),
    Term("Measure", "pH"),
]
TEXTS = [
    "Congestive heart failure and Aspirin.",
    "It aids in AIDS; PH and pH here",
    "",
    "  \n",
    "nothing here",
    "failure failure",
]
EXPECTED = [
    [(0, 3, "Disease"), (1, 3, "Disease"), (2, 3, "Symptom"), (4, 5, "Chemical"), (4, 5, "Drug")],
    [(3, 4, "Disease"), (7, 8, "Measure")],
    [],
    [],
    [],
    [(0, 1, "Symptom"), (1, 2, "Symptom")],
]


def make_nlp(terms=TERMS, **settings):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("gazetteer_ruler", config=settings)
    if terms:
        ruler.initialize(lambda: [], nlp=nlp, terms=terms)
    return nlp


def matches(nlp, texts=TEXTS, group="weak:gazetteer"):
    return [group_entities(nlp(text), group) for text in texts]


def matched(nlp, text):
    doc = nlp(text)
    return [(span.text, span.label_) for span in doc.spans["weak:gazetteer"]]


def lemma_nlp(**settings):
    nlp = spacy.blank("en")
    lookups = Lookups()
    lookups.add_table("lemma_lookup", {"failures": "failure", "hearts": "heart", "Hearts": "heart"})
    nlp.add_pipe("lemmatizer", config={"mode": "lookup"}).initialize(lookups=lookups)
    nlp.add_pipe("gazetteer_ruler", config={"attr": "LEMMA", **settings})
    return nlp


# Labels and terms


def test_labels_are_sorted():
    ruler = make_nlp().get_pipe("gazetteer_ruler")
    assert ruler.labels == ("Chemical", "Disease", "Drug", "Measure", "Symptom")
    assert ruler.label_data == list(ruler.labels)


def test_given_labels():
    nlp = make_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    labels = ruler.label_data + ["Unseen"]
    ruler.initialize(lambda: [], nlp=nlp, terms=TERMS, labels=labels)
    assert ruler.labels == tuple(sorted(labels))
    with pytest.raises(WeaknerError, match=r"WK208.*label 'Chemical'.*\(Disease, Drug\)"):
        ruler.initialize(lambda: [], nlp=nlp, terms=TERMS, labels=["Disease", "Drug"])
    with pytest.raises(WeaknerError, match="WK208"):
        ruler.initialize(lambda: [], nlp=nlp, labels=["Disease", "Drug"])
    assert matches(nlp) == EXPECTED


def test_initialize_replaces_and_add_terms_adds():
    nlp = make_nlp(terms=[Term("X", "nothing")])
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.initialize(lambda: [], nlp=nlp, terms=TERMS[:3])
    assert ruler.labels == ("Disease", "Symptom")
    ruler.add_terms(TERMS[2:5], nlp)
    ruler.add_terms([{"label": "Disease", "term": "AIDS"}, ("Measure", "pH")], nlp)
    assert ruler.terms == TERMS
    assert matches(nlp) == EXPECTED


def test_initialize_keeps_terms_added_before():
    nlp = make_nlp()
    nlp.initialize()
    assert matches(nlp) == EXPECTED


def test_failing_add_terms_changes_nothing():
    nlp = make_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    with pytest.raises(WeaknerError, match="WK207"):
        ruler.add_terms([Term("X", "nothing"), Term("X", "")], nlp)
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


# Matching


def test_all_candidates_of_all_labels():
    assert matches(make_nlp()) == EXPECTED


def test_ents_stay_as_they_are():
    nlp = make_nlp()
    doc = nlp("Aspirin")
    assert not doc.has_annotation("ENT_IOB")
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "X", "pattern": "Aspirin"}])
    assert [ent.label_ for ent in nlp("Aspirin").ents] == ["X"]


def test_every_doc_gets_the_group_and_others_stay():
    nlp = make_nlp()
    doc = nlp.make_doc("nothing here")
    doc.spans["other"] = [doc[:1]]
    nlp(doc)
    assert sorted(doc.spans) == ["other", "weak:gazetteer"]
    assert len(doc.spans["weak:gazetteer"]) == 0


def test_idempotent():
    nlp = make_nlp()
    doc = nlp(nlp(TEXTS[0]))
    assert group_entities(doc, "weak:gazetteer") == EXPECTED[0]


def test_pipe_equals_one_by_one():
    nlp = make_nlp()
    docs = list(nlp.pipe(TEXTS, batch_size=2))
    assert [group_entities(doc, "weak:gazetteer") for doc in docs] == EXPECTED
    ruler = nlp.get_pipe("gazetteer_ruler")
    docs = list(ruler.pipe(nlp.make_doc(text) for text in TEXTS))
    assert [group_entities(doc, "weak:gazetteer") for doc in docs] == EXPECTED


def test_white_space_inside_terms_is_dropped():
    nlp = make_nlp(terms=[Term("A", "heart   failure"), Term("A", "two\nlines")])
    assert matched(nlp, "heart failure, two lines") == [("heart failure", "A"), ("two lines", "A")]
    assert matched(nlp, "heart\nfailure") == []


def test_chinese_characters():
    nlp = spacy.blank("zh")
    ruler = nlp.add_pipe("gazetteer_ruler")
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("品牌", "苹果"), Term("商品", "苹果手机"), Term("商品", "手机")])
    assert matched(nlp, "买苹果手机") == [("苹果", "品牌"), ("苹果手机", "商品"), ("手机", "商品")]


def test_tokenised_docs():
    nlp = make_nlp()
    doc = nlp(Doc(nlp.vocab, words=["heart", "failure", "-", "aspirin"]))
    assert group_entities(doc, "weak:gazetteer")[0] == (0, 2, "Disease")
    doc = nlp(Doc(nlp.vocab, words=["heart failure"]))
    assert group_entities(doc, "weak:gazetteer") == []


@pytest.mark.parametrize(
    "attr, text, expected",
    [
        ("ORTH", "Heart heart HEART", ["heart"]),
        ("LOWER", "Heart heart HEART", ["Heart", "heart", "HEART"]),
        ("ORTH", "can not", []),
        ("LOWER", "cannot", []),
        ("NORM", "cannot Heart", ["cannot", "Heart"]),
    ],
)
def test_attr(attr, text, expected):
    nlp = make_nlp(terms=[Term("A", "heart"), Term("A", "can't")], attr=attr)
    assert [span for span, _ in matched(nlp, text)] == expected


def test_attr_lemma():
    nlp = lemma_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    nlp.add_pipe("sentencizer")  # pipes behind the ruler do not see the terms
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("A", "hearts failure")])
    assert matched(nlp, "Hearts failures, heart failure") == [("Hearts failures", "A"), ("heart failure", "A")]
    assert matched(nlp, " ") == []
    assert matched(nlp, "") == []


def test_attr_lemma_with_lemmas_for_some_tokens():
    nlp = lemma_nlp()
    nlp.get_pipe("gazetteer_ruler").add_terms([Term("A", "heart attack")], nlp)
    doc = Doc(nlp.vocab, words=["hearts", "attack", "attack"], lemmas=["heart", "", ""])
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert ruler.match(doc) == [(0, 2, "A")]


def test_attr_lemma_without_lemmas():
    nlp = make_nlp(terms=None, attr="LEMMA")
    ruler = nlp.get_pipe("gazetteer_ruler")
    with pytest.raises(WeaknerError, match="WK203"):
        ruler.add_terms(TERMS, nlp)
    other = lemma_nlp()
    other.remove_pipe("gazetteer_ruler")
    ruler.add_terms(TERMS, other)
    with pytest.raises(WeaknerError, match="WK203"):
        nlp("heart")


@pytest.mark.parametrize("attr", ["LOWER", "NORM", "LEMMA"])
@pytest.mark.parametrize(
    "term, text, length, expected",
    [
        ("AIDS", "aids AIDS Aids", 5, ["AIDS"]),
        ("AIDS", "aids AIDS Aids", 4, ["AIDS"]),
        ("AIDS", "aids AIDS Aids", 3, ["aids", "AIDS", "Aids"]),
        ("AIDS", "aids AIDS Aids", 0, ["aids", "AIDS", "Aids"]),
        ("Lead", "lead LEAD Lead", 5, ["lead", "LEAD", "Lead"]),
        ("pH", "ph PH pH", 5, ["pH"]),
        ("X Y", "x y X Y", 5, ["X Y"]),
        ("SARS-2", "sars-2", 5, ["sars-2"]),
    ],
)
def test_acronym_length(attr, term, text, length, expected):
    nlp = spacy.blank("en")
    lower = nlp.add_pipe("test_lower_lemmas")
    assert lower is lower_lemmas
    ruler = nlp.add_pipe("gazetteer_ruler", config={"attr": attr, "acronym_length": length})
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("A", term)])
    assert [span for span, _ in matched(nlp, text)] == expected


@spacy.Language.component("test_lower_lemmas")
def lower_lemmas(doc):
    for token in doc:
        token.lemma_ = token.lower_
    return doc


def test_acronym_and_word_of_one_label_match_once():
    nlp = make_nlp(terms=[Term("A", "aids"), Term("A", "AIDS"), Term("B", "AIDS")])
    assert matched(nlp, "AIDS aids") == [("AIDS", "A"), ("AIDS", "B"), ("aids", "A")]


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


def test_source():
    assert matches(make_nlp(source="mesh"), group="weak:mesh") == EXPECTED


def test_two_rulers():
    nlp = make_nlp()
    other = nlp.add_pipe("gazetteer_ruler", name="other", config={"source": "other"})
    other.add_terms([Term("X", "nothing")], nlp)
    doc = nlp("nothing, aspirin")
    assert group_entities(doc, "weak:other") == [(0, 1, "X")]
    assert group_entities(doc, "weak:gazetteer") == [(2, 3, "Chemical"), (2, 3, "Drug")]


def test_factory_passes_every_setting():
    settings = {"source": "a", "attr": "NORM", "acronym_length": 3, "stop": ["x"], "min_length": 2}
    ruler = make_gazetteer_ruler(spacy.blank("en"), "r", **settings)
    assert {key: getattr(ruler, key) for key in settings} == settings
    assert ruler.name == "r"
    plain = GazetteerRuler(spacy.blank("en").vocab)
    config = spacy.blank("en").get_factory_meta("gazetteer_ruler").default_config
    assert {key: getattr(plain, key) for key in settings} == config


@pytest.mark.parametrize(
    "setting, value",
    [("source", ""), ("attr", "TAG"), ("attr", "lower"), ("acronym_length", -1), ("min_length", 0)],
)
def test_setting_out_of_range(setting, value):
    with pytest.raises(WeaknerError, match=f"WK005.*'{setting}' = "):
        make_nlp(**{setting: value})


def test_written_attributes_are_declared():
    assert spacy.blank("en").get_factory_meta("gazetteer_ruler").assigns == ["doc.spans"]


# Config

CONFIG = """
[nlp]
lang = "en"
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
    path.write_text("".join(json.dumps({"label": label, "term": text}) + "\n" for label, text in TERMS))
    nlp.initialize()
    assert matches(nlp, group="weak:mesh") == EXPECTED
    # The terms are part of the pipeline: their file is not needed any more.
    path.unlink()
    nlp.to_disk(tmp_path / "nlp")
    assert matches(spacy.load(tmp_path / "nlp"), group="weak:mesh") == EXPECTED


def test_patterns_of_entity_ruler_through_config(tmp_path):
    other = spacy.blank("en")
    patterns = [
        {"label": "Disease", "pattern": "heart failure", "id": "D1"},
        {"label": "Chemical", "pattern": [{"LOWER": "aspirin"}]},
    ]
    other.add_pipe("entity_ruler").add_patterns(patterns)
    path = tmp_path / "patterns.jsonl"
    other.get_pipe("entity_ruler").to_disk(path)
    config = Config().from_str(CONFIG.format(path=json.dumps(str(path))))
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.initialize()
    assert matches(nlp, ["Heart failure, aspirin"], "weak:mesh") == [[(0, 2, "Disease"), (3, 4, "Chemical")]]


def test_terms_inline_in_config():
    nlp = spacy.blank("en")
    nlp.add_pipe("gazetteer_ruler")
    nlp.config["initialize"]["components"]["gazetteer_ruler"] = {
        "terms": [{"label": "A", "term": "aspirin"}, {"label": "B", "pattern": [{"LOWER": "heart"}]}],
        "labels": ["A", "B"],
    }
    nlp.initialize()
    assert matched(nlp, "aspirin heart") == [("aspirin", "A"), ("heart", "B")]


def test_label_for_the_file_through_config(tmp_path):
    path = tmp_path / "terms.txt"
    path.write_text("aspirin\n")
    block = {"terms": {"@readers": "spacy_weakner.TermList.v1", "path": str(path), "label": "Drug"}}
    nlp = spacy.blank("en")
    nlp.add_pipe("gazetteer_ruler")
    nlp.config["initialize"]["components"]["gazetteer_ruler"] = block
    nlp.initialize()
    assert matched(nlp, "Aspirin") == [("Aspirin", "Drug")]


def test_config_round_trip():
    nlp = make_nlp(source="mesh", stop=["aspirin"], acronym_length=0, min_length=3, attr="NORM")
    again = spacy.util.load_model_from_config(Config().from_str(nlp.config.to_str()))
    assert again.config["components"] == nlp.config["components"]
    again.from_bytes(nlp.to_bytes())
    assert matches(again, group="weak:mesh") == matches(nlp, group="weak:mesh")


def test_entry_points():
    assert registry.readers.get("spacy_weakner.TermList.v1")
    assert "gazetteer_ruler" in registry._entry_point_factories.get_all()


# Storage


def test_bytes_disk_and_deepcopy(tmp_path):
    nlp = make_nlp()
    assert matches(make_nlp(terms=None).from_bytes(nlp.to_bytes())) == EXPECTED
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert matches(loaded) == EXPECTED
    assert loaded.get_pipe("gazetteer_ruler").labels == nlp.get_pipe("gazetteer_ruler").labels
    assert loaded.get_pipe("gazetteer_ruler").terms == TERMS
    assert loaded.get_pipe("gazetteer_ruler").to_bytes() == nlp.get_pipe("gazetteer_ruler").to_bytes()
    assert matches(copy.deepcopy(nlp)) == EXPECTED


def test_component_alone_in_another_vocab(tmp_path):
    ruler = make_nlp().get_pipe("gazetteer_ruler")
    ruler.to_disk(tmp_path / "ruler")
    for other in (
        GazetteerRuler(spacy.blank("de").vocab).from_bytes(ruler.to_bytes()),
        GazetteerRuler(spacy.blank("de").vocab).from_disk(tmp_path / "ruler"),
    ):
        # The tokens are stored, and not made anew by the other language's tokenizer.
        assert other.match(spacy.blank("en")(TEXTS[0])) == EXPECTED[0]


def test_stored_form_is_readable(tmp_path):
    make_nlp(terms=TERMS[-2:]).get_pipe("gazetteer_ruler").to_disk(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "terms.jsonl").read_text().splitlines()]
    assert rows == [
        {"label": "Disease", "term": "AIDS", "tokens": ["aids"], "exact": ["AIDS"]},
        {"label": "Measure", "term": "pH", "tokens": ["ph"], "exact": ["pH"]},
    ]
    assert json.loads((tmp_path / "cfg").read_text()) == {"attr": "LOWER", "labels": ["Disease", "Measure"]}


def test_stored_terms_can_be_read_as_a_term_list(tmp_path):
    make_nlp().get_pipe("gazetteer_ruler").to_disk(tmp_path)
    assert list(read_terms(tmp_path / "terms.jsonl")) == TERMS


SCRIPT = """
import json, sys, spacy
nlp = spacy.load(sys.argv[1])
docs = [nlp(text) for text in json.load(sys.stdin)]
print(json.dumps([[(s.start, s.end, s.label_) for s in doc.spans["weak:gazetteer"]] for doc in docs]))
"""


def test_new_process(tmp_path):
    make_nlp().to_disk(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], input=json.dumps(TEXTS), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [[tuple(entity) for entity in doc] for doc in json.loads(done.stdout)] == EXPECTED


def test_settings_can_be_changed_at_load(tmp_path):
    make_nlp(stop=["aspirin"]).to_disk(tmp_path)
    settings = {"stop": [], "acronym_length": 0, "source": "mesh", "min_length": 3}
    nlp = spacy.load(tmp_path, config={"components": {"gazetteer_ruler": settings}})
    found = matches(nlp, TEXTS[:2], "weak:mesh")
    # aspirin is back, aids matches in any case, pH is too short
    assert found == [EXPECTED[0], [(1, 2, "Disease"), (3, 4, "Disease")]]


def test_attr_cannot_be_changed_at_load(tmp_path):
    make_nlp().to_disk(tmp_path)
    with pytest.raises(WeaknerError, match=r"WK209.*attr = LOWER, but the config says ORTH"):
        spacy.load(tmp_path, config={"components": {"gazetteer_ruler": {"attr": "ORTH"}}})


@pytest.mark.parametrize("excluded", ["cfg", "terms"])
def test_exclude(tmp_path, excluded):
    ruler = make_nlp().get_pipe("gazetteer_ruler")
    ruler.to_disk(tmp_path, exclude=[excluded])
    assert excluded not in [path.stem for path in tmp_path.iterdir()]
    other = make_nlp(terms=[Term("X", "nothing")]).get_pipe("gazetteer_ruler")
    other.from_bytes(ruler.to_bytes(), exclude=[excluded])
    expected = {"cfg": TERMS, "terms": [Term("X", "nothing")]}
    assert other.terms == expected[excluded]
    assert other.from_bytes(ruler.to_bytes(exclude=[excluded])).terms == expected[excluded]


def test_uninitialised_pipeline_can_be_stored(tmp_path):
    make_nlp(terms=None).to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("gazetteer_ruler").terms == []


def test_import_needs_no_torch():
    # spaCy itself imports torch where it is installed, so it is blocked rather than looked for.
    code = (
        "import sys; sys.modules.update(torch=None, transformers=None, torchcrf=None)\n"
        "import spacy_weakner.gazetteer_ruler.component"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""The component: what it matches, and what its settings do."""

import json
import logging
import subprocess
import sys

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.attrs import ORTH
from spacy.lookups import Lookups
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc
from spacy.util import logger, registry
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_weakner.annotations.weak import get_reliability, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler, make_gazetteer_ruler
from spacy_weakner.gazetteer_ruler.terms import Term

from .util import EXPECTED, TERMS, TEXTS, make_nlp, matched, matches


def lemma_nlp(**settings):
    nlp = spacy.blank("en")
    lookups = Lookups()
    lookups.add_table("lemma_lookup", {"failures": "failure", "hearts": "heart", "Hearts": "heart"})
    nlp.add_pipe("lemmatizer", config={"mode": "lookup"}).initialize(lookups=lookups)
    nlp.add_pipe("gazetteer_ruler", config={"attr": "LEMMA", **settings})
    return nlp


# Labels and terms


def test_labels_are_sorted():
    for terms in (TERMS, TERMS[::-1]):
        ruler = make_nlp(terms=terms).get_pipe("gazetteer_ruler")
        assert ruler.labels == ("Chemical", "Disease", "Drug", "Measure", "Symptom")
        assert ruler.label_data == list(ruler.labels)


def test_labels_of_terms_that_the_settings_rule_out():
    ruler = make_nlp(stop=["ph"], acronym_length=0, ambiguity="first").get_pipe("gazetteer_ruler")
    assert ruler.labels == ("Chemical", "Disease", "Symptom")
    assert ruler.terms == TERMS


def test_terms_come_once_in_the_order_in_which_they_were_added():
    nlp = make_nlp(terms=[*TERMS[::-1], *TERMS])
    assert nlp.get_pipe("gazetteer_ruler").terms == TERMS[::-1]
    nlp.get_pipe("gazetteer_ruler").add_terms([TERMS[0], Term("New", "pH"), TERMS[1]], nlp)
    assert nlp.get_pipe("gazetteer_ruler").terms == [*TERMS[::-1], Term("New", "pH")]


def test_odd_labels():
    terms = [Term(label, "aspirin") for label in ("a b", "Ä:1", "品牌", "\U0001f48a", "x\0y", "weak:x", "O", "NOUN")]
    assert matched(make_nlp(terms=terms), "aspirin") == [("aspirin", label) for label in sorted(t.label for t in terms)]


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


@pytest.mark.parametrize("attr", ["ORTH", "LOWER"])
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_equals_phrase_matcher(attr, seed):
    rng = numpy.random.RandomState(seed)
    words = ["Heart", "heart", "HEART", "failure", "-", "’s", "café", "Straße", "苹果", "can", "not", "\n"]

    def text(longest):
        return " ".join(words[i] for i in rng.randint(len(words), size=rng.randint(longest)))

    terms = [Term("ABC"[rng.randint(3)], text(4).strip() or "x") for _ in range(30)]
    nlp = make_nlp(terms=terms, attr=attr, acronym_length=0)
    matcher = PhraseMatcher(nlp.vocab, attr=attr)
    for label, text_ in terms:
        if "\n" not in text_:
            matcher.add(label, [nlp.make_doc(text_)])
    docs = [nlp.make_doc(text(25)) for _ in range(20)]
    expected = [sorted({(start, end, nlp.vocab.strings[label]) for label, start, end in matcher(doc)}) for doc in docs]
    # White space inside of terms is dropped, which the PhraseMatcher does not do.
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.initialize(lambda: [], nlp=nlp, terms=[term for term in [*terms, Term("A", "x")] if "\n" not in term.text])
    assert [ruler.match(doc) for doc in docs] == expected
    assert [group_entities(doc, "weak:gazetteer") for doc in ruler.pipe(docs, batch_size=7)] == expected
    assert [group_entities(ruler(doc), "weak:gazetteer") for doc in docs] == expected


def test_long_doc():
    nlp = make_nlp()
    words = ["x"] * 70_000 + ["heart", "failure"] + ["x"] * 70_000 + ["AIDS"]
    doc, short = Doc(nlp.vocab, words=words), nlp.make_doc("AIDS")
    docs = nlp.get_pipe("gazetteer_ruler").pipe([short, doc, short])
    expected = [(70_000, 70_002, "Disease"), (70_001, 70_002, "Symptom"), (140_002, 140_003, "Disease")]
    assert [group_entities(d, "weak:gazetteer") for d in docs] == [[(0, 1, "Disease")], expected, [(0, 1, "Disease")]]


@pytest.mark.parametrize("settings", [{}, {"acronym_length": 0}, {"attr": "ORTH"}, {"attr": "NORM"}])
def test_docs_without_tokens(settings):
    nlp = make_nlp(**settings)
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert list(ruler.pipe([])) == []
    for docs in ([nlp.make_doc("")], [nlp.make_doc(""), nlp.make_doc("")], [Doc(nlp.vocab, words=[" ", "a"])]):
        assert [group_entities(doc, "weak:gazetteer") for doc in ruler.pipe(docs)] == [[] for _ in docs]


def test_numbers_of_labels():
    nlp = make_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    matches_ = ruler.match_batch([nlp.make_doc(text) for text in TEXTS])
    assert [ruler.labels[i] for i in matches_.labels] == [label for doc in EXPECTED for _, _, label in doc]
    assert matches_.sequences.tolist() == [i for i, doc in enumerate(EXPECTED) for _ in doc]


def test_vocabulary_without_attributes():
    # Nothing has a lower form there: no term can be matched, and nothing is.
    nlp = make_nlp()
    assert nlp.get_pipe("gazetteer_ruler").match(Doc(Vocab(), words=["aspirin"])) == []
    other = spacy.blank("en")
    other.tokenizer = lambda text: Doc(Vocab(), words=text.split())
    with pytest.raises(WeaknerError, match=r"WK204.*without tokens: 7"):
        nlp.get_pipe("gazetteer_ruler").initialize(lambda: [], nlp=other, terms=TERMS)
    assert matches(nlp) == EXPECTED


def test_equal_words_may_differ_in_their_norm():
    nlp = spacy.blank("en")
    nlp.tokenizer.add_special_case("dose", [{ORTH: "dose", "NORM": "amount"}])
    ruler = nlp.add_pipe("gazetteer_ruler", config={"attr": "NORM"})
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("A", "dose")])
    assert matched(nlp, "dose amount Dose") == [("dose", "A"), ("amount", "A")]
    assert ruler.match(Doc(nlp.vocab, words=["dose"])) == []  # its norm is "dose" where nothing says otherwise


# Errors in a stream


def mixed_docs(nlp):
    """Docs with lemmas, and one without."""
    with_lemmas = [Doc(nlp.vocab, words=["hearts", "x"], lemmas=["heart", "x"]) for _ in range(5)]
    return [*with_lemmas[:2], Doc(nlp.vocab, words=["hearts"]), *with_lemmas[2:]]


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_error_handler_gets_the_docs_that_fail(batch_size):
    nlp = lemma_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.add_terms([Term("A", "hearts")], nlp)
    failed = []
    ruler.set_error_handler(lambda name, proc, docs, error: failed.append((name, proc, docs, str(error)[:7])))
    docs = mixed_docs(nlp)
    done = list(ruler.pipe(docs, batch_size=batch_size))
    assert done == [doc for i, doc in enumerate(docs) if i != 2]
    assert [group_entities(doc, "weak:gazetteer") for doc in done] == [[(0, 1, "A")]] * 5
    assert failed == [("gazetteer_ruler", ruler, [docs[2]], "[WK203]")]


def test_errors_are_raised_without_a_handler():
    nlp = lemma_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.add_terms([Term("A", "hearts")], nlp)
    with pytest.raises(WeaknerError, match="WK203"):
        list(ruler.pipe(mixed_docs(nlp)))
    with pytest.raises(WeaknerError, match="WK202"):
        list(make_nlp(terms=None).pipe(["aspirin"]))


# Memory


def test_terms_leave_nothing_in_the_vocabulary():
    nlp = make_nlp()
    before = sorted(nlp.vocab.strings)
    words = [f"unheardof{i} Word{i}" for i in range(50)]
    nlp.get_pipe("gazetteer_ruler").add_terms([Term("Disease", text) for text in words], nlp)
    assert sorted(nlp.vocab.strings) == before
    assert "unheardof7" not in nlp.vocab
    assert matched(nlp, "unheardof7 word7") == [("unheardof7 word7", "Disease")]


def test_docs_from_before_stay_valid():
    nlp = make_nlp(terms=None)
    doc = nlp.make_doc("Congestive heart failure is here")
    nlp.get_pipe("gazetteer_ruler").add_terms(TERMS, nlp)
    again = nlp.make_doc("congestive heart failure")
    assert [token.lower_ for token in doc] == ["congestive", "heart", "failure", "is", "here"]
    assert [token.text for token in again] == ["congestive", "heart", "failure"]


def test_labels_outlive_a_memory_zone():
    nlp = make_nlp()
    before = nlp.make_doc(TEXTS[0])
    with nlp.memory_zone():
        assert matches(nlp) == EXPECTED
        nlp.get_pipe("gazetteer_ruler")(before)
    assert group_entities(before, "weak:gazetteer") == EXPECTED[0]
    assert matches(nlp) == EXPECTED


def test_label_that_is_a_word_of_a_text():
    nlp = make_nlp(terms=[Term("Aspirin", "aspirin")])
    for _ in range(3):
        with nlp.memory_zone():
            assert matched(nlp, "Aspirin aspirin") == [("Aspirin", "Aspirin"), ("aspirin", "Aspirin")]
    assert matched(nlp, "aspirin") == [("aspirin", "Aspirin")]


@pytest.mark.parametrize("attr", ["LOWER", "ORTH"])
def test_initialising_inside_a_memory_zone(attr):
    nlp = make_nlp(terms=None, attr=attr)
    with nlp.memory_zone():
        nlp.get_pipe("gazetteer_ruler").add_terms(TERMS, nlp)
        inside = matches(nlp)
    assert matches(nlp) == inside == matches(make_nlp(attr=attr))
    assert nlp.get_pipe("gazetteer_ruler").terms == TERMS


def test_failing_in_a_memory_zone_closes_it():
    nlp = make_nlp(terms=None, attr="LEMMA")
    with pytest.raises(WeaknerError, match="WK203"):
        nlp.get_pipe("gazetteer_ruler").add_terms(TERMS, nlp)
    assert not nlp.vocab.in_memory_zone


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


@pytest.mark.parametrize(
    "ambiguity, expected",
    [
        ("all", [(0, 1, "Chemical"), (0, 1, "Drug"), (1, 2, "A"), (1, 2, "Disease"), (2, 3, "A")]),
        ("first", [(0, 1, "Chemical"), (1, 2, "Disease"), (2, 3, "A")]),
        ("drop", [(2, 3, "A")]),
    ],
)
def test_ambiguity(ambiguity, expected):
    nlp = make_nlp(terms=[Term("A", "aids"), *TERMS], ambiguity=ambiguity)
    assert matches(nlp, ["aspirin AIDS aids"]) == [expected]


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
    other = nlp.add_pipe("gazetteer_ruler", name="other", config={"source": "other"})
    other.add_terms([Term("X", "nothing")], nlp)
    doc = nlp("nothing, aspirin")
    assert group_entities(doc, "weak:other") == [(0, 1, "X")]
    assert group_entities(doc, "weak:gazetteer") == [(2, 3, "Chemical"), (2, 3, "Drug")]


def test_factory_passes_every_setting():
    settings = {
        **{"source": "a", "attr": "NORM", "acronym_length": 3, "stop": ["x"], "min_length": 2},
        **{"ambiguity": "drop", "reliability": 0.5},
    }
    ruler = make_gazetteer_ruler(spacy.blank("en"), "r", **settings)
    assert {key: getattr(ruler, key) for key in settings} == settings
    assert ruler.name == "r"
    plain = GazetteerRuler(spacy.blank("en").vocab)
    config = spacy.blank("en").get_factory_meta("gazetteer_ruler").default_config
    assert {key: getattr(plain, key) for key in settings} == config


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
    ],
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


def test_import_needs_no_torch():
    # spaCy itself imports torch where it is installed, so it is blocked rather than looked for.
    code = (
        "import sys; sys.modules.update(torch=None, transformers=None, torchcrf=None)\n"
        "import spacy_weakner.gazetteer_ruler.component"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

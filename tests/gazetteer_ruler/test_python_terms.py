"""Terms that are written down in Python."""

import copy
import gc
import pickle
from pathlib import Path

import pytest
import spacy

from spacy_weakner.corpus.weak import group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler
from spacy_weakner.gazetteer_ruler.terms import Term

from .util import TERMS, matched

DRUGS = [Term("DRUG", "aspirin"), Term("DRUG", "ibuprofen")]
BOTH = [*DRUGS, Term("DISEASE", "asthma")]


@pytest.fixture
def nlp():
    return spacy.blank("xx")


@pytest.fixture
def ruler(nlp):
    return nlp.add_pipe("gazetteer_ruler")


@pytest.mark.parametrize(
    "terms, label, expected",
    [
        (["aspirin", " ibuprofen "], "DRUG", DRUGS),
        (("aspirin", "ibuprofen"), "DRUG", DRUGS),
        (iter(["aspirin", "ibuprofen"]), "DRUG", DRUGS),
        (["aspirin", ("DRUG", "ibuprofen"), ["DISEASE", "asthma"]], "DRUG", BOTH),
        (["aspirin", {"term": "ibuprofen"}, {"term": "asthma", "label": "DISEASE"}], "DRUG", BOTH),
        ([(None, "aspirin"), ("", "ibuprofen"), Term("DISEASE", "asthma")], "DRUG", BOTH),
        ({"DRUG": ["aspirin", "ibuprofen"], "DISEASE": ("asthma",)}, None, BOTH),
        ({"DRUG": ["aspirin", "ibuprofen"], "DISEASE": iter(["asthma"])}, "OTHER", BOTH),
        (lambda: iter(BOTH), None, BOTH),
        (lambda: {"DRUG": ["aspirin", "ibuprofen"]}, None, DRUGS),
    ],
)
def test_forms(ruler, nlp, terms, label, expected):
    ruler.add_terms(terms, label=label)
    assert ruler.terms == expected
    assert matched(nlp, "Aspirin for asthma")[0] == ("Aspirin", "DRUG")


def test_initialize_takes_the_same(ruler, nlp):
    ruler.add_terms(["nothing"], label="X")
    ruler.initialize(terms=["aspirin", "ibuprofen"], label="DRUG")
    assert ruler.terms == DRUGS
    ruler.initialize(terms={"DRUG": ["aspirin", "ibuprofen"]})
    assert ruler.terms == DRUGS


@pytest.mark.parametrize(
    "terms, label, message",
    [
        (["aspirin"], None, "WK103.*entry 1: .*label is empty"),
        ([("DRUG", "aspirin"), "ibuprofen"], None, "WK103.*entry 2: .*label is empty"),
        ([("aspirin", "DRUG")], "DRUG", r"WK103.*entry 1: .*\(label, term\): swap"),
        (["aspirin", 3], "DRUG", "WK103.*entry 2: .*int"),
        ([("DRUG", 3)], None, "WK103.*entry 1: .*not a string"),
        (["aspirin", ""], "DRUG", "WK103.*entry 2: .*term is empty"),
        (["aspirin"], 3, "WK103.*label 3 is not a string"),
        ({"DRUG": ["aspirin", None]}, None, "WK103.*entry 2: .*term is empty"),
        ({"DRUG": "aspirin"}, None, "WK671.*key 'DRUG' is 'aspirin', which is not a list"),
        ({"aspirin": "DRUG", "ibuprofen": "DRUG"}, None, "WK671.*key 'aspirin' is 'DRUG'"),
        ({"DRUG": {"aspirin": 1}}, None, "WK671.*key 'DRUG'"),
        ("aspirin", "DRUG", "WK671.*'aspirin' is none of these"),
        (Path("terms.csv"), "DRUG", r"WK671.*terms\.csv.*make_term_list"),
        (None, "DRUG", "WK671.*None is none of these"),
        (7, None, "WK671.*7 is none of these"),
    ],
)
def test_what_is_no_term(ruler, terms, label, message):
    ruler.add_terms(TERMS)
    with pytest.raises(WeaknerError, match=message):
        ruler.add_terms(terms, label=label)
    assert ruler.terms == TERMS


def test_terms_are_tokenized_by_the_pipeline_of_the_component(nlp, ruler):
    nlp.tokenizer = lambda text: spacy.tokens.Doc(nlp.vocab, words=list(text.replace(" ", "")))
    ruler.add_terms(["a b"], label="X")
    assert group_entities(nlp("abab"), "weak:gazetteer") == [(0, 2, "X"), (2, 4, "X")]


def test_a_copied_or_loaded_pipeline_has_its_own(nlp, ruler, tmp_path):
    ruler.add_terms(["aspirin"], label="DRUG")
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    other.get_pipe("gazetteer_ruler").add_terms(["ibuprofen"], label="DRUG")
    assert other.get_pipe("gazetteer_ruler").terms == DRUGS
    other = copy.deepcopy(nlp)
    other.tokenizer = spacy.blank("en").tokenizer
    del nlp, ruler
    gc.collect()
    other.get_pipe("gazetteer_ruler").add_terms(["don't"], label="X")
    assert other.get_pipe("gazetteer_ruler").match(other("Don't")) == [(0, 2, "X")]


def test_without_a_pipeline(nlp, ruler):
    ruler.add_terms(["aspirin"], label="DRUG")
    for alone in (GazetteerRuler(nlp.vocab), pickle.loads(pickle.dumps(ruler))):
        with pytest.raises(ValueError, match="pass nlp=nlp"):
            alone.add_terms(["ibuprofen"], label="DRUG")
        alone.initialize(nlp=nlp, terms=["aspirin"], label="DRUG")
        alone.add_terms(["ibuprofen"], label="DRUG")
        assert alone.terms == DRUGS

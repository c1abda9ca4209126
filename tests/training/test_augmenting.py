"""Copies of training sentences in other case."""

import os

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities, group_entities, set_source
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.augmenting import CaseCopies
from spacy_weakner.training.readers import make_docbin_corpus, make_example

from ..util import make_doc

NLP = spacy.blank("xx")


def copies(cases, text, entities=()):
    _, *found = cases(NLP, make_example(make_doc(NLP, text, entities)))
    return [(example.predicted.text, example.reference.text) for example in found]


def test_shares():
    assert copies(CaseCopies(1.0, 1.0), "In Rome") == [("in rome", "in rome"), ("IN ROME", "IN ROME")]
    assert copies(CaseCopies(0.0, 0.0), "In Rome") == []
    some = [len(copies(CaseCopies(0.5, 0.25), f"In Rome {n}")) for n in range(1000)]
    assert 650 < sum(some) < 850
    # The same ones at any time.
    assert some == [len(copies(CaseCopies(0.5, 0.25), f"In Rome {n}")) for n in range(1000)]
    with pytest.raises(WeaknerError, match="WK005"):
        CaseCopies(1.5)


def test_text_that_has_no_case_is_not_repeated():
    assert copies(CaseCopies(1.0, 1.0), "in rome") == [] == copies(CaseCopies(1.0, 1.0), "我 爱 你")


def test_other_tokens_stay_aligned():
    reference = make_doc(NLP, "ΟΔΟΣΑ Straße", [(0, 1, "X")])
    predicted = Doc(NLP.vocab, words=["ΟΔΟΣ", "Α", "Straße"], spaces=[False, True, False])
    _, *found = CaseCopies(1.0, 1.0)(NLP, Example(predicted, reference))
    # In lower case, Greek has another form of the last letter of a word.
    assert [example.predicted.text for example in found] == ["ΟΔΟΣΑ STRASSE"]
    assert found[0].get_aligned("ENT_TYPE", as_string=True) == ["X", "X", ""]


def test_matches_of_lists_are_looked_up_anew(tmp_path):
    ruler = spacy.blank("xx")
    pipe = ruler.add_pipe("gazetteer_ruler", config={"attr": "ORTH", "source": "terms"})
    pipe.initialize(lambda: [], nlp=ruler, terms={"LOC": ["Rome", "OSLO"]})
    ruler.to_disk(tmp_path / "list")
    doc = make_doc(NLP, "Rome or Oslo", [(0, 1, "LOC"), (2, 3, "LOC")])
    set_source(doc, "terms", [(0, 1, "LOC")])
    set_source(doc, "model", [(2, 3, "LOC")])
    write_docs(tmp_path / "gold.spacy", [doc])
    augmenter = registry.augmenters.get("spacy_weakner.CaseCopies.v1")(1.0, 1.0, [tmp_path / "list"])
    reader = make_docbin_corpus(tmp_path / "gold.spacy", augmenter=augmenter, sources=["terms", "model"])
    found = {example.predicted.text: example.predicted for example in reader(NLP)}
    assert {text: group_entities(doc, "weak:terms") for text, doc in found.items()} == {
        "Rome or Oslo": [(0, 1, "LOC")],
        "rome or oslo": [],
        "ROME OR OSLO": [(2, 3, "LOC")],
    }
    assert all(group_entities(doc, "weak:model") == [(2, 3, "LOC")] for doc in found.values())
    assert all(doc_entities(example.reference) == doc_entities(doc) for example in reader(NLP))


def test_a_list_that_is_missing_or_made_anew(tmp_path):
    doc = make_doc(NLP, "Rome or Oslo", [(0, 1, "LOC")])
    with pytest.raises(WeaknerError, match=r"WK100.*list"):
        next(CaseCopies(1.0, 0.0, [tmp_path / "list"]).copies(doc))
    for n, term in enumerate(("rome", "oslo")):
        ruler = spacy.blank("xx")
        pipe = ruler.add_pipe("gazetteer_ruler", config={"attr": "ORTH", "source": "terms"})
        pipe.initialize(lambda: [], nlp=ruler, terms={"LOC": [term]})
        ruler.to_disk(tmp_path / "list")
        os.utime(tmp_path / "list" / "meta.json", (n, n))  # two may be written at one time of a coarse clock
        (copy,) = CaseCopies(1.0, 0.0, [tmp_path / "list"]).copies(doc)
        assert [copy[start:end].text for start, end, _ in group_entities(copy, "weak:terms")] == [term]

"""Sentences in other case."""

import pytest
import spacy

from spacy_weakner.corpus.case import change_case, has_case
from spacy_weakner.corpus.gold import missing_tokens
from spacy_weakner.corpus.weak import (
    doc_entities,
    doc_ids,
    get_augmented,
    get_tags,
    group_entities,
    group_ids,
    group_scores,
    is_weak,
    set_augmented,
    set_id,
    set_source,
    set_tags,
    set_weak,
    stored_user_data,
)

from ..util import make_doc

NLP = spacy.blank("de")


@pytest.mark.parametrize(
    "case, text", [("lower", "anna wohnt in der langen straße"), ("upper", "ANNA WOHNT IN DER LANGEN STRASSE")]
)
def test_all_annotation_is_copied(case, text):
    doc = make_doc(NLP, "Anna wohnt in der Langen Straße", [(0, 1, "PER"), (4, 6, "LOC")], missing=[1])
    doc[0].ent_kb_id_ = "Q1"
    set_source(doc, "terms", [(4, 6, "LOC")], [0.5], ids={(4, 6, "LOC"): ["Q2", "Q3"]}, reliability=0.9)
    set_weak(doc)
    set_id(doc, "a.1")
    set_tags(doc, ["B-PER", None, "O", "O", "B-LOC", "I-LOC"])
    set_augmented(doc, ["Anne", "wohnt", "in", "der", "Kurzen", "Straße"])
    doc.cats = {"X": 1.0}
    copy = change_case(doc, case)
    assert copy.text == text and len(copy) == len(doc)
    assert [token.whitespace_ for token in copy] == [token.whitespace_ for token in doc]
    for read in (doc_entities, doc_ids, missing_tokens):
        assert read(copy) == read(doc) and len(read(doc))
    assert group_entities(copy, "weak:terms") == [(4, 6, "LOC")] and group_scores(copy, "weak:terms") == [0.5]
    assert group_ids(copy, "weak:terms") == {(4, 6, "LOC"): ("Q2", "Q3")}
    assert copy.spans["weak:terms"].attrs == doc.spans["weak:terms"].attrs
    assert copy.spans["weak:terms"][0].text == " ".join(text.split()[4:])
    assert is_weak(copy) and get_tags(copy) == get_tags(doc) and copy.cats == doc.cats
    assert stored_user_data(copy).keys() == stored_user_data(doc).keys()
    assert get_augmented(copy)[0] == ("anne" if case == "lower" else "ANNE")
    assert doc.text == "Anna wohnt in der Langen Straße"


def test_a_sentence_without_annotation_stays_so():
    doc = make_doc(NLP, "Anna", annotated=False)
    doc.has_unknown_spaces = True
    copy = change_case(doc, "lower")
    assert not copy.has_annotation("ENT_IOB") and copy.has_unknown_spaces and not copy.user_data
    assert len(change_case(make_doc(NLP, ""), "upper")) == 0


@pytest.mark.parametrize("text, has", [("the cat", False), ("The cat", True), ("我 爱 你", False), ("", False)])
def test_text_without_case(text, has):
    assert has_case(text) == has

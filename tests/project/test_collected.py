"""Lists that were collected from the gold: found by their density, and made as silent as they are elsewhere."""

import pytest
import spacy

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.gold import keep_gold
from spacy_weakner.corpus.weak import (
    GOLD_GROUP,
    SUGGEST,
    doc_entities,
    group_entities,
    set_meta,
    set_source,
    set_weak,
)
from spacy_weakner.evaluation.terms.analysis import analyze_terms
from spacy_weakner.evaluation.terms.collected import LeakedLabel, find_collected
from spacy_weakner.project.assembling import predict_docs
from spacy_weakner.project.lists import TermList, hidden_note, hide, matched_docs

from ..util import make_doc

NLP = spacy.blank("xx")
KEY = ("list", "PER")


def write(path, n, matched, wrong=0):
    """n sentences of a person each, of whom a list knows some; and some matches that are wrong."""
    docs = []
    for i in range(n):
        doc = make_doc(NLP, f"Anna {i} went to Paris", [(0, 1, "PER")])
        found = [(0, 1, "PER")] if i < matched else []
        set_source(doc, "list", [*found, *([(4, 5, "PER")] if i < wrong else [])], reliability=0.7, terms="ORTH")
        docs.append(doc)
    write_docs(path, docs)
    return path


@pytest.mark.parametrize(
    "gold, text, ratio",
    [
        ((200, 200), (400, 100), 4.0),
        ((200, 200), (400, 390), None),  # may be chance
        ((200, 160), (400, 100), None),  # it does not know enough
        ((200, 190), (400, 400), None),  # less often than in the text
        ((6, 6), (400, 20), None),  # too few to tell
        ((200, 0), (400, 200), None),
        ((200, 200), (400, 0), 800.0),
    ],
)
def test_they_match_more_often_in_the_gold(tmp_path, gold, text, ratio):
    found = find_collected(write(tmp_path / "g.spacy", *gold), write(tmp_path / "t.spacy", *text), ["list", "other"])
    assert set(found) == (set() if ratio is None else {KEY})
    if ratio is not None:
        assert found[KEY].ratio == pytest.approx(ratio, rel=0.01)
        assert "hidden" in hidden_note(KEY, found[KEY])


def test_gold_beside_weak_labels_counts_as_gold(tmp_path):
    docs = list(read_docs(write(tmp_path / "g.spacy", 200, 200), NLP.vocab))
    for doc in docs:
        keep_gold(doc)
        doc.spans[GOLD_GROUP] = []  # none of the matches is right
        set_weak(doc)
    write_docs(tmp_path / "g.spacy", [*docs, make_doc(NLP, "Anna", annotated=False)])
    assert not find_collected(tmp_path / "g.spacy", write(tmp_path / "t.spacy", 400, 100), ["list"])


def test_sentences_that_were_chosen_say_nothing(tmp_path):
    gold, text = write(tmp_path / "g.spacy", 200, 200), write(tmp_path / "t.spacy", 400, 100)
    assert find_collected(gold, text, ["list"])
    docs = list(read_docs(gold, NLP.vocab))
    for doc in docs:
        set_meta(doc, {"score": 0.5, "chosen_by": SUGGEST})
    write_docs(gold, docs)
    assert not find_collected(gold, text, ["list"])


def test_texts_that_a_list_has_not_looked_at_say_nothing(tmp_path):
    gold, text = write(tmp_path / "g.spacy", 200, 200), write(tmp_path / "t.spacy", 400, 380)
    others = [make_doc(NLP, f"Anna {i} went to Paris") for i in range(2000)]
    write_docs(tmp_path / "half.spacy", [*read_docs(text, NLP.vocab), *others])
    write_docs(tmp_path / "none.spacy", others)
    for name in ("half.spacy", "none.spacy"):
        assert not find_collected(gold, tmp_path / name, ["list"])


def test_right_matches_are_hidden_until_it_matches_as_often_as_in_the_text(tmp_path):
    gold, text = write(tmp_path / "g.spacy", 500, 450, wrong=50), write(tmp_path / "t.spacy", 1000, 250, wrong=50)
    found = find_collected(gold, text, ["list"])
    # 500 matches where 150 are to be expected, of which 50 are wrong.
    assert found[KEY].kept == pytest.approx(100 / 450, abs=0.01)
    docs = list(read_docs(hide(gold, tmp_path / "hidden.spacy", found), NLP.vocab))
    matches = [entity for doc in docs for entity in group_entities(doc, "weak:list")]
    assert matches.count((4, 5, "PER")) == 50 and matches.count((0, 1, "PER")) == pytest.approx(100, abs=45)
    # The gold itself stays, and what a source says of itself.
    assert all(doc_entities(doc) == [(0, 1, "PER")] for doc in docs)
    assert {doc.spans["weak:list"].attrs["reliability"] for doc in docs} == {0.7}
    again = list(read_docs(hide(gold, tmp_path / "again.spacy", found), NLP.vocab))
    assert [group_entities(doc, "weak:list") for doc in again] == [group_entities(doc, "weak:list") for doc in docs]


def test_the_analysis_warns_of_them(tmp_path):
    gold, text = write(tmp_path / "g.spacy", 200, 200), write(tmp_path / "t.spacy", 400, 100)
    assert [each.kind for each in analyze_terms(gold, fit_on=text, bootstrap=2).warnings].count("known") == 1
    same = write(tmp_path / "s.spacy", 400, 400)
    assert "matches" not in "".join(each.text for each in analyze_terms(gold, fit_on=same, bootstrap=2).warnings)


def test_all_or_nothing_is_hidden_and_other_labels_and_sources_stay(tmp_path):
    gold = write(tmp_path / "g.spacy", 20, 20)
    for collected, n in (({KEY: 0.0}, 0), ({KEY: 1.0}, 20), ({("other", "PER"): 0.0, ("list", "LOC"): 0.0}, 20)):
        output = hide(gold, tmp_path / "h.spacy", {key: LeakedLabel(2.0, kept) for key, kept in collected.items()})
        assert sum(len(doc.spans["weak:list"]) for doc in read_docs(output, NLP.vocab)) == n


def test_what_a_list_finds_is_taken_from_what_it_says(tmp_path):
    doc = make_doc(NLP, "New York Times", [])
    set_source(doc, "list", [(0, 2, "LOC"), (0, 3, "ORG")])
    (found,) = matched_docs(TermList("list", "term list", tmp_path), [doc])
    assert doc_entities(found) == [(0, 3, "ORG")] and not doc.ents


def test_lists_of_a_pipeline_are_not_asked():
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("gazetteer_ruler", config={"source": "list"})
    ruler.initialize(lambda: [], nlp=nlp, terms={"PER": ["Anna"]})
    doc = nlp.make_doc("Anna and Bob")
    set_source(doc, "list", [(2, 3, "PER")])
    (said,) = predict_docs(nlp, [doc])
    assert group_entities(said, "weak:list") == [(2, 3, "PER")] and said is not doc

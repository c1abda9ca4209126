"""The component: ids and candidates of entities, its settings, and how it is stored."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.weak import set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.terms import Term

TERMS = [
    Term("DISEASE", "heart failure", id="D1"),
    Term("DISEASE", "cardiac failure", id="D1", name="Heart Failure"),
    Term("DISEASE", "cold", id="D2"),
    Term("DISEASE", "cold", id="D3"),
    Term("DISEASE", "chilblain", id="D3"),
    Term("DRUG", "aspirin", id="C1"),
    Term("DRUG", "without an id"),
]


def make_nlp(terms=TERMS, examples=(), **settings):
    nlp = spacy.blank("xx")
    linker = nlp.add_pipe("term_linker", config=settings)
    linker.initialize(lambda: examples, nlp=nlp, terms=terms)
    return nlp


def make_doc(nlp, text, *ents):
    doc = nlp.make_doc(text)
    doc.ents = [Span(doc, start, end, label, kb_id=kb_id) for start, end, label, kb_id in ents]
    return doc


def ids(doc):
    return [ent.kb_id_ for ent in doc.ents]


@pytest.mark.parametrize(
    "text, label, expected",
    [
        ("Heart Failures", "DISEASE", "D1"),
        ("failure, cardiac", "DISEASE", "D1"),
        ("hart failure", "DISEASE", "D1"),
        ("broken leg", "DISEASE", ""),
        ("aspirin", "DISEASE", ""),
        ("aspirin", "DRUG", "C1"),
        ("aspirin", "OTHER", ""),
        ("without an id", "DRUG", ""),
    ],
)
def test_the_nearest_term_of_the_label(text, label, expected):
    nlp = make_nlp(threshold=0.6)
    doc = nlp.make_doc(text)
    assert ids(nlp(make_doc(nlp, text, (0, len(doc), label, "")))) == [expected]


SIGNS = [
    *(Term("CELL", text, id=text) for text in ("CD4+ T cell", "CD4- T cell")),
    *(Term("WORD", text, id=text) for text in ("C", "C#", "C++", "Aid", "AIDS")),
]


@pytest.mark.parametrize(
    "text, label, expected",
    [
        *((term.text, term.label, term.id) for term in SIGNS),
        *(
            ("cd4- t cell", "CELL", "CD4- T cell"),
            ("aids", "WORD", "AIDS"),
            ("c#", "WORD", "C#"),
            ("AID", "WORD", "Aid"),
        ),
    ],
)
def test_of_equal_terms_the_one_that_is_spelled_so_comes_first(text, label, expected):
    nlp = make_nlp(SIGNS)
    nlp.get_pipe("term_linker").from_bytes(nlp.get_pipe("term_linker").to_bytes())
    (ent,) = nlp(make_doc(nlp, text, (0, len(nlp.make_doc(text)), label, ""))).ents
    assert ent.kb_id_ == expected and len(ent._.weakner_ids) > 1


def test_a_spelling_is_certain_for_the_rest_of_the_document():
    terms = [
        Term("DRUG", "A-1", id="D1"),
        Term("DRUG", "A+1", id="D2"),
        *(Term("DRUG", "b", id=i) for i in ("D1", "D2")),
    ]
    nlp = make_nlp(terms)
    doc = Doc(nlp.vocab, words=["A+1", "b"])
    doc.ents = [Span(doc, 0, 1, "DRUG"), Span(doc, 1, 2, "DRUG")]
    assert ids(nlp(doc)) == ["D2", "D2"]


def test_candidates_are_listed_with_their_scores():
    nlp = make_nlp(threshold=0.99, n_candidates=1)
    (ent,) = nlp(make_doc(nlp, "cardiac failur", (0, 2, "DISEASE", ""))).ents
    assert ent.kb_id_ == ""
    ((identifier, score),) = ent._.weakner_ids
    assert identifier == "D1" and 0.5 < score < 0.99


def test_of_several_ids_the_one_that_the_document_names_comes_first():
    nlp = make_nlp()
    assert ids(nlp(make_doc(nlp, "a cold", (1, 2, "DISEASE", "")))) == ["D2"]
    doc = nlp(make_doc(nlp, "a cold chilblain", (1, 2, "DISEASE", ""), (2, 3, "DISEASE", "")))
    assert ids(doc) == ["D3", "D3"]
    doc = nlp(make_doc(nlp, "a cold thing", (1, 2, "DISEASE", ""), (2, 3, "DISEASE", "D3")))
    assert ids(doc) == ["D3", "D3"]


def test_short_forms_are_looked_up_by_their_long_forms(monkeypatch):
    nlp = make_nlp()
    doc = make_doc(nlp, "heart failure (HF), so HF", *[(a, b, "DISEASE", "") for a, b in ((0, 2), (3, 4), (7, 8))])
    assert ids(nlp(doc)) == ["D1", "D1", "D1"]
    # Definitions that were found before are not sought again.
    nlp.add_pipe("abbreviations", before="term_linker")
    monkeypatch.setattr("spacy_weakner.term_linker.component.find_definitions", lambda doc: 1 / 0)
    doc = make_doc(nlp, "heart failure (HF), so HF", (0, 2, "DISEASE", ""), (7, 8, "DISEASE", ""))
    assert ids(nlp(doc)) == ["D1", "D1", "D1"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_ids_that_are_there(overwrite):
    nlp = make_nlp(overwrite=overwrite)
    assert ids(nlp(make_doc(nlp, "aspirin", (0, 1, "DRUG", "X")))) == ["C1" if overwrite else "X"]


def test_the_threshold_is_fitted_on_gold_with_ids():
    nlp = spacy.blank("xx")
    good = make_doc(nlp, "heart failure", (0, 2, "DISEASE", "D1"))
    bad = make_doc(nlp, "heart chilblain attack", (0, 3, "DISEASE", "D9"))
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in [good, bad] * 10]
    fitted, plain = make_nlp(examples=examples), make_nlp()
    doc = make_doc(fitted, "cardiac failures of hearts", (0, 4, "DISEASE", ""))
    (candidate, *_) = fitted(doc).ents[0]._.weakner_ids
    assert candidate[1] < 1.0 and ids(fitted(doc)) == [""]
    assert ids(plain(make_doc(plain, "heart failure", (0, 2, "DISEASE", "")))) == ["D1"]
    fixed = make_nlp(examples=examples, threshold=0.1)
    assert ids(fixed(make_doc(fixed, "cardiac failures of hearts", (0, 4, "DISEASE", "")))) == ["D1"]


def test_pipe_equals_one_by_one_and_empty_docs_are_no_trouble():
    nlp = make_nlp()
    words = ["", "aspirin", "", "heart failure", "cold"]

    def docs():
        return [make_doc(nlp, text, *([(0, len(text.split()), "DISEASE", "")] if text else [])) for text in words]

    together = [(ids(doc), [ent._.weakner_ids for ent in doc.ents]) for doc in nlp.pipe(docs())]
    assert together == [(ids(doc), [ent._.weakner_ids for ent in doc.ents]) for doc in map(nlp, docs())]


def test_it_returns_from_bytes_and_disk(tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path)
    doc = make_doc(nlp, "hart failure and cold", (0, 2, "DISEASE", ""), (3, 4, "DISEASE", ""))
    data = doc.to_bytes()
    expected = [(ent.kb_id_, ent._.weakner_ids) for ent in nlp(doc).ents]
    empty = spacy.blank("xx")
    empty.add_pipe("term_linker")
    for again in (spacy.load(tmp_path), empty.from_bytes(nlp.to_bytes())):
        found = again(Doc(again.vocab).from_bytes(data))
        assert [(ent.kb_id_, ent._.weakner_ids) for ent in found.ents] == expected
        linker = again.get_pipe("term_linker")
        assert linker.labels == ("DISEASE", "DRUG")
        assert [linker.preferred_name(name) for name in ("D1", "D3", "D9")] == ["Heart Failure", "cold", ""]


def test_damaged_files_are_one_error(tmp_path):
    make_nlp().to_disk(tmp_path)
    for name, data in (("index", b"\x81"), ("index", b"{}"), ("cfg", b"[]"), ("cfg", b"\xff"), ("index", None)):
        path = tmp_path / "term_linker" / name
        before = path.read_bytes()
        path.unlink() if data is None else path.write_bytes(data)
        with pytest.raises(WeaknerError):
            spacy.load(tmp_path)
        path.write_bytes(before)


@pytest.mark.parametrize(
    "settings, terms, message",
    [
        ({"threshold": 1.5}, TERMS, "WK"),
        ({"n_candidates": 0}, TERMS, "WK"),
        ({}, [Term("A", "x")], "WK810"),
        ({}, [Term("A", "x", id="1", binding="never")], "WK810"),
    ],
)
def test_unusable_settings_and_terms(settings, terms, message):
    with pytest.raises(WeaknerError, match=message):
        make_nlp(terms, **settings)


def test_without_terms_it_predicts_nothing():
    nlp = spacy.blank("xx")
    nlp.add_pipe("term_linker")
    with pytest.raises(WeaknerError, match="WK810"):
        nlp("aspirin")


def test_ids_of_a_stored_pipeline(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True}).add_terms(TERMS)
    nlp.add_pipe("abbreviations")
    nlp.add_pipe("term_linker").initialize(nlp=nlp, terms=TERMS)
    nlp.to_disk(tmp_path)
    assert ids(spacy.load(tmp_path)("Heart failure (HF), HF, aspirin")) == ["D1", "D1", "D1", "C1"]


@pytest.mark.parametrize(
    "text, ent, n_gold",
    [
        # Few links, and weak ones.
        ("heart failure", (0, 2, "DISEASE", "D1"), 19),
        # Gold does not decide between ids meanwhile: "cold" is D2 first, so none of these links is right.
        ("a cold", (1, 2, "DISEASE", "D3"), 40),
    ],
)
def test_what_fits_no_threshold(text, ent, n_gold):
    nlp = spacy.blank("xx")
    docs = [make_doc(nlp, text, ent) for _ in range(40)]
    for doc in docs[n_gold:]:
        set_weak(doc)
    fitted = make_nlp(examples=[Example(nlp.make_doc(doc.text), doc) for doc in docs])
    assert ids(fitted(make_doc(fitted, "the heart failure", (0, 3, "DISEASE", "")))) == ["D1"]


def test_two_linkers_of_different_labels():
    nlp = make_nlp([Term("DRUG", "aspirin", id="C1")])
    nlp.add_pipe("term_linker", name="other").initialize(nlp=nlp, terms=[Term("DISEASE", "cold", id="D2")])
    doc = nlp(make_doc(nlp, "aspirins cold", (0, 1, "DRUG", ""), (1, 2, "DISEASE", "")))
    assert [(ent.kb_id_, ent._.weakner_ids) for ent in doc.ents] == [("C1", [["C1", 1.0]]), ("D2", [["D2", 1.0]])]


def test_punctuation_is_no_term():
    nlp = make_nlp([Term("X", "+", id="PLUS"), Term("X", "plus", id="P")])
    assert ids(nlp(make_doc(nlp, "-", (0, 1, "X", "")))) == [""]


def test_terms_without_a_label():
    nlp = spacy.blank("xx")
    linker = nlp.add_pipe("term_linker")
    linker.initialize(nlp=nlp, terms=[{"term": "cold", "id": "D2"}], label="DISEASE")
    assert ids(linker(make_doc(nlp, "cold", (0, 1, "DISEASE", "")))) == ["D2"]

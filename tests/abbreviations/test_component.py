"""The component: what it writes to Docs, its settings, and how it is stored."""

import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.abbreviations.expansion import expand_documents
from spacy_weakner.corpus.weak import (
    doc_entities,
    group_entities,
    group_ids,
    group_scores,
    set_id,
    set_source,
    weak_group,
)

TEXT = "Congestive heart failure (CHF) was seen. CHF and MTX (methotrexate). CHFs, MTX and the CG (control group)."
TERMS = [("DISEASE", "heart failure"), ("DRUG", "methotrexate"), ("GENE", "CG")]
SHORT = ["CHF", "CHF", "MTX", "CHFs", "MTX"]


def make_nlp(annotate_ents=True):
    nlp = spacy.blank("en")  # it has stop words
    nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": annotate_ents}).add_terms(TERMS)
    nlp.add_pipe("abbreviations")
    return nlp


def test_short_forms_are_entities_where_their_long_forms_are():
    nlp = make_nlp()
    doc = nlp(TEXT)
    found = [(ent.text, ent.label_) for ent in doc.ents]
    long = [("heart failure", "DISEASE"), ("methotrexate", "DRUG"), ("CG", "GENE")]
    short = [(text, "DRUG" if text == "MTX" else "DISEASE") for text in SHORT]
    assert sorted(found) == sorted([*long, *short])
    assert [(str(a), str(b)) for a, b in doc._.weakner_abbreviations] == [
        ("CHF", "Congestive heart failure"),
        ("MTX", "methotrexate"),
        ("CG", "control group"),
    ]
    # A function word before the entity makes it something else.
    assert [ent.text for ent in nlp("The clinical history of heart failure (CHF).").ents] == ["heart failure"]


def test_label_id_and_score_are_those_of_the_long_form():
    nlp = spacy.blank("xx")
    nlp.add_pipe("abbreviations")
    doc = nlp.make_doc("heart failure (HF), so HF")
    doc.ents = [Span(doc, 0, 2, "DISEASE", kb_id="D6333")]
    doc.ents[0]._.weakner_score = 0.75
    doc = nlp(doc)
    assert [(e.text, e.label_, e.kb_id_, e._.weakner_score) for e in doc.ents] == [
        (text, "DISEASE", "D6333", 0.75) for text in ("heart failure", "HF", "HF")
    ]


def blank_doc(text):
    """A pipeline that looks for abbreviations alone, and a Doc of words."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("abbreviations")
    return nlp, Doc(nlp.vocab, words=text.split())


def test_longer_entities_stay_and_shorter_ones_and_other_labels_give_way():
    nlp, doc = blank_doc("heart failure ( HF ) ; HF in HF clinic ; x")
    doc.ents = [Span(doc, 0, 2, "D"), Span(doc, 6, 7, "GENE"), Span(doc, 8, 10, "PLACE")]
    assert doc_entities(nlp(doc)) == [(0, 2, "D"), (3, 4, "D"), (6, 7, "D"), (8, 10, "PLACE")]
    # Nothing is left of those that give way.
    nlp, doc = blank_doc("severe acute syndrome ( SA - S ) ; the SA - S")
    doc.ents = [Span(doc, 0, 3, "D"), Span(doc, 9, 11, "X")]
    found = doc_entities(nlp(doc))
    assert found[-1] == (10, 13, "D") and all(label == "D" for _, _, label in found)


def test_tokens_of_which_nothing_is_known_and_blocked_ones_stay_so():
    nlp, doc = blank_doc("heart failure ( HF ) and more HF")
    doc.set_ents([Span(doc, 0, 2, "D")], blocked=[doc[6:8]], outside=[doc[2:3]], default="missing")
    doc = nlp(doc)
    assert [token.ent_iob_ for token in doc] == ["B", "I", "O", "B", "", "", "B", "B"]
    assert doc[6].ent_type_ == doc[7].ent_type_ == ""


def test_a_source_is_extended_with_its_scores_and_attributes():
    nlp = spacy.blank("xx")
    nlp.add_pipe("abbreviations", config={"source": "list"})
    doc = Doc(nlp.vocab, words=["heart", "failure", "(", "HF", ")", "and", "HF"])
    entities = [(0, 2, "A"), (0, 2, "B"), (6, 7, "B")]
    set_source(doc, "list", entities, [0.5, 0.25, None], ids={(0, 2, "A"): ["1", "2"]}, reliability=0.9)
    doc = nlp(doc)
    group = weak_group("list")
    assert group_entities(doc, group) == [(0, 2, "A"), (0, 2, "B"), (3, 4, "A"), (3, 4, "B"), (6, 7, "A"), (6, 7, "B")]
    assert group_scores(doc, group) == [0.5, 0.25, 0.5, 0.25, 0.5, None]
    assert group_ids(doc, group) == {(start, end, "A"): ("1", "2") for start, end in ((0, 2), (3, 4), (6, 7))}
    assert doc.spans[group].attrs["reliability"] == 0.9
    assert not doc.ents


def test_pipe_equals_one_by_one_and_empty_docs_are_no_trouble():
    nlp = make_nlp()
    texts = ["", " ", "(", "A", TEXT, "A (A)", ""]
    together = [(doc_entities(doc), len(doc._.weakner_abbreviations)) for doc in nlp.pipe(texts)]
    assert together == [(doc_entities(doc), len(doc._.weakner_abbreviations)) for doc in map(nlp, texts)]


def test_it_returns_from_bytes_and_disk(tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path)
    expected = doc_entities(nlp(TEXT))
    for again in (spacy.load(tmp_path), make_nlp().from_bytes(nlp.to_bytes())):
        assert doc_entities(again(TEXT)) == expected
    doc = nlp(TEXT)
    copy = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert [(a.text, b.text) for a, b in copy._.weakner_abbreviations] == [
        (a.text, b.text) for a, b in doc._.weakner_abbreviations
    ]


def test_definitions_follow_the_characters_of_their_forms():
    nlp = make_nlp()
    nlp.add_pipe("merge_entities")
    linker = nlp.add_pipe("term_linker")
    linker.initialize(nlp=nlp, terms=[{"label": "DISEASE", "term": "congestive heart failure", "id": "D1"}])
    doc = nlp(TEXT)
    assert [(str(a), str(b)) for a, b in doc._.weakner_abbreviations] == [
        ("CHF", "Congestive heart failure"),
        ("MTX", "methotrexate"),
        ("CG", "control group"),
    ]
    assert [ent.kb_id_ for ent in doc.ents if ent.text == "CHF"] == ["D1", "D1"]
    # A part has other characters.
    part = doc[5:].as_doc(copy_user_data=True)
    assert part._.weakner_abbreviations == [] and linker(part).text == part.text


def test_sentences_of_a_document_share_its_definitions():
    vocab = spacy.blank("xx").vocab
    long = "heart failure ( HF )"
    rows = [("a.1", long), ("a.2", "so HF"), ("b.1", "HF"), ("c", long), (None, "HF")]
    docs = [Doc(vocab, words=text.split()) for _, text in rows]
    for doc, (identifier, _) in zip(docs, rows, strict=True):
        set_id(doc, identifier)
    found = expand_documents(docs, [{(0, 2, "D"): "1"}, {}, {}, {(0, 2, "D"): "2"}, {(0, 1, "X"): "3"}])
    both = [{(0, 2, "D"): name, (3, 4, "D"): name} for name in "12"]
    assert found == [both[0], {(1, 2, "D"): "1"}, {}, both[1], {(0, 1, "X"): "3"}]
    assert expand_documents(docs[:1], [{}]) == [{}]


def test_an_entity_without_an_id_gets_that_of_its_long_form():
    nlp = spacy.blank("xx")
    nlp.add_pipe("abbreviations", name="group", config={"source": "list"})
    nlp.add_pipe("abbreviations")
    doc = Doc(nlp.vocab, words=["heart", "failure", "(", "HF", ")"])
    doc.ents = [Span(doc, 0, 2, "D", kb_id="H1"), Span(doc, 3, 4, "D")]
    set_source(doc, "list", [(0, 2, "D"), (3, 4, "D")], ids={(0, 2, "D"): ["H1"]})
    doc = nlp(doc)
    assert [ent.kb_id_ for ent in doc.ents] == ["H1", "H1"]
    assert group_ids(doc, weak_group("list")) == {(0, 2, "D"): ("H1",), (3, 4, "D"): ("H1",)}
    set_id(doc, "a.1")
    assert expand_documents([doc], [{(0, 2, "D"): ("H1",), (3, 4, "D"): ()}])[0][3, 4, "D"] == ("H1",)


def test_a_doc_without_the_source_stays_as_it_is():
    nlp = spacy.blank("xx")
    nlp.add_pipe("abbreviations", config={"source": "list"})
    doc = nlp(Doc(nlp.vocab, words=["congestive", "heart", "failure", "(", "CHF", ")", "and", "CHF"]))
    assert len(doc._.weakner_abbreviations) == 1 and not doc.spans


def test_another_package_may_have_the_short_name():
    nlp = spacy.blank("en")
    nlp.add_pipe("abbreviations")
    text = "Congestive heart failure (CHF) is common."
    ours = Doc.get_extension("abbreviations")
    assert len(nlp(text)._.abbreviations) == 1
    try:
        Doc.set_extension("abbreviations", default=[], force=True)
        doc = nlp(text)
        assert doc._.abbreviations == [] and len(doc._.weakner_abbreviations) == 1
    finally:
        Doc.set_extension("abbreviations", getter=ours[2], force=True)

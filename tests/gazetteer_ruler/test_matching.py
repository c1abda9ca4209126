"""What the component matches, what it hands to an error handler, and what it leaves in memory."""

import itertools
import json

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.attrs import ORTH
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import group_entities, weak_group
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.forms import normal_form
from spacy_weakner.gazetteer_ruler.terms import Term, read_terms
from spacy_weakner.labeling.label import label

from .util import EXPECTED, TERMS, TEXTS, lemma_nlp, make_nlp, matched, matches


def test_all_candidates_of_all_labels():
    nlp = make_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert matches(nlp) == EXPECTED
    docs = list(nlp.pipe(TEXTS, batch_size=2))
    # Twice is as once.
    for found in (docs, map(nlp, docs), ruler.pipe(nlp.make_doc(text) for text in TEXTS)):
        assert [group_entities(doc, "weak:gazetteer") for doc in found] == EXPECTED
    batch = ruler.match_batch([nlp.make_doc(text) for text in TEXTS])
    assert [ruler.labels[i] for i in batch.concepts] == [label for doc in EXPECTED for _, _, label in doc]
    assert batch.sequences.tolist() == [i for i, doc in enumerate(EXPECTED) for _ in doc]


def test_ents_and_other_groups_stay_as_they_are():
    nlp = make_nlp()
    doc = nlp.make_doc("nothing here")
    doc.spans["other"] = [doc[:1]]
    nlp(doc)
    assert not doc.has_annotation("ENT_IOB") and sorted(doc.spans) == ["other", "weak:gazetteer"]
    assert len(doc.spans["weak:gazetteer"]) == 0
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "X", "pattern": "Aspirin"}])
    assert [ent.label_ for ent in nlp("Aspirin").ents] == ["X"]


@pytest.mark.parametrize("gap", [" ", "\n", "  ", " \t ", "\r\n", "\u00a0", "\n    "])
@pytest.mark.parametrize("attr", ["FORM", "LOWER", "ORTH"])
def test_white_space_makes_no_difference(gap, attr):
    nlp = make_nlp(terms=[Term("DISEASE", "high  blood pressure"), Term("A", "pH")], attr=attr)
    text = f"high{gap}blood{gap}pressure"
    assert matched(nlp, text) == [(text, "DISEASE")]
    assert matched(nlp, f"\n{gap}{text}{gap}\n and pH") == [(text, "DISEASE"), ("pH", "A")]


@pytest.mark.parametrize("gap", ["\n\n", "\n \n", "\r\n\r\n"])
def test_no_phrase_goes_over_a_blank_line(gap):
    nlp = make_nlp(terms=[Term("A", "heart failure"), Term("A", "heart")])
    assert matched(nlp, f"heart{gap}failure") == [("heart", "A")]


VARIANTS = [
    ("Parkinson's disease", "Parkinson’s disease"),
    ("COVID-19", "COVID‑19"),
    ("beta-blocker", "beta‑blocker"),
    ("beta-blocker", "beta\u2010blocker"),
    ("café au lait", "cafe\u0301 au lait"),
    ("final", "ﬁnal"),
    ("hypertension", "hyper\u00adtension"),
    ("hypertension", "hyper\u200btension"),
    ("hypertension", "\u200ehypertension\u200f"),
    ("don't know", "don’t know"),
    ("Parkinson's disease", "Parkinson\u00b4s disease"),
    ("Parkinson's disease", "Parkinson\u02bcs disease"),
    ("Epstein-Barr virus", "Epstein\u2013Barr virus"),
    ("Epstein-Barr virus", "Epstein\u2012Barr virus"),
    ("1990-1995", "1990\u20131995"),
    ("O'Neill-Smith", "O\u00b4Neill\u2013Smith"),
    ("Hauptstraße", "HAUPTSTRASSE"),
]


@pytest.mark.parametrize("terms, text", [*VARIANTS, *((text, term) for term, text in VARIANTS)])
def test_variants_of_characters_are_the_same(terms, text):
    nlp = make_nlp(terms=[Term("A", terms)])
    found = matched(nlp, f"It was {text} again.")
    assert [(normal_form(phrase), label) for phrase, label in found] == [(normal_form(text), "A")]
    assert all(phrase in text for phrase, _ in found)
    assert nlp.get_pipe("gazetteer_ruler").terms == [Term("A", terms)]
    assert matched(make_nlp(terms=[Term("A", terms)], attr="ORTH"), f"It was {text} again.") == []


@pytest.mark.parametrize("lang", ["en", "de", "fr", "xx"])
def test_every_tokenizer_finds_all_signs(lang):
    nlp = make_nlp(terms=[Term("A", "Parkinson's"), Term("A", "Epstein-Barr")], lang=lang)
    for sign, dash in itertools.zip_longest("'‘’‛\u02bc\u00b4＇", "-‐‑\u2012\u2013−﹣－", fillvalue="'"):
        expected = [(f"Parkinson{sign}s", "A"), (f"Epstein{dash}Barr", "A")]
        assert matched(nlp, f"Parkinson{sign}s and Epstein{dash}Barr") == expected
    exact = make_nlp(terms=[Term("A", "B-ALL"), Term("A", "Non-Hodgkin", exact=True)], lang=lang)
    for dash in "-‐‑\u2012\u2013−﹣－":
        expected = [(f"B{dash}ALL", "A"), (f"Non{dash}Hodgkin", "A")]
        assert matched(exact, f"B{dash}ALL, Non{dash}Hodgkin, b{dash}all or non{dash}hodgkin") == expected


@pytest.mark.parametrize(
    "lang, term, text, found",
    [
        *[("de", "Lange Straße", f"lange {x}", True) for x in ("STRASSE", "Straße", "straße", "Strasse", "STRAẞE")],
        ("tr", "ışık", "IŞIK", True),
        ("tr", "istanbul", "İSTANBUL", True),
        ("en", "ışık", "IŞIK", False),
    ],
)
def test_letters_that_change_with_case(lang, term, text, found):
    nlp = make_nlp([Term("A", term), Term("B", "groß")], lang, stop=["GROẞ"])
    assert matched(nlp, f"In {text}, groß") == [(text, "A")] * found


@pytest.mark.parametrize(
    "lang, spellings, others",
    [
        ("el", ["Αθήνα", "ΑΘΗΝΑ", "αθηνα", "Αθη\u0301να"], ["Αθήναι"]),
        ("el", ["Οδυσσέας Ελύτης", "ΟΔΥΣΣΕΑΣ ΕΛΥΤΗΣ"], ["Οδυσσέα Ελύτη"]),
        ("el", ["Μάιος", "ΜΑΪΟΣ", "Μάϊος"], ["Μάη"]),
        ("ar", ["محمد", "مُحَمَّد", "محـــمد", "مـحـمـد"], ["محمود"]),
        ("ar", ["القاهرة الكبرى", "القَاهِرَة الكُبرى"], ["القاهره"]),
        ("ar", ["آلة"], ["الة"]),  # a letter, not a mark
        ("fa", ["تهران", "تِهران", "تهـــران"], ["تهرانی"]),
        ("ur", ["لاہور", "لاہـور", "لاہَور"], ["لاہوری"]),
        ("he", ["שלום", "שָׁלוֹם", "\ufb2aלום"], ["שלומי"]),
        # Elsewhere, accents are letters.
        ("fr", ["péché", "PÉCHÉ"], ["peche", "PECHE"]),
        ("en", ["Αθήνα", "ΑΘΉΝΑ"], ["ΑΘΗΝΑ"]),
    ],
)
def test_marks_of_scripts(lang, spellings, others):
    for term in spellings:
        nlp = make_nlp([Term("A", term)], lang, acronym_length=0)
        for text in spellings:
            assert matched(nlp, f"- {text} -") == [(text, "A")], (term, text)
    assert not any(matched(nlp, f"- {text} -") for text in others)


@pytest.mark.parametrize("attr", ["FORM", "LOWER", "NORM"])
@pytest.mark.parametrize(
    "term, text",
    [("DR. WATSON", "Dr. Watson"), ("Dr. Watson", "DR. WATSON"), ("U.S.", "u.s."), ("u.s. army", "U.S. Army")],
)
def test_abbreviations_in_other_case(attr, term, text):
    nlp = make_nlp([Term("A", term)], "en", attr=attr, acronym_length=0)
    assert matched(nlp, f"the {text} came") == [(text, "A")]


@pytest.mark.parametrize("attr", ["FORM", "LOWER", "NORM"])
@pytest.mark.parametrize("term", ["ACME TRADING INC.", "Acme Trading Inc.", "acme trading inc."])
@pytest.mark.parametrize("text", ["ACME TRADING INC.", "Acme Trading Inc.", "acme trading inc."])
def test_exceptions_of_the_tokenizer_depend_on_case(attr, term, text):
    nlp = make_nlp(terms=[Term("ORG", term)], attr=attr)
    assert matched(nlp, f"I work at {text} now.") == [(text, "ORG")]
    exact = matched(make_nlp(terms=[Term("ORG", term)], attr="ORTH"), f"I work at {text} now.")
    assert exact == ([(text, "ORG")] if term == text else [])


def test_the_first_id_in_the_list_is_preferred_when_labels_become_one():
    terms = [Term("B", "cold", id="1"), Term("A", "cold", id="2"), Term("A", "cold", id="1")]
    nlp = make_nlp(terms, label_names={"A": "X", "B": "X"})
    doc = nlp("cold")
    (span,) = doc.spans["weak:gazetteer"]
    assert (span.label_, span.kb_id_) == ("X", "1")
    assert doc.spans["weak:gazetteer"].attrs["ids"] == [["1", "2"]]


def test_other_spellings_are_no_terms_of_their_own():
    nlp = make_nlp(terms=[Term("A", "Inc."), Term("A", "COVID-19"), Term("B", "x")])
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.add_terms([("B", "beta-blocker"), ("A", "Inc.")])
    assert [term.text for term in ruler.terms] == ["Inc.", "COVID-19", "x", "beta-blocker"]
    other = make_nlp(terms=[Term("C", "y")])
    other.get_pipe("gazetteer_ruler").from_bytes(ruler.to_bytes())
    assert matched(other, "beta‑blocker") == matched(nlp, "beta‑blocker") == [("beta‑blocker", "B")]
    # A stop list and acronyms in exact case have them too.
    terms = [Term("B", "beta-blocker"), Term("A", "Parkinson's"), Term("B", "x"), Term("C", "IL-2")]
    stopped = make_nlp(terms, "en", stop=["beta-blocker", "PARKINSON’S"])
    assert matched(stopped, "beta‑blocker beta-blocker Parkinson’s x") == [("x", "B")]
    assert matched(stopped, "IL‑2 il‑2 IL-2 Il-2") == [("IL‑2", "C"), ("IL-2", "C")]


@pytest.mark.parametrize("attr", ["FORM", "LOWER", "ORTH", "NORM"])
def test_token_patterns_of_orth_stay_exact(attr, tmp_path):
    rows = [{"label": "MONTH", "pattern": [{"ORTH": "May"}]}, {"label": "X", "pattern": [{"TEXT": "the"}]}]
    rows += [{"label": "LOC", "pattern": [{"ORTH": "New"}, {"TEXT": "York"}]}]
    nlp = make_nlp(terms=rows, attr=attr)
    text = "May was warm. It may rain in May. The NEW YORK and New\nYork, new york"
    expected = [("May", "MONTH"), ("May", "MONTH"), ("New\nYork", "LOC")]
    assert matched(nlp, text) == expected
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert matched(loaded, text) == expected
    ruler = loaded.get_pipe("gazetteer_ruler")
    terms = [Term("MONTH", "May", True), Term("X", "the", True), Term("LOC", "New York", True)]
    assert ruler.terms == list(read_terms(tmp_path / "gazetteer_ruler" / "terms.jsonl")) == terms
    # The same phrase in any case is another term.
    ruler.add_terms([Term("MONTH", "May")], loaded)
    assert len(ruler.terms) == 4
    if attr != "ORTH":
        assert matched(loaded, "It may rain in May.") == [("may", "MONTH"), ("May", "MONTH")]


def test_other_tokens():
    terms = [Term("品牌", "苹果"), Term("商品", "苹果手机"), Term("商品", "手机")]
    assert matched(make_nlp(terms, "zh"), "买苹果手机") == [("苹果", "品牌"), ("苹果手机", "商品"), ("手机", "商品")]
    nlp = make_nlp()
    assert matched(nlp, Doc(nlp.vocab, words=["heart", "failure", "-"]))[0] == ("heart failure", "Disease")
    assert matched(nlp, Doc(nlp.vocab, words=["heart failure"])) == []


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
    nlp = make_nlp(terms=[Term("A", "heart"), Term("A", "can't")], lang="en", attr=attr)
    assert [span for span, _ in matched(nlp, text)] == expected


def test_attr_lemma():
    nlp = lemma_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    nlp.add_pipe("sentencizer")  # pipes behind the ruler do not see the terms
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("A", "hearts failure"), Term("B", "heart attack")])
    assert matched(nlp, "Hearts failures, heart failure") == [("Hearts failures", "A"), ("heart failure", "A")]
    assert matched(nlp, " ") == matched(nlp, "") == []
    # Some tokens have lemmas.
    doc = Doc(nlp.vocab, words=["hearts", "attack", "attack"], lemmas=["heart", "", ""])
    assert ruler.match(doc) == [(0, 2, "B")]
    # None has.
    other = make_nlp(terms=None, attr="LEMMA")
    with pytest.raises(WeaknerError, match="WK203"):
        other.get_pipe("gazetteer_ruler").add_terms(TERMS, other)
    assert not other.vocab.in_memory_zone
    nlp.remove_pipe("gazetteer_ruler")
    other.get_pipe("gazetteer_ruler").add_terms(TERMS, nlp)
    with pytest.raises(WeaknerError, match="WK203"):
        other("heart")


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
    nlp = spacy.blank("xx")
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


@pytest.mark.parametrize("ambiguity, expected", [("all", ["A", "B"]), ("first", ["B"]), ("drop", [])])
def test_ambiguity(ambiguity, expected):
    # Of spellings of two terms the first term counts.
    nlp = make_nlp([Term("B", "CANNOT STOP"), Term("A", "cannot stop")], "en", attr="LOWER", ambiguity=ambiguity)
    assert [found for _, found in matched(nlp, "Cannot stop")] == expected
    # An acronym and a word of one label match once.
    nlp = make_nlp([Term("B", "AIDS"), Term("A", "aids"), Term("A", "AIDS")], ambiguity=ambiguity)
    lower = [("aids", "A")]
    assert matched(nlp, "AIDS aids") == [("AIDS", label) for label in expected] + lower


@pytest.mark.parametrize("attr", ["ORTH", "LOWER"])
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_equals_phrase_matcher(attr, seed):
    rng = numpy.random.RandomState(seed)
    words = ["Heart", "heart", "HEART", "failure", "-", "’s", "café", "Straße", "苹果", "can", "not"]

    def text(longest):
        return " ".join(words[i] for i in rng.randint(len(words), size=rng.randint(longest)))

    terms = [Term("ABC"[rng.randint(3)], text(4).strip() or "x") for _ in range(30)]
    nlp = make_nlp(terms=terms, attr=attr, acronym_length=0)
    matcher = PhraseMatcher(nlp.vocab, attr=attr)
    for name, text_, *_ in terms:
        matcher.add(name, [nlp.make_doc(text_)])
    docs = [nlp.make_doc(text(25)) for _ in range(20)]
    expected = [sorted({(start, end, nlp.vocab.strings[label]) for label, start, end in matcher(doc)}) for doc in docs]
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.initialize(lambda: [], nlp=nlp, terms=[*terms, Term("A", "x")])
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


def test_vocabulary_without_attributes():
    # Nothing has a lower form there: no term can be matched.
    nlp = make_nlp(attr="LOWER")
    for terms in (TERMS, [Term("A", "aspirin")]):
        ruler = make_nlp(terms=terms, attr="LOWER").get_pipe("gazetteer_ruler")
        docs = [Doc(Vocab()), Doc(Vocab(), words=["aspirin"])]
        with pytest.raises(ValueError, match=r"'gazetteer_ruler' compares LOWER.*nlp\.vocab"):
            ruler.match_batch(docs)
        assert ruler.match(docs[0]) == []
    assert make_nlp(attr="ORTH").get_pipe("gazetteer_ruler").match(docs[1]) == [(0, 1, "Chemical"), (0, 1, "Drug")]
    other = spacy.blank("xx")
    other.tokenizer = lambda text: Doc(Vocab(), words=text.split())
    with pytest.raises(WeaknerError, match=r"WK204.*without tokens: 7"):
        nlp.get_pipe("gazetteer_ruler").initialize(lambda: [], nlp=other, terms=TERMS)
    assert matches(nlp) == EXPECTED


def test_docs_of_several_vocabularies():
    ruler = make_nlp().get_pipe("gazetteer_ruler")
    docs = [doc for text in TEXTS for doc in (spacy.blank("en").make_doc(text), spacy.blank("en").make_doc(text))]
    assert list(ruler.match_docs(docs)) == [found for found in EXPECTED for _ in range(2)]
    terms = [Term("Unseen", "aspirin", id="Q1")]
    docs = [spacy.blank("en").make_doc("aspirin") for _ in range(2)]
    for doc in make_nlp(terms, annotate_ents=True).get_pipe("gazetteer_ruler").pipe(docs):
        assert [(ent.label_, ent.kb_id_) for ent in doc.ents] == [("Unseen", "Q1")]


def test_equal_words_may_differ_in_their_norm():
    nlp = spacy.blank("xx")
    nlp.tokenizer.add_special_case("dose", [{ORTH: "dose", "NORM": "amount"}])
    ruler = nlp.add_pipe("gazetteer_ruler", config={"attr": "NORM"})
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("A", "amount")])
    assert matched(nlp, "dose amount Dose") == [("dose", "A"), ("amount", "A")]
    assert ruler.match(Doc(nlp.vocab, words=["dose"])) == []  # its norm is "dose" where nothing says otherwise


# Errors in a stream


@pytest.mark.parametrize("batch_size", [1, 2, 1000])
def test_error_handler_gets_the_docs_that_fail(batch_size):
    nlp = lemma_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    ruler.add_terms([Term("A", "hearts")], nlp)
    docs = [Doc(nlp.vocab, words=["hearts", "x"], lemmas=["heart", "x"]) for _ in range(5)]
    docs.insert(2, Doc(nlp.vocab, words=["hearts"]))  # without lemmas
    with pytest.raises(WeaknerError, match="WK203"):
        list(ruler.pipe(docs, batch_size=batch_size))
    failed = []
    ruler.set_error_handler(lambda name, proc, docs, error: failed.append((name, proc, docs, str(error)[:7])))
    done = list(ruler.pipe(docs, batch_size=batch_size))
    assert done == [doc for i, doc in enumerate(docs) if i != 2]
    assert [group_entities(doc, "weak:gazetteer") for doc in done] == [[(0, 1, "A")]] * 5
    assert failed == [("gazetteer_ruler", ruler, [docs[2]], "[WK203]")]


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
    assert [token.lower_ for token in doc] == ["congestive", "heart", "failure", "is", "here"]
    assert [token.text for token in nlp.make_doc("congestive heart failure")] == ["congestive", "heart", "failure"]


def test_labels_outlive_a_memory_zone():
    nlp = make_nlp()
    before = nlp.make_doc(TEXTS[0])
    with nlp.memory_zone():
        assert matches(nlp) == EXPECTED
        nlp.get_pipe("gazetteer_ruler")(before)
    assert group_entities(before, "weak:gazetteer") == EXPECTED[0]
    assert matches(nlp) == EXPECTED
    # One that is a word of a text.
    nlp = make_nlp(terms=[Term("Aspirin", "aspirin")])
    for _ in range(3):
        with nlp.memory_zone():
            assert matched(nlp, "Aspirin aspirin") == [("Aspirin", "Aspirin"), ("aspirin", "Aspirin")]
    assert matched(nlp, "aspirin") == [("aspirin", "Aspirin")]
    # In a new vocabulary, of a Doc from before.
    loaded = make_nlp(terms=None)
    ruler = loaded.get_pipe("gazetteer_ruler").from_bytes(nlp.get_pipe("gazetteer_ruler").to_bytes())
    before = loaded.make_doc("aspirin")
    with loaded.memory_zone():
        loaded.make_doc("Aspirin")
        ruler(before)
    assert group_entities(before, "weak:gazetteer") == [(0, 1, "Aspirin")]


def test_initializing_inside_a_memory_zone():
    nlp = make_nlp(terms=None)
    with nlp.memory_zone():
        nlp.get_pipe("gazetteer_ruler").add_terms(TERMS, nlp)
        assert matches(nlp) == EXPECTED
    assert matches(nlp) == EXPECTED
    assert nlp.get_pipe("gazetteer_ruler").terms == TERMS


@pytest.mark.parametrize("source", ["terms", "patterns"])
def test_raw_text_and_rows_with_offsets_give_the_same(tmp_path, source):
    texts = ["high\nblood pressure", "so high  blood \t pressure", "high\n\nblood pressure"]
    texts.append("it is\n\nhigh blood\r\npressure")
    rows = [{"label": "D", "pattern": "high blood pressure"}, {"label": "E", "pattern": [{"LOWER": "blood"}]}]
    (tmp_path / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for more in ({}, {"spans": []}):
        (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text, **more}) + "\n" for text in texts))
        label(tmp_path / "in.jsonl", tmp_path / "out.spacy", sources={"s": {source: str(tmp_path / "list.jsonl")}})
        docs = read_docs(tmp_path / "out.spacy", Vocab())
        spans = [span for doc in docs for span in doc.spans[weak_group("s")]]
        found.append([(" ".join(span.text.split()), span.label_) for span in spans])
        (tmp_path / "out.spacy").unlink()
    phrase, word = ("high blood pressure", "D"), ("blood", "E")
    assert found[0] == found[1] == [phrase, word, phrase, word, word, phrase, word]

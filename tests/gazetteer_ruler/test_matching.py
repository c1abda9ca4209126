"""What the component matches, what it hands to an error handler, and what it leaves in memory."""

import itertools

import numpy
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.attrs import ORTH
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.corpus.weak import group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.forms import normal_form
from spacy_weakner.gazetteer_ruler.terms import Term, read_terms

from .util import EXPECTED, TERMS, TEXTS, lemma_nlp, make_nlp, matched, matches


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


@pytest.mark.parametrize("text", ["STRASSE", "Straße", "straße", "Strasse", "STRAẞE"])
def test_capitals_of_sharp_s(text):
    nlp = spacy.blank("de")
    nlp.add_pipe("gazetteer_ruler", config={"stop": ["GROẞ"]}).add_terms([("A", "Lange Straße"), ("B", "groß")])
    assert matched(nlp, f"In der lange {text}, groß") == [(f"lange {text}", "A")]


@pytest.mark.parametrize(
    "lang, term, text, found",
    [("tr", "ışık", "IŞIK", True), ("tr", "istanbul", "İSTANBUL", True), ("en", "ışık", "IŞIK", False)],
)
def test_dotted_and_dotless_i(lang, term, text, found):
    nlp = spacy.blank(lang)
    nlp.add_pipe("gazetteer_ruler").add_terms([("A", term)])
    assert bool(matched(nlp, text)) is found


@pytest.mark.parametrize("attr", ["FORM", "LOWER"])
@pytest.mark.parametrize("term", ["ACME TRADING INC.", "Acme Trading Inc.", "acme trading inc."])
@pytest.mark.parametrize("text", ["ACME TRADING INC.", "Acme Trading Inc.", "acme trading inc."])
def test_exceptions_of_the_tokenizer_depend_on_case(attr, term, text):
    nlp = make_nlp(terms=[Term("ORG", term)], attr=attr)
    assert matched(nlp, f"I work at {text} now.") == [(text, "ORG")]
    exact = matched(make_nlp(terms=[Term("ORG", term)], attr="ORTH"), f"I work at {text} now.")
    assert exact == ([(text, "ORG")] if term == text else [])


def test_other_spellings_are_no_terms_of_their_own():
    nlp = make_nlp(terms=[Term("A", "Inc."), Term("A", "COVID-19"), Term("B", "x")])
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert len(ruler.terms) == 3
    ruler.add_terms([("B", "beta-blocker"), ("A", "Inc.")])
    assert [term.text for term in ruler.terms] == ["Inc.", "COVID-19", "x", "beta-blocker"]
    assert matched(nlp, "beta‑blocker") == [("beta‑blocker", "B")]
    other = make_nlp(terms=[Term("C", "y")])
    other.get_pipe("gazetteer_ruler").from_bytes(ruler.to_bytes())
    assert matched(other, "beta‑blocker") == [("beta‑blocker", "B")]
    stopped = make_nlp(terms=[Term("B", "beta-blocker"), Term("B", "x")], stop=["beta-blocker"])
    assert matched(stopped, "beta‑blocker beta-blocker x") == [("x", "B")]


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


def test_chinese_characters():
    nlp = spacy.blank("zh")
    ruler = nlp.add_pipe("gazetteer_ruler")
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term("品牌", "苹果"), Term("商品", "苹果手机"), Term("商品", "手机")])
    assert matched(nlp, "买苹果手机") == [("苹果", "品牌"), ("苹果手机", "商品"), ("手机", "商品")]


def test_tokenized_docs():
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
    nlp = make_nlp(terms=[Term("A", "heart"), Term("A", "can't")], lang="en", attr=attr)
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


def test_acronym_and_word_of_one_label_match_once():
    nlp = make_nlp(terms=[Term("A", "aids"), Term("A", "AIDS"), Term("B", "AIDS")])
    assert matched(nlp, "AIDS aids") == [("AIDS", "A"), ("AIDS", "B"), ("aids", "A")]


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
    for label, text_, *_ in terms:
        matcher.add(label, [nlp.make_doc(text_)])
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


def test_numbers_of_labels():
    nlp = make_nlp()
    ruler = nlp.get_pipe("gazetteer_ruler")
    matches_ = ruler.match_batch([nlp.make_doc(text) for text in TEXTS])
    assert [ruler.labels[i] for i in matches_.concepts] == [label for doc in EXPECTED for _, _, label in doc]
    assert matches_.sequences.tolist() == [i for i, doc in enumerate(EXPECTED) for _ in doc]


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


def test_equal_words_may_differ_in_their_norm():
    nlp = spacy.blank("xx")
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
def test_initializing_inside_a_memory_zone(attr):
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

"""A ruler that writes entities: a term list as a pipeline."""

import random

import pytest
from spacy.tokens import Span

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import doc_entities, group_entities
from spacy_weakner.gazetteer_ruler.terms import Term
from spacy_weakner.labeling.aggregate import aggregate

from ..util import make_doc, make_example, reload_bytes, reload_copy, reload_disk
from .util import EXPECTED, TERMS, TEXTS, make_nlp, matches

TEXT = "congestive heart failure"


def draw_terms(rng):
    """Terms of few words, so that they overlap and have several labels."""
    words = ["a", "bb", "ccc", "dddd"]
    texts = [" ".join(rng.choice(words) for _ in range(rng.randint(1, 3))) for _ in range(8)]
    return [Term(rng.choice("XYZ"), text) for text in texts]


@pytest.mark.parametrize("seed", range(5))
def test_entities_are_those_of_aggregate(tmp_path, seed):
    rng = random.Random(seed)
    terms = draw_terms(rng)
    words = [*["a", "bb", "ccc", "dddd", "e"], "\n"]
    lines = [" ".join(rng.choice(words) for _ in range(12)) for _ in range(20)]
    plain, nlp = make_nlp(terms=terms), make_nlp(terms=terms, annotate_ents=True)
    write_docs(tmp_path / "labeled.spacy", list(plain.pipe(lines)))
    aggregate(tmp_path / "labeled.spacy", tmp_path / "out.spacy", method="union", unmatched="outside")
    expected = [doc_entities(doc) for doc in read_docs(tmp_path / "out.spacy", nlp.vocab)]
    found = list(nlp.pipe(lines))
    assert [doc_entities(doc) for doc in found] == expected
    assert [group_entities(doc, "weak:gazetteer") for doc in found] == matches(plain, lines)
    assert any(expected)
    assert all(token.ent_iob for doc in found for token in doc)


def test_off_by_default():
    nlp = make_nlp()
    docs = list(nlp.pipe(TEXTS))
    assert not any(token.ent_iob for doc in docs for token in doc)
    doc = make_doc(nlp, TEXT, [(0, 1, "Z")], missing=[2])
    before = doc.to_array(["ENT_IOB", "ENT_TYPE"])
    assert (nlp(doc).to_array(["ENT_IOB", "ENT_TYPE"]) == before).all()
    example = make_example(nlp, TEXT, [(0, 3, "Disease")])
    assert not any(key.startswith("ents") for key in nlp.evaluate([example]))


@pytest.mark.parametrize(
    "overwrite, expected", [(False, [(2, 3, "Z"), (4, 5, "Chemical")]), (True, [(0, 3, "Disease"), (4, 5, "Chemical")])]
)
def test_entities_that_are_there(overwrite, expected):
    nlp = make_nlp(annotate_ents=True, overwrite=overwrite)
    doc = nlp.make_doc(TEXTS[0])
    doc.ents = [Span(doc, 2, 3, "Z", kb_id="Q1")]
    doc = nlp(doc)
    assert doc_entities(doc) == expected
    assert [ent.kb_id_ for ent in doc.ents if ent.label_ == "Z"] == ["Q1"] * (not overwrite)
    # All matches are matches, whatever becomes of them.
    assert group_entities(doc, "weak:gazetteer") == EXPECTED[0]


@pytest.mark.parametrize("overwrite", [False, "shorter", True])
@pytest.mark.parametrize("kb_id", ["", "Q1"])
def test_an_entity_that_equals_a_match(overwrite, kb_id):
    nlp = make_nlp([Term("Chemical", "aspirin", id="C1")], annotate_ents=True, overwrite=overwrite)
    doc = nlp.make_doc("Aspirin")
    doc.ents = [Span(doc, 0, 1, "Chemical", kb_id=kb_id)]
    doc.ents[0]._.weakner_score = 0.3
    (ent,) = nlp(doc).ents
    replaced = overwrite is True
    assert (ent.kb_id_, ent._.weakner_score) == ("C1" if replaced else kb_id or "C1", None if replaced else 0.3)


@pytest.mark.parametrize(
    "there, scored, expected",
    [
        ([(2, 3, "Z")], [None, None], [(0, 3, "Disease"), (4, 5, "Chemical")]),
        ([(1, 5, "Z")], [0.5], [(1, 5, "Z")]),
        ([(0, 3, "Z"), (3, 4, "Z")], [None, 0.5, None], [(0, 3, "Disease"), (3, 4, "Z"), (4, 5, "Chemical")]),
        ([(0, 3, "Disease")], [0.5, None], [(0, 3, "Disease"), (4, 5, "Chemical")]),
    ],
)
def test_the_longest_of_what_is_there_and_of_matches(there, scored, expected):
    nlp = make_nlp(annotate_ents=True, overwrite="shorter")
    doc = nlp.make_doc(TEXTS[0])
    doc.ents = [Span(doc, *entity, kb_id="Q1") for entity in there]
    for ent in doc.ents:
        ent._.weakner_score = 0.5
    doc = nlp(doc)
    assert doc_entities(doc) == expected and [ent._.weakner_score for ent in doc.ents] == scored
    assert {ent.kb_id_ for ent in doc.ents if (ent.start, ent.end, ent.label_) in there} <= {"Q1"}


@pytest.mark.parametrize("overwrite", [False, "shorter", True])
def test_blocked_tokens(overwrite):
    nlp = make_nlp(annotate_ents=True, overwrite=overwrite)
    doc = nlp.make_doc(TEXTS[0])
    doc.set_ents([], blocked=[doc[0:1]], default="missing")
    found = doc_entities(nlp(doc))
    assert found == [(0 if overwrite is True else 1, 3, "Disease"), (4, 5, "Chemical")]
    assert (doc[0].ent_iob_, doc[0].ent_type_) == ("B", "Disease" if overwrite is True else "")


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_storage(tmp_path, reload):
    nlp = make_nlp(annotate_ents=True, overwrite=True)
    other = reload(nlp, tmp_path)
    ruler = other.get_pipe("gazetteer_ruler")
    assert (ruler.annotate_ents, ruler.overwrite) == (True, True)
    docs = [other(text) for text in TEXTS]
    assert [doc_entities(doc) for doc in docs] == [doc_entities(nlp(text)) for text in TEXTS]
    # Twice is as once.
    assert [doc_entities(ruler(doc)) for doc in docs] == [doc_entities(nlp(text)) for text in TEXTS]


def test_scores_of_an_evaluation():
    nlp = make_nlp(annotate_ents=True)
    gold = [(0, 3, "Disease")], [(0, 1, "Chemical"), (1, 2, "Chemical")]
    scores = nlp.evaluate([make_example(nlp, text, own) for text, own in zip((TEXT, "aspirin it"), gold, strict=True)])
    assert (scores["ents_p"], scores["ents_r"]) == (1.0, pytest.approx(2 / 3))
    assert nlp.get_pipe("gazetteer_ruler").scorer is not None


def test_before_another_component_it_leaves_room():
    nlp = make_nlp(annotate_ents=True, terms=TERMS[3:4])
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "Z", "pattern": "aspirin"}, {"label": "Z", "pattern": "it"}])
    assert doc_entities(nlp("it aspirin")) == [(0, 1, "Z"), (1, 2, "Chemical")]
    assert matches(nlp, ["it aspirin"]) == [[(1, 2, "Chemical")]]

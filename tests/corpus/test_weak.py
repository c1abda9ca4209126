"""What a Doc carries: written, read, removed."""

import numpy
import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import TagDistributions
from spacy_weakner.errors import WeaknerError

from ..util import make_doc

NLP = spacy.blank("xx")
SOFT = TagDistributions(("O", "B-X", "I-X"), "BIO", numpy.full((3, 3), 1 / 3, dtype="float32"))


@pytest.fixture
def doc():
    return make_doc(NLP, "a b c", [(0, 2, "X")])


# Span groups


def test_groups_keep_overlaps_order_and_scores(doc):
    entities = [(1, 3, "Y"), (0, 2, "X"), (0, 2, "Y")]
    assert weak.group_entities(doc, "g") == weak.group_scores(doc, "g") == []
    group = weak.set_group(doc, "g", entities, [numpy.float32(0.5), None, 1])
    assert weak.group_entities(doc, "g") == entities and weak.group_scores(doc, "g") == [0.5, None, 1.0]
    assert type(group.attrs["scores"][0]) is float and weak.doc_entities(doc) == [(0, 2, "X")]
    weak.set_group(doc, "g", [(0, 1, "X")])
    assert weak.group_scores(doc, "g") == [None]


def test_weak_sources_are_sorted_and_no_other_groups(doc):
    for name in (weak.weak_group("b"), weak.weak_group("a:c"), weak.GOLD_GROUP, weak.PREDICTED_PREFIX + "ner"):
        weak.set_group(doc, name, [])
    assert weak.weak_sources(doc) == ["a:c", "b"]


# The sentence as a whole


@pytest.mark.parametrize(
    "name, value, default",
    [
        ("id", "s1", None),
        ("confidence", 0.25, 1.0),
        ("tags", ["B-X", None, "I-Y"], None),
        ("augmented", ["x", "y", "z"], None),
    ],
)
def test_values_are_kept_and_removed(doc, name, value, default):
    getter, setter = getattr(weak, f"get_{name}"), getattr(weak, f"set_{name}")
    assert getter(doc) == default
    setter(doc, value)
    assert getter(doc) == value
    setter(doc, None)
    assert getter(doc) == default
    assert doc.user_data == {}


@pytest.mark.parametrize("is_weak, stored, expected", [(False, None, 1.0), (True, None, None), (True, 0.0, 0.0)])
def test_confidence_of_weak_sentences_is_unknown_until_set(doc, is_weak, stored, expected):
    weak.set_weak(doc, is_weak)
    weak.set_confidence(doc, stored)
    assert weak.get_confidence(doc) == expected and weak.is_weak(doc) == is_weak
    weak.set_weak(doc, False)
    assert not weak.is_weak(doc)


def test_soft_labels(doc):
    assert weak.get_soft_labels(doc) is None
    weak.set_soft_labels(doc, SOFT)
    found = weak.get_soft_labels(doc)
    assert found[:2] == SOFT[:2]
    assert found.probabilities.tolist() == SOFT.probabilities.tolist()
    weak.set_soft_labels(doc, None)
    assert weak.get_soft_labels(doc) is None


def test_what_a_source_declares_is_kept_in_files(doc, tmp_path):
    weak.set_source(doc, "llm", [(0, 1, "X")], [0.5], reliability=0.25, complete=True)
    weak.set_source(doc, "terms", [])
    write_docs(tmp_path / "a.spacy", [doc])
    (back,) = read_docs(tmp_path / "a.spacy", NLP.vocab)
    assert weak.group_scores(back, "weak:llm") == [0.5]
    assert (weak.get_reliability(back, "llm"), weak.is_complete(back, "llm")) == (0.25, True)
    assert (weak.get_reliability(back, "terms"), weak.is_complete(back, "terms")) == (None, False)


def test_spans_that_other_code_has_appended_or_removed(doc, tmp_path):
    weak.set_source(doc, "a", [(0, 1, "X")], [0.5], ids={(0, 1, "X"): ["1", "2"]})
    doc.spans["weak:a"].append(Span(doc, 1, 2, "Y", kb_id="3"))
    write_docs(tmp_path / "docs.spacy", [doc])
    for found in (doc, *read_docs(tmp_path / "docs.spacy", doc.vocab)):
        assert weak.group_scores(found, "weak:a") == [0.5, None]
        assert weak.group_ids(found, "weak:a") == {(0, 1, "X"): ("1", "2"), (1, 2, "Y"): ("3",)}
        attrs = weak.select_attrs(found.spans["weak:a"], [1, 0])
        assert list(attrs["scores"]) == [None, 0.5] and list(map(list, attrs["ids"])) == [["3"], ["1", "2"]]
    doc.spans["weak:a"].attrs["scores"] = [0.5, None, 0.5]
    with pytest.raises(WeaknerError, match=r"'weak:a' has 2 spans.*'scores'\] has 3 values"):
        weak.group_scores(doc, "weak:a")


def test_ids_are_those_of_the_most_reliable_source():
    doc = make_doc(NLP, "Anna left", [(0, 1, "PER")])
    for source, reliability in [("a", 0.1), ("b", None), ("z", 0.9)]:
        weak.set_source(doc, source, [(0, 1, "PER")], ids={(0, 1, "PER"): [source]}, reliability=reliability)
    weak.add_ids(doc)
    assert doc.ents[0].kb_id_ == "z"

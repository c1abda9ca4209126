"""What a student learns from the decisions of its teacher."""

import pytest
from spacy.tokens import Span

from spacy_weakner.corpus.gold import missing_tokens
from spacy_weakner.corpus.weak import doc_entities, is_weak, set_group
from spacy_weakner.project.combine import DECIDED
from spacy_weakner.project.teaching import Labels, Taught

from ..util import make_doc
from .util import NLP

TEXT = "Anna met Otto and Eva in New York today ."


def decide(entities, **probabilities):
    """A sentence with entities, and candidates with probabilities."""
    doc = make_doc(NLP, TEXT)
    doc.ents = [Span(doc, *entity) for entity in entities]
    if probabilities:
        candidates = [(int(key[1]), int(key[2]), key[4:]) for key in probabilities]
        set_group(doc, DECIDED, candidates, [*probabilities.values()])
    return doc


@pytest.mark.parametrize(
    "entities, probabilities, learned, missing",
    [
        ([(0, 1, "PER")], {"_01_PER": 0.8}, [(0, 1, "PER")], []),
        ([(0, 1, "PER")], {"_01_PER": 0.79}, [], [0]),
        ([], {"_01_PER": 0.2}, [], []),
        ([], {"_01_PER": 0.21}, [], [0]),
        # A head was chosen alone: it decides, however improbable its entity.
        ([(0, 1, "PER")], {"_01_PER": 0.1}, [], [0]),
        ([], {"_01_PER": 0.9}, [], [0]),
        # A part of "New York" may be the entity.
        ([(6, 8, "LOC")], {"_68_LOC": 0.6, "_78_LOC": 0.35}, [], [6, 7]),
        ([(6, 8, "LOC")], {"_68_LOC": 0.9, "_78_LOC": 0.05}, [(6, 8, "LOC")], []),
        # Another label is as probable.
        ([(0, 1, "PER")], {"_01_PER": 0.5, "_01_LOC": 0.5}, [], [0]),
        # Binding terms and short forms are no candidates, and sure; what they replaced, or overlap, is not.
        ([(0, 1, "PER")], {}, [(0, 1, "PER")], []),
        ([(6, 8, "LOC")], {"_68_ORG": 0.7}, [(6, 8, "LOC")], []),
        ([(6, 8, "LOC")], {"_69_ORG": 0.7}, [(6, 8, "LOC")], [8]),
        ([], {}, [], []),
    ],
)
def test_what_a_teacher_is_not_sure_of_is_missing(entities, probabilities, learned, missing):
    text = make_doc(NLP, TEXT.upper())
    labels = Labels.of(decide(entities, **probabilities))
    taught = labels.teach(text)
    assert (doc_entities(taught), missing_tokens(taught)) == (learned, missing)
    assert labels.entities == entities and is_weak(taught) and not is_weak(text) and taught.text == text.text
    # Without what is not sure, all is learned.
    taught = Labels(labels.entities).teach(text)
    assert (doc_entities(taught), missing_tokens(taught)) == (entities, [])


def test_an_empty_text():
    doc = make_doc(NLP, "")
    assert len(Labels.of(doc).teach(doc)) == 0


def test_a_third_of_the_entities_may_be_missing():
    sure = Labels.of(decide([(0, 1, "PER"), (2, 3, "PER")], _01_PER=0.9, _23_PER=0.8, _45_PER=0.3))
    unsure = Labels.of(decide([(0, 1, "PER")], _01_PER=0.7))
    third = Taught.of([sure, unsure])
    assert third == Taught(entities=3, unsure_entities=1, unsure_others=1) and third.leaves_out
    half = Taught.of([sure, unsure, unsure])
    assert half == Taught(entities=4, unsure_entities=2, unsure_others=1) and not half.leaves_out
    assert third.note and half.note and third.note != half.note
    for labels in ([], [Labels([])], [Labels([(0, 1, "PER")])]):
        assert Taught.of(labels).note == ""

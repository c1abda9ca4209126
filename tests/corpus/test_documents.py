"""Which sentences belong to one document."""

import pytest
import spacy

from spacy_weakner.corpus.documents import LONGEST, document_of, group_documents
from spacy_weakner.corpus.weak import get_id, set_id

VOCAB = spacy.blank("xx").vocab


def grouped(*identifiers):
    docs = [spacy.tokens.Doc(VOCAB, words=["a"]) for _ in identifiers]
    for doc, identifier in zip(docs, identifiers, strict=True):
        set_id(doc, identifier)
    return [[get_id(doc) for doc in group] for group in group_documents(docs)]


@pytest.mark.parametrize(
    "identifier, document",
    [("a7.1", "a7"), ("a7.12", "a7"), ("a.b.3", "a.b"), ("a7", None), (".1", None), ("a.x", None), ("", None)],
)
def test_documents_of_sentences(identifier, document):
    assert document_of(identifier) == document
    assert document_of(None) is None


def test_sentences_follow_each_other_and_count_up():
    assert grouped("a.1", "a.2", "a.5", "b.1", "a.6") == [["a.1", "a.2", "a.5"], ["b.1"], ["a.6"]]
    assert grouped("a.2", "a.1", "a.1", "a.2") == [["a.2"], ["a.1"], ["a.1", "a.2"]]
    assert grouped(None, None, "x", "x") == [[None], [None], ["x"], ["x"]]
    assert grouped() == []


def test_a_data_set_is_no_document():
    names = [f"train.{n}" for n in range(2 * LONGEST)]
    assert grouped(*names) == [[name] for name in names]
    # However it is cut.
    assert grouped(*names[LONGEST + 10 :]) == [[name] for name in names[LONGEST + 10 :]]
    assert len(grouped(*names[: LONGEST + 1], "b.1")) == 2

"""What belongs together when gold is split."""

import random

import pytest
import spacy

from spacy_weakner.corpus.documents import count_documents, document_of
from spacy_weakner.corpus.sentences import SHORT
from spacy_weakner.corpus.weak import get_id, set_id, set_source
from spacy_weakner.runs.groups import (
    group_docs,
    learnable,
    split_folds,
    without_copies,
)

from ..util import make_doc, raw

NLP = spacy.blank("xx")


def sentences(n, per_document=0, labeled=None):
    """Sentences, the first of which have entities; documents where `per_document` is given."""
    docs = [
        make_doc(NLP, f"sentence number {i} .", [(0, 1, "X")] if labeled is None or i < labeled else [])
        for i in range(n)
    ]
    for i, doc in enumerate(docs if per_document else ()):
        set_id(doc, f"d{i // per_document}.{i % per_document}")
    return docs


def documents(docs):
    return {document_of(get_id(doc)) for doc in docs}


def texts(docs):
    return {doc.text for doc in docs}


def test_documents_are_counted_where_identifiers_tell():
    assert count_documents(sentences(20, 4)) == 5
    assert count_documents(sentences(20)) == 0 == count_documents(sentences(20, 1)) == count_documents([])


def test_groups():
    assert sorted(map(len, group_docs(sentences(20, 4), "0"))) == [4] * 5
    assert len(group_docs(sentences(20, 4), "0", least=6)) == 20 == len(group_docs(sentences(20), "0"))
    # Sentences without a document stand for themselves.
    assert len(group_docs([*sentences(20, 4), *(raw(NLP, f"other {i}") for i in range(3))], "0")) == 8
    # Neither case nor white space tells sentences apart.
    assert len(group_docs([raw(NLP, text) for text in ("a b", "A  b", "ab", "a c")], "0")) == 2


def test_groups_depend_on_the_seed_and_not_on_the_order():
    docs = sentences(40, 4)
    one, other = ([[doc.text for doc in group] for group in group_docs(docs, seed)] for seed in "01")
    assert one != other and sorted(one) == sorted(other)
    random.Random(0).shuffle(docs)
    assert [[doc.text for doc in group] for group in group_docs(docs, "0")] == one


def test_only_long_copies_are_left_out():
    docs = [raw(NLP, text) for text in ("a " * SHORT, "a " * (SHORT + 1), "b " * (SHORT + 1))]
    assert without_copies(docs, [raw(NLP, doc.text.upper()) for doc in docs[:2]]) == [docs[0], docs[2]]


def test_a_document_is_in_one_fold():
    docs = sentences(60, 5)
    folds = split_folds(docs, 3)
    assert [len(fold.held_out) for fold in folds] == [20, 20, 20]
    for fold in folds:
        assert not documents(fold.held_out) & documents(fold.rest)
        assert texts(fold.held_out) | texts(fold.rest) == texts(docs)


def test_what_is_held_out_has_no_copy_in_the_rest():
    docs = sentences(60, 5)
    for i in range(0, 60, 5):
        copy = make_doc(NLP, "The same in all .", [(0, 1, "X")])
        set_id(copy, f"d{i // 5}.9")
        docs.append(copy)
    folds = split_folds(docs, 3)
    assert sum(len(fold.held_out) for fold in folds) == len(docs)
    assert all(not texts(fold.held_out) & texts(fold.rest) and len(fold.rest) == 40 for fold in folds)


def test_fewer_documents_than_folds_are_split_by_sentence():
    folds = split_folds(sentences(30, 15), 3)
    assert [len(fold.held_out) for fold in folds] == [10, 10, 10]
    assert [len(fold.held_out) for fold in split_folds(sentences(2), 3)] == [1, 1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("labeled", [2, 3])
def test_entities_spread(labeled, seed):
    folds = split_folds(sentences(9, labeled=labeled), 3, seed)
    assert [len(fold.held_out) for fold in folds] == [3, 3, 3] and learnable(folds)
    assert sorted(sum(bool(doc.ents) for doc in fold.held_out) for fold in folds) == [labeled - 2, 1, 1]
    # In one document alone: by sentence, then.
    assert learnable(split_folds(sentences(9, 3, labeled=labeled), 3, seed))


def test_a_single_sentence_with_labels():
    assert not learnable(split_folds(sentences(9, labeled=1), 3))
    # What has no label at all is for whoever trains on it.
    assert learnable(split_folds(sentences(9, labeled=0), 3))


def test_labels_of_other_kinds():
    docs = sentences(9, labeled=0)
    docs[0].cats, docs[1].cats = {"GOOD": 1.0}, {"GOOD": 0.0}
    set_source(docs[2], "list", [(0, 1, "X")])
    assert not learnable(split_folds(docs, 3))
    docs[3].spans["sc"] = [docs[3][:2]]
    assert learnable(split_folds(docs, 3))

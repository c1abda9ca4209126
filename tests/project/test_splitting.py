"""Dev and test are split off the gold."""

import random
from collections import defaultdict

import pytest

from spacy_weakner.annotations.weak import get_id
from spacy_weakner.project.splitting import LARGEST, SHARE, document_of, split_gold

from ..util import raw
from .util import NLP, numbered


def docs_of(texts):
    return [raw(NLP, text) for text in texts]


def texts_of(split):
    return [{doc.text for doc in part} for part in split[:3]]


@pytest.mark.parametrize(
    "identifier, document",
    [("a7.1", "a7"), ("a7.12", "a7"), ("a.b.3", "a.b"), ("a7", None), (".1", None), ("a.x", None), ("", None)],
)
def test_documents_of_sentences(identifier, document):
    assert document_of(identifier) == document
    assert document_of(None) is None


def test_parts_have_their_size_and_nothing_is_lost():
    docs = docs_of(f"sentence {i}" for i in range(500))
    split = split_gold(docs, dev=True, test=True)
    assert [len(part) for part in split[:3]] == [300, 100, 100] and split.documents == 0
    gold, dev, test = texts_of(split)
    assert not gold & dev and not gold & test and not dev & test
    assert gold | dev | test == {doc.text for doc in docs}


@pytest.mark.parametrize("dev, test", [(True, False), (False, True), (False, False)])
def test_only_what_is_wanted(dev, test):
    split = split_gold(docs_of(f"sentence {i}" for i in range(100)), dev=dev, test=test)
    assert [len(part) for part in split[1:3]] == [20 * dev, 20 * test] and len(split.gold) == 100 - 20 * (dev + test)


def test_parts_are_not_larger_than_needed():
    assert 6 * LARGEST * SHARE > LARGEST
    assert len(split_gold(docs_of(f"{i}" for i in range(6 * LARGEST)), dev=True, test=False).dev) == LARGEST


def test_the_order_stays_and_does_not_matter():
    docs = docs_of(f"sentence {i % 90}" for i in range(100))
    split = split_gold(docs, dev=True, test=True, seed=3)
    for part in split[:3]:
        assert [docs.index(doc) for doc in part] == sorted(docs.index(doc) for doc in part)
    random.Random(0).shuffle(docs)
    assert texts_of(split_gold(docs, dev=True, test=True, seed=3)) == texts_of(split)
    assert texts_of(split_gold(docs, dev=True, test=True, seed=4)) != texts_of(split)


def test_copies_of_a_text_are_in_one_part():
    docs = docs_of([f"{blanks}sentence {i % 50}" for i in range(150) for blanks in ("", "  ")])
    gold, dev, test = (
        {" ".join(text.split()) for text in part} for part in texts_of(split_gold(docs, dev=True, test=True))
    )
    assert not gold & dev and not gold & test and not dev & test and dev and test


def test_sentences_of_a_document_are_in_one_part():
    identifiers = [f"d{i // 4}.{i % 4 + 1}" for i in range(200)]
    docs = numbered(docs_of(f"sentence {i}" for i in range(200)), identifiers)
    split = split_gold(docs, dev=True, test=True)
    parts = defaultdict(set)
    for n, part in enumerate(split[:3]):
        for doc in part:
            parts[document_of(get_id(doc))].add(n)
    assert len(parts) == split.documents == 50 and all(len(found) == 1 for found in parts.values())
    assert [len(part) for part in split[:3]] == [120, 40, 40]


def test_documents_that_share_a_sentence_are_in_one_part():
    texts = [f"sentence {i}" for i in range(100)]
    texts[50] = texts[0]
    docs = numbered(docs_of(texts), [f"d{i // 10}.{i % 10}" for i in range(100)])
    where = {}
    for n, part in enumerate(split_gold(docs, dev=True, test=True)[:3]):
        where.update({get_id(doc): n for doc in part})
    assert len({where[f"d{d}.{i}"] for d in (0, 5) for i in range(10)}) == 1


def test_numbers_that_tell_nothing():
    docs = numbered(docs_of(f"sentence {i}" for i in range(100)), [f"d{i}.1" for i in range(100)])
    split = split_gold(docs, dev=True, test=False)
    assert split.documents == 0 and len(split.dev) == 20


def test_a_document_that_is_too_large_stays_with_the_gold():
    docs = numbered(docs_of(f"sentence {i}" for i in range(100)), [f"big.{i}" for i in range(100)])
    split = split_gold(docs, dev=True, test=True)
    assert len(split.gold) == 100 and not split.dev and not split.test
    docs = numbered(docs_of(f"sentence {i}" for i in range(100)), [f"d{i // 30}.{i}" for i in range(100)])
    split = split_gold(docs, dev=True, test=True)
    assert len(split.gold) >= 20 and sum(map(len, split[:3])) == 100

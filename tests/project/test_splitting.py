"""Dev and test are split off the gold."""

import random
from collections import defaultdict

import pytest

from spacy_weakner.corpus.documents import document_of
from spacy_weakner.corpus.weak import get_id
from spacy_weakner.project.splitting import LARGEST, SHARE, split_gold
from spacy_weakner.runs.groups import SHORT

from ..util import make_doc, raw
from .util import NLP, numbered


def docs_of(texts):
    """Sentences that begin with an entity: without any there are no parts."""
    return [make_doc(NLP, text.strip(), [(0, 1, "X")]) for text in texts]


def texts_of(split):
    return [{doc.text for doc in part} for part in split[:3]]


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
    docs = docs_of([text for i in range(150) for text in (f"sentence {i % 50}", f"SENTENCE  {i % 50}")])
    gold, dev, test = (
        {" ".join(text.lower().split()) for text in part} for part in texts_of(split_gold(docs, dev=True, test=True))
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


def test_documents_may_share_short_sentences():
    # Headings do not make one document of all.
    docs = numbered(
        docs_of("METHODS :" if i % 4 == 0 else f"what document {i // 4} says {i}" for i in range(400)),
        [f"d{i // 4}.{i % 4}" for i in range(400)],
    )
    split = split_gold(docs, dev=True, test=True)
    assert split.documents == 100 and [len(part) for part in split[:3]] == [240, 80, 80]
    assert split.dropped == {"dev": 0, "test": 0} and not split.reasons


def test_copies_in_other_documents_are_left_out_of_dev_and_test():
    docs = numbered(
        docs_of(f"Copyright by publisher {i % 3}" if i % 4 == 0 else f"sentence {i}" for i in range(400)),
        [f"d{i // 4}.{i % 4}" for i in range(400)],
    )
    assert len(docs[0]) > SHORT
    split = split_gold(docs, dev=True, test=True)
    gold, dev, test = texts_of(split)
    assert not gold & dev and not gold & test and not dev & test
    # Each document loses its first sentence, and gold nothing.
    assert [len(part) for part in split[:3]] == [240, 60, 60] and split.dropped == {"dev": 20, "test": 20}


@pytest.mark.parametrize("labeled", [0, 1])
def test_parts_without_entities_go_back(labeled):
    # One sentence alone has entities: wherever it goes, the other parts are of no use.
    docs = [raw(NLP, f"sentence {i}") for i in range(100 - labeled)] + docs_of(["Anna sings"] * labeled)
    split = split_gold(docs, dev=True, test=True)
    assert split.gold == docs and not split.dev and not split.test and not split.dropped
    assert set(split.reasons) == {"dev", "test"} and all("went back" in why for why in split.reasons.values())


def test_gold_keeps_some_entities():
    docs = docs_of(f"sentence {i}" for i in range(100))
    for part in ("dev", "test"):
        chosen = {doc.text for doc in getattr(split_gold(docs, dev=True, test=True), part)}
        others = [doc if doc.text in chosen else raw(NLP, doc.text) for doc in docs]
        split = split_gold(others, dev=True, test=True)
        assert len(split.gold) == 100 and "all entities" in split.reasons[part]


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

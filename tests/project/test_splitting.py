"""Dev and test are split off the gold."""

import random
from collections import defaultdict

import pytest

from spacy_weakner.corpus.documents import document_of
from spacy_weakner.corpus.sentences import SHORT
from spacy_weakner.corpus.weak import get_id
from spacy_weakner.project import splitting
from spacy_weakner.project.splitting import LARGEST, SHARE, split_gold

from ..util import make_doc, raw
from .util import NLP, numbered


@pytest.fixture(autouse=True)
def little_to_split(monkeypatch):
    for name in ("MIN_TO_SPLIT", "MIN_FOR_TEST"):
        monkeypatch.setattr(splitting, name, 50)


def docs_of(texts):
    """Sentences that begin with an entity: without any there are no parts."""
    return [make_doc(NLP, text.strip(), [(0, 1, "X")]) for text in texts]


def texts_of(split):
    """Texts of gold, dev and test, of which none is in two of them."""
    gold, dev, test = ({" ".join(doc.text.lower().split()) for doc in part} for part in split[:3])
    assert not gold & dev and not gold & test and not dev & test
    return gold, dev, test


def sizes(split):
    return [len(part) for part in split[:3]]


@pytest.mark.parametrize("dev, test", [(True, True), (True, False), (False, True), (False, False)])
def test_parts_have_their_size_and_nothing_is_lost(dev, test):
    docs = docs_of(f"sentence {i}" for i in range(100))
    split = split_gold(docs, dev=dev, test=test)
    assert sizes(split) == [100 - 20 * (dev + test), 20 * dev, 20 * test]
    assert set.union(*texts_of(split)) == {doc.text for doc in docs}
    wanted = [name for name, is_wanted in (("dev", dev), ("test", test)) if is_wanted]
    assert [note.split()[0] for note in split.notes] == wanted
    assert all("20 sentences were split off the gold, sentence by sentence, seed 0" in note for note in split.notes)


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
    assert all(texts_of(split_gold(docs, dev=True, test=True)))


def test_sentences_of_a_document_are_in_one_part():
    docs = numbered(docs_of(f"sentence {i}" for i in range(200)), [f"d{i // 4}.{i % 4 + 1}" for i in range(200)])
    split = split_gold(docs, dev=True, test=True)
    parts = defaultdict(set)
    for n, part in enumerate(split[:3]):
        for doc in part:
            parts[document_of(get_id(doc))].add(n)
    assert len(parts) == 50 and all(len(found) == 1 for found in parts.values())
    assert sizes(split) == [120, 40, 40] and "by document (50 documents)" in split.notes[0]


@pytest.mark.parametrize(
    "repeated, expected, dropped",
    # Headings do not make one document of all. Of longer copies each document loses its first, and gold nothing.
    [("METHODS :", [240, 80, 80], False), ("Copyright by publisher", [240, 60, 60], True)],
)
def test_copies_in_other_documents(repeated, expected, dropped):
    docs = numbered(
        docs_of(f"{repeated} {i % 3 if dropped else ''}" if i % 4 == 0 else f"sentence {i}" for i in range(400)),
        [f"d{i // 4}.{i % 4}" for i in range(400)],
    )
    assert (len(docs[0]) > SHORT) == dropped
    split = split_gold(docs, dev=True, test=True)
    assert sizes(split) == expected and all("by document (100 documents)" in note for note in split.notes)
    assert all(("; 20 more were left out" in note) == dropped for note in split.notes)
    assert not dropped or texts_of(split)


@pytest.mark.parametrize("labeled", [0, 1])
def test_parts_without_entities_go_back(labeled):
    # One sentence alone has entities: wherever it goes, the other parts are of no use.
    docs = [raw(NLP, f"sentence {i}") for i in range(100 - labeled)] + docs_of(["Anna sings"] * labeled)
    split = split_gold(docs, dev=True, test=True)
    assert split.gold == docs and not split.dev and not split.test
    assert len(split.notes) == 2 and all("were returned to the gold" in note for note in split.notes)


def test_gold_keeps_some_entities():
    docs = docs_of(f"sentence {i}" for i in range(100))
    for n, part in enumerate(("dev", "test")):
        chosen = {doc.text for doc in getattr(split_gold(docs, dev=True, test=True), part)}
        others = [doc if doc.text in chosen else raw(NLP, doc.text) for doc in docs]
        split = split_gold(others, dev=True, test=True)
        assert len(split.gold) == 100 and "all entities" in split.notes[n]


def test_documents_that_are_too_small_or_too_large():
    docs = numbered(docs_of(f"sentence {i}" for i in range(100)), [f"d{i}.1" for i in range(100)])
    split = split_gold(docs, dev=True, test=False)
    assert "sentence by sentence" in split.notes[0] and len(split.dev) == 20
    # One that is too large stays with the gold.
    split = split_gold(numbered(docs, [f"big.{i}" for i in range(100)]), dev=True, test=True)
    assert sizes(split) == [100, 0, 0] and all("single document" in note for note in split.notes)
    split = split_gold(numbered(docs, [f"d{i // 30}.{i}" for i in range(100)]), dev=True, test=True)
    assert len(split.gold) >= 20 and sum(sizes(split)) == 100
    split = split_gold(docs[:49], dev=True, test=True)
    assert sizes(split) == [49, 0, 0] and all("49 gold sentences are too few" in note for note in split.notes)

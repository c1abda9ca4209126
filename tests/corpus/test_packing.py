"""`DocPacker` against spaCy's `DocBin`."""

import random

import numpy
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import DocPacker

WORDS = ["Anna", "met", "Bob", "in", "ÄÖ", "😊", "x" * 50, "5", "-", "don't"]


def random_doc(vocab, rng):
    """A Doc with all that spaCy knows of tokens and spans, or some of it."""
    n = rng.randrange(8)
    words = [rng.choice(WORDS) for _ in range(n)]
    layers = {
        "tags": [rng.choice(["NN", "VB", ""]) for _ in words],
        "pos": [rng.choice(["NOUN", "VERB", ""]) for _ in words],
        "morphs": [rng.choice(["Number=Sing", "Number=Plur|Person=3", "", "_"]) for _ in words],
        "lemmas": [rng.choice(["anna", "meet", ""]) for _ in words],
        "deps": [rng.choice(["nsubj", "ROOT", ""]) for _ in words],
        "heads": [rng.randrange(n) for _ in words],
    }
    chosen = {name: values for name, values in layers.items() if rng.random() < 0.5}
    if "heads" in chosen or "deps" in chosen:
        chosen.update(heads=layers["heads"], deps=layers["deps"])
    spaces = None if rng.random() < 0.2 else [rng.random() < 0.7 for _ in words]
    doc = Doc(vocab, words=words, spaces=spaces, **chosen)
    if n and rng.random() < 0.5:
        doc[0].norm_ = "other"
        doc.set_ents([Span(doc, 0, 1, label="PER", kb_id=rng.choice(["", "Q1"]), span_id=rng.choice(["", "e1"]))])
    for name in ("a", "b"):
        if n and rng.random() < 0.5:
            doc.spans[name] = [Span(doc, 0, n, label=rng.choice("XYZ"), kb_id=rng.choice(["", "Q2"]))]
    doc.cats = {"T": 0.5} if rng.random() < 0.5 else {}
    doc.user_data["key"] = rng.random()
    return doc


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_vocabs, n", [(1, 0), (1, 1), (1, 30), (3, 30)])
def test_contents_are_those_of_a_doc_bin(seed, n_vocabs, n):
    rng, vocabs = random.Random(seed), [spacy.blank("xx").vocab for _ in range(n_vocabs)]
    docs = [random_doc(rng.choice(vocabs), rng) for _ in range(n)]
    packed = DocPacker()
    for doc in docs:
        packed.add(doc)
    assert packed.to_bytes() == DocBin(store_user_data=True, docs=docs).to_bytes()


def test_other_user_data_is_stored():
    doc = Doc(Vocab(), words=["a"])
    doc.user_data["large"] = numpy.zeros(1000)
    packed = DocPacker()
    packed.add(doc, {"own": 1})
    (read,) = DocBin().from_bytes(packed.to_bytes()).get_docs(Vocab())
    assert read.user_data == {"own": 1} and "large" in doc.user_data


def test_a_memory_zone_may_end_before_the_docs_are_written():
    nlp = spacy.blank("xx")
    packed = DocPacker()
    for text in ("some rare words", "more of them", "some other ones"):
        with nlp.memory_zone():
            packed.add(nlp.make_doc(text))
    docs = [nlp.make_doc(text) for text in ("some rare words", "more of them", "some other ones")]
    assert packed.to_bytes() == DocBin(store_user_data=True, docs=docs).to_bytes()

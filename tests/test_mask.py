"""Hiding gold entities."""

import pytest
import spacy

from benchmarks.mask import mask
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.gold import find_gold

from .util import make_doc

NLP = spacy.blank("xx")


def many(n=300):
    return [make_doc(NLP, f"Anna went to New York {i}", [(0, 1, "PER"), (3, 5, "LOC")]) for i in range(n)]


def run(tmp_path, docs, name="out", **settings):
    write_docs(tmp_path / "in.spacy", docs)
    report = mask(tmp_path / "in.spacy", tmp_path / f"{name}.spacy", **settings)
    return report, list(read_docs(tmp_path / f"{name}.spacy", NLP.vocab))


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_share(tmp_path, probability):
    report, docs = run(tmp_path, many(), probability=probability)
    n_left = sum(len(doc.ents) for doc in docs)
    assert (report.docs, report.entities, sum(report.hidden.values())) == (300, 600, 600 - n_left)
    # Four standard errors.
    assert abs(n_left - 600 * (1 - probability)) <= 4 * (600 * probability * (1 - probability)) ** 0.5
    # Gold is kept, and the rest looks outside.
    for doc in docs:
        assert find_gold(doc).entities == {(0, 1, "PER"), (3, 5, "LOC")} >= {*weak.doc_entities(doc)}
        assert weak.is_weak(doc) and all(token.ent_iob for token in doc)


def test_draws_depend_on_seed_and_sentence_only(tmp_path):
    def hidden(name, docs, seed):
        return {doc.text: weak.doc_entities(doc) for doc in run(tmp_path, docs, name, probability=0.5, seed=seed)[1]}

    first = hidden("a", many(50), 0)
    assert hidden("b", many(50)[::-1], 0) == first
    assert hidden("c", many(20), 0).items() <= first.items()
    assert hidden("d", many(50), 1) != first

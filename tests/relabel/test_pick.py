"""Corpora of what a model picks."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner.component import MRCNer
from spacy_weakner.relabel.pick import pick

from ..mrc_ner.util import log_odds, mrc_pipeline
from ..util import SENTENCES, make_doc, make_examples, train
from .util import nested_is_refused

NLP = spacy.blank("xx")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """It knows its sentences by heart."""
    nlp = mrc_pipeline()
    train(nlp, make_examples(nlp))
    path = tmp_path_factory.mktemp("pick") / "model"
    nlp.to_disk(path)
    return path


def run(tmp_path, model, docs, name="out", **settings):
    write_docs(tmp_path / f"in-{name}.spacy", docs)
    report = pick(tmp_path / f"in-{name}.spacy", tmp_path / f"{name}.spacy", model, **settings)
    return report, list(read_docs(tmp_path / f"{name}.spacy", NLP.vocab))


def weak_docs(entities=()):
    docs = [make_doc(NLP, text, list(entities)) for text, _ in SENTENCES]
    for doc in docs:
        weak.set_weak(doc)
    return docs


def test_labels_are_replaced(tmp_path, model):
    report, docs = run(tmp_path, model, weak_docs([(0, 1, "LOC")]), threshold=0.5)
    for doc, (_, gold) in zip(docs, SENTENCES, strict=True):
        assert set(weak.doc_entities(doc)) == set(gold)
        assert weak.is_weak(doc) and all(token.ent_iob for token in doc)
        assert weak.group_entities(doc, weak.MATCHED_GROUP) == [(0, 1, "LOC")]
    n_kept = sum((0, 1, "LOC") in gold for _, gold in SENTENCES)
    assert (report.docs, report.given, report.kept) == (len(SENTENCES), len(SENTENCES), n_kept)
    assert sum(report.picked.values()) == sum(len(gold) for _, gold in SENTENCES) - n_kept


def test_labels_of_the_first_stage_stay(tmp_path, model):
    docs = weak_docs([(0, 1, "LOC")])
    for doc in docs:
        weak.set_group(doc, weak.MATCHED_GROUP, [(0, 1, "PER")])
    for doc in run(tmp_path, model, docs)[1]:
        assert weak.group_entities(doc, weak.MATCHED_GROUP) == [(0, 1, "PER")]


def test_union_keeps_what_was_there(tmp_path, model):
    report, docs = run(tmp_path, model, weak_docs([(0, 1, "LOC")]), threshold=0.5, union=True)
    for doc, (_, gold) in zip(docs, SENTENCES, strict=True):
        expected = {(0, 1, "LOC"), *(entity for entity in gold if entity[0] > 0)}
        assert set(weak.doc_entities(doc)) == expected
    assert report.kept == report.given == len(docs)


def test_ids_of_kept_entities_are_kept(tmp_path, model):
    entity = (0, 1, "LOC")
    docs = weak_docs([entity])
    for doc in docs:
        for source in "ab":
            weak.set_source(doc, source, [entity], ids={entity: [source]})
        weak.give_ids(doc, {entity: ["b"]})
    for doc in run(tmp_path, model, docs, union=True)[1]:
        assert doc.ents[0].kb_id_ == "b" and weak.group_ids(doc, weak.MATCHED_GROUP) == {entity: ("b",)}


def test_threshold(tmp_path, model):
    counts = [
        sum(run(tmp_path, model, weak_docs(), f"t{i}", threshold=threshold)[0].picked.values())
        for i, threshold in enumerate((0.01, 0.5, 1.0))
    ]
    assert counts[0] >= counts[1] > counts[2] == 0


def test_an_improbable_end_cuts_no_entity_short(tmp_path, monkeypatch, model):
    def said(self, vectors, model=None):
        scores = numpy.full((len(vectors[0]), len(self.labels), 2), 0.01)
        scores[[0, 2], 0, 0], scores[[0, 2], 0, 1] = [0.9, 0.2], [0.2, 0.9]
        return [log_odds(scores) for _ in vectors]

    monkeypatch.setattr(MRCNer, "_scores", said)
    doc = make_doc(NLP, "a b c", [])
    weak.set_weak(doc)
    (found,) = run(tmp_path, model, [doc])[1]
    assert weak.doc_entities(found) == [(0, 3, spacy.load(model).get_pipe("mrc_ner").labels[0])]


def test_what_was_known_of_the_old_labels_goes(tmp_path, model):
    docs = weak_docs()
    for doc in docs:
        weak.set_tags(doc, ["O"] * len(doc))
        weak.set_confidence(doc, 0.5, None)
        weak.set_group(doc, weak.SUSPECT_GROUP, [(0, 1, "LOC")])
    for doc in run(tmp_path, model, docs)[1]:
        assert weak.get_tags(doc) is None and weak.get_confidence(doc) is None
        assert weak.SUSPECT_GROUP not in doc.spans


def test_empty_documents(tmp_path, model):
    report, docs = run(tmp_path, model, [spacy.tokens.Doc(NLP.vocab), *weak_docs()])
    assert report.docs == len(docs) == len(SENTENCES) + 1 and not len(docs[0])


def test_gold_is_not_overwritten(tmp_path, model):
    with pytest.raises(WeaknerError, match="WK344"):
        run(tmp_path, model, [make_doc(NLP, *SENTENCES[0])])
    assert not (tmp_path / "out.spacy").exists()


def test_finished_work_is_not_done_again(tmp_path, model):
    run(tmp_path, model, weak_docs())
    assert pick(tmp_path / "in-out.spacy", tmp_path / "out.spacy", model).skipped == 1
    assert pick(tmp_path / "in-out.spacy", tmp_path / "out.spacy", model, union=True).skipped == 0


def test_errors(tmp_path, model):
    write_docs(tmp_path / "in.spacy", weak_docs())
    with pytest.raises(WeaknerError, match="threshold"):
        pick(tmp_path / "in.spacy", tmp_path / "out.spacy", model, threshold=2.0)
    NLP.to_disk(tmp_path / "blank")
    with pytest.raises(WeaknerError, match=r"WK341.*has no component that answers questions \("):
        pick(tmp_path / "in.spacy", tmp_path / "out.spacy", tmp_path / "blank")
    with pytest.raises(WeaknerError, match=r"WK341.*is named .other."):
        pick(tmp_path / "in.spacy", tmp_path / "out.spacy", model, component="other")


def test_labels_that_would_stay_are_refused(tmp_path, model):
    (doc, *_) = weak_docs([(0, 1, "LOC")])
    nested_is_refused(doc, lambda: run(tmp_path, model, [doc]), tmp_path / "out.spacy")


def test_labels_that_are_not_aggregated_are_refused(tmp_path, model):
    doc = spacy.tokens.Doc(NLP.vocab, words=["Anna", "came"])
    weak.set_source(doc, "terms", [])
    run(tmp_path, model, [doc], name="empty")
    weak.set_source(doc, "terms", [(0, 1, "PER")])
    with pytest.raises(WeaknerError, match=r"WK346.*\(terms\).*aggregate"):
        run(tmp_path, model, [doc])

"""The recipe `best`: heads beside the list, and what decides between them."""

import json

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import get_soft_labels, group_entities, set_source
from spacy_weakner.gazetteer_ruler.entities import SHORTER
from spacy_weakner.project import comparing
from spacy_weakner.project.assembling import THRESHOLD
from spacy_weakner.project.fit import fit
from spacy_weakner.project.rules import COMBINED, GOLD_ALONE, LIST_AND_HEAD, TERM_LIST, WEAK_ALONE
from spacy_weakner.relabel.soft import predict_soft_labels

from ..util import make_doc
from .util import NLP, PEOPLE, make_corpora, sentences

pytestmark = pytest.mark.slow

TITLES = [TERM_LIST, GOLD_ALONE, "linear with list", WEAK_ALONE, LIST_AND_HEAD, COMBINED]


@pytest.fixture
def project(tmp_path, configs, trained_here, monkeypatch):
    """A project whose heads are trained, each of them a linear CRF."""
    monkeypatch.setattr(comparing, "SAMPLES", 10)
    (tmp_path / "terms.jsonl").write_text("".join(json.dumps({"label": "PER", "term": p}) + "\n" for p in PEOPLE))

    def run(folder, **settings):
        given = {"configs": configs, "terms": tmp_path / "terms.jsonl", "size": "linear", **settings}
        return fit(folder, tmp_path / "training", **given)

    return run


def pipelines(selection):
    return {each.name: spacy.load(each.path) for each in selection.candidates}


@pytest.mark.long
def test_all_that_there_is_decides_together(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=15, dev=0, text=10)
    # Answers for a part of the gold: there are none where it is used.
    docs = list(read_docs(corpora.gold_labeled, Vocab()))
    set_source(docs[0], "answers", [(3, 4, "LOC")])
    write_docs(corpora.gold_labeled, docs)
    selection = project(corpora.folder)
    assert [each.name for each in selection.candidates] == TITLES and selection.chosen_by == "cross-validation"
    # Each candidate is scored on all gold.
    assert {each.scores.tp + each.scores.fn for each in selection.candidates} == {30}
    # It is what they are all parts of, so that they are compared with it.
    differences = {each.name: each.scores.difference for each in selection.candidates}
    assert differences.pop(COMBINED) is None
    assert {difference.baseline for difference in differences.values()} == {COMBINED}
    loaded = pipelines(selection)
    assert loaded["linear with list"].pipe_names == ["sentencizer", "gazetteer_ruler", "linear"]
    assert loaded[GOLD_ALONE].pipe_names == ["sentencizer", "gold"]
    # A head alone has probabilities for what it has not seen; of its candidates the combination makes its own.
    temperatures = [loaded[title].get_pipe("linear").temperature for title in ("linear with list", COMBINED)]
    assert temperatures[0] != 1.0 and temperatures[1] == 1.0
    assert loaded[COMBINED].pipe_names == ["sentencizer", "gazetteer_ruler", "linear", "weak", "ent_combiner"]
    assert loaded[COMBINED].get_pipe("ent_combiner").sources == ["gazetteer"]
    for name, nlp in loaded.items():
        doc = nlp("Anna went to Paris 7")
        # Of what was not trained on gold no probability is right.
        scored = name not in (TERM_LIST, LIST_AND_HEAD)
        assert all((ent._.weakner_score is not None) == scored for ent in doc.ents), name
        assert not scored or all(0.0 <= ent._.weakner_score <= 1.0 for ent in doc.ents)
    assert group_entities(doc, "weak:gazetteer") == [(0, 1, "PER")] and "pred:linear" in doc.spans
    # A second run trains nothing again, and says the same.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "training").rglob("trained.json")}
    again = project(corpora.folder)
    scores = {each.name: each.scores.f1 for each in selection.candidates}
    assert {each.name: each.scores.f1 for each in again.candidates} == scores
    assert {path: path.stat().st_mtime_ns for path in before} == before
    # It gives soft labels.
    (teacher,) = [each.path for each in selection.candidates if each.name == COMBINED]
    for skipped in (0, 1):
        report = predict_soft_labels(corpora.weak, tmp_path / "soft", [teacher], component="ent_combiner")
        assert (report.docs, report.tokens, report.skipped) == (10, 50, skipped)
    doc = next(iter(read_docs(tmp_path / "soft", Vocab())))
    assert get_soft_labels(doc).labels == loaded[COMBINED].get_pipe("ent_combiner").distribution_labels


def test_dev_chooses(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=6, text=0)
    corpora.gold_labeled.unlink()
    selection = project(corpora.folder, terms=None)
    assert [each.name for each in selection.candidates] == [GOLD_ALONE, COMBINED] and selection.chosen_by == "dev"
    assert {each.scores.tp + each.scores.fn for each in selection.candidates} == {12}
    for name, nlp in pipelines(selection).items():
        assert "gazetteer_ruler" not in nlp.pipe_names and nlp.meta["performance"] == {}, name


def test_no_gold_at_all(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=0, dev=0)
    selection = project(corpora.folder)
    assert selection.best == LIST_AND_HEAD
    weak_alone = pipelines(selection)[WEAK_ALONE]
    assert all(ent._.weakner_score is None for ent in weak_alone("Anna went to Paris 7").ents)
    nlp = pipelines(selection)[LIST_AND_HEAD]
    assert nlp.pipe_names == ["sentencizer", "crf_ner", "gazetteer_ruler"] and nlp.meta["performance"] == {}
    assert nlp.get_pipe("crf_ner").threshold == THRESHOLD and nlp.get_pipe("gazetteer_ruler").overwrite == SHORTER
    # Zoe is in no list; Anna is, and the head is not sure of her there. Nobody knows how sure it may be.
    entities = {ent.text: ent._.weakner_score for ent in nlp("Zoe went to Paris 7 to Anna").ents}
    assert entities == {"Zoe": None, "Anna": None}


def test_gold_that_cannot_be_split_is_enough_beside_dev(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=6, text=0)
    docs = [make_doc(NLP, text, entities if i == 0 else []) for i, (text, entities) in enumerate(sentences(10))]
    write_docs(corpora.gold_labeled, docs)
    selection = project(corpora.folder)
    assert [each.name for each in selection.candidates] == [TERM_LIST, GOLD_ALONE, "linear with list"]
    assert [rule.name for rule in selection.left_out] == [WEAK_ALONE, COMBINED]

"""The recipe `best`: heads beside the list, what decides between them, and students of both."""

import json
import shutil

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.annotations.weak import get_soft_labels, group_entities, is_weak, set_source
from spacy_weakner.gazetteer_ruler.entities import SHORTER
from spacy_weakner.project import arena as arenas
from spacy_weakner.project.best import recipe
from spacy_weakner.project.best.blind import THRESHOLD
from spacy_weakner.project.best.recipe import COMBINED, Best
from spacy_weakner.project.fit import fit
from spacy_weakner.project.rules import GOLD_ALONE, LIST_AND_HEAD, TERM_LIST, WEAK_ALONE
from spacy_weakner.stages.soften import soften

from ..util import make_doc
from .util import NLP, PEOPLE, make_corpora, sentences

TITLES = [TERM_LIST, GOLD_ALONE, "linear with list", WEAK_ALONE, COMBINED]


@pytest.fixture
def project(tmp_path, configs, trained_here, monkeypatch):
    """A project whose heads are trained, each of them a linear CRF, and what was said about it."""
    monkeypatch.setattr(arenas, "SAMPLES", 10)
    monkeypatch.setattr(recipe, "ROUNDS", 1)
    (tmp_path / "terms.jsonl").write_text("".join(json.dumps({"label": "PER", "term": p}) + "\n" for p in PEOPLE))

    def run(folder, **settings):
        given = {"configs": configs, "terms": tmp_path / "terms.jsonl", "lang": "xx", "size": "linear", **settings}
        said = []
        verdict = fit(folder, tmp_path / "training", say=said.append, **given)
        return verdict, said

    return run


def pipelines(verdict):
    return {each.name: spacy.load(each.path) for each in verdict.contenders}


@pytest.mark.long
def test_all_that_there_is_decides_together(tmp_path, project, monkeypatch):
    monkeypatch.setattr(Best, "_pays", lambda self: True)
    corpora = make_corpora(tmp_path / "corpus", gold=15, dev=0, text=10)
    verdict, said = project(corpora.folder)
    titles = [*TITLES, "student", f"{COMBINED} with student"]
    assert [each.name for each in verdict.contenders] == titles and verdict.chosen_by == "cross-validation"
    # Each candidate is scored on all gold.
    assert {each.scores["tp"] + each.scores["fn"] for each in verdict.contenders} == {30}
    assert any(text.startswith(f"{COMBINED}: F1 ") for text in said)
    loaded = pipelines(verdict)
    assert loaded["linear with list"].pipe_names == ["sentencizer", "gazetteer_ruler", "linear"]
    assert loaded[GOLD_ALONE].pipe_names == ["sentencizer", "gold"]
    # A head alone has probabilities for what it has not seen; of its candidates the combination makes its own.
    temperatures = [loaded[title].get_pipe("linear").temperature for title in ("linear with list", COMBINED)]
    assert temperatures[0] != 1.0 and temperatures[1] == 1.0
    expected = ["sentencizer", "gazetteer_ruler", "linear", "weak", "student1", "ent_combiner"]
    assert loaded[titles[-1]].pipe_names == expected
    for name, nlp in loaded.items():
        if name != TERM_LIST:
            doc = nlp("Anna went to Paris 7")
            assert all(0.0 <= ent._.weakner_score <= 1.0 for ent in doc.ents)
    assert group_entities(doc, "weak:gazetteer") == [(0, 1, "PER")] and "pred:linear" in doc.spans
    # The student of a fold learned from teachers that have not seen the fold.
    folder = tmp_path / "training" / "student1"
    made = {path.name for path in folder.iterdir()}
    assert made == {f"{kind}-{n}" for kind in ("teacher", "text", "model") for n in (1, 2, 3, 4, 5, "whole")}
    for doc in read_docs(folder / "text-1", Vocab()):
        assert is_weak(doc) and get_soft_labels(doc).probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    # A second run trains nothing again, and says the same.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "training").rglob("trained.json")}
    again, _ = project(corpora.folder)
    assert {each.name: each.scores["f1"] for each in again.contenders} == {
        each.name: each.scores["f1"] for each in verdict.contenders
    }
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_dev_chooses(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=6, text=0)
    corpora.gold_labelled.unlink()
    verdict, _ = project(corpora.folder, terms=None)
    assert [each.name for each in verdict.contenders] == [GOLD_ALONE, COMBINED] and verdict.chosen_by == "dev"
    assert {each.scores["tp"] + each.scores["fn"] for each in verdict.contenders} == {12}
    assert "there is no text" in {rule.name: rule.why for rule in verdict.left_out}["student"]


def test_a_combination_that_is_not_better_than_the_list_teaches_nobody(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=0, text=5)
    (tmp_path / "terms.jsonl").write_text(
        "".join(
            json.dumps({"label": label, "term": term}) + "\n"
            for label, terms in (("PER", PEOPLE), ("LOC", ("Paris", "Rome")))
            for term in terms
        )
    )
    verdict, _ = project(corpora.folder)
    # No list is better than all right.
    assert verdict.winner == TERM_LIST and "student" not in [each.name for each in verdict.contenders]
    assert "is not above that of the list" in verdict.left_out[-1].why


@pytest.mark.long
def test_text_without_a_list(tmp_path, project, monkeypatch):
    monkeypatch.setattr(Best, "_pays", lambda self: True)
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=0, text=6)
    corpora.gold_labelled.unlink()
    shutil.rmtree(corpora.weak)
    # One of the texts is also gold.
    write_docs(corpora.text / "part-00000.spacy", [make_doc(NLP, text) for text, _ in sentences(6, 9)])
    verdict, _ = project(corpora.folder, terms=None)
    assert [each.name for each in verdict.contenders] == [GOLD_ALONE, COMBINED, "student", f"{COMBINED} with student"]
    for name, nlp in pipelines(verdict).items():
        assert "gazetteer_ruler" not in nlp.pipe_names and nlp.meta["performance"] == {}, name
    texts = [doc.text for doc in read_docs(tmp_path / "training" / "student1" / "text-whole", Vocab())]
    assert len(texts) == 5 and not set(texts) & {text for text, _ in sentences(10)}


def test_no_gold_at_all(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=0, dev=0)
    verdict, _ = project(corpora.folder)
    assert verdict.winner == LIST_AND_HEAD
    nlp = pipelines(verdict)[LIST_AND_HEAD]
    assert nlp.pipe_names == ["sentencizer", "crf_ner", "gazetteer_ruler"] and nlp.meta["performance"] == {}
    assert nlp.get_pipe("crf_ner").threshold == THRESHOLD and nlp.get_pipe("gazetteer_ruler").overwrite == SHORTER
    # Zoe is in no list; Anna is, and the head is not sure of her there.
    entities = {ent.text: ent._.weakner_score for ent in nlp("Zoe went to Paris 7 to Anna").ents}
    assert entities == {"Zoe": pytest.approx(0.8, abs=0.2), "Anna": None}


def test_gold_that_cannot_be_split_is_enough_beside_dev(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=6, text=0)
    docs = [make_doc(NLP, text, entities if i == 0 else []) for i, (text, entities) in enumerate(sentences(10))]
    write_docs(corpora.gold_labelled, docs)
    verdict, _ = project(corpora.folder)
    assert [each.name for each in verdict.contenders] == [TERM_LIST, GOLD_ALONE, "linear with list"]
    assert [rule.name for rule in verdict.left_out] == [WEAK_ALONE, COMBINED]


@pytest.mark.long
def test_answers_for_a_part_of_the_gold(tmp_path, project, monkeypatch):
    monkeypatch.setattr(Best, "_pays", lambda self: True)
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=0, text=5)
    docs = list(read_docs(corpora.gold_labelled, Vocab()))
    set_source(docs[0], "answers", [(3, 4, "LOC")])
    write_docs(corpora.gold_labelled, docs)
    verdict, _ = project(corpora.folder)
    assert verdict.contenders[-1].name == f"{COMBINED} with student"


@pytest.mark.long
def test_soft_labels_of_a_pipeline(tmp_path, project):
    corpora = make_corpora(tmp_path / "corpus", gold=10, dev=0, text=7)
    verdict, _ = project(corpora.folder)
    (teacher,) = [each.path for each in verdict.contenders if each.name == COMBINED]
    for skipped in (0, 1):
        report = soften(corpora.weak, tmp_path / "soft", teacher, component="ent_combiner")
        assert (report.docs, report.tokens, report.skipped) == (7, 35, skipped)
    docs = list(read_docs(tmp_path / "soft", Vocab()))
    nlp = spacy.load(teacher)
    pipe = nlp.get_pipe("ent_combiner")
    assert get_soft_labels(docs[0]).labels == pipe.distribution_labels

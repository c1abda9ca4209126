"""What is trained, compared and selected."""

import json
import shutil
from pathlib import Path

import numpy
import pytest
import spacy
from spacy.vectors import Vectors

from spacy_weakner.calibration.seen import unseen
from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.pipelines import load_pipeline
from spacy_weakner.project import combine, comparing, previous, rules, with_gold, without_gold
from spacy_weakner.project import fit as module
from spacy_weakner.project.assembling import ON_PUBLIC_DATA
from spacy_weakner.project.combine import Predicted, TrainedHead
from spacy_weakner.project.fit import SELECTION, fit
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.rules import (
    COMBINED,
    FOLDS,
    GOLD_ALONE,
    LIST_AND_HEAD,
    SIZES,
    STUDENT,
    STUDENT_AND_LIST,
    TERM_LIST,
    TRAINED,
    WEAK_ALONE,
)
from spacy_weakner.project.selection import PREVIOUS, Selection
from spacy_weakner.project.teaching import Taught

from ..util import make_doc
from .util import ALL_TERMS, NLP, PEOPLE, PLACES, make_corpora, write_gold, write_ruler

pytestmark = pytest.mark.slow

GOOD = {"p": 90.0, "r": 60.0, "f1": 72.0}
WITH_LIST = "frozen with list"
ENCODER = "components.crf_ner.model.tok2vec"


@pytest.fixture
def project(tmp_path, configs, trainings, monkeypatch):
    """`fit` in a folder, where heads and the combination find what stands in `finds`, by their titles. `heads` are
    those that were planned, `predicted` what was predicted, `encoded` what was encoded by which trained pipeline."""

    class Project:
        corpora = Corpora(tmp_path / "corpus")
        output = tmp_path / "training"
        finds = {}
        heads = {}
        predicted = []
        encoded = []
        said = []

        def fit(self, **settings):
            given = {"configs": configs, "terms": tmp_path / "terms.jsonl", "size": "transformer"}
            self.heads, self.predicted, self.encoded = {}, [], []
            selection = fit(self.corpora.folder, self.output, say=self.said.append, **{**given, **settings})
            assert Selection.load(self.output / SELECTION).model_dump() == selection.model_dump()
            assert len({*self.predicted}) == len(self.predicted)
            return selection

        def pipeline(self, title):
            return write_ruler(tmp_path / f"made {title}", self.finds.get(title, {}))

        def nlp(self, title):
            key = json.dumps([title, self.finds.get(title, {})])
            if key not in loaded:
                loaded[key] = load_pipeline(self.pipeline(title))
            return loaded[key]

    made, loaded = Project(), {}
    plan_head = with_gold.plan_head

    def plan(context, head, gold, dev, folds):
        made.heads[head.title] = head, gold, dev
        return plan_head(context, head, gold, dev, folds)

    def encode(encoded, config, corpora, sample, cases, language, *, trained=None, progress=False):
        made.encoded.append((config.parent.name, corpora, sample, trained))

    def read_stored(trained, encoded, output):
        shutil.copytree(trained, output, dirs_exist_ok=True)

    def predict(head, pipeline, corpus, language, cases=None):
        made.predicted.append((head.title, pipeline, corpus))
        nlp = load_pipeline(pipeline) if head.title == "part" else made.nlp(head.title)
        gold = list(read_docs(corpus, nlp.vocab))
        return Predicted(nlp, gold, list(nlp.pipe(map(bare_copy, gold))))

    class Combination:
        def __init__(self, lists, heads, folds, language):
            titles = [head.title for head in heads]
            self.heads, self.folds = heads, folds
            self.has_little_gold = rules.is_little(sum(len(fold.docs) for fold in folds))
            self.name = COMBINED if titles[0] == GOLD_ALONE or STUDENT not in titles else STUDENT_AND_LIST
            self.nlp = made.nlp(self.name)
            if self.name == COMBINED:
                made.combined = [*lists], titles
            else:
                made.fast = titles

        def decide(self, docs):
            return list(self.nlp.pipe(bare_copy(doc, self.nlp.vocab) for doc in docs))

        def decide_fold(self, n):
            return self.decide(self.folds[n].docs)

        def save(self, output):
            return made.pipeline(self.name)

    def list_and_head(lists, head, output, language):
        made.assembled = [*lists], head
        return write_ruler(output, made.finds.get(LIST_AND_HEAD, {}))

    def train_student(context, teacher, text, gold, folds):
        made.taught = text, gold
        student = TrainedHead(STUDENT, STUDENT, "linear", project_of(folds), [*map(project_of, folds)])
        return student, Taught(entities=9, unsure_entities=1, unsure_others=0)

    def train_student_without_gold(context, teacher, text):
        made.taught = teacher, text
        return write_ruler(made.output / STUDENT, trainings.finds.get(STUDENT, {}))

    def project_of(*what):
        return made.output / "student"

    (tmp_path / "terms.jsonl").write_text("".join(json.dumps({"label": "PER", "term": p}) + "\n" for p in PEOPLE))
    monkeypatch.setattr(with_gold, "plan_head", plan)
    monkeypatch.setattr(with_gold, "train_student", train_student)
    monkeypatch.setattr(without_gold, "train_student_without_gold", train_student_without_gold)
    monkeypatch.setattr(with_gold, "encode", encode)
    monkeypatch.setattr(with_gold, "read_stored", read_stored)
    monkeypatch.setattr(combine.TrainedHead, "predict", predict)
    monkeypatch.setattr(
        comparing, "save_alone", lambda head, lists, held_out, output, language: made.pipeline(head.title)
    )
    monkeypatch.setattr(comparing, "Combination", Combination)
    for each in (with_gold, without_gold):
        monkeypatch.setattr(each, "list_and_head", list_and_head)
    monkeypatch.setattr(comparing, "SAMPLES", 20)
    monkeypatch.setattr(rules, "_LITTLE", 0)
    monkeypatch.setattr(rules, "TOO_FEW", 0)
    return made


def names(selection):
    return [candidate.name for candidate in selection.candidates]


HEADS = [GOLD_ALONE, WITH_LIST]


@pytest.mark.parametrize(
    "dev, finds, best",
    [
        (12, {GOLD_ALONE: ALL_TERMS}, GOLD_ALONE),
        (0, {GOLD_ALONE: {"LOC": [*PLACES]}, WITH_LIST: ALL_TERMS}, WITH_LIST),
        # As good as the list, which comes first.
        (12, {WITH_LIST: {"PER": [*PEOPLE]}}, TERM_LIST),
        # What is a part of the combination has to be better.
        (0, {COMBINED: {"PER": [*PEOPLE]}}, COMBINED),
        (12, {COMBINED: {"PER": [*PEOPLE]}, WITH_LIST: ALL_TERMS}, WITH_LIST),
    ],
)
def test_the_best_wins_or_what_all_are_parts_of(project, trainings, dev, finds, best):
    make_corpora(project.corpora.folder, dev=dev, scores=GOOD)
    project.finds = finds
    selection = project.fit()
    assert (selection.best, selection.chosen_by) == (best, "dev" if dev else "cross-validation")
    assert names(selection) == [TERM_LIST, *HEADS, WEAK_ALONE, LIST_AND_HEAD, COMBINED]
    assert project.combined == (["gazetteer"], [*HEADS, WEAK_ALONE]) and selection.left_out == []
    f1 = {each.name: each.scores.f1 for each in selection.candidates}
    assert f1[best] == max(f1.values())
    assert f1[TERM_LIST] == pytest.approx(100 * 2 / 3, abs=0.01)
    assert all(each.scores.interval and each.why for each in selection.candidates)
    assert selection.selected.scores.tp + selection.selected.scores.fn == 2 * (dev or 24)


@pytest.mark.parametrize("prefer, best", [("f1", COMBINED), ("speed", GOLD_ALONE)])
def test_speed_prefers_a_single_head(project, trainings, prefer, best):
    make_corpora(project.corpora.folder, dev=12, scores=GOOD)
    project.finds = {COMBINED: ALL_TERMS, GOLD_ALONE: {**ALL_TERMS, "PER": ["Anna"]}}
    selection = project.fit(prefer=prefer, size="linear")
    assert selection.best == best and next(iter(selection.ranked())) == best
    assert {each.scores.difference.baseline for each in selection.candidates if each.name != best} == {best}
    # The price is named.
    (combined,) = [each.scores for each in selection.candidates if each.name == COMBINED]
    price = "" if combined.difference is None else combined.difference.text()
    assert price in selection.reason and price in selection.answer()[0][1] and bool(price) == (prefer == "speed")


@pytest.mark.parametrize("dev", [12, 0])
@pytest.mark.parametrize("size", ["frozen", "transformer"])
def test_speed_prefers_what_has_no_transformer(project, trainings, size, dev):
    make_corpora(project.corpora.folder, dev=dev, scores=GOOD)
    project.finds = dict.fromkeys((COMBINED, *HEADS), ALL_TERMS)
    project.finds[STUDENT] = {**ALL_TERMS, "PER": ["Anna"]}
    selection = project.fit(prefer="speed", size=size)
    assert names(selection) == [TERM_LIST, *HEADS, WEAK_ALONE, LIST_AND_HEAD, STUDENT, COMBINED, STUDENT_AND_LIST]
    assert selection.best == STUDENT and all(each.scores and each.why for each in selection.candidates)
    assert project.fast == [STUDENT, *([WEAK_ALONE] if size == "frozen" else [])]  # what has no Transformer
    # It learns the text with the matches of the lists.
    assert project.taught == (project.corpora.weak, project.corpora.gold_labeled)
    (combined,) = [each.scores for each in selection.candidates if each.name == COMBINED]
    assert combined.difference.f1 > 10 and combined.difference.text() in selection.reason
    # The two between which it is decided have their price.
    costs = {each.name: each.cost for each in selection.candidates if each.cost}
    assert {*costs} == {COMBINED, STUDENT} and all(cost.words_per_second > 0 for cost in costs.values())
    # A head of an earlier kind may be as fast, and better.
    project.finds[STUDENT], project.finds[WEAK_ALONE] = {}, ALL_TERMS
    assert project.fit(prefer="speed", size=size).best == (WEAK_ALONE if size == "frozen" else TERM_LIST)


@pytest.mark.parametrize("dev", [12, 0])
@pytest.mark.parametrize("prefer", ["f1", "speed"])
def test_with_little_gold_the_combination_has_a_student(project, trainings, monkeypatch, dev, prefer):
    monkeypatch.setattr(rules, "_LITTLE", 25)
    make_corpora(project.corpora.folder, dev=dev, scores=GOOD)
    project.finds = {COMBINED: ALL_TERMS}
    selection = project.fit(prefer=prefer, size="frozen")
    more = [STUDENT_AND_LIST] if prefer == "speed" else []
    assert names(selection) == [TERM_LIST, *HEADS, WEAK_ALONE, LIST_AND_HEAD, STUDENT, COMBINED, *more]
    assert project.combined == (["gazetteer"], [*HEADS, WEAK_ALONE, STUDENT])
    # It is said when it begins, and what it leaves out.
    assert [note.split()[0] for note in project.said if "student" in note] == ["student:", "text:"]
    if prefer == "f1":
        (student,) = [each for each in selection.candidates if each.name == STUDENT]
        # What speed would cost is known.
        assert selection.best == COMBINED and student.scores.difference.text() in selection.reason and student.cost
    # Without a Transformer, there is no student.
    assert STUDENT not in names(project.fit(prefer=prefer, size="linear"))


@pytest.mark.parametrize("dev, is_preferred", [(0, True), (12, False)])
def test_with_too_little_gold_a_student_is_selected(project, trainings, monkeypatch, dev, is_preferred):
    monkeypatch.setattr(rules, "_LITTLE", 25)
    monkeypatch.setattr(rules, "TOO_FEW", 25)
    make_corpora(project.corpora.folder, dev=dev, scores=GOOD)
    project.finds = {COMBINED: ALL_TERMS, STUDENT: {**ALL_TERMS, "PER": ["Anna"]}}
    selection = project.fit(size="frozen")
    assert selection.best == (STUDENT if is_preferred else COMBINED)
    assert (STUDENT_AND_LIST in names(selection)) is is_preferred
    assert ("fewer than" in selection.reason) is is_preferred


def test_without_text_or_preference_there_is_no_student(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    assert STUDENT not in names(project.fit(size="frozen"))
    assert STUDENT not in names(project.fit(size="linear", prefer="speed"))
    make_corpora(project.corpora.folder, text=0)
    project.finds = dict.fromkeys(HEADS, ALL_TERMS)
    selection = project.fit(size="frozen", prefer="speed")
    # What is packaged has no Transformer, although heads on one are better.
    assert STUDENT not in names(selection) and selection.best == TERM_LIST
    project.corpora.gold_labeled.unlink()
    assert project.fit(size="frozen", prefer="speed", terms=None).best == GOLD_ALONE


def test_what_is_trained(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    project.fit(seed=7)
    heads = [head for head, *_ in project.heads.values()]
    assert [head.title for head in heads] == HEADS and all(head.is_combined for head in heads)
    assert {(gold, dev.name) for _, gold, dev in project.heads.values()} == {
        (project.corpora.gold_labeled, "dev.spacy")
    }
    calls = {call["output"].name: call for call in trainings}
    folds = [f"{name}-{n + 1}" for name in ("gold", "frozen") for n in range(FOLDS)]
    assert {name for name in calls if not name.startswith("50-")} == {"gold", "frozen", "weak", *folds}
    # The points of the learning curve.
    assert {name for name in calls if name.startswith("50-")} == {"50-1", "50-2", "50-3"}
    gold, frozen, weak = (calls[name] for name in ("gold", "frozen", "weak"))
    sources = "components.crf_ner.model.source_features.sources"
    assert [each["config"].stem for each in (gold, frozen)] == ["crf_ner", "best.gold"]
    assert [each["config"].parent.name for each in (gold, frozen)] == ["frozen", "frozen"]
    assert sources not in gold and frozen[sources] == ["gazetteer"]
    # The Transformer is trained once, and first; all others read what it has computed.
    assert (weak["training.max_steps"], weak["training.eval_frequency"]) == (TRAINED["transformer"], 40)
    assert trainings[0] == weak and [name for name in calls if "training.max_steps" in calls[name]] == ["weak"]
    assert {name for name in calls if ENCODER in calls[name]} == {*calls} - {"weak"}
    assert gold[ENCODER]["path"] == frozen[ENCODER]["path"] == str(project.output / "encoder" / "vectors")
    assert {call["system.seed"] for call in trainings} == {7}
    assert weak["components.crf_ner.loss.negative_rate"] == pytest.approx(0.333)  # of a recall of 60 %
    assert weak["paths.dev"] == calls["50-1"]["paths.dev"] == str(project.output / "dev.spacy")
    assert "prepared" in project.said and any("in 200 updates" in note for note in project.said)


@pytest.mark.parametrize("dev", [12, 0])
@pytest.mark.parametrize("size", ["linear", "frozen", "transformer"])
def test_what_is_encoded_by_what(project, trainings, size, dev):
    make_corpora(project.corpora.folder, dev=dev, scores=GOOD)
    selection = project.fit(size=size)
    gold, corpora = project.corpora.gold_labeled, [project.output / "dev.spacy"] if dev else []
    trained = project.output / "weak" / ("model-best" if dev else "model-last") if size == "transformer" else None
    assert project.encoded == ([("frozen", [gold, *corpora], [gold], trained)] if size != "linear" else [])
    weak = {each.name: call for call in trainings for each in [call["output"]]}["weak"]
    assert weak["config"].parent.name == ("transformer" if trained else "linear")
    assert ENCODER not in weak and (weak.get("corpora.train.limit") is None) == (trained is not None)
    # What is assembled for texts that are not stored reads the encoder of the head on weak labels, or what was trained.
    head = project.output / "weak-frozen" if trained else project.output / "weak" / f"model-{'best' if dev else 'last'}"
    assert project.assembled == (["gazetteer"], head)
    with_list = "linear with list" if size == "linear" else WITH_LIST
    assert names(selection) == [TERM_LIST, GOLD_ALONE, with_list, WEAK_ALONE, LIST_AND_HEAD, COMBINED]


def test_linear_heads_read_vectors_of_the_text(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    for words in ([], ["the"]):
        nlp = spacy.blank("xx")
        data = numpy.ones((len(words), 2), dtype="float32")
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=words)
        nlp.to_disk(project.corpora.vectors)
        trainings.clear()
        project.fit(seed=len(words))
        found = {call["output"].name: call.get("initialize.vectors") for call in trainings}
        expected = str(project.corpora.vectors) if words else None
        assert {found[name] for name in ("gold", "gold-1", "frozen", "frozen-1", "50-1")} == {expected}
        assert found["weak"] is None


def test_labels_that_do_harm_are_not_learned_and_test_is_not_read(project, trainings):
    make_corpora(project.corpora.folder, scores={"p": 15.8, "r": 60.0, "f1": 25.0})
    project.corpora.test.write_bytes(b"no corpus")
    selection = project.fit()
    assert names(selection) == [TERM_LIST, *HEADS, COMBINED] and "weak" not in trainings.names()
    assert {rule.name for rule in selection.left_out} == {WEAK_ALONE}


def test_gold_alone(project, trainings):
    make_corpora(project.corpora.folder, text=0)
    project.corpora.gold_labeled.unlink()
    project.finds = {GOLD_ALONE: ALL_TERMS}
    selection = project.fit(terms=None)
    assert names(selection) == [GOLD_ALONE, COMBINED] and selection.best == GOLD_ALONE
    assert project.combined == ([], [GOLD_ALONE])
    assert {gold for _, gold, _ in project.heads.values()} == {project.corpora.gold}


def test_dev_chooses_where_there_is_no_gold_to_train_on(project, trainings):
    make_corpora(project.corpora.folder, gold=0)
    selection = project.fit()
    assert names(selection) == [TERM_LIST, WEAK_ALONE, LIST_AND_HEAD]
    assert (selection.best, selection.chosen_by, selection.reason) == (TERM_LIST, "dev", "")
    (call,) = trainings
    assert call["paths.dev"] == str(project.corpora.dev) and selection.candidates[1].path.endswith("model-best")
    trainings.finds = {"weak": ALL_TERMS}
    assert project.fit(seed=1).best == WEAK_ALONE
    project.finds, trainings.finds = {LIST_AND_HEAD: ALL_TERMS}, {}
    assert project.fit(seed=2).best == LIST_AND_HEAD


@pytest.mark.parametrize(
    "labels, message",
    [
        (None, r"WK361.*gold-labeled\.spacy"),  # gold that cannot be split
        *[
            (text, r"WK206.*labels\.json.*'spacy weakner analyze --worst-terms'")
            for text in ("", "[]", "{}", '{"scores": {}}', '{"scores": null}')
        ],
    ],
)
def test_unusable_corpora(project, trainings, labels, message):
    make_corpora(project.corpora.folder, dev=0)
    if labels is None:
        write_docs(project.corpora.gold_labeled, [make_doc(NLP, "Anna", [(0, 1, "PER")])] * 5)
    else:
        project.corpora.labels.write_text(labels)
    with pytest.raises(WeaknerError, match=message):
        project.fit()
    assert not trainings


# By nothing


def test_without_gold_it_is_what_was_best_elsewhere(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0)
    selection = project.fit()
    assert (selection.best, selection.chosen_by) == (LIST_AND_HEAD, "nothing")
    assert names(selection) == [TERM_LIST, WEAK_ALONE, LIST_AND_HEAD]
    assert project.assembled == (["gazetteer"], Path(selection.candidates[1].path))
    first, *others = selection.lines()
    assert "there is no gold" in first and ON_PUBLIC_DATA in first and len(others) == 2
    assert all(each.scores is None for each in selection.candidates) and selection.curve == []
    (call,) = trainings
    assert call["paths.dev"] == call["paths.train"] == str(project.corpora.weak)
    assert any(selection.candidates[1].path in line for line in selection.lines())


@pytest.mark.parametrize("dev", [0, 12])
@pytest.mark.parametrize("lists", [True, False])
def test_without_gold_a_student_is_fast(project, trainings, dev, lists):
    make_corpora(project.corpora.folder, gold=0, dev=dev)
    given = {} if lists else {"terms": None}
    project.finds = {LIST_AND_HEAD: ALL_TERMS}
    trainings.finds = {"weak": ALL_TERMS, STUDENT: {"PER": [*PEOPLE], "LOC": [*PLACES][:1]}}
    selection = project.fit(prefer="speed", **given)
    expected = [WEAK_ALONE, *([LIST_AND_HEAD] if lists else []), STUDENT, *([STUDENT_AND_LIST] if lists else [])]
    assert names(selection) == [TERM_LIST, *expected][not lists :] and all(each.why for each in selection.candidates)
    # It is taught by what would be packaged instead.
    assert project.taught == (Path(selection.candidates[1 + lists if lists else 0].path), project.corpora.weak)
    # What has a Transformer is as good on dev.
    assert selection.best == (STUDENT_AND_LIST if lists else STUDENT) and bool(selection.reason) == (not dev)
    assert not lists or project.assembled == (["gazetteer"], Path(selection.candidates[-2].path))
    # A frozen Transformer learns from gold alone.
    for settings in ({}, {"size": "linear", "prefer": "speed"}, {"size": "frozen", "prefer": "speed"}):
        assert STUDENT not in names(project.fit(**given, **settings))


def test_a_list_alone(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0, text=0)
    selection = project.fit()
    assert selection.best == TERM_LIST and not trainings and "public" not in " ".join(selection.lines())
    with pytest.raises(WeaknerError, match="WK680"):
        project.fit(terms=None)


def test_labels_of_text_that_is_gone_are_not_used(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    make_corpora(project.corpora.folder, text=0)
    assert WEAK_ALONE not in names(project.fit()) and "weak" not in trainings.names()


# Errors and files


@pytest.mark.parametrize("by_dev", [False, True])
@pytest.mark.parametrize("terms, gain", [({}, -50.0), ({"PER": [*PEOPLE]}, 0.0), (ALL_TERMS, 33.3)])
def test_the_last_package_is_compared_and_never_selected(project, trainings, terms, gain, by_dev):
    make_corpora(project.corpora.folder, dev=12 if by_dev else 0, scores=GOOD)
    project.finds = {COMBINED: {"PER": [*PEOPLE]}}
    first = project.fit()
    assert PREVIOUS not in names(first) and "Compared with the last run" not in dict(first.answer())
    write_gold(project.corpora.gold_labeled, 30)
    project.finds = {COMBINED: terms}
    second = project.fit()
    assert [*names(second)][-1] == PREVIOUS and second.best != PREVIOUS
    (old,) = [other for other in second.candidates if other.name == PREVIOUS]
    assert load_pipeline(old.path)("Anna went to Rome").ents[0].text == "Anna"
    assert old.scores.f1 == pytest.approx(66.7, abs=0.1)
    answer = dict(second.answer())
    assert "previous" not in answer["Best of the others"]
    if second.best == COMBINED:
        assert old.scores.difference.f1 == pytest.approx(-gain, abs=0.1)
    if gain > 0:
        assert "33.3 F1 points more" in answer["Compared with the last run"]
    # A repeated run has the same result; one with another input keeps the second.
    assert project.fit().answer() == second.answer()
    third = project.fit(seed=1)
    (old,) = [other for other in third.candidates if other.name == PREVIOUS]
    assert old.scores.f1 == pytest.approx(third.selected.scores.f1, abs=0.1)
    assert "as good." in dict(third.answer())["Compared with the last run"]
    # Sentences that were suggested are harder for the last package.
    write_gold(project.corpora.gold, 40)
    write_gold(project.corpora.gold_labeled, 40)
    text = dict(project.fit().answer())["Compared with the last run"]
    assert ("of the 40 sentences are new" in text) == (not by_dev)


def test_no_selection_is_left_of_an_earlier_run(project, trainings, monkeypatch):
    make_corpora(project.corpora.folder, gold=0, dev=0)
    project.fit()
    # But it is if nothing of it has been replaced yet.
    for wrong in ({"configs": "nowhere"}, {"terms": "nowhere.csv"}):
        with pytest.raises(WeaknerError, match="nowhere"):
            project.fit(**wrong)
        assert (project.output / SELECTION).exists()
    write_gold(project.corpora.gold, 10)
    monkeypatch.setattr(module, "make_lists", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        project.fit()
    assert not (project.output / SELECTION).exists()


@pytest.mark.parametrize(
    "given, message",
    [
        ({"size": "huge"}, rf"WK005.*size.*huge.*{', '.join(SIZES)}"),
        ({"size": "cnn"}, rf"WK005.*size.*cnn.*{', '.join(SIZES)}"),
        ({"configs": "nowhere"}, r"WK100.*best\.gold\.cfg"),
        ({"terms": "nowhere.csv"}, r"nowhere\.csv"),
        ({"precision": 1.0}, r"WK005.*precision"),
        ({"processes": 0}, r"WK005.*processes"),
        ({"precision": 0.9, "prefer": "speed"}, r"WK331.*precision"),
    ],
)
def test_unusable_settings(project, trainings, given, message):
    make_corpora(project.corpora.folder)
    with pytest.raises(WeaknerError, match=message):
        project.fit(**given)
    assert not trainings


def test_a_precision_needs_gold(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0)
    with pytest.raises(WeaknerError, match=r"WK005.*precision"):
        project.fit(precision=0.9)


def test_what_it_was_trained_and_chosen_on_is_known(project, trainings):
    """So that `calibrate` leaves it out."""
    make_corpora(project.corpora.folder, dev=12)
    selection = project.fit()
    known = [*read_docs(project.corpora.gold, NLP.vocab), *read_docs(project.corpora.dev, NLP.vocab)]
    for candidate in selection.candidates:
        expected = known if candidate.name == TERM_LIST else []
        assert unseen(load_pipeline(candidate.path), known) == (expected, [])


@pytest.mark.parametrize("new, n", [(19, None), (20, 20)])
def test_the_last_package_is_compared_on_what_it_does_not_know(project, trainings, monkeypatch, new, n):
    make_corpora(project.corpora.folder, dev=0, scores=GOOD)
    project.finds = {COMBINED: {"PER": [*PEOPLE]}}
    project.fit()
    predict = previous.predict_held_out
    monkeypatch.setattr(
        previous, "predict_held_out", lambda *args: [doc if i < new else None for i, doc in enumerate(predict(*args))]
    )
    project.finds = {COMBINED: ALL_TERMS}
    second = project.fit(seed=1)
    old = [other for other in second.candidates if other.name == PREVIOUS]
    assert len(old) == (n is not None) and all(
        "4 of the 24 sentences" in other.why and other.predicted is None for other in old
    )
    if old:
        counts = old[0].scores.counts
        assert counts.tp + counts.fn < second.selected.scores.tp and old[0].scores.difference.baseline == COMBINED


def test_what_is_not_there(project, trainings):
    with pytest.raises(WeaknerError, match=r"WK100.*corpus.*prepare"):
        project.fit()
    project.corpora.folder.mkdir()
    with pytest.raises(WeaknerError, match=r"WK100.*splits\.json.*prepare"):
        project.fit()
    make_corpora(project.corpora.folder)
    with pytest.raises(WeaknerError, match=r"WK100.*pieces.*create it with 'spacy weakner encoder distill'"):
        project.fit(size="linear-static")
    assert not project.said and not trainings


def test_the_curve_ends_where_the_table_is(project, trainings):
    make_corpora(project.corpora.folder, gold=60, dev=0, text=0)
    project.finds = {GOLD_ALONE: {"PER": [*PEOPLE], "LOC": [*PLACES][:1]}}
    selection = project.fit()
    (alone,) = [each.scores for each in selection.candidates if each.name == GOLD_ALONE]
    assert selection.curve[-1]["f1"] == pytest.approx(alone.f1, abs=0.01) and 0 < alone.f1 < 100


@pytest.mark.parametrize("dev", [12, 0])
def test_the_learning_curve(project, trainings, dev):
    make_corpora(project.corpora.folder, gold=60, dev=dev, text=0)
    sizes = [15, 30, 60] if dev else [12, 24, 48]
    for n in range(1, 6):
        trainings.finds.update({f"25-{n}": {"PER": [*PEOPLE]}, f"50-{n}": ALL_TERMS})
    project.finds = {GOLD_ALONE: ALL_TERMS}
    selection = project.fit()
    # All sizes are scored on the same sentences.
    assert [point["sentences"] for point in selection.curve] == sizes
    assert [point["f1"] for point in selection.curve] == [pytest.approx(66.67), 100.0, 100.0]
    start = f"More gold: gold alone has F1 66.7 with {sizes[0]}"
    assert any(text.startswith(start) for text in selection.recommendations)

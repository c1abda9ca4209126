"""What is trained, compared and chosen."""

import json
import shutil

import pytest

from spacy_weakner.annotations.corpus import write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.project import fit as module
from spacy_weakner.project import rules
from spacy_weakner.project.fit import BOTH, GOLD_ALONE, NEEDLE, VERDICT, WEAK_ALONE, fit
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.rules import Rule
from spacy_weakner.project.verdict import Verdict

from ..util import make_doc
from .util import ALL_TERMS, NLP, PEOPLE, PLACES, make_corpora, write_gold, write_ruler

LIST = "term list"
GOOD = {"p": 90.0, "r": 60.0, "f1": 72.0}


@pytest.fixture
def project(tmp_path, configs, trainings, monkeypatch):
    """`fit` in a folder; `needle` says what NEEDLE finds, and is None where it must not be trained."""

    class Project:
        corpora = Corpora(tmp_path / "corpus")
        output = tmp_path / "training"
        needle = None
        said = []

        def fit(self, **settings):
            given = {"configs": configs, "terms": tmp_path / "terms.jsonl", "lang": "xx", **settings}
            verdict = fit(self.corpora.folder, self.output, say=self.said.append, **given)
            assert Verdict.load(self.output / VERDICT) == verdict
            best = max((each.scores["f1"] for each in verdict.contenders if each.scores), default=None)
            assert best is None or verdict.best.scores["f1"] == best
            return verdict

    made = Project()
    (tmp_path / "terms.jsonl").write_text("".join(json.dumps({"label": "PER", "term": p}) + "\n" for p in PEOPLE))

    def needle(workshop, initial, facts):
        assert made.needle is not None and initial.exists()
        return write_ruler(tmp_path / "needle", made.needle)

    monkeypatch.setattr(module, "train_needle", needle)
    monkeypatch.setattr(module, "SAMPLES", 20)
    return made


def names(verdict):
    return [each.name for each in verdict.contenders]


# On dev


@pytest.mark.parametrize(
    "gold, both, winner",
    [
        (ALL_TERMS, {}, GOLD_ALONE),
        ({"LOC": [*PLACES]}, ALL_TERMS, BOTH),
        ({}, {}, LIST),
        # As good as the list, which comes first.
        ({"PER": [*PEOPLE]}, {"LOC": [*PLACES]}, LIST),
        (ALL_TERMS, ALL_TERMS, GOLD_ALONE),
    ],
)
def test_the_best_on_dev_wins_and_never_less_than_the_list(tmp_path, project, trainings, gold, both, winner):
    make_corpora(project.corpora.folder, scores=GOOD)
    project.needle = {}
    trainings.finds = {"gold": gold, "weak-gold": both}
    verdict = project.fit()
    assert verdict.winner == winner and verdict.chosen_by == "dev"
    assert names(verdict)[:3] == [LIST, GOLD_ALONE, BOTH]
    f1 = {each.name: each.scores["f1"] for each in verdict.contenders}
    assert f1[LIST] == pytest.approx(100 * 2 / 3, abs=0.01)
    assert all(each.scores["interval"] and each.why for each in verdict.contenders)


def test_what_trainings_are_given(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    project.needle = {}
    project.fit(max_steps=40, strong_share=0.3, negative_rate=0.1, seed=7)
    calls = {call["output"].name: call for call in trainings}
    assert {*calls} == {"gold", "weak-gold", "model-12"}
    gold, both, part = calls["gold"], calls["weak-gold"], calls["model-12"]
    assert (gold["config"], both["config"], part["config"]) == ("crf_ner", "crf_ner.strong_weak", "crf_ner")
    assert gold["paths.train"] == both["paths.strong"] == str(project.corpora.gold)
    assert both["paths.weak"] == str(project.corpora.weak)
    assert {call["paths.dev"] for call in trainings} == {str(project.corpora.dev)}
    assert {
        (call["training.max_steps"], call["training.eval_frequency"], call["system.seed"]) for call in trainings
    } == {(40, 4, 7)}
    assert both["corpora.train.strong_share"] == 0.3 and both["components.crf_ner.loss.negative_rate"] == 0.1
    assert "prepared" in project.said and any(note.startswith("gold alone: 40 updates") for note in project.said)
    project.fit(max_steps=40, strong_share=0.3, negative_rate=0.1, seed=7)
    assert len(trainings) == 3


@pytest.mark.parametrize("terms, trained", [(ALL_TERMS, True), ({"PER": ["Anna"]}, False)])
def test_needle_is_trained_only_if_the_rule_says_so(project, trainings, terms, trained, monkeypatch):
    monkeypatch.setattr(rules, "MIN_FOR_NEEDLE", 3)
    make_corpora(project.corpora.folder, scores=GOOD)
    project.needle = ALL_TERMS if trained else None
    trainings.finds = {"gold": terms}
    verdict = project.fit()
    assert (NEEDLE in names(verdict)) == trained
    assert (NEEDLE in [rule.name for rule in verdict.left_out]) != trained
    assert verdict.winner == (GOLD_ALONE if trained else LIST)


def test_needle_can_win(project, trainings, monkeypatch):
    make_corpora(project.corpora.folder, scores=GOOD)
    monkeypatch.setattr(module, "needle_pays", lambda *args: Rule(NEEDLE, True, "it does"))
    project.needle = ALL_TERMS
    assert project.fit().winner == NEEDLE


def test_labels_that_do_harm_are_not_mixed_in(project, trainings):
    make_corpora(project.corpora.folder, scores={"p": 15.8, "r": 60.0, "f1": 25.0})
    verdict = project.fit()
    assert names(verdict) == [LIST, GOLD_ALONE] and trainings.names() == {"gold", "model-12"}
    assert {rule.name for rule in verdict.left_out} == {BOTH, NEEDLE}


def test_gold_alone_needs_one_config_alone(tmp_path, project, trainings, configs):
    make_corpora(project.corpora.folder, text=0)
    shutil.copytree(configs, tmp_path / "own", ignore=shutil.ignore_patterns("needle*", "*strong_weak*"))
    trainings.finds = {"gold": ALL_TERMS}
    verdict = project.fit(configs=tmp_path / "own", terms=None)
    assert names(verdict) == [GOLD_ALONE] and verdict.winner == GOLD_ALONE


def test_dev_chooses_where_there_is_no_gold_to_train_on(project, trainings):
    make_corpora(project.corpora.folder, gold=0)
    verdict = project.fit()
    assert names(verdict) == [LIST, WEAK_ALONE] and (verdict.winner, verdict.chosen_by) == (LIST, "dev")
    (call,) = trainings
    assert call["paths.dev"] == str(project.corpora.dev) and verdict.contenders[1].path.endswith("model-best")
    trainings.finds = {"weak": ALL_TERMS}
    assert project.fit(seed=1).winner == WEAK_ALONE


# By cross-validation


@pytest.mark.parametrize("finds, winner", [(ALL_TERMS, GOLD_ALONE), ({"PER": [*PEOPLE]}, LIST), ({"PER": ["x"]}, LIST)])
def test_cross_validation(project, trainings, finds, winner):
    make_corpora(project.corpora.folder, dev=0, scores=GOOD)
    trainings.finds = {f"fold-{n}": finds for n in (1, 2, 3)}
    verdict = project.fit(max_steps=40)
    assert (verdict.winner, verdict.chosen_by) == (winner, "cross-validation")
    assert names(verdict) == [LIST, GOLD_ALONE, BOTH] and [rule.name for rule in verdict.left_out] == [NEEDLE]
    assert verdict.best.scores["tp"] + verdict.best.scores["fn"] == 48
    # What is packaged has seen all gold, and no checkpoint was chosen by what it was trained on.
    assert [each.path.rsplit("/", 2)[-2:] for each in verdict.contenders[1:]] == [
        ["gold", "model-last"],
        ["weak-gold", "model-last"],
    ]
    assert len(trainings) == 3 + 3 + 2 + 1 and {call["training.eval_frequency"] for call in trainings} == {4}
    finals = {call["output"].name: call for call in trainings if call["output"].parent == project.output}
    assert finals["gold"]["paths.train"] == finals["weak-gold"]["paths.strong"] == str(project.corpora.gold)


def test_gold_that_cannot_be_split(project, trainings):
    make_corpora(project.corpora.folder, dev=0)
    write_docs(project.corpora.gold, [make_doc(NLP, "Anna", [(0, 1, "PER")])] * 5)
    with pytest.raises(WeaknerError, match=r"WK685.*gold\.spacy"):
        project.fit()


# By nothing


def test_without_gold_nothing_is_taken_for_better_than_the_list(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0)
    verdict = project.fit()
    assert (verdict.winner, verdict.chosen_by) == (LIST, "nothing") and names(verdict) == [LIST, WEAK_ALONE]
    assert all(each.scores is None for each in verdict.contenders) and verdict.curve == []
    (call,) = trainings
    assert call["paths.dev"] == call["paths.train"] == str(project.corpora.weak)
    assert any(verdict.contenders[1].path in line for line in verdict.lines())


def test_a_list_alone(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0, text=0)
    assert project.fit().winner == LIST and not trainings
    with pytest.raises(WeaknerError, match="WK684"):
        project.fit(terms=None)


def test_labels_of_text_that_is_gone_are_not_used(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    make_corpora(project.corpora.folder, text=0)
    assert BOTH not in names(project.fit()) and trainings.names() == {"gold", "model-12"}


# Errors and files


def test_test_is_not_looked_at(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    project.corpora.test.write_bytes(b"no corpus")
    project.needle = {}
    assert project.fit().winner


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scores": {}}', '{"scores": null}'])
def test_damaged_judgements(project, trainings, text):
    make_corpora(project.corpora.folder)
    project.corpora.labels.write_text(text)
    with pytest.raises(WeaknerError, match=r"WK681.*labels\.json.*'spacy weakner judge'"):
        project.fit()
    assert not trainings


def test_no_verdict_is_left_of_an_earlier_run(project, trainings, monkeypatch):
    make_corpora(project.corpora.folder, gold=0, dev=0)
    project.fit()
    write_gold(project.corpora.gold, 10)
    monkeypatch.setattr(module, "choose_candidates", lambda facts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        project.fit()
    assert not (project.output / VERDICT).exists()


@pytest.mark.parametrize(
    "given, message",
    [
        ({"size": "huge"}, r"WK005.*size.*huge.*cnn"),
        ({"minutes": -1}, r"WK005.*minutes"),
        ({"strong_share": 1.0}, r"WK005.*strong_share"),
        ({"max_steps": 0}, r"WK005.*max_steps"),
        ({"configs": "nowhere"}, r"WK100.*crf_ner\.cfg"),
        ({"terms": "nowhere.csv"}, r"nowhere\.csv"),
    ],
)
def test_unusable_settings(project, trainings, given, message):
    make_corpora(project.corpora.folder)
    with pytest.raises(WeaknerError, match=message):
        project.fit(**given)
    assert not trainings


def test_corpora_that_are_not_there(project, trainings):
    with pytest.raises(WeaknerError, match=r"WK100.*corpus.*prepare"):
        project.fit()
    project.corpora.folder.mkdir()
    with pytest.raises(WeaknerError, match=r"WK100.*splits\.json.*prepare"):
        project.fit()


def test_the_learning_curve(project, trainings):
    make_corpora(project.corpora.folder, gold=40, dev=12, text=0)
    trainings.finds = {"model-10": {"PER": [*PEOPLE]}, "model-20": ALL_TERMS, "gold": ALL_TERMS}
    verdict = project.fit()
    assert [point["sentences"] for point in verdict.curve] == [10, 20, 40]
    assert [point["f1"] for point in verdict.curve] == [pytest.approx(66.67), 100.0, 100.0]
    assert any(text.startswith("More gold: gold alone has F1 66.7 with 10") for text in verdict.advice)

"""What is trained, compared and chosen."""

import json
from pathlib import Path

import pytest

from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.pipelines import load_pipeline
from spacy_weakner.project import arena as arenas
from spacy_weakner.project import fit as module
from spacy_weakner.project.fit import VERDICT, fit
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.rules import COMBINED, GOLD_ALONE, LIST_AND_HEAD, PACES, TERM_LIST, WEAK_ALONE, Rule
from spacy_weakner.project.verdict import Verdict

from ..util import make_doc
from .util import ALL_TERMS, NLP, PEOPLE, PLACES, make_corpora, write_gold, write_ruler

GOOD = {"p": 90.0, "r": 60.0, "f1": 72.0}
WITH_LIST = "transformer with list"


@pytest.fixture
def project(tmp_path, configs, trainings, monkeypatch):
    """`fit` in a folder, with a recipe whose heads find what stands in `finds`, by their titles. `best` is the recipe
    with what it was given."""

    class Project:
        corpora = Corpora(tmp_path / "corpus")
        output = tmp_path / "training"
        finds = {}
        best = None
        said = []

        def fit(self, **settings):
            given = {"configs": configs, "terms": tmp_path / "terms.jsonl", "lang": "xx", "size": "transformer"}
            verdict = fit(self.corpora.folder, self.output, say=self.said.append, **{**given, **settings})
            assert Verdict.load(self.output / VERDICT) == verdict
            return verdict

    class Recipe:
        rules = [Rule("another", False, "it does not pay")]

        def __init__(self, workshop, arena, gold, dev, lists):
            made.best = self
            self.workshop, self.arena, self.gold, self.dev = workshop, arena, gold, dev
            self.lists = [each.source for each in lists]

        def run(self, heads, weak, others):
            self.heads, self.weak = heads, weak
            self.workshop.train(others)
            for title in [*(head.title for head in heads), *([] if weak is None else [WEAK_ALONE]), COMBINED]:
                path = write_ruler(tmp_path / f"made {title}", made.finds.get(title, {}))
                nlp = load_pipeline(path)
                gold = [doc for fold in self.arena.folds for doc in read_docs(fold.held_out, nlp.vocab)]
                self.arena.enter(title, path, nlp.pipe(map(bare_copy, gold)))

    made = Project()
    (tmp_path / "terms.jsonl").write_text("".join(json.dumps({"label": "PER", "term": p}) + "\n" for p in PEOPLE))

    def list_and_head(lists, head, output):
        made.assembled = [*lists], head
        return write_ruler(output, made.finds.get(LIST_AND_HEAD, {}))

    monkeypatch.setattr(module, "Best", Recipe)
    monkeypatch.setattr(module, "list_and_head", list_and_head)
    monkeypatch.setattr(arenas, "SAMPLES", 20)
    monkeypatch.setattr(module, "SAMPLES", 20)
    return made


def names(verdict):
    return [each.name for each in verdict.contenders]


HEADS = [GOLD_ALONE, "linear with list", WITH_LIST]


@pytest.mark.parametrize("dev", [12, 0])
@pytest.mark.parametrize(
    "finds, winner",
    [
        ({GOLD_ALONE: ALL_TERMS}, GOLD_ALONE),
        ({GOLD_ALONE: {"LOC": [*PLACES]}, WITH_LIST: ALL_TERMS}, WITH_LIST),
        ({}, TERM_LIST),
        # As good as the list, which comes first.
        ({WITH_LIST: {"PER": [*PEOPLE]}}, TERM_LIST),
        # What is a part of the combination has to be better.
        ({COMBINED: {"PER": [*PEOPLE]}}, COMBINED),
        ({COMBINED: {"PER": [*PEOPLE]}, WITH_LIST: ALL_TERMS}, WITH_LIST),
    ],
)
def test_the_best_wins_or_what_all_are_parts_of(project, trainings, dev, finds, winner):
    make_corpora(project.corpora.folder, dev=dev, scores=GOOD)
    project.finds = finds
    verdict = project.fit()
    assert (verdict.winner, verdict.chosen_by) == (winner, "dev" if dev else "cross-validation")
    assert names(verdict) == [TERM_LIST, *HEADS, WEAK_ALONE, COMBINED]
    assert [rule.name for rule in verdict.left_out] == ["another"]
    f1 = {each.name: each.scores["f1"] for each in verdict.contenders}
    assert f1[winner] == max(f1.values())
    assert f1[TERM_LIST] == pytest.approx(100 * 2 / 3, abs=0.01)
    assert all(each.scores["interval"] and each.why for each in verdict.contenders)
    assert verdict.best.scores["tp"] + verdict.best.scores["fn"] == 2 * (dev or 24)


@pytest.mark.parametrize("prefer, winner", [("f1", COMBINED), ("speed", GOLD_ALONE)])
def test_speed_prefers_a_single_head(project, trainings, prefer, winner):
    make_corpora(project.corpora.folder, dev=12, scores=GOOD)
    project.finds = {COMBINED: ALL_TERMS, GOLD_ALONE: {**ALL_TERMS, "PER": ["Anna"]}}
    verdict = project.fit(prefer=prefer)
    assert verdict.winner == winner and verdict.ranked()[0].name == winner
    # What it costs is said.
    assert {each.scores["difference"]["baseline"] for each in verdict.contenders if each.name != winner} == {winner}
    assert f"'{COMBINED}'" in verdict.answer()[1][1] if winner != COMBINED else True


def test_what_the_recipe_is_given(tmp_path, project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    project.fit(max_steps=40, negative_rate=0.1, seed=7)
    best = project.best
    assert best.gold == project.corpora.gold_labelled and best.dev.name == "dev.spacy"
    assert len(best.arena.folds) == PACES["transformer"].folds and best.lists == ["gazetteer"]
    assert [head.combined for head in best.heads] == [False, True, True]
    gold, linear, large = (head.make(tmp_path / "g", tmp_path / "d", tmp_path / "o") for head in best.heads)
    votes = "components.crf_ner.model.votes.sources"
    assert [each.config.name for each in (gold, linear, large)] == ["crf_ner.cfg", "best.gold.cfg", "best.gold.cfg"]
    assert [each.config.parent.name for each in (gold, linear, large)] == ["linear", "linear", "transformer"]
    assert votes not in gold.overrides and linear.overrides[votes] == large.overrides[votes] == ["gazetteer"]
    assert "training.max_steps" not in linear.overrides
    assert (large.overrides["training.max_steps"], large.overrides["training.eval_frequency"]) == (40, 8)
    assert {each.overrides["system.seed"] for each in (gold, linear, large, best.weak)} == {7}
    assert best.weak.overrides["components.crf_ner.loss.negative_rate"] == 0.1
    assert best.weak.overrides["paths.dev"] == str(best.dev)
    # The points of the learning curve.
    assert trainings.names() == {"model-12"} and trainings[0]["paths.dev"] == str(best.dev)
    assert "prepared" in project.said and any(note.startswith("gold: 40 updates") for note in project.said)


def test_labels_that_do_harm_are_not_learned(project, trainings):
    make_corpora(project.corpora.folder, scores={"p": 15.8, "r": 60.0, "f1": 25.0})
    verdict = project.fit()
    assert names(verdict) == [TERM_LIST, *HEADS, COMBINED] and project.best.weak is None
    assert {rule.name for rule in verdict.left_out} == {WEAK_ALONE, "another"}


def test_gold_alone(project, trainings):
    make_corpora(project.corpora.folder, text=0)
    project.corpora.gold_labelled.unlink()
    project.finds = {GOLD_ALONE: ALL_TERMS}
    verdict = project.fit(terms=None)
    assert names(verdict) == [GOLD_ALONE, "transformer", COMBINED] and verdict.winner == GOLD_ALONE
    assert [head.combined for head in project.best.heads] == [True, True]
    assert project.best.gold == project.corpora.gold


def test_dev_chooses_where_there_is_no_gold_to_train_on(project, trainings):
    make_corpora(project.corpora.folder, gold=0)
    verdict = project.fit()
    assert names(verdict) == [TERM_LIST, WEAK_ALONE, LIST_AND_HEAD]
    assert (verdict.winner, verdict.chosen_by, verdict.reason) == (TERM_LIST, "dev", "")
    (call,) = trainings
    assert call["paths.dev"] == str(project.corpora.dev) and verdict.contenders[1].path.endswith("model-best")
    trainings.finds = {"weak": ALL_TERMS}
    assert project.fit(seed=1).winner == WEAK_ALONE
    project.finds, trainings.finds = {LIST_AND_HEAD: ALL_TERMS}, {}
    assert project.fit(seed=2).winner == LIST_AND_HEAD


def test_gold_that_cannot_be_split(project, trainings):
    make_corpora(project.corpora.folder, dev=0)
    write_docs(project.corpora.gold_labelled, [make_doc(NLP, "Anna", [(0, 1, "PER")])] * 5)
    with pytest.raises(WeaknerError, match=r"WK685.*gold\.spacy"):
        project.fit()


# By nothing


def test_without_gold_it_is_what_was_best_elsewhere(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0)
    verdict = project.fit()
    assert (verdict.winner, verdict.chosen_by) == (LIST_AND_HEAD, "nothing")
    assert names(verdict) == [TERM_LIST, WEAK_ALONE, LIST_AND_HEAD]
    assert project.assembled == (["gazetteer"], Path(verdict.contenders[1].path))
    first, *others = verdict.lines()
    assert "there is no gold" in first and "eight public data sets" in first and len(others) == 2
    assert all(each.scores is None for each in verdict.contenders) and verdict.curve == []
    (call,) = trainings
    assert call["paths.dev"] == call["paths.train"] == str(project.corpora.weak)
    assert any(verdict.contenders[1].path in line for line in verdict.lines())


def test_a_list_alone(project, trainings):
    make_corpora(project.corpora.folder, gold=0, dev=0, text=0)
    verdict = project.fit()
    assert verdict.winner == TERM_LIST and not trainings and "public" not in " ".join(verdict.lines())
    with pytest.raises(WeaknerError, match="WK684"):
        project.fit(terms=None)


def test_labels_of_text_that_is_gone_are_not_used(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    make_corpora(project.corpora.folder, text=0)
    assert WEAK_ALONE not in names(project.fit()) and project.best.weak is None


# Errors and files


def test_test_is_not_looked_at(project, trainings):
    make_corpora(project.corpora.folder, scores=GOOD)
    project.corpora.test.write_bytes(b"no corpus")
    assert project.fit().winner


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scores": {}}', '{"scores": null}'])
def test_damaged_judgements(project, trainings, text):
    make_corpora(project.corpora.folder)
    project.corpora.labels.write_text(text)
    with pytest.raises(WeaknerError, match=r"WK681.*labels\.json.*'spacy weakner analyze --tune-terms'"):
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
        ({"size": "huge"}, rf"WK005.*size.*huge.*{' or '.join(PACES)}"),
        ({"size": "cnn"}, rf"WK005.*size.*cnn.*{' or '.join(PACES)}"),
        ({"minutes": -1}, r"WK005.*minutes"),
        ({"max_steps": 0}, r"WK005.*max_steps"),
        ({"configs": "nowhere"}, r"WK100.*best\.gold\.cfg"),
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


def test_a_table_of_pieces_that_is_not_there(project, trainings):
    make_corpora(project.corpora.folder)
    with pytest.raises(WeaknerError, match=r"WK100.*pieces.*'spacy weakner encoder distill' makes it"):
        project.fit(size="linear-static")
    assert not project.said and not trainings


def test_the_learning_curve(project, trainings):
    make_corpora(project.corpora.folder, gold=40, dev=12, text=0)
    trainings.finds = {"model-10": {"PER": [*PEOPLE]}, "model-20": ALL_TERMS}
    project.finds = {GOLD_ALONE: ALL_TERMS}
    verdict = project.fit()
    assert [point["sentences"] for point in verdict.curve] == [10, 20, 40]
    assert [point["f1"] for point in verdict.curve] == [pytest.approx(66.67), 100.0, 100.0]
    assert any(text.startswith("More gold: gold alone has F1 66.7 with 10") for text in verdict.advice)

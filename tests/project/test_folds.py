"""Parts of the gold: folds, and what the learning curve is trained on."""

from dataclasses import replace
from pathlib import Path

import pytest
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_weakner.configs import render_config
from spacy_weakner.corpus.case import change_case
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.documents import document_of
from spacy_weakner.corpus.language import CorpusLanguage
from spacy_weakner.corpus.weak import get_id, group_entities, set_group
from spacy_weakner.errors import WeaknerError
from spacy_weakner.files import write_text
from spacy_weakner.project.combine import Predicted, TrainedHead, with_candidates
from spacy_weakner.project.context import TrainingContext
from spacy_weakner.project.folds import all_folds, make_folds
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.recommendations import plan_curve
from spacy_weakner.project.rules import Settings
from spacy_weakner.runs.groups import FoldFiles
from spacy_weakner.runs.training import Trained
from spacy_weakner.training.augmenting import CaseCopies

from ..util import make_doc
from .util import NLP, numbered, sentences


def write(path, n, per_document=None, labeled=None):
    docs = [
        make_doc(NLP, text, entities if labeled is None or i < labeled else [])
        for i, (text, entities) in enumerate(sentences(n))
    ]
    if per_document:
        numbered(docs, [f"d{i // per_document}.{i % per_document}" for i in range(n)])
    write_docs(path, docs)
    return path


def read(path):
    return list(read_docs(path, Vocab()))


def texts(path):
    return {doc.text for doc in read(path)}


def documents(path):
    return {document_of(get_id(doc)) for doc in read(path)}


@pytest.mark.parametrize("per_document", [None, 3])
def test_folds(tmp_path, per_document):
    gold = write(tmp_path / "gold.spacy", 27, per_document)
    folds = make_folds(gold, tmp_path / "folds", 3)
    assert len(folds) == 3 and len(read(all_folds(tmp_path / "folds"))) == 27
    for fold in folds:
        assert not texts(fold.held_out) & texts(fold.rest) and texts(fold.held_out) | texts(fold.rest) == texts(gold)
        assert len(read(fold.held_out)) == 9 and any(doc.ents for doc in read(fold.rest))
        if per_document:
            assert not documents(fold.held_out) & documents(fold.rest)
    everything = [doc.text for fold in folds for doc in read(fold.held_out)]
    assert [doc.text for doc in read(all_folds(tmp_path / "folds"))] == everything


def test_few_entities_are_enough_in_two_sentences(tmp_path):
    folds = make_folds(write(tmp_path / "gold.spacy", 9, labeled=2), tmp_path / "folds", 3)
    assert len(folds) == 3 and all(any(doc.ents for doc in read(fold.rest)) for fold in folds)
    with pytest.raises(WeaknerError, match=r"WK361.*one\.spacy.*--dev"):
        make_folds(write(tmp_path / "one.spacy", 9, labeled=1), tmp_path / "none", 3)
    assert not (tmp_path / "none").exists()


@pytest.fixture
def context(tmp_path, configs):
    settings = Settings(text_steps=40, negative_rate=0.2)
    return TrainingContext(Corpora(tmp_path), tmp_path / "out", configs, settings, CorpusLanguage.make("xx"))


def test_warnings_of_trainings_are_said_once(context, monkeypatch):
    trained = Trained(Path("a"), None, False, "", ("[WK903] Too short.",))
    monkeypatch.setattr("spacy_weakner.project.context.train_all", lambda *_, **__: [trained, trained])
    messages = []
    replace(context, say=messages.append).train([])
    assert messages == ["[WK903] Too short."]


def test_vectors_have_their_table(context, tmp_path):
    how = {"size": "linear-static"}
    static = replace(context, size="linear-static", configs=tmp_path / "configs")
    given = (context.corpora.gold, context.models, context.corpora.dev)
    for recipe in ("crf_ner", "best.gold"):
        path = static.configs / "linear-static" / f"{recipe}.cfg"
        write_text(path, render_config(recipe, "linear-static", lang="xx"))
    for training in (static.on_gold(*given, **how, with_lists=True), static.on_gold(*given, **how)):
        assert training.overrides["paths.pieces"] == str(static.corpora.pieces)
    # Those of other sizes are told apart.
    write_text(static.configs / "linear-static" / "best.gold.cfg", render_config("best.gold", "linear", lang="xx"))
    with pytest.raises(WeaknerError, match=r"WK692.*it has no vectors of word pieces, but the size is 'linear-static'"):
        static.on_gold(*given, **how, with_lists=True)
    write_text(static.configs / "linear" / "best.gold.cfg", render_config("best.gold", "linear-static", lang="xx"))
    with pytest.raises(WeaknerError, match=r"WK692.*it has vectors of word pieces, but the size is 'linear'"):
        static.on_gold(*given, size="linear", with_lists=True)


def test_copies_of_gold_have_candidates(tmp_path):
    gold, predicted = make_doc(NLP, "Anna sings"), make_doc(NLP, "Anna sings")
    copy, other = change_case(gold, "lower"), change_case(gold, "lower")
    for doc in (predicted, other):
        set_group(doc, "pred:linear", [(0, 1, "PER")], [0.5])
    fold = with_candidates(
        [TrainedHead("linear", "", "linear", tmp_path, [])], [Predicted(None, [gold], [predicted], [copy], [other])]
    )
    assert fold == ([gold], [copy])
    assert all(group_entities(doc, "pred:linear") == [(0, 1, "PER")] for doc in (gold, copy))


def test_copies_in_other_case(context):
    given = (context.corpora.gold, context.models, context.corpora.dev)
    key = "corpora.train.augmenter"
    assert key not in context.on_gold(*given, size="linear").overrides
    cased = replace(context, cases=CaseCopies(0.5, 0.0, [context.models / "list"]))
    heads = (
        cased.on_gold(*given, size="linear"),
        cased.on_weak(context.models),
        cased.on_gold(*given, size="linear", with_lists=True),
    )
    # Heads that read no list need no matches.
    lists = [head.overrides[key]["lists"] for head in heads]
    assert lists == [[], [], [str(context.models / "list")]]
    shares = [registry.resolve({"made": head.overrides[key]})["made"].shares["lower"] for head in heads]
    assert shares == [0.5, 0.25, 0.5]


@pytest.mark.parametrize("per_document, sizes", [(None, [25, 50]), (5, [25, 50]), (8, [24, 48]), (50, [25, 50])])
def test_parts_of_the_curve(context, tmp_path, per_document, sizes):
    gold, dev = write(context.corpora.gold, 100, per_document), tmp_path / "dev.spacy"
    parts = plan_curve(context, [FoldFiles(dev, gold)] * 3, dev)
    assert [part.sentences for part in parts] == [pytest.approx(n, abs=4) for n in sizes]
    small, large = ([texts(t.overrides["paths.train"]) for t in part.trainings] for part in parts)
    assert len(small) == len(large) == 3 and all(map(set.__lt__, small, large))
    # Draws differ, and whole documents are drawn, unless they are too large.
    assert small[0] != small[1] != small[2]
    for part in parts:
        for training in part.trainings:
            assert training.overrides["paths.dev"] == str(dev)
            drawn = [document_of(get_id(doc)) for doc in read(training.overrides["paths.train"])]
            assert per_document not in (5, 8) or all(drawn.count(name) >= per_document // 2 for name in drawn)


def test_parts_of_folds(context, tmp_path):
    folds = make_folds(write(tmp_path / "gold.spacy", 60), tmp_path / "folds", 3)
    parts = plan_curve(context, folds, None)
    assert [part.sentences for part in parts] == [10, 20]
    for part in parts:
        for training, fold in zip(part.trainings, folds, strict=True):
            corpus = training.overrides["paths.train"]
            assert texts(corpus) < texts(fold.rest) and training.overrides["paths.dev"] == corpus


def test_parts_that_would_tell_nothing(context):
    gold = write(context.corpora.gold, 30)
    assert [part.sentences for part in plan_curve(context, [FoldFiles(gold, gold)], gold)] == [15]
    write(gold, 100, labeled=0)
    assert plan_curve(context, [FoldFiles(gold, gold)], gold) == []


def test_many_copies_of_one_sentence(context):
    gold, docs = context.corpora.gold, [make_doc(NLP, text, entities) for text, entities in sentences(40)]
    write_docs(gold, [*docs, *[make_doc(NLP, "Anna sings", [(0, 1, "PER")])] * 80])
    # They stay together, so that nothing is near to half of the gold.
    assert all(abs(part.sentences - 30) <= 15 for part in plan_curve(context, [FoldFiles(gold, gold)], gold))

"""What a student learns from."""

import json
from dataclasses import replace

import pytest
import spacy

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.gold import missing_tokens
from spacy_weakner.corpus.language import CorpusLanguage
from spacy_weakner.corpus.weak import doc_entities, group_entities, is_weak, set_group
from spacy_weakner.project import students as module
from spacy_weakner.project.combine import Combination
from spacy_weakner.project.context import TrainingContext
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.rules import Settings
from spacy_weakner.project.teaching import Labels
from spacy_weakner.runs.groups import FoldFiles
from spacy_weakner.runs.training import Training

from ..util import make_doc
from .util import NLP


@pytest.fixture
def context(tmp_path):
    corpora, settings = Corpora(tmp_path), Settings(text_steps=0, negative_rate=0.2)
    write_docs(corpora.gold, [make_doc(NLP, "Anna left .")])
    return TrainingContext(corpora, tmp_path / "out", tmp_path, settings, CorpusLanguage.make("xx"))


def write_text(folder, n):
    docs = [make_doc(NLP, f"text number {i}") for i in range(n)]
    for doc in docs:
        set_group(doc, "weak:list", [(0, 1, "X")])
    half = n // 2
    write_docs(folder / "a.spacy", docs[:half])
    # A sentence of the gold, in other case.
    write_docs(folder / "b.spacy", [*docs[half:], make_doc(NLP, "anna LEFT .")])
    return folder


def sample(context, text):
    return [doc.text for doc in module._sample(context, text, spacy.blank("xx"))]


def test_all_sentences_that_are_not_annotated(context, tmp_path):
    notes = []
    docs = module._sample(replace(context, say=notes.append), write_text(tmp_path / "text", 20), spacy.blank("xx"))
    assert [doc.text for doc in docs] == [f"text number {i}" for i in range(20)] and notes == []
    assert all(group_entities(doc, "weak:list") == [(0, 1, "X")] for doc in docs)


def test_a_sample_of_much_text_is_said(context, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LINEAR_TEXTS", 10)
    text, notes = write_text(tmp_path / "text", 200), []
    found = [sample(replace(context, seed=seed, say=notes.append), text) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]
    assert all(len(some) == len({*some}) == 10 for some in found)
    assert any("10 of 200" in note for note in notes)
    # From all of the text.
    numbers = [int(name.split()[-1]) for seed in range(20) for name in sample(replace(context, seed=seed), text)]
    assert sum(number >= 100 for number in numbers) == pytest.approx(100, abs=30)


@pytest.mark.parametrize(
    "n_unsure, is_little, leaves_out", [(2, True, True), (0, True, True), (3, True, False), (0, False, False)]
)
def test_all_students_leave_out_the_same_or_nothing(context, tmp_path, monkeypatch, n_unsure, is_little, leaves_out):
    ann = (0, 1, "PER")
    docs = [make_doc(NLP, f"Ann is number {i}") for i in range(6)]
    labels = [Labels([ann], [ann] if i < n_unsure else []) for i in range(6)]
    # The teacher without the fold is never sure: that of all gold decides.
    without = [Labels([ann], [ann] if is_little else [])] * 6
    planned = []

    def plan(self, corpus, output, *, has_missing):
        planned.append((corpus, has_missing))
        return Training(tmp_path, output, {"paths.dev": "", "paths.train": ""})

    def label(*_):
        labeled.append(1)
        return docs, [labels, without]

    labeled = []
    monkeypatch.setattr(module, "_label", label)
    monkeypatch.setattr(TrainingContext, "of_student", plan)
    monkeypatch.setattr(TrainingContext, "train", lambda *_, **__: [])
    monkeypatch.setattr(Combination, "has_little_gold", is_little)
    write_text(tmp_path / "text", 2)
    folds = [FoldFiles(context.corpora.gold, context.corpora.gold)]
    teacher = Combination({}, [], [], CorpusLanguage.make("xx"))

    def train():
        return module.train_student(context, teacher, tmp_path / "text", context.corpora.gold, folds)[1]

    first = train()
    assert train() == first and len(labeled) == 1
    assert [has_missing for _, has_missing in planned] == [leaves_out] * 4
    for (corpus, _), its in zip(planned[:2], [labels, without], strict=True):
        taught = [doc for doc in read_docs(corpus, NLP.vocab) if is_weak(doc)]
        n = sum(leaves_out and bool(each.unsure) for each in its)
        assert sum(doc_entities(doc) == [ann] for doc in taught) == 6 - n
        assert sum(missing_tokens(doc) == [0] for doc in taught) == n
    # With a damaged receipt, all is made again.
    receipt = json.loads((context.models / "taught.json").read_text())
    (context.models / "taught.json").write_text(json.dumps({**receipt, "report": {"entities": "all"}}))
    assert train() == first and len(labeled) == 2

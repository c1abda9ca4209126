"""What a student learns from."""

from dataclasses import replace

import pytest
import spacy

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.language import CorpusLanguage
from spacy_weakner.corpus.weak import group_entities, set_group
from spacy_weakner.project import students as module
from spacy_weakner.project.context import TrainingContext
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.rules import Settings

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

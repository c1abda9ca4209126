"""Augmented forms of sentences, usual and unusual ones."""

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.corpus import weak
from spacy_weakner.encoders.transformer import load_masked_lm
from spacy_weakner.relabel import augment as augment_module
from spacy_weakner.relabel.masked_lm import WindowSplitter, WordPredictor

from ...util import SENTENCES, make_doc, needs_transformers
from .util import NLP, make_model, many, run, texts

pytestmark = needs_transformers


# What is written


def test_every_word_has_one(tmp_path, model):
    docs = [make_doc(NLP, text, entities) for text, entities in SENTENCES] + many()
    report, found = run(tmp_path, docs, model, progress=True)
    assert [len(weak.get_augmented(doc)) for doc in found] == [len(doc) for doc in docs]
    changed = [w != t.text for doc in found for t, w in zip(doc, weak.get_augmented(doc), strict=True)]
    assert (report.docs, report.words, report.substituted) == (64, len(changed), sum(changed))
    assert report.substituted > 0 and report.refused > 0 and report.seconds > 0
    assert (report.cut, report.skipped, report.augmented) == (0, 0, True)


def test_predictions_take_the_case_of_the_words(tmp_path, to_here):
    docs = [make_doc(NLP, "Anna went to NEW York Zoe I U.S. here Here")]
    _, found = run(tmp_path, docs, to_here)
    # "Zoe" is "z ##o ##e": its first piece alone is replaced.
    assert texts(found) == ["Here here here HERE Here Hereoe Here HERE.S. here Here"]


def test_everything_else_stays(tmp_path, to_here):
    doc = make_doc(NLP, "Anna went to York", [(0, 1, "PER")], missing=[3])
    weak.set_group(doc, weak.GOLD_GROUP, [(3, 4, "LOC")])
    weak.set_source(doc, "terms", [(0, 1, "PER")], [0.7], reliability=0.9)
    weak.set_weak(doc)
    weak.set_id(doc, "a1")
    weak.set_confidence(doc, 0.5, "token")
    weak.set_tags(doc, ["B-PER", "O", "O", None])
    weak.set_soft_labels(doc, weak.TagDistributions(("O", "B-PER"), "BIO", numpy.full((4, 2), 0.5, dtype="float32")))
    doc.cats = {"travel": 1.0}
    _, (found,) = run(tmp_path, [doc], to_here)
    assert weak.get_augmented(found) == ["Here", "here", "here", "Here"]
    assert [(token.text, token.ent_iob_, token.ent_type_) for token in found] == [
        (token.text, token.ent_iob_, token.ent_type_) for token in doc
    ]
    assert found.cats == doc.cats
    for name in (weak.GOLD_GROUP, "weak:terms"):
        assert weak.group_entities(found, name) == weak.group_entities(doc, name)
    assert weak.get_reliability(found, "terms") == 0.9 and weak.group_scores(found, "weak:terms") == [0.7]
    soft = weak.get_soft_labels(found)
    assert soft[:2] == (("O", "B-PER"), "BIO") and (soft.probabilities == 0.5).all()
    assert (weak.is_weak(found), weak.get_id(found), weak.get_confidence(found)) == (True, "a1", 0.5)
    assert (weak.get_confidence_unit(found), weak.get_tags(found)) == ("token", ["B-PER", "O", "O", None])


def test_an_earlier_form_is_replaced(tmp_path, to_here):
    doc = make_doc(NLP, "Anna went")
    weak.set_augmented(doc, ["Bob", "came"])
    assert texts(run(tmp_path, [doc], to_here)[1]) == ["Here here"]


@pytest.mark.parametrize("favorite, share", [("##a", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0), ("here", 1.0)])
def test_words_stay_where_predictions_are_refused(tmp_path, tiny_bert, favorite, share):
    path = make_model(tiny_bert, tmp_path / "model", [favorite])
    report, found = run(tmp_path, [make_doc(NLP, "Anna went to York")] * 3, path)
    assert report.substituted == 12 * share and report.refused == 12 - report.substituted
    assert all(text == ("Here here here Here" if share else "Anna went to York") for text in texts(found))


# Unusual sentences


def test_empty_and_short_sentences(tmp_path, to_here):
    docs = [Doc(NLP.vocab), make_doc(NLP, "Bob"), Doc(NLP.vocab), make_doc(NLP, "☃"), make_doc(NLP, "\u200d")]
    report, found = run(tmp_path, docs, to_here)
    assert [weak.get_augmented(doc) for doc in found] == [[], ["Here"], [], ["☃"], ["\u200d"]]
    assert report.words == 3 and report.substituted == 1
    # A corpus without any word.
    assert run(tmp_path, [Doc(NLP.vocab)], to_here, "empty")[0].words == 0


def test_white_space_stays(tmp_path, to_here):
    doc = Doc(
        NLP.vocab, words=["\n", "Anna", "  ", "went", "\t\n", "."], spaces=[False, True, False, False, True, False]
    )
    blank = Doc(NLP.vocab, words=[" ", "\n"])
    _, found = run(tmp_path, [doc, blank], to_here)
    assert [weak.get_augmented(d) for d in found] == [["\n", "Here", "  ", "here", "\t\n", "."], [" ", "\n"]]


def test_special_pieces_in_the_text_stay(tmp_path, to_here):
    _, found = run(tmp_path, [make_doc(NLP, "anna [SEP] bob [MASK] [PAD]")], to_here, mask_rate=1.0)
    assert texts(found) == ["here [SEP] here [MASK] [PAD]"]


@pytest.mark.parametrize("n, cut", [(30, False), (31, True), (200, True)])
def test_long_sentences_are_read_in_parts(tmp_path, to_here, n, cut):
    # The model reads 32 pieces with [CLS] and [SEP].
    report, found = run(tmp_path, [make_doc(NLP, "anna " * n), make_doc(NLP, "bob")], to_here)
    assert texts(found) == [" ".join(["here"] * n), "here"]
    assert report.cut == cut and report.substituted == n + 1


def test_a_word_longer_than_the_model(tmp_path, to_here):
    report, found = run(tmp_path, [make_doc(NLP, f"bob {'x' * 99} went {'y' * 28}")], to_here)
    assert texts(found) == [f"here here{'x' * 98} here here{'y' * 27}"]
    assert report.cut == 1


def test_parts_are_of_similar_length(model):
    reader = WindowSplitter(load_masked_lm(model), 12)
    (read,) = reader([make_doc(NLP, "anna " * 21)])
    assert [len(window.ids) - 2 for window in read.windows] == [7, 7, 7] and read.cut
    assert [place.token for window in read.windows for place in window.places] == [*range(21)]
    assert all(window.ids[0] == 2 and window.ids[-1] == 3 for window in read.windows)


def test_memory_is_bounded(tmp_path, model, monkeypatch):
    sizes = []
    call = WordPredictor.__call__

    def watch(self, windows):
        sizes.append(sum(len(window.places) for window in windows))
        return call(self, windows)

    monkeypatch.setattr(WordPredictor, "__call__", watch)
    first = texts(run(tmp_path, many(), model)[1])
    assert max(sizes) > 20
    monkeypatch.setattr(augment_module, "_MAX_SCORES", 20 * 71)
    sizes.clear()
    assert texts(run(tmp_path, many(), model, "again")[1]) == first
    assert 10 < max(sizes) <= 20

"""Storage: bytes, disk, copies, other processes."""

import pytest
import spacy

from spacy_weakner.errors import WeaknerError

from ..util import (
    GOLD,
    HEADS,
    TEXTS,
    raw,
    reload_bytes,
    reload_copy,
    reload_disk,
    said_in_processes,
    same,
    train,
    weights,
)
from .util import CATEGORY, TALKATIVE, answers, as_lists, empty_pipeline, example, examples, gold_of


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(load, head, tmp_path, reload):
    nlp = load(**TALKATIVE[head])
    ours = nlp.get_pipe(head)
    if head != CATEGORY:
        ours.set_temperature(2.0)
        ours.set_bias(0.1)
    other = reload(nlp, tmp_path)
    theirs = other.get_pipe(head)
    docs = [raw(nlp, text) for text in TEXTS]
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    assert as_lists(head, ours.predict(docs)) == as_lists(head, theirs.predict(docs))
    assert answers(head, other, TEXTS) == answers(head, nlp, TEXTS) == gold_of(head)


def test_what_is_loaded_has_no_thresholds_of_before(load, head):
    if head == CATEGORY:
        return
    nlp, other = load(), load()
    label = nlp.get_pipe(head).labels[0]
    other.get_pipe(head).set_thresholds({label: 0.9})
    assert other.from_bytes(nlp.to_bytes()).get_pipe(head).thresholds == {}


def test_a_copy_is_independent(trained, head, tmp_path):
    other = reload_copy(trained, tmp_path)
    train(other, [example(other, text) for text in TEXTS])
    assert answers(head, other, TEXTS) == [[] if head != CATEGORY else "LOC"] * 4
    assert answers(head, trained, TEXTS) == gold_of(head)


def test_a_reloaded_pipeline_trains_on(load, head, tmp_path):
    trained = reload_bytes(load(), tmp_path)
    assert train(trained, examples(trained), steps=1)[head] < 0.5


def test_a_pipeline_that_is_not_initialized_is_stored(head, tmp_path):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    other = reload_disk(nlp, tmp_path).get_pipe(head)
    assert other.labels == ("X",)
    assert not other.is_initialized


def test_weights_are_taken_over_without_labels(load, head):
    _, ner = empty_pipeline(head)
    ner.from_bytes(load().get_pipe(head).to_bytes(), exclude=["cfg", "vocab"])
    assert ner.labels == () and ner.is_initialized


@pytest.mark.parametrize("queries", [None, [], {}, {"LOC": "places"}, {"LOC": 1, "PER": "people"}])
def test_damaged_questions_are_refused(paths, queries):
    ner = spacy.load(paths / "mrc_ner").get_pipe("mrc_ner")
    ner.cfg["queries"] = queries
    with pytest.raises(WeaknerError, match=r"WK800.*mrc_ner.*questions"):
        ner.from_bytes(ner.to_bytes())


@pytest.mark.slow
def test_in_a_new_process_and_in_two(paths):
    texts = ["", *TEXTS]
    found = said_in_processes([paths / name for name in HEADS], texts)
    for name, one, two in zip(HEADS, found[::2], found[1::2], strict=True):
        categories = [pytest.approx(doc.cats, abs=1e-5) for doc in spacy.load(paths / name).pipe(texts)]
        assert one[0] == two[0] == ([[], *GOLD] if name != CATEGORY else [[]] * len(texts))
        assert one[1] == categories and two[1] == categories

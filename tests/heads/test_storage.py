"""Storage: bytes, disk, copies, other processes."""

import pytest

from ..util import (
    GOLD,
    HEADS,
    TEXTS,
    entities_in_processes,
    entities_of,
    make_example,
    make_examples,
    raw,
    reload_bytes,
    reload_copy,
    reload_disk,
    same,
    train,
    weights,
)
from .util import TALKATIVE, empty_pipeline


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(load, head, tmp_path, reload):
    nlp = load(**TALKATIVE[head])
    ours = nlp.get_pipe(head)
    ours.set_temperature(2.0)
    other = reload(nlp, tmp_path)
    theirs = other.get_pipe(head)
    docs = [raw(nlp, text) for text in TEXTS]
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    assert ours.predict(docs) == theirs.predict(docs)
    assert entities_of(other, TEXTS) == entities_of(nlp, TEXTS) == GOLD


def test_a_copy_is_independent(trained, tmp_path):
    other = reload_copy(trained, tmp_path)
    train(other, [make_example(other, text) for text in TEXTS])
    assert entities_of(other, TEXTS) == [[]] * 4
    assert entities_of(trained, TEXTS) == GOLD


def test_a_reloaded_pipeline_trains_on(trained, head):
    assert train(trained, make_examples(trained), steps=1)[head] < 0.5


def test_a_pipeline_that_is_not_initialised_is_stored(head, tmp_path):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    other = reload_disk(nlp, tmp_path).get_pipe(head)
    assert other.labels == ("X",)
    assert not other.is_initialized


def test_in_a_new_process_and_in_two(paths):
    found = entities_in_processes([paths / name for name in HEADS], ["", *TEXTS])
    assert found == [[[], *GOLD]] * 2 * len(HEADS)

"""Storage: bytes, disk, copies, other processes."""

import json
import subprocess
import sys

import pytest

from ..util import (
    GOLD,
    HEADS,
    TEXTS,
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


SCRIPT = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
import spacy
found = {}
for path in Path(sys.argv[1]).iterdir():
    nlp = spacy.load(path)
    for n_process in (1, 2):
        docs = nlp.pipe(json.loads(sys.argv[2]), n_process=n_process, batch_size=2)
        found[f"{path.name} {n_process}"] = [[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs]
print(json.dumps(found))
"""


def test_in_a_new_process_and_in_two(paths):
    command = [sys.executable, "-c", SCRIPT, str(paths), json.dumps(["", *TEXTS])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    assert {*found} == {f"{name} {n}" for name in HEADS for n in (1, 2)}
    for entities in found.values():
        assert [[tuple(entity) for entity in own] for own in entities] == [[], *GOLD]

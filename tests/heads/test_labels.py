"""Labels: given, added, or those of the examples."""

import json

import pytest

from spacy_weakner.errors import WeaknerError

from ..util import fix_seed, same, weights
from .util import ONE_LABEL, begin, empty_pipeline, example, examples, needs


def test_without_labels(head):
    nlp, _ = empty_pipeline(head)
    silent = example(nlp, "no entity")
    silent.reference.cats = {}
    number = "WK036" if head == "mrc_ner" else "WK001"
    with pytest.raises(WeaknerError, match=rf"\[{number}\].*{head}"):
        nlp.initialize(lambda: [silent])


def test_labels_of_the_examples_are_sorted(ner):
    assert ner.labels == ("LOC", "PER")
    assert ner.label_data == ["LOC", "PER"]


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"], ("LOC",)])
def test_given_labels_keep_their_order(head, labels):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    ner.initialize(lambda: examples(nlp), nlp=nlp, labels=labels, **needs(head, *labels))
    assert ner.labels == tuple(labels)


def test_label_data_initializes_alike(head, ner):
    fix_seed(0)
    nlp, other = empty_pipeline(head)
    labels = json.loads(json.dumps(ner.label_data))
    nlp.config["initialize"]["components"][head] = {"labels": labels, **needs(head)}
    nlp.initialize(lambda: examples(nlp))
    assert other.labels == ner.labels
    assert same(weights(other.model), weights(ner.model))


def test_labels_that_were_added_stand_before_those_of_the_corpus(head):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    begin(head, nlp, "X", "LOC", "PER")
    nlp.initialize(lambda: examples(nlp))
    assert ner.labels == ("X", "LOC", "PER")


def test_labels_cannot_be_added_afterwards(ner):
    assert ner.add_label("PER") == 0
    with pytest.raises(ValueError, match=r"LOC, PER.*'ORG'"):
        ner.add_label("ORG")


def test_a_label_is_a_string(head, ner):
    for own in (ner, empty_pipeline(head)[1]):
        with pytest.raises(WeaknerError, match=r"\[WK005\].*label.*string"):
            own.add_label(1)


def test_an_unknown_label_in_training(head, nlp):
    with pytest.raises(WeaknerError, match=rf"\[WK003\] '{head}'.*'ORG'.*LOC, PER"):
        nlp.update([example(nlp, "a b", [(0, 1, "ORG")])], sgd=False)

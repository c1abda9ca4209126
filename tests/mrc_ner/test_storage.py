"""Storage, and weights of an earlier stage."""

import pytest
import spacy

from spacy_weakner.corpus.weak import group_entities
from spacy_weakner.training.weights import LoadWeights

from ..util import (
    GOLD,
    SENTENCES,
    TEXTS,
    entities_of,
    make_example,
    raw,
    same,
    train,
    weights,
)
from .util import QUERIES, mrc_pipeline

# Weights of an earlier stage


@pytest.mark.parametrize("parts", [None, {"mrc_ner": ["all"]}, {"mrc_ner": ["encoder", "head"]}])
def test_weights_are_loaded_whatever_the_questions(mrc_path, parts):
    nlp = LoadWeights(mrc_path, parts)(mrc_pipeline(seed=7, queries={"PLACE": QUERIES["LOC"], "X": "some thing"}))
    ner = nlp.get_pipe("mrc_ner")
    assert same(weights(ner.model), weights(spacy.load(mrc_path).get_pipe("mrc_ner").model))
    assert ner.labels == ("PLACE", "X") and ner.queries == {"PLACE": QUERIES["LOC"], "X": "some thing"}
    ner.nested = True
    for text, gold in SENTENCES:
        found = [own for own in group_entities(nlp(raw(nlp, text)), "pred:mrc_ner") if own[2] == "PLACE"]
        assert found == [(start, end, "PLACE") for start, end, label in gold if label == "LOC"]


def test_questions_that_earlier_versions_stored_in_the_model_are_not_asked(trained, tmp_path):
    trained.get_pipe("mrc_ner").model.attrs["queries"] = ["something else"]
    trained.to_disk(tmp_path)
    assert entities_of(spacy.load(tmp_path), TEXTS) == GOLD
    assert entities_of(LoadWeights(tmp_path)(mrc_pipeline(seed=7)), TEXTS) == GOLD


def test_loaded_weights_learn_the_new_questions(mrc_path, tmp_path):
    nlp = LoadWeights(mrc_path)(mrc_pipeline(seed=7, queries={"ORG": "which company"}))
    train(nlp, [make_example(nlp, "Bob likes Google", [(2, 3, "ORG")])])
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    assert other.get_pipe("mrc_ner").queries == {"ORG": "which company"}
    assert entities_of(other, ["Bob likes Google"]) == [[(2, 3, "ORG")]]

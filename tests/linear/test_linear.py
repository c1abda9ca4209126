"""A linear model of the words beside an encoder."""

import numpy
import pytest
import spacy

from spacy_weakner.linear.indicators import build_indicator_features

from ..sources.features_util import own_reading, said_examples, source_features
from ..util import (
    GOLD,
    TEXTS,
    TOK2VEC,
    distributions,
    entities_of,
    fix_seed,
    head_config,
    make_doc,
    make_examples,
    reload_bytes,
    reload_disk,
    same,
    train,
)

HEAD = "crf_ner"
FEATURES = {"@architectures": "spacy_weakner.IndicatorFeatures.v1", "rows": 1000}


def pipeline(*sources, linear=FEATURES, **settings):
    fix_seed()
    nlp = spacy.blank("xx")
    config = head_config(HEAD, **settings)
    config["model"]["linear"] = linear
    if sources:
        config["model"]["source_features"] = source_features(*sources)
    nlp.add_pipe(HEAD, config=config)
    nlp.initialize(lambda: said_examples(nlp, *sources))
    return nlp


def table(nlp):
    """The weights of the linear model."""
    (node,) = (node for node in nlp.get_pipe(HEAD).model.get_ref("linear").walk() if node.has_param("W"))
    return node


def test_its_scores_are_added():
    nlp, rng = pipeline(), numpy.random.RandomState(0)
    model, docs = nlp.get_pipe(HEAD).model, [make_doc(nlp, text) for text in ("", "Bob", *TEXTS)]
    assert not table(nlp).get_param("W").any() and not any(own.any() for own in model.predict(docs))
    train(nlp, make_examples(nlp), steps=3)
    table(nlp).get_param("W").fill(0.0)
    without = model.predict(docs)
    assert all(own.any() for own in without[1:])
    weights = rng.normal(size=table(nlp).get_param("W").shape).astype("float32")
    table(nlp).set_param("W", weights)
    rows = build_indicator_features(1000).predict(docs)
    expected = [own + weights[ids].sum(axis=1) for own, ids in zip(without, rows, strict=True)]
    assert same(model.predict(docs), expected, tolerance=1e-4)


def test_its_gradient_is_that_of_the_scores():
    nlp = pipeline()
    model, docs = nlp.get_pipe(HEAD).model, [make_doc(nlp, text) for text in ("", *TEXTS)]
    scores, backprop = model.begin_update(docs)
    gradient = [numpy.random.RandomState(1).normal(size=own.shape).astype("float32") for own in scores]
    backprop(gradient)
    rows = build_indicator_features(1000).predict(docs)
    expected = numpy.zeros_like(table(nlp).get_param("W"))
    for ids, own in zip(rows, gradient, strict=True):
        numpy.add.at(expected, ids.ravel(), numpy.repeat(own, ids.shape[1], axis=0))
    assert same([table(nlp).get_grad("W")], [expected], tolerance=1e-4)


def test_with_votes_the_list_is_the_start():
    nlp = pipeline("terms")
    for example in said_examples(nlp, "terms"):
        doc = nlp.get_pipe(HEAD)(example.predicted)
        assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == own_reading(doc, "weak:terms")


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk])
def test_it_is_learned_and_stored(reload, tmp_path):
    nlp = pipeline()
    train(nlp, make_examples(nlp), steps=30)
    assert table(nlp).get_param("W").any() and entities_of(nlp, TEXTS) == GOLD
    again = reload(nlp, tmp_path)
    docs = [make_doc(nlp, text) for text in ("", "Bob", *TEXTS)]
    assert same(distributions(again.get_pipe(HEAD), docs), distributions(nlp.get_pipe(HEAD), docs))


def test_an_encoder_is_refused():
    config = head_config(HEAD)
    config["model"]["linear"] = TOK2VEC
    with pytest.raises(ValueError, match=r"'tok2vec'"):
        spacy.blank("xx").add_pipe(HEAD, config=config)

"""Weights of an earlier stage in a new pipeline."""

import shutil

import pytest
import spacy
from spacy.training.initialize import init_nlp

from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.crf_ner.losses import PartialCRF
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.weights import LoadWeights

from ..util import (
    GOLD,
    LISTENER,
    TEXTS,
    TOK2VEC,
    crf_config,
    crf_pipeline,
    distributions,
    entities_of,
    fix_seed,
    loop_config,
    make_doc,
    make_examples,
    same,
    shared_pipeline,
    train,
    weights,
)

PARTIAL = {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.7}


def fresh(labels=None, name="crf_ner", tok2vec=None, **settings):
    """A pipeline with new weights, other than those of the trained one."""
    fix_seed(7)
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", name=name, config=crf_config(tok2vec, **settings))
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    return nlp


def part(nlp, reference, name="crf_ner"):
    return weights(nlp.get_pipe(name).model.get_ref(reference))


def test_settings_of_the_new_stage_stay(trained_path):
    given = fresh(loss=PARTIAL, scores=True, nested=True, head_learn_rate=3.0)
    given.add_pipe("sentencizer")  # which does not train, and is passed over
    assert entities_of(given, TEXTS) != GOLD
    nlp = LoadWeights(trained_path)(given)
    assert nlp is given
    ner = nlp.get_pipe("crf_ner")
    assert ner.loss == PartialCRF(negative_rate=0.7)
    assert (ner.scores, ner.nested, ner.head_learn_rate) == (True, True, 3.0)
    assert entities_of(nlp, TEXTS) == GOLD


@pytest.mark.parametrize("parts", [["all"], ["head", "encoder"]])
def test_labels_come_in_the_order_of_the_weights(trained_path, parts):
    nlp = LoadWeights(trained_path, {"crf_ner": parts})(fresh(labels=["PER", "LOC"]))
    ner, source = nlp.get_pipe("crf_ner"), spacy.load(trained_path).get_pipe("crf_ner")
    assert ner.labels == source.labels == ("LOC", "PER")
    assert ner.distribution_labels == TagScheme("BIO", ["LOC", "PER"]).tags
    docs = [make_doc(nlp, text, annotated=False) for text in TEXTS]
    assert same(distributions(ner, docs), distributions(source, docs))
    assert entities_of(nlp, TEXTS) == GOLD


def test_the_encoder_alone_leaves_the_head_new(trained_path):
    nlp, untouched = fresh(labels=["ORG"]), fresh(labels=["ORG"])
    LoadWeights(trained_path, {"crf_ner": ["encoder"]})(nlp)
    assert same(part(nlp, "tok2vec"), part(spacy.load(trained_path), "tok2vec"))
    assert same(part(nlp, "head"), part(untouched, "head"))
    assert nlp.get_pipe("crf_ner").labels == ("ORG",)


def test_the_head_alone_leaves_the_encoder_new(trained_path):
    nlp = LoadWeights(trained_path, {"crf_ner": ["head"]})(fresh())
    assert same(part(nlp, "head"), part(spacy.load(trained_path), "head"))
    assert same(part(nlp, "tok2vec"), part(fresh(), "tok2vec"))


def test_no_components_load_nothing(trained_path):
    nlp = LoadWeights(trained_path, {})(fresh())
    assert same(weights(nlp.get_pipe("crf_ner").model), weights(fresh().get_pipe("crf_ner").model))


def test_loaded_weights_train_on(trained_path):
    nlp = LoadWeights(trained_path)(fresh())
    before = part(nlp, "head")
    nlp.update(make_examples(nlp), sgd=nlp.create_optimizer())
    assert not same(before, part(nlp, "head"))


def test_a_shared_encoder_is_loaded(tmp_path):
    def shared(seed):
        fix_seed(seed)
        nlp = spacy.blank("xx")
        nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
        nlp.add_pipe("crf_ner", config=crf_config(LISTENER))
        nlp.initialize(lambda: make_examples(nlp))
        return nlp

    source = shared(0)
    source.to_disk(tmp_path)
    nlp = LoadWeights(tmp_path)(shared(1))
    for name in ("tok2vec", "crf_ner"):
        assert same(weights(nlp.get_pipe(name).model), weights(source.get_pipe(name).model))


# Errors


def test_a_missing_pipeline(tmp_path):
    with pytest.raises(WeaknerError, match=r"WK010.*paths\.initial"):
        LoadWeights(None)
    with pytest.raises(WeaknerError, match=r"\[WK100\].*no.*earlier stage"):
        LoadWeights(tmp_path / "no")(fresh())


@pytest.mark.parametrize(
    "name, components, which", [("other", None, "the pipeline '.*'"), ("crf_ner", {"other": ["all"]}, "this pipeline")]
)
def test_a_component_that_a_pipeline_lacks(trained_path, name, components, which):
    with pytest.raises(ValueError, match=rf"{which} has no component 'other'.*\(it has: crf_ner\)"):
        LoadWeights(trained_path, components)(fresh(name=name))


@pytest.mark.parametrize("name", ["body", "tok2vec", ""])
def test_an_unknown_part(trained_path, name):
    with pytest.raises(ValueError, match=rf"Component 'crf_ner' has no part '{name}'.*all, encoder, head"):
        LoadWeights(trained_path, {"crf_ner": [name]})(fresh())


def test_a_component_without_weights(trained_path):
    nlp = fresh()
    nlp.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"'sentencizer'"):
        LoadWeights(trained_path, {"sentencizer": ["all"]})(nlp)


@pytest.mark.parametrize(
    "settings, part",
    [
        ({"tok2vec": {**TOK2VEC, "width": 8}}, "all"),
        ({"tok2vec": {**TOK2VEC, "width": 8}}, "encoder"),
        ({"tok2vec": {**TOK2VEC, "width": 8}}, "head"),
        ({"tok2vec": {**TOK2VEC, "depth": 2}}, "encoder"),
        ({"scheme": "IOBES"}, "head"),
        ({"scheme": "IO"}, "all"),
    ],
)
def test_weights_that_do_not_fit(trained_path, settings, part):
    with pytest.raises(WeaknerError, match=rf"\[WK014\] The weights of 'crf_ner' \({part}\) in .* do not fit: \w+"):
        LoadWeights(trained_path, {"crf_ner": [part]})(fresh(**settings))


@pytest.mark.parametrize("labels", [["ORG"], ["LOC"], ["LOC", "ORG", "PER"]])
@pytest.mark.parametrize("part", ["all", "head"])
def test_other_labels(trained_path, labels, part):
    with pytest.raises(WeaknerError, match=r"WK014.*its labels are \[.LOC., .PER.\]"):
        LoadWeights(trained_path, {"crf_ner": [part]})(fresh(labels=labels))


def test_labels_that_a_component_cannot_take_over_in_another_order(tmp_path):
    def tagged(*tags):
        nlp = spacy.blank("xx")
        tagger = nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": TOK2VEC}})
        tagger.initialize(lambda: make_examples(nlp), nlp=nlp, labels=list(tags))
        return nlp

    source = tagged("A", "B")
    source.to_disk(tmp_path)
    nlp = LoadWeights(tmp_path)(tagged("B", "A"))
    assert nlp.get_pipe("tagger").labels == ("A", "B")


@pytest.mark.parametrize("part", ["encoder", "base_encoder"])
def test_the_encoder_of_a_listener_is_loaded_where_it_stands(tmp_path, part):
    shared_pipeline(("span_ner",)).to_disk(tmp_path)
    with pytest.raises(ValueError, match=rf"Component 'span_ner' has no '{part}' of its own"):
        LoadWeights(tmp_path, {"span_ner": [part]})(shared_pipeline(("span_ner",)))


# In a config


def test_in_a_config_and_without_the_earlier_stage_later(tmp_path, trained_path):
    stage = tmp_path / "stage"
    shutil.copytree(trained_path, stage)
    callback = {
        "@callbacks": "spacy_weakner.LoadWeights.v1",
        "path": str(stage),
        "components": {"crf_ner": ["encoder", "head"]},
    }
    config = loop_config(tmp_path, {"crf_ner": crf_config(loss=PARTIAL)}, initialize={"after_init": callback})
    nlp = init_nlp(config)
    nlp.to_disk(tmp_path / "next")
    shutil.rmtree(stage)
    assert entities_of(nlp, TEXTS) == GOLD
    assert entities_of(spacy.load(tmp_path / "next"), TEXTS) == GOLD
    assert nlp.get_pipe("crf_ner").loss == PartialCRF(negative_rate=0.7)


# The encoder below the attention

BILSTM = {"@architectures": "spacy_weakner.BiLSTMEncoder.v1", "embed": TOK2VEC, "width": 16}
ATTENTION = {"@architectures": "spacy_weakner.AttentionEncoder.v1", "tok2vec": BILSTM, "heads": 2}


@pytest.mark.parametrize("encoders", [(BILSTM, ATTENTION), (ATTENTION, BILSTM), (BILSTM, BILSTM)])
@pytest.mark.parametrize("shared", [True, False])
def test_the_base_of_an_encoder(tmp_path, encoders, shared):
    def pipeline(encoder):
        return shared_pipeline(("crf_ner",), config=encoder) if shared else crf_pipeline(encoder)

    def encoder_of(nlp):
        return nlp.get_pipe("tok2vec").model if shared else nlp.get_pipe("crf_ner").model.get_ref("tok2vec")

    def base_of(nlp):
        encoder = encoder_of(nlp)
        return encoder.get_ref("tok2vec") if encoder.has_ref("tok2vec") else encoder

    def attention_of(nlp):
        encoder = encoder_of(nlp)
        return weights(encoder.layers[1]) if encoder.has_ref("tok2vec") else []

    source, target = map(pipeline, encoders)
    train(source, make_examples(source), steps=2)
    source.to_disk(tmp_path)
    attention = attention_of(target)
    assert not same(weights(base_of(source)), weights(base_of(target)))
    LoadWeights(tmp_path, {"tok2vec" if shared else "crf_ner": ["base_encoder"]})(target)
    assert same(weights(base_of(source)), weights(base_of(target)))
    assert same(attention, attention_of(target))

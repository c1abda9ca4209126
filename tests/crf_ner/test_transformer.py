"""crf_ner on a Transformer: its own, and a shared one. The model is tiny and made on the fly."""

import shutil

import numpy
import pytest
import spacy

from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.encoders.transformer_encoder import readers_in
from spacy_weakner.training.weights import LoadWeights

from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    crf_pipeline,
    distributions,
    entities_of,
    gradients_with_and_without,
    make_doc,
    make_example,
    make_examples,
    needs_spacy_transformers,
    needs_transformers,
    same,
    shared_examples,
    shared_pipeline,
    train,
    weights,
)


def encoder(path, **settings):
    """The settings of a Transformer that this package runs."""
    return {"@architectures": "spacy_weakner.TransformerEncoder.v1", "name": str(path), "stride": 4, **settings}


def with_own_encoder(path):
    """A pipeline in which crf_ner has its own Transformer."""
    return crf_pipeline(encoder(path))


def transformers_of(nlp):
    """The Transformers that a pipeline runs."""
    return [reader.transformer for _, pipe in nlp.pipeline for reader in readers_in(pipe.model)]


def with_shared_encoder(path, order=("crf_ner",)):
    """A pipeline in which crf_ner listens to a Transformer."""
    return shared_pipeline(order, config=encoder(path, width=16))


def with_spacy_transformers(path, order=("crf_ner",)):
    """The same with a Transformer that spacy-transformers runs."""
    config = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(path),
        "tokenizer_config": {"use_fast": True},
        "transformer_config": {},
        "mixed_precision": False,
        "get_spans": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 16, "stride": 12},
    }
    listener = {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
        "upstream": "*",
    }
    return shared_pipeline(order, "transformer", config, listener)


WITH_SHARED_ENCODER = [with_shared_encoder, pytest.param(with_spacy_transformers, marks=needs_spacy_transformers)]
pytestmark = [needs_transformers, pytest.mark.slow]


@pytest.mark.parametrize("make", [with_own_encoder, *WITH_SHARED_ENCODER])
def test_train_save_and_reload_without_the_folder_of_the_model(still_bert, tmp_path, make):
    folder = tmp_path / "bert"
    shutil.copytree(still_bert, folder)
    nlp = make(folder)
    train(nlp, make_examples(nlp), steps=60)
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(folder)
    assert entities_of(nlp, TEXTS) == GOLD
    loaded = spacy.load(tmp_path / "pipeline")
    docs = [make_doc(nlp, text, annotated=False) for text in TEXTS]
    assert entities_of(loaded, ["", *TEXTS]) == [[], *GOLD]
    found = [distributions(x.get_pipe("crf_ner"), list(x.pipe(doc.copy() for doc in docs))) for x in (nlp, loaded)]
    assert same(*found, tolerance=1e-6)


@pytest.mark.parametrize("make", [with_own_encoder, *WITH_SHARED_ENCODER])
@pytest.mark.parametrize("texts", [[""], ["", "Bob", "", "Anna went to York", ""], ["\n", "Bob"]])
def test_empty_docs(still_bert, make, texts):
    nlp = make(still_bert)
    alone = {text: doc_entities(nlp(text)) for text in texts}
    assert [doc_entities(doc) for doc in nlp.pipe(texts)] == [alone[text] for text in texts]
    losses = nlp.update([make_example(nlp, text.strip()) for text in texts], sgd=nlp.create_optimizer())
    assert (losses["crf_ner"] > 0) is any(texts) and numpy.isfinite(losses["crf_ner"])


@pytest.mark.parametrize("make", WITH_SHARED_ENCODER)
@pytest.mark.parametrize("order", [("tagger", "crf_ner"), ("crf_ner", "tagger")])
def test_an_idle_listener_leaves_the_encoder_to_the_others(still_bert, order, make):
    nlp = make(still_bert, order)
    encoder, examples = nlp.get_pipe(nlp.pipe_names[0]).model, shared_examples(nlp, annotated=False)
    train(nlp, shared_examples(nlp, annotated=True), steps=2)  # the tagger begins with zeros
    together, alone = gradients_with_and_without(nlp, "crf_ner", encoder, examples)
    assert not all_zero(together)
    assert same(together, alone, tolerance=1e-6)


def test_batches_give_what_single_docs_give(still_bert):
    nlp = with_own_encoder(still_bert)
    ner, docs = nlp.get_pipe("crf_ner"), [make_doc(nlp, text) for text in ["", *TEXTS, ""]]
    alone = [distributions(ner, [doc])[0] for doc in docs]
    assert same(distributions(ner, docs[::-1])[::-1], alone, tolerance=1e-5)
    assert same(distributions(ner, docs), alone, tolerance=1e-5)


def test_the_encoder_of_an_earlier_stage_is_loaded(still_bert, tmp_path):
    source = with_own_encoder(still_bert)
    train(source, make_examples(source), steps=2)
    source.to_disk(tmp_path)
    nlp = LoadWeights(tmp_path, {"crf_ner": ["encoder"]})(with_own_encoder(still_bert))
    encoders = [x.get_pipe("crf_ner").model.get_ref("tok2vec") for x in (source, nlp)]
    assert same(*map(weights, encoders))
    assert train(nlp, make_examples(nlp), steps=1)["crf_ner"] > 0
    assert not same(*map(weights, encoders))

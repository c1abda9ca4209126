"""span_ner on shared encoders: a tok2vec, and a tiny Transformer (its own, or a shared one)."""

import numpy
import pytest
import spacy

from spacy_weakner.training.weights import LoadWeights

from ..crf_ner.test_transformer import encoder
from ..util import (
    GOLD,
    TEXTS,
    entities_of,
    fix_seed,
    make_doc,
    make_example,
    make_examples,
    needs_transformers,
    same,
    shared_examples,
    shared_pipeline,
    train,
    weights,
)
from .util import UNIFORM, span_config

pytestmark = pytest.mark.slow


def on_transformer(path, order=("span_ner",)):
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
    return shared_pipeline(order, "tok2vec", encoder(path, width=16), listener)


def with_own_transformer(path):
    fix_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("span_ner", config=span_config(encoder(path)))
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


# A shared tok2vec; see `tests/heads` too


def test_a_listener_with_a_sampler_trains_and_returns_from_disk(tmp_path):
    nlp = shared_pipeline(("tagger", "span_ner"), sampler=UNIFORM)
    train(nlp, shared_examples(nlp, annotated=True), steps=80)
    nlp.to_disk(tmp_path)
    assert entities_of(nlp, TEXTS) == GOLD
    assert entities_of(spacy.load(tmp_path), ["", *TEXTS]) == [[], *GOLD]


def test_weights_of_an_earlier_stage_are_loaded_by_part(tmp_path):
    source = shared_pipeline(("span_ner",))
    train(source, make_examples(source))
    source.to_disk(tmp_path)
    for components, heads_alike in (({"tok2vec": ["all"], "span_ner": ["head"]}, True), ({"tok2vec": ["all"]}, False)):
        nlp = LoadWeights(tmp_path, components)(shared_pipeline(("span_ner",)))
        encoders = [x.get_pipe("tok2vec").model for x in (source, nlp)]
        heads = [x.get_pipe("span_ner").model.get_ref("head") for x in (source, nlp)]
        assert same(*map(weights, encoders))
        assert same(*map(weights, heads)) is heads_alike


@pytest.mark.parametrize("part", ["encoder", "base_encoder"])
def test_the_encoder_of_a_listener_is_loaded_where_it_stands(tmp_path, part):
    source = shared_pipeline(("span_ner",))
    train(source, make_examples(source), steps=1)
    source.to_disk(tmp_path)
    with pytest.raises(ValueError, match=rf"Component 'span_ner' has no '{part}' of its own"):
        LoadWeights(tmp_path, {"span_ner": [part]})(shared_pipeline(("span_ner",)))


# A Transformer


class TestTransformer:
    pytestmark = needs_transformers

    @pytest.mark.parametrize("make", [with_own_transformer, on_transformer])
    def test_it_learns_and_returns_from_disk(self, tiny_bert, make, tmp_path):
        nlp = make(tiny_bert)
        train(nlp, make_examples(nlp), steps=80, learn_rate=0.01)
        assert entities_of(nlp, TEXTS) == GOLD
        nlp.to_disk(tmp_path)
        assert entities_of(spacy.load(tmp_path), ["", *TEXTS]) == [[], *GOLD]

    def test_batches_give_what_single_docs_give(self, tiny_bert):
        nlp = with_own_transformer(tiny_bert)
        ner = nlp.get_pipe("span_ner")
        ner.nested = True
        docs = [make_doc(nlp, text, annotated=False) for text in TEXTS]
        alone = [ner.predict([doc])[0] for doc in docs]
        together = ner.predict(docs[::-1])[::-1]
        assert [p.candidates for p in together] == [p.candidates for p in alone]
        for one, other in zip(alone, together, strict=True):
            assert one.candidate_scores == pytest.approx(other.candidate_scores, rel=1e-4)

    def test_a_long_doc_is_read_in_windows(self, tiny_bert):
        nlp = with_own_transformer(tiny_bert)
        example = make_example(nlp, "Anna went to New York " * 120, [(595, 596, "PER")])
        assert numpy.isfinite(nlp.update([example], sgd=nlp.create_optimizer())["span_ner"])
        assert len(nlp(make_doc(nlp, "Bob " * 600, annotated=False))) == 600

"""Transformers that predict in bfloat16, and train in float32 all the same. They are tiny and made on the fly."""

import os

import numpy
import pytest
import spacy

from spacy_weakner._compat import SHAPE_CACHES
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import get_soft_labels
from spacy_weakner.encoders.bfloat16 import use_bfloat16
from spacy_weakner.errors import WeaknerError
from spacy_weakner.relabel.complete import complete

from ..crf_ner.test_transformer import transformers_of, with_own_encoder, with_shared_encoder, with_spacy_transformers
from ..mrc_ner.test_transformer import mrc_pipeline, together
from ..util import (
    TEXTS,
    clear_gradients,
    crf_pipeline,
    distributions,
    entities_of,
    fix_seed,
    gradients,
    make_doc,
    make_examples,
    needs_spacy_transformers,
    needs_transformers,
    same,
    train,
)

pytestmark = needs_transformers


def asked_of(path):
    """A pipeline that asks questions."""
    nlp = mrc_pipeline(together(path))
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def encoder_of(nlp):
    (module,) = transformers_of(nlp)
    return module


def seen_dtypes(nlp):
    """Of what the last layer of the Transformer computes, gathered as it runs."""
    import torch

    seen = []
    layer = [module for module in encoder_of(nlp).modules() if isinstance(module, torch.nn.Linear)][-2]
    layer.register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    return seen


def test_scratch_memory_is_bounded(tiny_bert, monkeypatch):
    for name in SHAPE_CACHES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    use_bfloat16(with_own_encoder(tiny_bert))
    assert {os.environ.get(name) for name in SHAPE_CACHES} == {"16"}


@pytest.mark.parametrize("make", [with_own_encoder, with_shared_encoder, asked_of])
def test_predictions_are_in_bfloat16_and_training_is_not(tiny_bert, make):
    import torch

    nlp = make(tiny_bert)
    examples = make_examples(nlp)
    fix_seed(1)  # of dropout
    nlp.update(examples, sgd=False)
    models = [pipe.model for _, pipe in nlp.pipeline]
    expected = [gradients(model) for model in models]
    for model in models:
        clear_gradients(model)
    before = nlp.to_bytes()
    entities_of(nlp, TEXTS)
    dtypes = seen_dtypes(nlp)
    assert use_bfloat16(nlp) == 1 == use_bfloat16(nlp)
    entities_of(nlp, ["", *TEXTS])
    assert dtypes and {*dtypes} == {torch.bfloat16}
    dtypes.clear()
    fix_seed(1)
    nlp.update(examples, sgd=False)
    assert dtypes and {*dtypes} == {torch.float32}
    assert all(same(a, gradients(model), 1e-6) for a, model in zip(expected, models, strict=True))
    for model in models:
        clear_gradients(model)
    assert nlp.to_bytes() == before


def test_scores_are_nearly_the_same(tiny_bert):
    nlp = with_own_encoder(tiny_bert)
    train(nlp, make_examples(nlp), steps=20)
    docs = [make_doc(nlp, text, annotated=False) for text in TEXTS]
    exact = distributions(nlp.get_pipe("crf_ner"), docs)
    use_bfloat16(nlp)
    found = distributions(nlp.get_pipe("crf_ner"), docs)
    assert all(each.dtype == other.dtype for each, other in zip(exact, found, strict=True))
    assert same(exact, found, tolerance=0.1) and not same(exact, found)


@pytest.mark.parametrize("make", [pytest.param(with_spacy_transformers, marks=needs_spacy_transformers)])
def test_a_transformer_of_another_package(tiny_bert, make):
    with pytest.raises(WeaknerError, match=r"WK358.*transformer, crf_ner"):
        use_bfloat16(make(tiny_bert))


def test_a_pipeline_without_transformer():
    with pytest.raises(WeaknerError, match=r"WK358.*crf_ner"):
        use_bfloat16(crf_pipeline())
    with pytest.raises(WeaknerError, match=r"WK358.*none"):
        use_bfloat16(spacy.blank("xx"))


def test_a_gpu(tiny_bert, monkeypatch):
    import torch

    nlp = with_own_encoder(tiny_bert)
    monkeypatch.setattr(type(encoder_of(nlp)), "device", torch.device("cuda:0"))
    with pytest.raises(WeaknerError, match=r"WK358.*cuda:0.*mixed_precision"):
        use_bfloat16(nlp)


def test_complete(tiny_bert, tmp_path):
    nlp = with_own_encoder(tiny_bert)
    train(nlp, make_examples(nlp), steps=20)
    nlp.to_disk(tmp_path / "model")
    write_docs(tmp_path / "in.spacy", [make_doc(nlp, text, annotated=False) for text in TEXTS])
    tables = []
    for bfloat16 in (False, True):
        # The output of other settings is made again.
        report = complete(
            tmp_path / "in.spacy", tmp_path / "out.spacy", tmp_path / "model", soft=True, bfloat16=bfloat16
        )
        assert report.docs == len(TEXTS) and not report.skipped
        tables.append([get_soft_labels(doc) for doc in read_docs(tmp_path / "out.spacy", nlp.vocab)])
    exact, found = ([numpy.asarray(each.probabilities) for each in table] for table in tables)
    assert same(exact, found, tolerance=0.1) and not same(exact, found)

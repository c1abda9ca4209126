"""Transformers of other kinds as encoders of questions and texts."""

import shutil

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.encoders.queried import Queried
from spacy_weakner.encoders.transformer_encoder import build_query_context_encoder
from spacy_weakner.errors import WeaknerError

from ..util import needs_transformers, same, weights
from . import kinds
from .questions import NLP, QUERIES, make, make_docs
from .sequences import module_of

pytestmark = needs_transformers


def test_encoders_that_cannot_be_read(tmp_path, still_bert):
    with pytest.raises(WeaknerError, match=r"\[WK100\]"):
        make(tmp_path / "none")
    from safetensors.torch import load_file, save_file

    shutil.copytree(still_bert, tmp_path / "bert")
    kept = load_file(tmp_path / "bert" / "model.safetensors")
    del kept["encoder.layer.0.output.dense.weight"]
    save_file(kept, tmp_path / "bert" / "model.safetensors", {"format": "pt"})
    with pytest.raises(WeaknerError, match=r"WK353.*layer\.0\.output\.dense\.weight"):
        make(tmp_path / "bert")


def test_a_masked_language_model_is_read_without_its_head(still_bert, tmp_path):
    from transformers import BertForMaskedLM

    shutil.copytree(still_bert, tmp_path / "mlm")
    mlm = BertForMaskedLM.from_pretrained(still_bert)
    mlm.save_pretrained(tmp_path / "mlm")
    model = make(tmp_path / "mlm")
    names = dict(module_of(model).transformer.named_parameters())
    assert not any("cls" in name for name in names)
    key = "encoder.layer.0.output.dense.weight"
    assert names[key].equal(mlm.bert.get_parameter(key))
    # The pooler, which it lacks, is not used.
    assert len(model.predict(Queried(make_docs(["bob"]), QUERIES))) == 1


@pytest.mark.parametrize("kind", ["DistilBert", "Electra", "Albert"])
def test_other_architectures(still_bert, tmp_path, kind):
    import transformers

    sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16} if kind == "DistilBert" else kinds.SIZES
    tokenizer = transformers.AutoTokenizer.from_pretrained(still_bert)
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), pad_token_id=0, **sizes)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, words = make(tmp_path), ["anna", "went", "to", "new", "york"]
    (found,) = model.predict(Queried(make_docs(["anna went to new york", "bob"]), ["who"]))[:1]
    encoding = tokenizer(["who"], words, is_split_into_words=True, return_tensors="pt")
    if kind == "DistilBert":
        del encoding["token_type_ids"]
    hidden = transformers.AutoModel.from_pretrained(tmp_path).eval()(**encoding).last_hidden_state[0].detach().numpy()
    numpy.testing.assert_allclose(found[:, 0, :16], hidden[5 : 5 + len(words)], atol=1e-5)
    other = build_query_context_encoder("", max_length=32, stride=4).from_bytes(model.to_bytes())
    assert same(weights(model), weights(other))


@pytest.fixture
def roberta(tmp_path):
    return kinds.roberta(tmp_path)


def test_byte_level_pieces_are_those_of_the_text_with_its_spaces(roberta):
    from transformers import AutoModel, AutoTokenizer

    model = make(roberta)
    doc = Doc(NLP.vocab, words=["Bob", ",", "Bob", "\n", "Bob"], spaces=[False, True, True, False, False])
    (found,) = model.predict(Queried([doc], ["Bob Bob"]))
    tokenizer, twin = AutoTokenizer.from_pretrained(roberta), AutoModel.from_pretrained(roberta).eval()
    pair = tokenizer(" Bob Bob", " Bob, Bob Bob", return_tensors="pt")
    pieces = tokenizer.convert_ids_to_tokens(pair["input_ids"][0])
    assert pieces == ["<s>", "ĠBob", "ĠBob", "</s>", "</s>", "ĠBob", ",", "ĠBob", "ĠBob", "</s>"]
    hidden = twin(**pair).last_hidden_state[0].detach().numpy()
    numpy.testing.assert_allclose(found[[0, 1, 2, 4], 0, :16], hidden[5:9], atol=1e-5)
    assert not found[3].any()


def test_positions_of_roberta_begin_behind_that_of_padding(roberta):
    assert module_of(make(roberta)).max_pieces == 32
    asked = Queried(make_docs(["Bob" + " Bob" * 60]), ["Bob"])
    assert numpy.isfinite(make(roberta).predict(asked)[0]).all()
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'max_length' = 33"):
        make(roberta, max_length=33).predict(asked)

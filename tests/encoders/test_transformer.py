"""Reading and storing encoders of Hugging Face. The models are tiny and made on the fly."""

import json
import shutil
from functools import partial

import pytest

from spacy_weakner.encoders import transformer
from spacy_weakner.encoders.transformer import (
    load_encoder,
    load_encoder_tokenizer,
    load_masked_lm,
    max_pieces,
    save_encoder,
)
from spacy_weakner.errors import WeaknerError

from ..util import needs_transformers

pytestmark = needs_transformers


@pytest.fixture
def bare(tiny_bert, tmp_path):
    """A copy of a BERT without a head."""
    shutil.copytree(tiny_bert, tmp_path / "bare")
    return tmp_path / "bare"


def tied(model):
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def same_weights(a, b):
    a, b = a.state_dict(), b.state_dict()
    return list(a) == list(b) and all(a[key].equal(b[key]) for key in a)


def test_a_missing_head_must_be_asked_for(tiny_bert):
    with pytest.raises(WeaknerError, match=r"WK354.*cls\.predictions.*--train-head"):
        load_masked_lm(tiny_bert)
    found = load_masked_lm(tiny_bert, train_head=True, seed=1)
    assert found.new_head and tied(found.model)
    assert same_weights(found.model, load_masked_lm(tiny_bert, train_head=True, seed=1).model)
    assert not same_weights(found.model, load_masked_lm(tiny_bert, train_head=True, seed=2).model)


def test_a_new_head_is_tied_whatever_the_config_says(bare):
    config = json.loads((bare / "config.json").read_text())
    (bare / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    assert tied(load_masked_lm(bare, train_head=True).model)


def test_loading_leaves_the_draws_of_others_alone(tiny_bert):
    import torch

    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    load_masked_lm(tiny_bert, train_head=True)
    assert torch.rand(4).equal(expected)


def test_what_is_stored_loads_with_and_without_head(tiny_bert, tmp_path):
    import transformers

    found = load_masked_lm(tiny_bert, train_head=True)
    save_encoder(found, tiny_bert, tmp_path / "out")
    again = load_masked_lm(tmp_path / "out")
    assert not again.new_head and same_weights(found.model, again.model)
    assert again.tokenizer.get_vocab() == found.tokenizer.get_vocab()
    plain, info = transformers.AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    # Not even the pooler, which the masked language model does without.
    assert not info["missing_keys"] and same_weights(plain, transformers.AutoModel.from_pretrained(tiny_bert))


@pytest.mark.parametrize("kind", ["Roberta", "DistilBert", "Electra", "Albert"])
def test_other_architectures(tiny_bert, tmp_path, kind):
    import transformers

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    if kind == "DistilBert":
        sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    tokenizer = load_encoder_tokenizer(tiny_bert)
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), pad_token_id=0, **sizes)
    plain = transformers.AutoModel.from_config(config)
    plain.save_pretrained(tmp_path / "in")
    tokenizer.save_pretrained(tmp_path / "in")
    refuse(tmp_path / "in", "WK354")
    found = load_masked_lm(tmp_path / "in", train_head=True)
    assert tied(found.model)
    save_encoder(found, tmp_path / "in", tmp_path / "out")
    assert same_weights(load_masked_lm(tmp_path / "out").model, found.model)
    again, info = transformers.AutoModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert same_weights(again, plain) and not info["missing_keys"]


def refuse(name, message, load=load_masked_lm):
    with pytest.raises(WeaknerError, match=message) as error:
        load(name)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("load", [load_masked_lm, load_encoder_tokenizer])
def test_encoders_that_are_not_there(tmp_path, load):
    refuse(tmp_path / "none", "WK100", load)
    refuse("../none", "WK100", load)
    refuse(tmp_path, "WK351.*no config.json", load)
    refuse("nobody/nothing", "WK351.*nobody/nothing", load)


def test_pickles_are_not_read(bare):
    import torch
    import transformers

    torch.save(transformers.AutoModel.from_pretrained(bare).state_dict(), bare / "pytorch_model.bin")
    (bare / "model.safetensors").unlink()
    refuse(bare, "WK352.*safetensors")


def test_damaged_weights(bare):
    (bare / "model.safetensors").write_bytes((bare / "model.safetensors").read_bytes()[:100])
    refuse(bare, "WK351")


def test_weights_of_the_encoder_that_are_missing(bare):
    from safetensors.torch import load_file, save_file

    weights = load_file(bare / "model.safetensors")
    del weights["encoder.layer.0.output.dense.weight"]
    save_file(weights, bare / "model.safetensors", {"format": "pt"})
    with pytest.raises(WeaknerError, match=r"WK353.*layer\.0\.output\.dense\.weight"):
        load_masked_lm(bare, train_head=True)


def test_encoders_with_a_decoder(bare):
    config = json.loads((bare / "config.json").read_text())
    (bare / "config.json").write_text(json.dumps({**config, "is_encoder_decoder": True}))
    refuse(bare, "WK353.*decoder", load_encoder)


def test_models_that_are_no_masked_language_models(bare):
    config = json.loads((bare / "config.json").read_text())
    (bare / "config.json").write_text(json.dumps({**config, "model_type": "gpt2"}))
    refuse(bare, "WK351.*GPT2Config")


@pytest.mark.parametrize("load", [partial(load_masked_lm, train_head=True), load_encoder])
def test_tokenizers_of_other_encoders(bare, load):
    words = (bare / "vocab.txt").read_text().split()
    (bare / "vocab.txt").write_text("\n".join([*words, "unknown", "strange"]) + "\n")
    (bare / "tokenizer.json").unlink(missing_ok=True)
    refuse(bare, "WK353.*2 have no embedding", load)


def test_a_mask_without_an_embedding_matters_only_to_masked_language_models(bare):
    words = (bare / "vocab.txt").read_text().split()
    # transformers adds the mask behind all other pieces.
    (bare / "vocab.txt").write_text("\n".join([*(word for word in words if word != "[MASK]"), "strange"]) + "\n")
    (bare / "tokenizer.json").unlink(missing_ok=True)
    load_encoder(bare)
    refuse(bare, "WK353.*1 have no embedding", partial(load_masked_lm, train_head=True))


@pytest.mark.parametrize("load", [load_masked_lm, load_encoder])
def test_encoders_without_a_tokenizer(bare, load):
    for name in ("vocab.txt", "tokenizer.json"):
        (bare / name).unlink(missing_ok=True)
    refuse(bare, r"WK351.*no tokenizer \(tokenizer.json\)\. Give", load)


def test_tokenizers_without_a_mask(bare):
    (bare / "special_tokens_map.json").unlink(missing_ok=True)
    settings = json.loads((bare / "tokenizer_config.json").read_text())
    settings = {key: value for key, value in settings.items() if key != "mask_token"}
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    (bare / "tokenizer_config.json").write_text(json.dumps(settings))
    refuse(bare, "WK353.*no mask token")


def test_code_of_a_model_is_not_executed(bare):
    config = {"model_type": "own", "auto_map": dict.fromkeys(("AutoConfig", "AutoModelForMaskedLM"), "own.X")}
    (bare / "config.json").write_text(json.dumps(config))
    (bare / "own.py").write_text(f"open({str(bare / 'executed')!r}, 'w')\n")
    refuse(bare, "WK351")
    assert not (bare / "executed").exists()


@pytest.mark.parametrize("limit, expected", [(None, 30), (20, 20)])
def test_length_that_a_model_reads(tiny_bert, limit, expected):
    import transformers

    config = transformers.RobertaConfig(
        vocab_size=10, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=32
    )
    tokenizer = load_encoder_tokenizer(tiny_bert)
    tokenizer.model_max_length = limit or 10**30
    # RoBERTa counts positions from 2 on.
    assert max_pieces(transformer.MaskedLM(transformers.RobertaForMaskedLM(config), tokenizer, False)) == expected


def test_the_extra_is_asked_for(tiny_bert, monkeypatch):
    monkeypatch.setattr("spacy_weakner.errors.find_spec", lambda name: None)
    refuse(tiny_bert, r"WK350.*spacy_weakner\[transformers\]")

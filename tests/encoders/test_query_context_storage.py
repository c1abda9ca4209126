"""Storage of the encoder that reads questions and texts together."""

import copy
import pickle
import shutil

from spacy_weakner.encoders.queried import Queried
from spacy_weakner.encoders.transformer_encoder import build_query_context_encoder

from ..util import needs_transformers, same
from .questions import QUERIES, TEXT, make, make_docs
from .sequences import module_of

pytestmark = needs_transformers


def test_settings_of_the_one_that_loads_win(still_bert):
    small = make(still_bert, max_length=16, stride=2, batch_pieces=1)
    large, asked = make(still_bert), Queried(make_docs([TEXT]), ["who", "to"])
    expected = large.predict(asked)
    assert not same(small.predict(asked), expected, tolerance=1e-4)
    assert same(large.from_bytes(small.to_bytes()).predict(asked), expected, tolerance=1e-6)


def test_a_copy_is_independent(still_bert):
    model, asked = make(still_bert), Queried(make_docs([TEXT]), QUERIES)
    other, expected = copy.deepcopy(model), model.predict(asked)
    for parameter in module_of(other).parameters():
        parameter.data.zero_()
    assert same(model.predict(asked), expected)
    assert not same(other.predict(asked), expected, tolerance=1e-3)


def test_one_that_is_not_initialized_is_stored(still_bert):
    data = build_query_context_encoder(str(still_bert)).to_bytes()
    other = build_query_context_encoder(str(still_bert)).from_bytes(data)
    assert module_of(other) is None
    other.initialize()
    assert module_of(other).width == 32


def test_nothing_is_pickled(still_bert, monkeypatch):
    import torch

    def forbidden(*args, **kwargs):
        raise AssertionError("pickled")

    model = make(still_bert)
    for owner, name in [(torch, "save"), (torch, "load"), *((pickle, n) for n in ("dumps", "loads", "dump", "load"))]:
        monkeypatch.setattr(owner, name, forbidden)
    build_query_context_encoder(str(still_bert)).from_bytes(model.to_bytes())


def test_half_precision_becomes_float32(still_bert, tmp_path):
    import torch
    from transformers import AutoModel

    shutil.copytree(still_bert, tmp_path / "half")
    AutoModel.from_pretrained(still_bert).half().save_pretrained(tmp_path / "half")
    assert "float16" in (tmp_path / "half" / "config.json").read_text()
    model, asked = make(tmp_path / "half"), Queried(make_docs([TEXT]), QUERIES)
    other = build_query_context_encoder("", max_length=32, stride=4).from_bytes(model.to_bytes())
    assert {p.dtype for m in (model, other) for p in module_of(m).parameters()} == {torch.float32}
    assert same(model.predict(asked), other.predict(asked))

"""A Transformer as encoder of tokens, against transformers' own reading, for Transformers of several kinds."""

import shutil

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import SGD, PyTorchGradScaler

from spacy_weakner.encoders import transformer_encoder
from spacy_weakner.encoders.transformer_encoder import build_transformer_encoder
from spacy_weakner.encoders.windows import WindowSettings, WindowTokenizer, mark_only_spaces, read_windows
from spacy_weakner.errors import WeaknerError

from ..util import fix_seed, needs_transformers, same, weights
from . import kinds
from .sequences import module_of

# DeBERTa's module in transformers uses torch.jit.
pytestmark = [needs_transformers, pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]
NLP = spacy.blank("xx")
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_hidden_layers": 2}
WORDS = ["Bob", "annas", "Bob", "zxy", "a"]


@pytest.fixture(scope="module", params=["bert", "roberta", "deberta"])
def folder(request, tmp_path_factory, tiny_bert):
    """Folder of a Transformer without dropout."""
    path = tmp_path_factory.mktemp(request.param)
    more = (tiny_bert,) if request.param == "bert" else ()
    return getattr(kinds, request.param)(path, *more, **STILL)


@pytest.fixture(scope="module")
def still(tmp_path_factory, tiny_bert):
    return kinds.bert(tmp_path_factory.mktemp("still"), tiny_bert, **STILL)


def make(path, **settings):
    model = build_transformer_encoder(str(path), **{"max_length": 32, "stride": 8, **settings})
    model.initialize()
    return model


def doc_of(words, spaces=None):
    return Doc(NLP.vocab, words=words, spaces=spaces)


def pooled_by_torch(path, words, pooling="mean"):
    """Vectors of words by transformers: means of pieces, or the first ones. Gives the model too."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    encoding = tokenizer([f" {word}" for word in words], is_split_into_words=True, return_tensors="pt")
    hidden, owners = model(**encoding).last_hidden_state[0], encoding.word_ids(0)
    pieces = [hidden[[i for i, owner in enumerate(owners) if owner == word]] for word in range(len(words))]
    assert max(map(len, pieces)) > 1
    return torch.stack([own.mean(dim=0) if pooling == "mean" else own[0] for own in pieces]), model


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_are_those_of_transformers(folder, pooling):
    model = make(folder, pooling=pooling)
    (found,) = model.predict([doc_of(WORDS)])
    expected, _ = pooled_by_torch(folder, WORDS, pooling)
    numpy.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-5)
    assert found.dtype == "float32" and model.get_dim("nO") == 16


def test_batches_windows_and_empty_docs(folder):
    """A batch gives what single Docs give; long Docs have a vector for every word; what has no pieces has zeros."""
    docs = [doc_of(own) for own in ([], ["Bob"], ["\n", "Bob", " "], WORDS, WORDS * 20, ["\n"], [])]
    whole = make(folder, batch_pieces=70).predict(docs)
    model = make(folder, batch_pieces=1)
    assert same(whole, [model.predict([doc])[0] for doc in docs], tolerance=1e-5)
    assert [own.shape for own in whole] == [(len(doc), 16) for doc in docs]
    assert [bool(row.any()) for row in whole[2]] == [False, True, False]
    assert all(row.any() for row in whole[4]) and not whole[5].any()
    numpy.testing.assert_allclose(whole[1], whole[2][1:2], atol=1e-5)


def test_gradients_are_those_of_torch(folder):
    import torch

    model = make(folder, batch_pieces=20)
    texts = [WORDS, [], ["Bob"] * 2 + ["zx"], ["\n"]]
    outputs, backprop = model.begin_update([doc_of(words) for words in texts])
    given = [numpy.random.RandomState(0).normal(size=own.shape).astype("float32") for own in outputs]
    backprop(given)
    totals = {}
    for words, own in zip(texts[::2], given[::2], strict=True):
        vectors, twin = pooled_by_torch(folder, words)
        (vectors * torch.from_numpy(own)).sum().backward()
        for name, parameter in twin.named_parameters():
            if parameter.grad is not None:
                totals[name] = totals.get(name, 0) + parameter.grad
    found = {name: p.grad for name, p in module_of(model).transformer.named_parameters() if p.grad is not None}
    assert found.keys() == totals.keys()
    for name, own in found.items():
        numpy.testing.assert_allclose(own.numpy(), totals[name].numpy(), rtol=1e-4, atol=1e-4, err_msg=name)


def test_threads_predict_beside_each_other(tiny_bert):
    """Who predicts in the meantime switches no dropout on."""
    model, docs, calls = make(tiny_bert), [doc_of(WORDS)], []
    expected = model.predict(docs)

    def predict_once(*_):
        calls.append(1)
        if len(calls) == 1:
            model.predict(docs)

    module_of(model).transformer.register_forward_pre_hook(predict_once)
    assert same(expected, model.predict(docs)) and len(calls) == 2


@pytest.mark.parametrize("docs", [[], [[]], [["\n"], []]])
def test_nothing_to_read(still, docs):
    model, docs = make(still), [doc_of(words) for words in docs]
    outputs, backprop = model.begin_update(docs)
    assert [own.shape for own in outputs] == [(len(doc), 16) for doc in docs]
    backprop(outputs)
    model.finish_update(SGD(0.1))


def test_it_returns_from_bytes_without_its_folder(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "model")
    model, docs = make(tmp_path / "model"), [doc_of(WORDS * 10)]
    expected, data = model.predict(docs), model.to_bytes()
    shutil.rmtree(tmp_path / "model")
    fix_seed(1)
    other = build_transformer_encoder(str(tmp_path / "model"), max_length=32, stride=8).from_bytes(data)
    assert same(weights(model), weights(other)) and same(expected, other.predict(docs))
    assert same(expected, model.copy().predict(docs))


def test_a_second_initialization_begins_anew(still, tmp_path):
    shutil.copytree(still, tmp_path / "model")
    model = make(tmp_path / "model")
    before = weights(model)

    def learn():
        outputs, backprop = model.begin_update([doc_of(WORDS)])
        backprop([numpy.ones_like(vectors) * numpy.arange(16, dtype="float32") for vectors in outputs])
        model.finish_update(SGD(0.1))
        return weights(model)

    assert not same(before, learn())
    model.initialize()
    assert same(before, weights(model))
    learned = learn()
    shutil.rmtree(tmp_path / "model")
    with pytest.warns(UserWarning, match="WK909"):
        model.initialize()
    assert same(learned, weights(model))


# Pieces


def pieces_of(tokenizer, words, spaces, query=""):
    (windows,) = read_windows(tokenizer, [doc_of(words, spaces)], [query], WindowSettings(32, 8))
    return [tokenizer.whole.id_to_token(i) for i in windows[0][0].ids]


@pytest.mark.parametrize("split", [False, True])
def test_sentencepiece_marks_only_words_after_white_space(split):
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = ["[UNK]", "▁中", "▁New", "▁York", ",", "'s", "中", "国", "▁"]
    original = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], unk_id=0))
    steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    original.pre_tokenizer = pre_tokenizers.Sequence(steps) if split else steps[1]
    stored = WindowTokenizer(original.to_str())
    tokenizer = WindowTokenizer(mark_only_spaces(stored.data))
    assert pieces_of(tokenizer, ["中", "国", "中"], [False] * 3) == ["▁中", "国", "中"]
    english = ["New", "York", "'s", ",", "York"], [True, False, False, True, False]
    assert pieces_of(tokenizer, *english) == ["▁New", "▁York", "'s", ",", "▁York"]
    assert pieces_of(tokenizer, ["国"], [False], "New 中") == ["▁New", "▁中", "▁", "国"]
    # Stored pipelines keep the pieces that they were trained with.
    assert pieces_of(stored, ["中", "国", "中"], [False] * 3) == ["▁中", "▁", "国", "▁中"]


def test_other_tokenizers_stay_as_they_are(folder):
    from transformers import AutoTokenizer

    original = AutoTokenizer.from_pretrained(folder).backend_tokenizer.to_str()
    found = module_of(make(folder)).tokenizer
    assert (found.data == original) == (found.blank == " ") == ("deberta" not in folder.name)


# What learns, and how fast


def moved(model):
    """How far each part moves in an update with plain gradients, in proportion to its gradients."""
    before = {name: p.detach().clone() for name, p in module_of(model).transformer.named_parameters()}
    outputs, backprop = model.begin_update([doc_of(WORDS)])
    backprop([numpy.ones_like(vectors) * numpy.arange(16, dtype="float32") for vectors in outputs])
    gradients = {n: p.grad.clone() for n, p in module_of(model).transformer.named_parameters() if p.grad is not None}
    model.finish_update(SGD(0.01, L2=0.0, grad_clip=0.0))
    after = dict(module_of(model).transformer.named_parameters())
    parts = {"embeddings.word": [], "layer.0.": [], "layer.1.": []}
    for part, found in parts.items():
        for name in before:
            if part in name and name not in gradients:
                assert after[name].equal(before[name])
            elif part in name and gradients[name].abs().max() > 1e-3:
                step = (before[name] - after[name].detach()).norm() / gradients[name].norm()
                found.append(float(step) / 0.01)
    return [numpy.mean(found) if found else 0.0 for found in parts.values()]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, [1, 1, 1]),
        ({"layer_decay": 0.5}, [0.25, 0.5, 1]),
        ({"frozen_layers": 1}, [0, 0, 1]),
        ({"frozen_layers": 2, "layer_decay": 0.5}, [0, 0, 0]),
    ],
)
def test_lower_layers_learn_slower_or_not_at_all(folder, settings, expected):
    assert moved(make(folder, **settings)) == pytest.approx(expected, rel=0.01)
    loaded = build_transformer_encoder("", max_length=32, stride=8, **settings).from_bytes(make(folder).to_bytes())
    assert moved(loaded) == pytest.approx(expected, rel=0.01)


class Scaler(PyTorchGradScaler):
    """Scales on a CPU too; gradients above `limit` overflow."""

    limit = 1e9

    def _scale_tensor(self, tensor, scale_per_device, inplace):
        return tensor * self._scale

    def unscale(self, tensors):
        self._found_inf = any(bool((own.abs() > self.limit).any()) for own in tensors)
        for own in tensors:
            own /= self._scale
        return self._found_inf


def test_scaled_gradients_of_several_batches_add_up(still, monkeypatch):
    import torch

    def gradients(overflow=False):
        model = make(still, mixed_precision="fp16")
        scaler = model.layers[0].shims[0]._grad_scaler
        for words in (WORDS, ["Bob", "a"], WORDS):
            outputs, backprop = model.begin_update([doc_of(words)])
            scaler.limit = 0.0 if overflow and len(words) == 2 else 1e9
            backprop([numpy.ones_like(vectors) * numpy.arange(16, dtype="float32") for vectors in outputs])
        return [p.grad for p in module_of(model).parameters() if p.grad is not None]

    plain = gradients()
    monkeypatch.setattr(transformer_encoder, "PyTorchGradScaler", lambda enabled: Scaler(True, init_scale=2.0**10))
    scaled, without = gradients(), gradients(overflow=True)
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(plain, scaled, strict=True))
    assert any(not torch.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(plain, without, strict=True))
    assert all(own.isfinite().all() for own in without)


# In pipelines


@pytest.mark.parametrize("name", ["crf_ner", "token_ner"])
def test_heads_listen_to_a_shared_one_and_are_parted(still, name):
    nlp = spacy.blank("xx")
    encoder = {"@architectures": "spacy_weakner.TransformerEncoder.v1", "name": str(still), "width": 16}
    nlp.add_pipe("tok2vec", config={"model": {**encoder, "max_length": 32, "stride": 8}})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "tok2vec"}
    nlp.add_pipe(name, config={"model": {"tok2vec": listener}})
    examples = [Example.from_dict(nlp.make_doc("Bob went to paris"), {"entities": [(0, 3, "PER")]})]
    optimizer = nlp.initialize(lambda: [*examples, Example.from_dict(nlp.make_doc(""), {})])
    before = weights(nlp.get_pipe("tok2vec").model)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    assert not same(before, weights(nlp.get_pipe("tok2vec").model))
    found = [[ent.text for ent in doc.ents] for doc in nlp.pipe(["Bob went to paris", "", "\n"])]
    assert found == [["Bob"], [], []]
    loaded = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert loaded.meta["requirements"] == ["spacy_weakner[transformers]"]  # which `spacy package` reads
    loaded.replace_listeners("tok2vec", name, ["model.tok2vec"])
    loaded.remove_pipe("tok2vec")
    assert [ent.text for ent in loaded("Bob went to paris").ents] == ["Bob"]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"width": 20}, r"\[WK005\].*'width' = 20.*16"),
        ({"pooling": "last"}, r"\[WK005\].*mean"),
        ({"mixed_precision": "fp8"}, r"\[WK005\].*bf16"),
        ({"layer_decay": 1.5}, r"\[WK005\].*layer_decay"),
        ({"frozen_layers": 3}, r"\[WK353\].*2 layers"),
        ({"max_length": 65}, r"\[WK005\].*'max_length' = 65"),
    ],
)
def test_settings_that_cannot_be(still, settings, message):
    with pytest.raises(WeaknerError, match=message):
        make(still, **settings).predict([doc_of(WORDS)])

"""Question and text, read together by a Transformer, against transformers' own reading of pairs."""

import copy
import pickle
import shutil

import numpy
import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.encoders.queried import Queried, spaced
from spacy_weakner.encoders.transformer_encoder import build_query_context_encoder
from spacy_weakner.encoders.windows import WindowSettings, read_windows
from spacy_weakner.errors import WeaknerError

from ..util import gradients, needs_transformers, same, weights
from . import kinds
from .questions import NLP, QUERIES, TEXT, make, make_docs, transformers_of
from .sequences import module_of

pytestmark = needs_transformers


def read_alone(path, query, words):
    """Last hidden states of one pair by transformers, and the word of each piece of the text."""
    import torch

    tokenizer, model = transformers_of(path)
    encoding = tokenizer(query.split(), words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**encoding).last_hidden_state[0].numpy()
    in_text = [own == 1 for own in encoding.sequence_ids(0)]
    return hidden, [word if own else None for word, own in zip(encoding.word_ids(0), in_text, strict=True)]


def words_of(hidden, owners, n_words):
    """Vectors of words: first and last piece."""
    result = numpy.zeros((n_words, 2 * hidden.shape[1]), dtype="float32")
    for word in range(n_words):
        positions = [i for i, own in enumerate(owners) if own == word]
        if positions:
            result[word] = numpy.concatenate([hidden[positions[0]], hidden[positions[-1]]])
    return result


# Reading pairs


@pytest.mark.parametrize("text", ["anna", "anna went to new york", "Annas xyz", "new paris ! at-all 北京 bob"])
def test_vectors_are_those_of_the_pair(still_bert, text):
    (found,) = make(still_bert).predict(Queried(make_docs([text]), QUERIES))
    words = text.split()
    assert found.shape == (len(words), 2, 32) and found.dtype == "float32"
    for q, query in enumerate(QUERIES):
        expected = words_of(*read_alone(still_bert, query, words), len(words))
        numpy.testing.assert_allclose(found[:, q], expected, atol=1e-5)


# Words and their pieces. The question "who" has three pieces, so that the text begins at the sixth.


@pytest.mark.parametrize("vocab", [NLP.vocab, Vocab()])
def test_a_word_after_a_line_break_begins_with_a_space(vocab):
    assert spaced(Doc(vocab, words=["New", "\n", "York"], spaces=[False] * 3), 2) == " York"


@pytest.mark.parametrize(
    "words, expected",
    [
        (["anna", "bob"], [(0, 0), (1, 1)]),
        (["Anna", "BOB"], [(0, 0), (1, 1)]),
        (["annas", "bob", "xyz"], [(0, 1), (2, 2), (3, 5)]),
        (["new-york", "!", "bob."], [(0, 2), (3, 3), (4, 5)]),
        (["北京", "bob", "北"], [(0, 1), (2, 2), (3, 3)]),
        (["\n", "anna", " \t", "bob", "\n\n"], [None, (0, 0), None, (1, 1), None]),
        # Left out by the tokenizer itself.
        (["\u200b", "anna", "\u0301"], [None, (0, 0), None]),
        (["\n"], [None]),
        (["\u200b"], [None]),
        # Pieces that mean something else do not stand in texts.
        (["[SEP]", "anna", "[CLS]x"], [(0, 4), (5, 5), (6, 11)]),
    ],
)
def test_a_word_is_its_first_and_its_last_piece(still_bert, words, expected):
    model = make(still_bert)
    doc = Doc(NLP.vocab, words=words, spaces=[False] * len(words))
    (found,) = model.predict(Queried([doc], ["who"]))
    ((parts,),) = read_windows(module_of(model).tokenizer, [doc], ["who"], WindowSettings(32, 4))
    places = {}
    for part in parts:
        rows = zip(part.words.tolist(), part.first.tolist(), part.last.tolist(), strict=True)
        places.update({word: (first - 5, last - 5) for word, first, last in rows})
        assert part.types == [0] * 5 + [1] * (len(part.ids) - 5)
    assert [places.get(word) for word in range(len(words))] == expected
    assert [bool(row.any()) for row in found[:, 0]] == [place is not None for place in expected]


# Batches


@pytest.mark.parametrize("batch_pieces", [1, 20, 64, 10000])
def test_batches_and_padding_change_nothing(still_bert, batch_pieces):
    docs = make_docs(["bob", "", TEXT, "anna went", "\n", "new york", TEXT[:30]])
    found, single = make(still_bert, batch_pieces=batch_pieces).predict(Queried(docs, QUERIES)), make(still_bert)
    assert [own.shape for own in found] == [(len(doc), 2, 32) for doc in docs]
    for doc, own in zip(docs, found, strict=True):
        for q, query in enumerate(QUERIES):
            (alone,) = single.predict(Queried([doc], [query]))
            numpy.testing.assert_allclose(own[:, q], alone[:, 0], atol=1e-5)


@pytest.mark.parametrize("batch_pieces, most", [(1, 32), (40, 40), (100, 100)])
def test_batches_are_bounded(still_bert, batch_pieces, most):
    model = make(still_bert, batch_pieces=batch_pieces)
    sizes = []
    hook = lambda module, args, kwargs: sizes.append(kwargs["attention_mask"].numel())  # noqa: E731
    module_of(model).transformer.register_forward_pre_hook(hook, with_kwargs=True)
    model.predict(Queried(make_docs([TEXT, "bob", "anna went", TEXT]), QUERIES))
    assert max(sizes) <= most
    assert (len(sizes) == 8) == (batch_pieces == 1)


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["\n"], ["\n", ""]])
def test_nothing_to_read(still_bert, texts):
    model, docs = make(still_bert), make_docs(texts)
    outputs, backprop = model.begin_update(Queried(docs, QUERIES))
    assert [own.shape for own in outputs] == [(len(doc), 2, 32) for doc in docs]
    assert not any(own.any() for own in outputs)
    backprop(outputs)
    assert not any(own is not None and own.any() for own in gradients(model))


# Learning


@pytest.mark.parametrize("batch_pieces", [1, 10000])
def test_gradients_are_those_of_torch(still_bert, batch_pieces):
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["anna went to new york", "", "annas", "bob likes paris", TEXT]
    model = make(still_bert, batch_pieces=batch_pieces)
    outputs, backprop = model.begin_update(Queried(make_docs(texts), QUERIES))
    random = numpy.random.RandomState(0)
    given = [random.normal(size=own.shape).astype("float32") for own in outputs]
    backprop(given)
    tokenizer, twin = AutoTokenizer.from_pretrained(still_bert), AutoModel.from_pretrained(still_bert)
    loss = torch.zeros(())
    for text, own in zip(texts, given, strict=True):
        for q, query in enumerate(QUERIES if text else []):
            pair = tokenizer(query.split(), text.split(), is_split_into_words=True, return_tensors="pt")
            hidden, begin = twin(**pair).last_hidden_state[0], pair["token_type_ids"][0].tolist().index(1)
            for word, vector in enumerate(torch.from_numpy(own[:, q])):
                at = [i for i, other in enumerate(pair.word_ids(0)) if other == word and i >= begin]
                loss = loss + (torch.cat([hidden[at[0]], hidden[at[-1]]]) * vector).sum()
    loss.backward()
    expected = {name: p.grad for name, p in twin.named_parameters()}
    assert [name for name, own in expected.items() if own is None] == ["pooler.dense.weight", "pooler.dense.bias"]
    for (name, other), own in zip(expected.items(), gradients(model), strict=True):
        assert (own is None) is (other is None)
        if own is not None:
            numpy.testing.assert_allclose(own, other.numpy(), rtol=1e-5, atol=1e-4, err_msg=name)


def test_gradients_of_windows_by_finite_differences(still_bert):
    model = make(still_bert, max_length=16, stride=5, batch_pieces=40)
    asked = Queried(make_docs([TEXT, "bob"]), ["who", "a b"])
    outputs, backprop = model.begin_update(asked)
    random = numpy.random.RandomState(0)
    given = [random.normal(size=own.shape).astype("float32") for own in outputs]
    backprop(given)
    parameter = module_of(model).transformer.embeddings.word_embeddings.weight
    # The larger the gradient, the better it can be seen in float32.
    steepest = numpy.argsort(-numpy.abs(parameter.grad.numpy()).ravel())[:8]
    for index in zip(*numpy.unravel_index(steepest, parameter.shape), strict=True):
        sides = []
        for sign in (1, -1):
            parameter.data[index] += sign * 1e-3
            sides.append(sum(float((a * b).sum()) for a, b in zip(given, model.predict(asked), strict=True)))
            parameter.data[index] -= sign * 1e-3
        assert parameter.grad[index].item() == pytest.approx((sides[0] - sides[1]) / 2e-3, rel=0.05)


# Texts that are too long to be read with a question at once


def naive_windows(path, query, words, max_length, stride):
    """Vectors of words: every window on its own, and each word off the one in which it has most pieces and stands
    farthest from an edge."""
    import torch

    tokenizer, model = transformers_of(path)
    question = tokenizer(query, add_special_tokens=False)["input_ids"]
    text = tokenizer(words, is_split_into_words=True, add_special_tokens=False)
    pieces, owners = text["input_ids"], text.word_ids()
    room = max_length - 3 - len(question)
    step = room - min(stride, room // 2)
    best = {}
    for low in range(0, len(pieces), step):
        own = pieces[low : low + room]
        ids = [tokenizer.cls_token_id, *question, tokenizer.sep_token_id, *own, tokenizer.sep_token_id]
        types = [0] * (len(question) + 2) + [1] * (len(own) + 1)
        with torch.no_grad():
            output = model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types]))
        hidden = output.last_hidden_state[0].numpy()[len(question) + 2 :]
        here = owners[low : low + room]
        for word in sorted(set(here)):
            positions = [i for i, other in enumerate(here) if other == word]
            margin = min(positions[0], len(own) - 1 - positions[-1])
            vector = numpy.concatenate([hidden[positions[0]], hidden[positions[-1]]])
            if word not in best or (len(positions), margin) > best[word][:2]:
                best[word] = (len(positions), margin, vector)
        if low + room >= len(pieces):
            break
    return numpy.asarray([best[word][2] for word in range(len(words))]), step


@pytest.mark.parametrize("max_length", [16, 20, 32])
@pytest.mark.parametrize("stride", [0, 3, 8])
def test_long_texts_are_read_in_windows(still_bert, max_length, stride):
    model = make(still_bert, max_length=max_length, stride=stride)
    for text in (TEXT, "annas new-york smiths " * 5, "bob " + "xyz" * 15 + " anna"):
        (found,) = model.predict(Queried(make_docs([text.strip()]), ["who"]))
        expected, _ = naive_windows(still_bert, "who", text.split(), max_length, stride)
        numpy.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


def test_windows_overlap_as_far_as_the_question_leaves_room(still_bert):
    # 3 special pieces, 5 of the question: there is room for 8, and overlaps of 4.
    (found,) = make(still_bert, max_length=16, stride=8).predict(Queried(make_docs([TEXT]), ["a b c d e"]))
    expected, step = naive_windows(still_bert, "a b c d e", TEXT.split(), 16, 8)
    assert step == 4
    numpy.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("texts", [[TEXT], ["bob"], ["", "\n"]])
@pytest.mark.parametrize("query", ["a b c d e f", "a " * 40])
def test_a_question_that_leaves_no_room(still_bert, texts, query):
    """Whatever the texts are, so that it does not show in the midst of a training."""
    model = make(still_bert, max_length=16)
    with pytest.raises(WeaknerError, match=r"\[WK032\] The question 'a .*16 word pieces"):
        model.predict(Queried(make_docs(texts), ["who", query]))


def test_more_pieces_than_the_transformer_has_positions_for(still_bert):
    model = make(still_bert, max_length=33)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'max_length' = 33.*16 and 32"):
        model.predict(Queried(make_docs(["bob"]), QUERIES))


@pytest.mark.parametrize(
    "settings, name", [({"max_length": 15}, "max_length"), ({"stride": 17}, "stride"), ({"batch_pieces": 0}, "batch")]
)
def test_settings_that_cannot_be(still_bert, settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}"):
        make(still_bert, **settings)


# Transformers of other kinds as encoders of questions and texts


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


# Storage of the encoder that reads questions and texts together


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

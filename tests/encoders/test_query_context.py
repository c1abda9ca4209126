"""Question and text, read together by a Transformer, against transformers' own reading of pairs. The models are tiny
and made on the fly."""

import copy
import json
import pickle
import shutil
from importlib.util import find_spec

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import fix_random_seed

from spacy_weakner.encoders import query_context
from spacy_weakner.encoders.queried import Queried
from spacy_weakner.encoders.query_context import build_query_context_encoder
from spacy_weakner.errors import WeaknerError

from ..util import gradients, same, weights

pytestmark = pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra 'transformers'")
NLP = spacy.blank("xx")
QUERIES = ["who is it", "to"]
# Every word has at least one piece.
TEXT = "anna went to new york at nothing here bob smith likes paris all"


@pytest.fixture(scope="module")
def bert(tiny_bert, tmp_path_factory):
    """The tiny BERT without its own dropout, so that training and prediction give the same vectors."""
    folder = tmp_path_factory.mktemp("still") / "bert"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def make(path, **settings):
    model = build_query_context_encoder(str(path), **{"max_length": 32, "stride": 4, **settings})
    model.initialize()
    return model


def module_of(model):
    return model.layers[0].shims[0]._model


def make_docs(texts):
    return [Doc(NLP.vocab, words=text.split(" ") if text else []) for text in texts]


def read_alone(path, query, words):
    """Last hidden states of one pair by transformers, and the word of each piece of the text."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    encoding = tokenizer(query.split(), words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(path).eval()(**encoding).last_hidden_state[0].numpy()
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
def test_vectors_are_those_of_the_pair(bert, text):
    (found,) = make(bert).predict(Queried(make_docs([text]), QUERIES))
    words = text.split()
    assert found.shape == (len(words), 2, 32) and found.dtype == "float32"
    for q, query in enumerate(QUERIES):
        expected = words_of(*read_alone(bert, query, words), len(words))
        numpy.testing.assert_allclose(found[:, q], expected, atol=1e-5)


def test_text_and_question_look_at_each_other(bert):
    (found,) = make(bert).predict(Queried(make_docs(["bob likes paris"]), ["who", "who is it", "where"]))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (numpy.abs(found[:, a] - found[:, b]).max(axis=1) > 1e-3).all()
    # Not alone because of other positions: "who" and "bob" have three pieces each.
    (other,) = make(bert).predict(Queried(make_docs(["bob likes paris"]), ["a b c", "x y z"]))
    assert (numpy.abs(other[:, 0] - other[:, 1]).max(axis=1) > 1e-3).all()


# Words and their pieces. The question "who" has three pieces, so that the text begins at the sixth.


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
def test_a_word_is_its_first_and_its_last_piece(bert, words, expected):
    model = make(bert)
    doc = Doc(NLP.vocab, words=words, spaces=[False] * len(words))
    (found,) = model.predict(Queried([doc], ["who"]))
    parts = query_context._read(
        module_of(model).tokenizer, "who", [query_context._text(doc)], query_context.Limits(32, 4, 100)
    )[0]
    places = {}
    for part in parts:
        rows = zip(part.words.tolist(), part.first.tolist(), part.last.tolist(), strict=True)
        places.update({word: (first - 5, last - 5) for word, first, last in rows})
        assert part.types == [0] * 5 + [1] * (len(part.ids) - 5)
    assert [places.get(word) for word in range(len(words))] == expected
    assert [bool(row.any()) for row in found[:, 0]] == [place is not None for place in expected]


def test_vectors_are_those_of_these_pieces(bert):
    words = ["annas", "\n", "new-york", "北京"]
    (found,) = make(bert).predict(Queried([Doc(NLP.vocab, words=words)], ["who"]))
    hidden, _ = read_alone(bert, "who", words)
    text = hidden[5:]
    for word, (first, last) in {0: (0, 1), 2: (2, 4), 3: (5, 6)}.items():
        expected = numpy.concatenate([text[first], text[last]])
        numpy.testing.assert_allclose(found[word, 0], expected, atol=1e-5)
    assert not found[1].any()


# Batches


@pytest.mark.parametrize("batch_pieces", [1, 20, 64, 10000])
def test_batches_and_padding_change_nothing(bert, batch_pieces):
    docs = make_docs(["bob", "", TEXT, "anna went", "\n", "new york", TEXT[:30]])
    found = make(bert, batch_pieces=batch_pieces).predict(Queried(docs, QUERIES))
    assert [own.shape for own in found] == [(len(doc), 2, 32) for doc in docs]
    for doc, own in zip(docs, found, strict=True):
        for q, query in enumerate(QUERIES):
            (alone,) = make(bert).predict(Queried([doc], [query]))
            numpy.testing.assert_allclose(own[:, q], alone[:, 0], atol=1e-5)


@pytest.mark.parametrize("batch_pieces, most", [(1, 32), (40, 40), (100, 100)])
def test_batches_are_bounded(bert, batch_pieces, most):
    model = make(bert, batch_pieces=batch_pieces)
    sizes = []
    module_of(model).register_forward_pre_hook(lambda module, args: sizes.append(args[0].numel()))
    model.predict(Queried(make_docs([TEXT, "bob", "anna went", TEXT]), QUERIES))
    assert max(sizes) <= most
    assert (len(sizes) == 8) == (batch_pieces == 1)


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["\n"], ["\n", ""]])
def test_nothing_to_read(bert, texts):
    model, docs = make(bert), make_docs(texts)
    outputs, backprop = model.begin_update(Queried(docs, QUERIES))
    assert [own.shape for own in outputs] == [(len(doc), 2, 32) for doc in docs]
    assert not any(own.any() for own in outputs)
    backprop(outputs)
    assert not any(own is not None and own.any() for own in gradients(model))


# Windows


def naive_windows(path, query, words, max_length, stride):
    """Vectors of words: every window on its own, and each word off the one in which it has most pieces and stands
    farthest from an edge."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
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
@pytest.mark.parametrize("text", [TEXT, "annas new-york smiths " * 5, "bob " + "xyz" * 15 + " anna"])
def test_long_texts_are_read_in_windows(bert, max_length, stride, text):
    words = text.split()
    (found,) = make(bert, max_length=max_length, stride=stride).predict(Queried(make_docs([" ".join(words)]), ["who"]))
    expected, _ = naive_windows(bert, "who", words, max_length, stride)
    numpy.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("n", [1, 7, 10, 11, 40])
@pytest.mark.parametrize("max_length, stride", [(16, 0), (16, 8), (24, 5)])
def test_every_word_is_read_once(bert, n, max_length, stride):
    limits = query_context.Limits(max_length, stride, 100)
    words = [["bob", "annas", "xyz", "\n"][i % 4] for i in range(n)]
    doc = Doc(NLP.vocab, words=words)
    (parts,) = query_context._read(module_of(make(bert)).tokenizer, "who", [query_context._text(doc)], limits)
    read = sorted(word for part in parts for word in part.words.tolist())
    assert read == [i for i, word in enumerate(words) if word != "\n"]
    assert all(len(part.ids) <= max_length and len(part.words) for part in parts)
    # What is read off stands in the text, not in the question.
    for part in parts:
        assert all(part.types[i] == 1 for i in [*part.first.tolist(), *part.last.tolist()])


def test_windows_overlap_as_far_as_the_question_leaves_room(bert):
    # 3 special pieces, 5 of the question: there is room for 8, and overlaps of 4.
    (found,) = make(bert, max_length=16, stride=8).predict(Queried(make_docs([TEXT]), ["a b c d e"]))
    expected, step = naive_windows(bert, "a b c d e", TEXT.split(), 16, 8)
    assert step == 4
    numpy.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("texts", [[TEXT], ["bob"], ["", "\n"]])
@pytest.mark.parametrize("query", ["a b c d e f", "a " * 40])
def test_a_question_that_leaves_no_room(bert, texts, query):
    """Whatever the texts are, so that it does not show in the midst of a training."""
    model = make(bert, max_length=16)
    with pytest.raises(WeaknerError, match=r"\[WK032\] The question 'a .*16 pieces"):
        model.predict(Queried(make_docs(texts), ["who", query]))


def test_more_pieces_than_the_transformer_has_positions_for(bert):
    model = make(bert, max_length=33)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'max_length' = 33.*16 and 32"):
        model.predict(Queried(make_docs(["bob"]), QUERIES))


@pytest.mark.parametrize(
    "settings, name", [({"max_length": 15}, "max_length"), ({"stride": 17}, "stride"), ({"batch_pieces": 0}, "batch")]
)
def test_settings_that_cannot_be(bert, settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}"):
        make(bert, **settings)


# Learning


@pytest.mark.parametrize("batch_pieces", [1, 10000])
def test_gradients_are_those_of_torch(bert, batch_pieces):
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["anna went to new york", "", "annas", "bob likes paris", TEXT]
    model = make(bert, batch_pieces=batch_pieces)
    outputs, backprop = model.begin_update(Queried(make_docs(texts), QUERIES))
    random = numpy.random.RandomState(0)
    given = [random.normal(size=own.shape).astype("float32") for own in outputs]
    backprop(given)
    tokenizer, twin = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert)
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
            numpy.testing.assert_allclose(own, other.numpy(), atol=1e-4, err_msg=name)


def test_gradients_of_windows_by_finite_differences(bert):
    model = make(bert, max_length=16, stride=5, batch_pieces=40)
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


def test_its_own_dropout_is_off_in_prediction(tiny_bert):
    model, asked = make(tiny_bert), Queried(make_docs([TEXT]), QUERIES)
    assert same(model.predict(asked), model.predict(asked))
    assert not same(model.begin_update(asked)[0], model.begin_update(asked)[0])


# Storage


def test_it_returns_from_bytes_without_its_folder(bert, tmp_path):
    shutil.copytree(bert, tmp_path / "bert")
    model, asked = make(tmp_path / "bert"), Queried(make_docs([TEXT, "annas"]), QUERIES)
    expected, data = model.predict(asked), model.to_bytes()
    shutil.rmtree(tmp_path / "bert")
    fix_random_seed(1)
    other = build_query_context_encoder(str(tmp_path / "bert"), max_length=32, stride=4).from_bytes(data)
    assert same(weights(model), weights(other))
    assert same(expected, other.predict(asked))
    # A stored one is not read again.
    other.initialize()
    assert same(expected, other.predict(asked))


def test_settings_of_the_one_that_loads_win(bert):
    small = make(bert, max_length=16, stride=2, batch_pieces=1)
    large, asked = make(bert), Queried(make_docs([TEXT]), ["who", "to"])
    expected = large.predict(asked)
    assert not same(small.predict(asked), expected, tolerance=1e-4)
    assert same(large.from_bytes(small.to_bytes()).predict(asked), expected, tolerance=1e-6)


def test_a_copy_is_independent(bert):
    model, asked = make(bert), Queried(make_docs([TEXT]), QUERIES)
    other, expected = copy.deepcopy(model), model.predict(asked)
    for parameter in module_of(other).parameters():
        parameter.data.zero_()
    assert same(model.predict(asked), expected)
    assert not same(other.predict(asked), expected, tolerance=1e-3)


def test_one_that_is_not_initialised_is_stored(bert):
    data = build_query_context_encoder(str(bert)).to_bytes()
    other = build_query_context_encoder(str(bert)).from_bytes(data)
    assert module_of(other) is None
    other.initialize()
    assert module_of(other).width == 16


def test_nothing_is_pickled(bert, monkeypatch):
    import torch

    def forbidden(*args, **kwargs):
        raise AssertionError("pickled")

    model = make(bert)
    for owner, name in [(torch, "save"), (torch, "load"), *((pickle, n) for n in ("dumps", "loads", "dump", "load"))]:
        monkeypatch.setattr(owner, name, forbidden)
    build_query_context_encoder(str(bert)).from_bytes(model.to_bytes())


def test_half_precision_becomes_float32(bert, tmp_path):
    import torch
    from transformers import AutoModel

    shutil.copytree(bert, tmp_path / "half")
    AutoModel.from_pretrained(bert).half().save_pretrained(tmp_path / "half")
    assert json.loads((tmp_path / "half" / "config.json").read_text())["torch_dtype"] == "float16"
    model, asked = make(tmp_path / "half"), Queried(make_docs([TEXT]), QUERIES)
    other = build_query_context_encoder("", max_length=32, stride=4).from_bytes(model.to_bytes())
    assert {p.dtype for m in (model, other) for p in module_of(m).parameters()} == {torch.float32}
    assert same(model.predict(asked), other.predict(asked))


# Encoders of other kinds


def test_encoders_that_cannot_be_read(tmp_path, bert):
    with pytest.raises(WeaknerError, match=r"\[WK100\]"):
        make(tmp_path / "none")
    from safetensors.torch import load_file, save_file

    shutil.copytree(bert, tmp_path / "bert")
    kept = load_file(tmp_path / "bert" / "model.safetensors")
    del kept["encoder.layer.0.output.dense.weight"]
    save_file(kept, tmp_path / "bert" / "model.safetensors", {"format": "pt"})
    with pytest.raises(WeaknerError, match=r"WK353.*layer\.0\.output\.dense\.weight"):
        make(tmp_path / "bert")


def test_a_masked_language_model_is_read_without_its_head(bert, tmp_path):
    from transformers import BertForMaskedLM

    shutil.copytree(bert, tmp_path / "mlm")
    mlm = BertForMaskedLM.from_pretrained(bert)
    mlm.save_pretrained(tmp_path / "mlm")
    model = make(tmp_path / "mlm")
    names = dict(module_of(model).transformer.named_parameters())
    assert not any("cls" in name for name in names)
    key = "encoder.layer.0.output.dense.weight"
    assert names[key].equal(mlm.bert.get_parameter(key))
    # The pooler, which it lacks, is not used.
    assert len(model.predict(Queried(make_docs(["bob"]), QUERIES))) == 1


SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.parametrize("kind", ["DistilBert", "Electra", "Albert"])
def test_other_architectures(bert, tmp_path, kind):
    import transformers

    sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16} if kind == "DistilBert" else SIZES
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
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
    """A random RoBERTa with pieces of bytes, which tells words by the spaces before them."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *alphabet])}
    merges = [("o", "b"), ("B", "ob"), ("Ġ", "Bob")]
    for a, b in merges:
        vocab[a + b] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    fast = transformers.RobertaTokenizerFast(tokenizer_object=tokenizer)
    config = transformers.RobertaConfig(vocab_size=len(fast), max_position_embeddings=34, type_vocab_size=1, **SIZES)
    fix_random_seed(0)
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    fast.save_pretrained(tmp_path)
    return tmp_path


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


def test_padding_of_roberta_changes_nothing(roberta):
    model, docs = make(roberta), make_docs(["Bob", "Bob , Bob Bob"])
    together = model.predict(Queried(docs, ["Bob", "Bob Bob"]))
    for doc, own in zip(docs, together, strict=True):
        assert same(model.predict(Queried([doc], ["Bob", "Bob Bob"])), [own], tolerance=1e-5)

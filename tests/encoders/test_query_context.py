"""Question and text, read together by a Transformer, against transformers' own reading of pairs."""

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.encoders.queried import Queried
from spacy_weakner.encoders.windows import WindowSettings, read_windows

from ..util import gradients, needs_transformers
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


def test_text_and_question_look_at_each_other(still_bert):
    (found,) = make(still_bert).predict(Queried(make_docs(["bob likes paris"]), ["who", "who is it", "where"]))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (numpy.abs(found[:, a] - found[:, b]).max(axis=1) > 1e-3).all()
    # Not alone because of other positions: "who" and "bob" have three pieces each.
    (other,) = make(still_bert).predict(Queried(make_docs(["bob likes paris"]), ["a b c", "x y z"]))
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
def test_a_word_is_its_first_and_its_last_piece(still_bert, words, expected):
    model = make(still_bert)
    doc = Doc(NLP.vocab, words=words, spaces=[False] * len(words))
    (found,) = model.predict(Queried([doc], ["who"]))
    (parts,) = read_windows(module_of(model).tokenizer, [doc], "who", WindowSettings(32, 4))
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

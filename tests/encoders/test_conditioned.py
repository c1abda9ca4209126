"""Vectors of tokens under a question, on encoders that know nothing of questions."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model, NumpyOps

from spacy_weakner.encoders import queried
from spacy_weakner.encoders.conditioned import build_conditioned_encoder
from spacy_weakner.encoders.queried import Queried

from ..util import TOK2VEC, numeric_gradient, same

NLP = spacy.blank("xx")
WIDTH = 3
WORDS = ["a", "b", "c", "d", "who", "where", "is", "it"]


class Lookup:
    """An encoder that looks vectors up, and learns them. Some encoders give (0, 0) arrays for Docs without tokens: then
    `empty_width` is 0."""

    def __init__(self, empty_width=WIDTH):
        table = numpy.random.RandomState(0).normal(size=(len(WORDS), WIDTH))
        self.empty_width, self.seen, self.shapes = empty_width, [], []
        self.model = Model("lookup", self.forward, params={"E": table}, dims={"nO": WIDTH}, ops=NumpyOps())

    def forward(self, model, docs, is_train):
        self.seen.append([[token.text for token in doc] for doc in docs])
        rows = [[WORDS.index(token.text) for token in doc] for doc in docs]

        def backprop(gradient):
            self.shapes.append([own.shape for own in gradient])
            table = numpy.zeros((len(WORDS), WIDTH))
            for own, vectors in zip(rows, gradient, strict=True):
                if own:
                    numpy.add.at(table, own, vectors)
            model.inc_grad("E", table)
            return docs

        table = model.get_param("E")
        return [table[own] if own else numpy.zeros((0, self.empty_width)) for own in rows], backprop


def asked(texts, queries):
    return Queried([Doc(NLP.vocab, words=text.split()) for text in texts], list(queries))


def brute_force(table, texts, queries):
    """One number at a time."""
    outputs = []
    for text in texts:
        output = numpy.zeros((len(text.split()), len(queries), 3 * WIDTH))
        for i, word in enumerate(text.split()):
            for q, query in enumerate(queries):
                for x in range(WIDTH):
                    token = table[WORDS.index(word), x]
                    question = sum(table[WORDS.index(own), x] for own in query.split()) / len(query.split())
                    output[i, q, x], output[i, q, WIDTH + x] = token, question
                    output[i, q, 2 * WIDTH + x] = token * question
        outputs.append(output)
    return outputs


SOME = pytest.mark.parametrize(
    "texts, queries",
    [
        (["a b", "c"], ["who is it", "where"]),
        (["a"], ["who"]),
        (["", "a b c", ""], ["who", "where is it", "is it"]),
        # A question may say what a text says.
        (["who is it"], ["who is it", "it"]),
    ],
)


@SOME
@pytest.mark.parametrize("empty_width", [WIDTH, 0])
def test_vectors_are_token_question_and_their_product(texts, queries, empty_width):
    lookup = Lookup(empty_width)
    found = build_conditioned_encoder(lookup.model).predict(asked(texts, queries))
    assert same(found, brute_force(lookup.model.get_param("E"), texts, queries), tolerance=1e-6)
    assert [own.shape for own in found] == [(len(text.split()), len(queries), 3 * WIDTH) for text in texts]


@SOME
@pytest.mark.parametrize("empty_width", [WIDTH, 0])
def test_gradients_by_finite_differences(texts, queries, empty_width):
    lookup = Lookup(empty_width)
    model, table = build_conditioned_encoder(lookup.model), lookup.model.get_param("E").copy()
    outputs, backprop = model.begin_update(asked(texts, queries))
    random = numpy.random.RandomState(1)
    weights = [random.normal(size=own.shape) for own in outputs]
    backprop(weights)

    def value(moved):
        lookup.model.set_param("E", moved)
        return sum((a * b).sum() for a, b in zip(weights, model.predict(asked(texts, queries)), strict=True))

    expected = numeric_gradient(value, table, 1e-4)
    numpy.testing.assert_allclose(lookup.model.get_grad("E"), expected, rtol=1e-4, atol=1e-5)
    # As the encoder gave them.
    lengths = [len(text.split()) for text in texts]
    expected = [(n, WIDTH if n else empty_width) for n in lengths] + [(len(q.split()), WIDTH) for q in queries]
    assert lookup.shapes == [expected]


def test_text_and_questions_are_read_at_once():
    lookup = Lookup()
    build_conditioned_encoder(lookup.model).predict(asked(["a b", "c"], ["who", "is it"]))
    assert lookup.seen == [[["a", "b"], ["c"], ["who"], ["is", "it"]]]


def test_nothing_but_empty_docs():
    lookup = Lookup(empty_width=0)
    outputs, backprop = build_conditioned_encoder(lookup.model).begin_update(asked(["", ""], ["who", "is it"]))
    assert [own.shape for own in outputs] == [(0, 2, 3 * WIDTH)] * 2
    backprop(outputs)
    assert not lookup.model.get_grad("E").any()


def test_a_question_is_seen_at_every_distance():
    """A convolution over question and text would not see it from further away than its window."""
    tok2vec = registry.resolve({"it": {**TOK2VEC}})["it"]
    model = build_conditioned_encoder(tok2vec)
    words = [f"word{i}" for i in range(70)]
    text = asked([" ".join(words)], ["who is it", "where"])
    model.initialize(X=text)
    (vectors,) = model.predict(text)
    assert vectors.shape == (70, 2, 48)
    for i in (0, 1, 35, 60, 69):
        assert numpy.abs(vectors[i, 0, 16:32] - vectors[i, 1, 16:32]).max() > 1e-3
        assert numpy.abs(vectors[i, 0, 32:] - vectors[i, 1, 32:]).max() > 1e-3


def test_other_docs_and_questions_change_nothing():
    model = build_conditioned_encoder(registry.resolve({"it": {**TOK2VEC}})["it"])
    together = asked(["a b c", "", "d"], ["who", "is it"])
    model.initialize(X=together)
    whole = model.predict(together)
    for number, doc in enumerate(together.docs):
        for q, query in enumerate(together.queries):
            (alone,) = model.predict(Queried([doc], [query]))
            assert numpy.allclose(alone[:, 0], whole[number][:, q], atol=1e-5)


@pytest.mark.parametrize("query, words", [("who is it?", ["who", "is", "it", "?"]), (" a \n\t b ", ["a", "b"])])
def test_words_of_a_question(query, words):
    assert queried.WORDS.findall(query) == words

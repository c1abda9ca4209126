"""Stored vectors: sentences are encoded once, and found again by their tokens."""

import os

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model

from spacy_weakner.caching import caching_outputs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.encoders.frozen import freeze
from spacy_weakner.encoders.stored_vectors import (
    ENDS,
    KEYS,
    VECTORS,
    VectorStore,
    build_stored_vectors,
    reusing_vectors,
    write_vectors,
)
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.lbfgs import LBFGS

from ..util import make_example

NLP = spacy.blank("xx")
WIDTH = 24
TEXTS = ["Anna went to Paris", "Bob", "nothing here at all", "Bob likes York", "Anna"]


def encoder(seed=0, width=WIDTH):
    """An encoder of words, which counts the sentences that it has seen in `seen`."""
    table = numpy.random.default_rng(seed).normal(size=(1000, width)).astype("float32")
    seen = []

    def forward(model, docs, is_train):
        seen.extend(doc.text for doc in docs)
        rows = [table[[sum(map(ord, token.text)) % 1000 for token in doc]].reshape(-1, width) for doc in docs]
        return rows, lambda d: []

    model = Model("words", forward, dims={"nO": width})
    model.attrs["seen"] = seen
    return model


def doc_of(text, vocab=NLP.vocab, ends_with_space=False):
    words = text.split()
    spaces = [True] * len(words)
    spaces[-1:] = [ends_with_space] * len(spaces[-1:])
    return Doc(vocab, words=words, spaces=spaces)


def docs_of(texts=TEXTS):
    return [doc_of(text) for text in texts]


def stored(folder, texts=TEXTS, **settings):
    """A layer that reads the vectors of some sentences."""
    write_vectors(folder, encoder(**settings), docs_of(texts))
    model = build_stored_vectors(folder)
    model.initialize()
    return model


def test_what_is_stored_is_read_back(tmp_path):
    model = stored(tmp_path)
    assert model.get_dim("nO") == WIDTH
    expected = encoder().predict(docs_of())
    # In another order, and in another vocabulary.
    texts = TEXTS[::-1]
    found = model.predict([doc_of(text, spacy.blank("de").vocab) for text in texts])
    assert [rows.shape for rows in found] == [(len(text.split()), WIDTH) for text in texts]
    for rows, wanted in zip(found, expected[::-1], strict=True):
        assert rows.dtype == "float32"
        # Half precision.
        numpy.testing.assert_allclose(rows, wanted, rtol=5e-4, atol=1e-6)


def test_each_sentence_is_encoded_and_stored_once(tmp_path):
    model, texts = encoder(), [*TEXTS, *TEXTS[::-1], TEXTS[0]]
    write_vectors(tmp_path, model, docs_of(texts))
    assert sorted(model.attrs["seen"]) == sorted(TEXTS)
    assert len(numpy.load(tmp_path / VECTORS)) == sum(len(text.split()) for text in TEXTS)
    assert len(numpy.load(tmp_path / KEYS)) == len(numpy.load(tmp_path / ENDS)) == len(TEXTS)
    assert numpy.load(tmp_path / VECTORS).dtype == "float16"


def test_the_order_makes_no_difference(tmp_path):
    contents = []
    for name, texts in (("one", TEXTS), ("two", [*TEXTS[2:], *TEXTS[:3]])):
        (tmp_path / name).mkdir()
        write_vectors(tmp_path / name, encoder(), docs_of(texts))
        contents.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert contents[0] == contents[1] and {*contents[0]} == {VECTORS, KEYS, ENDS}


def test_vectors_of_an_earlier_run_are_reused(tmp_path):
    """With other statistics too, since the vectors are stored before they are standardized."""
    for n, (texts, new) in enumerate([(TEXTS[:3], TEXTS[:3]), (TEXTS, TEXTS[3:]), ([*TEXTS[3:], "York"], ["York"])]):
        (tmp_path / f"{n + 1}").mkdir()
        words = encoder()
        model = freeze(words, 2.8)
        model.initialize(X=docs_of(["Anna went", f"Bob {'x' * n}"]))
        words.attrs["seen"].clear()
        with reusing_vectors(model, tmp_path / f"{n}", tmp_path / f"{n + 1}"):
            # Docs of one batch and of the next, some of them repeated.
            found = [*model.predict(docs_of(texts)), *model.predict(docs_of(texts[:2]))]
        assert sorted(words.attrs["seen"]) == sorted(new)
        expected = model.predict(docs_of([*texts, *texts[:2]]))
        for rows, wanted in zip(found, expected, strict=True):
            numpy.testing.assert_allclose(rows, wanted, rtol=5e-3, atol=5e-3)
        assert len(VectorStore(tmp_path / f"{n + 1}")) == len({*texts})
    assert model.layers == [words]


def test_vectors_beyond_half_precision_stay_finite(tmp_path):
    (tmp_path / "new").mkdir()

    def forward(model, docs, is_train):
        return [numpy.full((len(doc), 2), 1e6, "float32") for doc in docs], lambda d: []

    large = Model("large", forward, dims={"nO": 2})
    model = freeze(large, 2.8)
    model.initialize(X=docs_of(["Anna went"]))
    with reusing_vectors(model, tmp_path / "none", tmp_path / "new"):
        assert all(numpy.isfinite(rows).all() for rows in model.predict(docs_of()))


def test_more_sentences_than_a_batch_has(tmp_path):
    texts = [f"{'x ' * (i % 7)}Bob{i}" for i in range(600)]
    found = stored(tmp_path, texts).predict(docs_of(texts))
    for rows, wanted in zip(found, encoder().predict(docs_of(texts)), strict=True):
        numpy.testing.assert_allclose(rows, wanted, rtol=5e-4, atol=1e-6)


@pytest.mark.parametrize("texts", [TEXTS, [], [""]])
def test_docs_without_tokens_have_no_vectors(tmp_path, texts):
    """Nor has a store without sentences any."""
    model = stored(tmp_path, texts)
    (rows,) = model.predict([Doc(NLP.vocab)])
    assert rows.shape == (0, WIDTH) and rows.dtype == "float32"
    assert model.predict([]) == []


@pytest.mark.parametrize("first, second", [(False, True), (True, False)])
def test_white_space_after_the_last_token_makes_no_difference(tmp_path, first, second):
    write_vectors(tmp_path, encoder(), [doc_of("Anna went", ends_with_space=first)])
    store = VectorStore(tmp_path)
    doc = doc_of("Anna went", ends_with_space=second)
    numpy.testing.assert_allclose(store[doc], encoder().predict([doc])[0], rtol=5e-4, atol=1e-6)


@pytest.mark.parametrize(
    "words, spaces",
    [
        (["Anna", "sings"], [True, False]),
        (["Anna", "went", "to"], [True, True, False]),
        # White space between tokens decides what the pieces of a Transformer are.
        (["Anna", "went"], [False, False]),
        (["Annawent"], [False]),
        (["anna", "went"], [True, False]),
    ],
)
def test_sentences_that_are_not_stored(tmp_path, words, spaces):
    model = stored(tmp_path, ["Anna went"])
    with pytest.raises(WeaknerError, match=rf"WK738.*'{Doc(NLP.vocab, words=words, spaces=spaces).text}'.*selection"):
        model.predict([Doc(NLP.vocab, words=words, spaces=spaces)])


def test_vectors_that_do_not_exist(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(WeaknerError, match="WK100"):
            build_stored_vectors(path).initialize()


def test_they_are_read_again_after_they_have_been_written_again(tmp_path):
    """In the same process, by the same layer."""
    model = stored(tmp_path, TEXTS[:2])
    old, _ = model.predict(docs_of(TEXTS[:2]))
    numpy.testing.assert_allclose(old, encoder().predict(docs_of(TEXTS[:1]))[0], rtol=5e-4, atol=1e-6)
    write_vectors(tmp_path, encoder(1), docs_of(TEXTS))
    # At least one second later.
    at = os.stat(tmp_path / ENDS).st_mtime + 1
    os.utime(tmp_path / ENDS, (at, at))
    for rows, wanted in zip(model.predict(docs_of()), encoder(1).predict(docs_of()), strict=True):
        numpy.testing.assert_allclose(rows, wanted, rtol=5e-4, atol=1e-6)


def test_a_training_reads_each_batch_once(tmp_path):
    model, docs = stored(tmp_path), docs_of()
    with caching_outputs(model):
        first, second = model.predict(docs), model.predict(docs)
    assert all(a is b for a, b in zip(first, second, strict=True))
    assert not any(a is b for a, b in zip(first, model.predict(docs), strict=True))


# In a pipeline


def data_of(nlp):
    rows = [("Anna went", [(0, 1, "PER")]), ("to Paris", [(1, 2, "LOC")]), ("Bob likes York", [(0, 1, "PER")])]
    rows += [("nothing here", []), ("went to Rome", [(2, 3, "LOC")])]
    return [make_example(nlp, *row) for row in rows]


def test_lbfgs_trains_a_head_on_them(tmp_path):
    write_vectors(tmp_path, encoder(), [example.predicted for example in data_of(NLP)])
    nlp = spacy.blank("xx")
    layer = {"@architectures": "spacy_weakner.StoredVectors.v1", "path": str(tmp_path)}
    head = nlp.add_pipe("crf_ner", config={"model": {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": layer}})
    nlp.initialize(lambda: data_of(nlp))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    LBFGS(data_of)(nlp)
    for example in data_of(nlp):
        assert doc_entities(nlp(example.predicted)) == doc_entities(example.reference)
    # It is small, and the vectors stay where they are.
    assert len(head.model.to_bytes()) < 20_000
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    for example in data_of(loaded):
        assert doc_entities(loaded(example.predicted)) == doc_entities(example.reference)
    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(WeaknerError, match=r"WK738.*'Anna sings'"):
        loaded("Anna sings")


def test_the_width_may_be_given(tmp_path):
    layer = registry.resolve({"made": {"@architectures": "spacy_weakner.StoredVectors.v1", "path": str(tmp_path)}})
    assert layer["made"].has_dim("nO") is None
    assert build_stored_vectors(tmp_path, width=WIDTH).get_dim("nO") == WIDTH

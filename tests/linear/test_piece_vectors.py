"""Static vectors of word pieces as an encoder without weights."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.errors import WeaknerError
from spacy_weakner.linear.piece_vectors import build_piece_vectors
from spacy_weakner.linear.pieces import WordVectors

from ..encoders.tables import table, write_table
from ..util import GOLD, TEXTS, crf_pipeline, distributions, entities_of, make_examples, same, train

NLP = spacy.blank("xx")
WORDS = ["Anna", "went", " ", "to", "newer", "Paris"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pieces").mkdir()
    return write_table(tmp_path / "pieces")


def build(folder, **settings):
    model = build_piece_vectors(folder, **settings)
    model.initialize(X=[Doc(NLP.vocab, words=["Anna"])])
    return model


def slow(words, window, length):
    """Word by word."""
    look_up, rows = WordVectors(table()), []
    single = [look_up.vector(word) for word in words]
    single = [length * own / max(1e-9, float(numpy.linalg.norm(own))) for own in single]
    for t in range(len(words)):
        places = range(t - window, t + window + 1)
        rows.append(numpy.concatenate([single[i] if 0 <= i < len(words) else 0 * single[0] for i in places]))
    return numpy.asarray(rows)


@pytest.mark.parametrize("window", [0, 1, 2])
@pytest.mark.parametrize("length", [0.5, 2.0])
def test_it_is_the_words_around(folder, window, length):
    model = build(folder, window=window, length=length)
    texts = [WORDS, [], ["Paris"], ["bob", "york"], []]
    found = model.predict([Doc(NLP.vocab, words=words) for words in texts])
    assert [len(own) for own in found] == [len(words) for words in texts]
    for own, words in zip(found, texts, strict=True):
        if words:
            assert own == pytest.approx(slow(words, window, length), abs=1e-5)
    assert [own.shape[0] for own in model.predict([Doc(NLP.vocab), Doc(NLP.vocab)])] == [0, 0]
    assert model.predict([]) == []


def test_the_length_is_that_of_the_config(folder):
    stored, doc = build(folder, length=2.0).to_bytes(), Doc(NLP.vocab, words=WORDS)
    longer = build(folder, length=5.0).from_bytes(stored).predict([doc])[0]
    assert longer == pytest.approx(2.5 * build(folder, length=2.0).predict([doc])[0])


def test_there_is_nothing_to_learn(folder):
    model = build(folder)
    assert not any(node.param_names for node in model.walk())
    found, backprop = model.begin_update([Doc(NLP.vocab, words=WORDS), Doc(NLP.vocab)])
    backprop(found)


def test_words_that_were_never_seen_are_found(folder, tmp_path):
    nlp = crf_pipeline(tok2vec={"@architectures": "spacy_weakner.PieceVectors.v1", "path": str(folder)})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, steps=100)
    assert entities_of(nlp, TEXTS) == GOLD
    nlp.to_disk(tmp_path / "model")
    for path in folder.iterdir():
        path.unlink()
    again = spacy.load(tmp_path / "model")
    docs = [nlp.make_doc(text) for text in ("", "Bob", "New Yorkers went", *TEXTS)]
    expected = distributions(nlp.get_pipe("crf_ner"), docs)
    for other in (again, spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())):
        assert same(distributions(other.get_pipe("crf_ner"), docs), expected)


@pytest.mark.parametrize(
    "settings, name", [({"window": -1}, "window"), ({"length": -1.0}, "length"), ({"length": float("inf")}, "length")]
)
def test_settings(settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        build_piece_vectors(**settings)


def test_without_a_table():
    with pytest.raises(WeaknerError, match=r"\[WK731\]"):
        build_piece_vectors().initialize()


def test_not_initialized(folder):
    with pytest.raises(WeaknerError, match=r"\[WK731\]"):
        build_piece_vectors(folder).predict([Doc(NLP.vocab, words=WORDS)])

"""Static vectors of word pieces: tables, lookups, and the encoder in a pipeline."""

import json

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import Model

from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.encoders.static_pieces import build_static_pieces
from spacy_weakner.errors import WeaknerError
from spacy_weakner.linear import piece_lookup, pieces
from spacy_weakner.linear.pieces import PieceTable, WordVectors, cut, load_tokenizer, read_pieces

from ..util import SENTENCES, TEXTS, crf_pipeline, entities_of, make_examples, numeric_gradient, same, train, weights
from .tables import VOCAB, table, tokenizer, write_table

NLP = spacy.blank("xx")
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 8,
    "attrs": ["NORM"],
    "rows": [100],
    "include_static_vectors": False,
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pieces").mkdir()
    return write_table(tmp_path / "pieces")


def config(folder):
    embed = {"@architectures": "spacy_weakner.StaticPieces.v1", "embed": EMBED, "width": 8, "path": str(folder)}
    encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2"}
    encode.update(width=8, window_size=1, maxout_pieces=2, depth=1)
    return {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}


def pipeline(folder):
    return crf_pipeline(tok2vec=config(folder))


def words_of(words):
    return numpy.asarray([NLP.vocab.strings.add(word) for word in words], dtype="uint64")


def test_a_word_is_the_mean_of_its_pieces():
    made = table()
    vectors = made.vectors.astype("float64")
    one = vectors[VOCAB.index("paris")]
    two = (vectors[VOCAB.index("new")] + vectors[VOCAB.index("##er")]) / 2
    found = WordVectors(made)(words_of(["Paris", " ", "newer", "\n"]), NLP.vocab.strings)
    for own, expected in zip(found[[0, 2]], (one, two), strict=True):
        assert own == pytest.approx(expected / numpy.sqrt((expected**2).mean()), abs=1e-6)
    assert not found[[1, 3]].any()
    # Whatever a tokenizer does to texts, words stay whole.
    assert cut(load_tokenizer(made.tokenizer), "newers") == [VOCAB.index(x) for x in ("new", "##er", "##s")]
    # Of pieces without a direction.
    nothing = WordVectors(PieceTable(made.tokenizer, 0 * made.vectors))
    assert not nothing.vector("Paris").any()


def test_no_more_words_are_remembered_than_fit(monkeypatch):
    monkeypatch.setattr(pieces, "_CAPACITY", 2)
    look_up = WordVectors(table())
    orths = words_of(["Anna", "Bob", "Paris"])
    first = look_up(orths, NLP.vocab.strings)
    assert len(look_up._known) == 3
    assert (look_up(orths[:1], NLP.vocab.strings) == first[:1]).all() and len(look_up._known) == 1


def test_a_table_is_read_as_it_was_written(folder):
    found = read_pieces(folder)
    assert (found.vectors == table().vectors).all() and found.vectors.dtype == "float16"
    assert found.tokenizer == tokenizer()
    # Who may read the tokenizer may read the vectors.
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


@pytest.mark.parametrize(
    "damage", ["vectors", "tokenizer", "name", "rows", "narrow", "nan", "large", "type", "mapping", "missing"]
)
def test_damaged_tables(folder, damage):
    import torch
    from safetensors.numpy import save_file
    from safetensors.torch import save_file as save_torch

    made, path = table(), folder / "model.safetensors"
    if damage == "vectors":
        path.write_bytes(path.read_bytes()[:-5])
    elif damage == "tokenizer":
        (folder / "tokenizer.json").write_text("{}")
    elif damage == "name":
        save_file({"other": made.vectors}, path)
    elif damage == "rows":
        PieceTable(made.tokenizer, made.vectors[1:]).save(folder)
    elif damage == "narrow":
        PieceTable(made.tokenizer, made.vectors[:, :0].copy()).save(folder)
    elif damage == "type":
        save_torch({"embeddings": torch.zeros(made.vectors.shape, dtype=torch.bfloat16)}, path)
    elif damage == "mapping":
        rows = numpy.arange(len(made.vectors)) + 1
        save_file({"embeddings": made.vectors, "mapping": rows}, path)
    elif damage == "nan":
        PieceTable(made.tokenizer, made.vectors * numpy.nan).save(folder)
    elif damage == "large":
        save_file({"embeddings": made.vectors.astype("float32") * 1e6}, path)
    else:
        path.unlink()
    with pytest.raises(WeaknerError, match=r"\[WK206\].*pieces"):
        read_pieces(folder)


def test_smaller_tables_of_the_library(folder):
    from safetensors.numpy import save_file

    vectors = table().vectors[:3].astype("float32")
    rows, weights = numpy.arange(len(VOCAB)) % 3, numpy.linspace(0.5, 2.0, len(VOCAB), dtype="float32")
    save_file({"embeddings": vectors, "mapping": rows, "weights": weights}, folder / "model.safetensors")
    expected = [weights[i] * vectors[i % 3] for i in range(len(VOCAB))]
    assert read_pieces(folder).vectors == pytest.approx(numpy.asarray(expected), abs=1e-3)


@pytest.mark.parametrize("kind", ["WordPiece", "WordLevel", "Unigram"])
def test_a_tokenizer_that_cannot_say_unknown(folder, kind):
    made = json.loads(tokenizer())
    words = ["a", "b", "c"]
    made["pre_tokenizer"] = None
    made["model"] = {"type": kind, "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "[UNK]"}
    if kind == "WordPiece":
        made["model"].update(continuing_subword_prefix="##", max_input_chars_per_word=100)
    elif kind == "Unigram":
        made["model"] = {
            "type": kind,
            "vocab": [[word, -1.0] for word in words],
            "unk_id": None,
            "byte_fallback": False,
        }
    PieceTable(json.dumps(made), table().vectors[:3]).save(folder)
    with pytest.raises(WeaknerError, match=r"\[WK206\].*unknown characters"):
        read_pieces(folder)


def test_ids_may_have_gaps(tmp_path):
    gap = json.loads(tokenizer())
    gap["model"]["vocab"]["bob"] = len(VOCAB) + 4
    made = PieceTable(json.dumps(gap), numpy.eye(len(VOCAB) + 5, dtype="float16"))
    made.save(tmp_path)
    found = WordVectors(read_pieces(tmp_path)).vector("Bob")
    assert found.argmax() == len(VOCAB) + 4
    PieceTable(made.tokenizer, made.vectors[: len(VOCAB)]).save(tmp_path)
    with pytest.raises(WeaknerError, match=rf"WK206.*each of the {len(VOCAB) + 5} pieces"):
        read_pieces(tmp_path)


def test_no_table(tmp_path):
    with pytest.raises(WeaknerError, match=r"nowhere.*spacy weakner encoder distill"):
        read_pieces(tmp_path / "nowhere")
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner", config={"model": {"tok2vec": config("")}})
    nlp.config["components"]["crf_ner"]["model"]["tok2vec"]["embed"]["path"] = None
    nlp = spacy.util.load_model_from_config(nlp.config, auto_fill=True)
    with pytest.raises(WeaknerError, match=r"\[WK731\].*paths.pieces"):
        nlp.initialize(lambda: make_examples(nlp))


def embedded(folder, width=5):
    """The layer over fixed other embeddings, which collects their gradients."""
    collected = []

    def forward(model, docs, is_train):
        rng = numpy.random.RandomState(0)
        outputs = [rng.normal(size=(len(doc), 4)).astype("float32") for doc in docs]

        def backprop(gradient):
            collected.extend(gradient)
            return []

        return outputs, backprop

    model = build_static_pieces(Model("other", forward, dims={"nO": 4}), width, folder)
    model.initialize(X=[Doc(NLP.vocab, words=["Anna"])])
    return model, collected


def lookup(model):
    (layer,) = [node for node in model.walk() if node.name == "piece_lookup"]
    return layer


def test_only_what_is_learned_has_gradients(folder):
    model, collected = embedded(folder)
    docs = [Doc(NLP.vocab, words=words) for words in (["Anna", "went", "to", "Paris"], [], ["newer"])]
    outputs, backprop = model.begin_update(docs)
    assert [output.shape for output in outputs] == [(4, 5), (0, 5), (1, 5)]
    backprop([numpy.ones_like(output) for output in outputs])
    assert [own.shape for own in collected] == [(4, 4), (0, 4), (1, 4)]
    assert not lookup(model).param_names and lookup(model).attrs["vectors"].shape == (len(VOCAB), 6)
    assert all(node.has_grad("W") for node in model.walk() if node.has_param("W"))


def test_the_gradient_is_that_of_finite_differences(folder):
    model, _ = embedded(folder)
    docs = [Doc(NLP.vocab, words=["Anna", "went", "to", "newer"])]
    factor = numpy.random.RandomState(1).normal(size=(4, 5)).astype("float32")
    (linear,) = [node for node in model.walk() if node.name == "linear"]
    _, backprop = model.begin_update(docs)
    backprop([factor])
    gradient, W = linear.get_grad("W").copy(), linear.get_param("W").copy()

    def value(changed):
        linear.set_param("W", changed)
        return float((model.predict(docs)[0] * factor).sum())

    numpy.testing.assert_allclose(gradient, numeric_gradient(value, W, 1e-2), rtol=0.05, atol=5e-3)


def test_a_table_that_is_loaded_later_is_used(folder):
    model, _ = embedded(folder)
    docs = [Doc(NLP.vocab, words=["Anna", "Paris"])]
    before = model.predict(docs)
    other = model.copy()
    lookup(other).attrs["vectors"] = -table().vectors
    assert not same(before, other.predict(docs))
    assert same(before, model.predict(docs))
    other.from_bytes(model.to_bytes())
    assert same(before, other.predict(docs))


def test_it_learns_and_needs_no_table_any_more(folder, tmp_path):
    nlp = pipeline(folder)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    train(nlp, examples, steps=60)
    wanted = [entities for _, entities in SENTENCES]
    assert entities_of(nlp, TEXTS) == wanted
    assert (lookup(nlp.get_pipe("crf_ner").model).attrs["vectors"] == table().vectors).all()
    nlp.to_disk(tmp_path / "model")
    for path in folder.iterdir():
        path.unlink()
    again = spacy.load(tmp_path / "model")
    assert same(*(weights(own.get_pipe("crf_ner").model) for own in (nlp, again)))
    for own in (again, spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())):
        assert entities_of(own, TEXTS) == wanted
        assert [doc_entities(doc) for doc in own.pipe(["", " \n ", TEXTS[0], ""])][2] == wanted[0]


@pytest.mark.parametrize("width", [0, -1])
def test_settings(width):
    with pytest.raises(WeaknerError, match=r"\[WK005\].*width"):
        build_static_pieces(Model("other", None), width)


def test_few_tables_are_kept(folder):
    model, _ = embedded(folder)
    docs = [Doc(NLP.vocab, words=["Anna"])]
    tables = lookup(model)._func.args[0]
    for _ in range(piece_lookup._TABLES + 3):
        lookup(model).attrs["vectors"] = lookup(model).attrs["vectors"] + 1
        model.predict(docs)
    assert len(tables) == piece_lookup._TABLES
    model.predict(docs)
    assert len(tables) == piece_lookup._TABLES

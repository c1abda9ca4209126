"""Frozen encoders: vectors of a layer that is not trained, standardized, alone or shared by heads."""

from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from spacy_weakner.encoders.frozen import build_frozen_transformer, statistics_of
from spacy_weakner.encoders.frozen_tok2vec import build_frozen_tok2vec
from spacy_weakner.encoders.transformer_encoder import build_transformer_encoder
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.lbfgs import LBFGS

from ..util import make_doc, needs_transformers, same
from . import kinds

pytestmark = [needs_transformers, pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]
NLP = spacy.blank("xx")
DEPTH = 4
ROWS = [["Bob", "annas", "Bob"], ["a", "zxy"], ["Bob"], ["annas", "a", "Bob", "b"]]


@pytest.fixture(scope="module", params=["bert", "roberta", "deberta"])
def folder(request, tmp_path_factory, tiny_bert):
    path = tmp_path_factory.mktemp(request.param)
    more = (tiny_bert,) if request.param == "bert" else ()
    return getattr(kinds, request.param)(path, *more, num_hidden_layers=DEPTH)


@pytest.fixture(scope="module")
def bert(tmp_path_factory, tiny_bert):
    return kinds.bert(tmp_path_factory.mktemp("bert"), tiny_bert, num_hidden_layers=DEPTH)


def docs_of(rows, vocab=NLP.vocab):
    return [Doc(vocab, words=row) for row in rows]


def make(path, **settings):
    settings = {"max_length": 32, "stride": 8, "mixed_precision": None, **settings}
    model = build_frozen_transformer(str(path), **settings)
    model.initialize(X=docs_of(ROWS))
    return model


def hidden_states(path, words):
    """Outputs of all layers for the first piece of each word, by transformers."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    encoding = tokenizer([f" {word}" for word in words], is_split_into_words=True, return_tensors="pt")
    first = [encoding.word_ids(0).index(i) for i in range(len(words))]
    layers = model(**encoding, output_hidden_states=True).hidden_states
    return [layer[0, first].detach().numpy() for layer in layers]


@pytest.mark.parametrize("layer", [None, 1, DEPTH])
def test_the_vectors_are_those_of_a_layer_standardized(folder, layer):
    model = make(folder, layer=layer, pooling="first", length=2.0)
    states = [hidden_states(folder, row)[DEPTH // 2 if layer is None else layer] for row in ROWS]
    every = numpy.concatenate(states)
    deviation = every.std(axis=0)
    for found, rows in zip(model.predict(docs_of(ROWS)), states, strict=True):
        expected = 2.0 / 16**0.5 * (rows - every.mean(axis=0)) / deviation
        numpy.testing.assert_allclose(found, expected, atol=1e-3)
    # Only these layers are stored.
    reader = model.layers[0].layers[0].shims[0]._model
    kept = DEPTH // 2 if layer is None else layer
    assert reader.transformer.config.num_hidden_layers == kept
    assert not [name for name in reader.state_dict() if f".{kept}." in name]


def test_a_layer_that_does_not_exist(bert):
    for layer in (-1, 0, DEPTH + 1):
        with pytest.raises(WeaknerError, match=r"WK005.*layer"):
            make(bert, layer=layer)


def test_white_space_sentences_and_empty_docs(bert):
    """Sentences are encoded separately; white space and Docs without tokens have no vectors."""
    model = make(bert)
    doc = Doc(NLP.vocab, words=["Bob", "\n", "annas", "Bob", "a"], sent_starts=[True, False, False, True, False])
    first, second, empty = model.predict([doc, Doc(NLP.vocab, words=["Bob", "a"]), Doc(NLP.vocab)])
    assert not first[1].any() and empty.shape == (0, 16)
    assert same([first[[0, 2]], first[3:]], model.predict(docs_of([["Bob", "annas"], ["Bob", "a"]])), tolerance=1e-5)
    assert same([second], [first[3:]], tolerance=1e-5)


def test_nothing_to_standardize_by(bert):
    for docs in ([], [Doc(NLP.vocab)], docs_of([["Bob"]])):
        model = build_frozen_transformer(str(bert), max_length=32, stride=8)
        model.initialize(X=docs)
        assert all(numpy.isfinite(rows).all() for rows in model.predict(docs_of(ROWS)))


def test_it_is_stored_in_half_precision_without_its_origin(tmp_path, bert):
    model = make(bert)
    whole = build_transformer_encoder(str(bert), max_length=32, stride=8)
    whole.initialize()
    data = model.to_bytes()
    assert len(data) < 0.6 * len(whole.to_bytes())
    other = build_frozen_transformer("gone", max_length=32, stride=8, mixed_precision=None).from_bytes(data)
    # Half precision has a relative accuracy of 0.0005.
    assert same(other.predict(docs_of(ROWS)), model.predict(docs_of(ROWS)), tolerance=0.05)
    # A second round loses nothing.
    assert other.to_bytes() == build_frozen_transformer("gone").from_bytes(data).to_bytes()


def test_length_takes_effect_after_loading(bert):
    data = make(bert, length=1.0).to_bytes()
    short, long = (
        build_frozen_transformer("x", max_length=32, stride=8, mixed_precision=None, length=length).from_bytes(data)
        for length in (1.0, 3.0)
    )
    rows = docs_of(ROWS)
    assert same([3 * array for array in short.predict(rows)], long.predict(rows), tolerance=1e-5)


def examples(nlp, n=12):
    names = ("Bob", "annas", "zxy")
    docs = [make_doc(nlp, f"a {names[i % 3]} ob {i}", [(1, 2, "PER")]) for i in range(n)]
    return [Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in docs]


def test_it_is_not_trained(bert):
    nlp = spacy.blank("xx")
    encoder = {"@architectures": "spacy_weakner.FrozenTransformer.v1", "name": str(bert), "max_length": 32, "stride": 8}
    encoder["mixed_precision"] = None
    model = {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": encoder}
    head = nlp.add_pipe("crf_ner", config={"model": model})
    data = examples(nlp)
    optimizer = nlp.initialize(lambda: data)
    before = head.model.get_ref("tok2vec").to_bytes()
    for _ in range(3):
        nlp.update(data, sgd=optimizer)
    assert head.model.get_ref("tok2vec").to_bytes() == before


def shared(path, tmp_path):
    """The config of a pipeline with two heads on one frozen encoder, sourced from another pipeline."""
    nlp = spacy.blank("xx")
    settings = {
        "@architectures": "spacy_weakner.FrozenTransformer.v1",
        "name": str(path),
        "max_length": 32,
        "mixed_precision": None,
        "stride": 8,
    }
    nlp.add_pipe("tok2vec", config={"model": settings}).model.initialize(X=docs_of(ROWS))
    nlp.to_disk(tmp_path / "encoder")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "tok2vec"}
    tagger = {"factory": "crf_ner", "model": {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": listener}}
    return {
        "nlp": {"lang": "xx", "pipeline": ["tok2vec", "first", "second"]},
        "components": {"tok2vec": {"source": str(tmp_path / "encoder")}, "first": tagger, "second": tagger},
        "training": {"frozen_components": ["tok2vec"], "annotating_components": ["tok2vec"]},
    }


def test_lbfgs_trains_heads_on_a_shared_encoder(tmp_path, bert):
    nlp = spacy.util.load_model_from_config(shared(bert, tmp_path), auto_fill=True)
    data = examples(nlp)
    with nlp.select_pipes(disable=["tok2vec"]):
        nlp.initialize(lambda: data)
    before = nlp.get_pipe("tok2vec").to_bytes()
    for name in ("first", "second"):
        LBFGS(lambda nlp: examples(nlp), component=name)(nlp)
    assert nlp.get_pipe("tok2vec").to_bytes() == before
    nlp.to_disk(tmp_path / "trained")
    loaded = spacy.load(tmp_path / "trained")
    texts = [example.reference.text for example in data]
    for pipeline in (nlp, loaded):
        for doc in pipeline.pipe(texts):
            assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == [(1, 2, "PER")]
            assert doc.tensor.shape == (4, 16)


def test_lbfgs_reads_sentences_and_white_space_of_a_shared_encoder(tmp_path, bert):
    nlp = spacy.util.load_model_from_config(shared(bert, tmp_path), auto_fill=True)
    words, starts = ["Bob", "runs", "\n", "annas", "zxy"], [True, False, False, True, False]

    def several(nlp):
        reference = Doc(nlp.vocab, words=words, ents=["B-PER", "O", "O", "B-PER", "O"])
        return [Example(Doc(nlp.vocab, words=words, sent_starts=starts), reference)]

    with nlp.select_pipes(disable=["tok2vec"]):
        nlp.initialize(lambda: several(nlp))
    head = nlp.get_pipe("first")
    nlp.get_pipe("tok2vec")(doc := several(nlp)[0].predicted)
    loss = head.held_out_loss([Example(doc, several(nlp)[0].reference)])(1.0)
    LBFGS(several, component="first")(nlp)
    assert head.held_out_loss([Example(doc, several(nlp)[0].reference)])(1.0) < loss


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_threads_processes_and_long_texts_find_the_same(tmp_path, bert):
    nlp = spacy.util.load_model_from_config(shared(bert, tmp_path), auto_fill=True)
    data = examples(nlp)
    with nlp.select_pipes(disable=["tok2vec"]):
        nlp.initialize(lambda: data)
    for name in ("first", "second"):
        LBFGS(lambda nlp: examples(nlp), component=name)(nlp)
    texts = [example.reference.text for example in data] * 5

    def entities(doc):
        return [(ent.start, ent.end, ent.label_) for ent in doc.ents]

    expected = [entities(nlp(text)) for text in texts]
    assert [entities(doc) for doc in nlp.pipe(texts, batch_size=7)] == expected
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: entities(nlp(text)), texts)) == expected
    assert [entities(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=7)] == expected
    # One Doc of all sentences.
    words = [token for text in texts * 40 for token in text.split()]
    starts = [i % 4 == 0 for i in range(len(words))]
    found = entities(nlp(Doc(nlp.vocab, words=words, sent_starts=starts)))
    assert found == [(4 * i + 1, 4 * i + 2, "PER") for i in range(len(words) // 4)]


def test_lbfgs_refuses_a_shared_encoder_that_is_trained(tmp_path, bert):
    config = shared(bert, tmp_path)
    config["training"] = {}
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    nlp.initialize(lambda: examples(nlp))
    with pytest.raises(WeaknerError, match=r"first.*frozen_components and annotating_components"):
        LBFGS(lambda nlp: examples(nlp), component="first")(nlp)


def test_weights_that_half_precision_cannot_hold(bert):
    model = make(bert)
    reader = model.layers[0].layers[0].shims[0]._model
    next(iter(reader.transformer.parameters())).data[0] = 1e5
    with pytest.raises(ValueError, match="too large for half precision"):
        model.to_bytes()


# The encoder of a spaCy pipeline


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """A pipeline whose tagger has an encoder of its own, and whose component tok2vec is shared."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {"width": 24, "depth": 2}})
    nlp.add_pipe("tagger")
    doc = Doc(nlp.vocab, words=["Bob", "runs"], tags=["N", "V"])
    nlp.initialize(lambda: [Example(nlp.make_doc("Bob runs"), doc)])
    path = tmp_path_factory.mktemp("pipeline")
    nlp.to_disk(path)
    return path


@pytest.mark.parametrize("component, width", [("tok2vec", 24), ("tagger", 96)])
def test_the_encoder_of_a_pipeline(pipeline, component, width):
    model = build_frozen_tok2vec(str(pipeline), component)
    model.initialize(X=docs_of(ROWS))
    nlp = spacy.load(pipeline)
    theirs = nlp.get_pipe(component).model
    encoder = theirs.get_ref("tok2vec") if theirs.has_ref("tok2vec") else theirs
    mean, scale = statistics_of(model, 2.8)
    expected = [(rows - mean) * scale for rows in encoder.predict(docs_of(ROWS, nlp.vocab))]
    found = model.predict(docs_of(ROWS))
    assert same(found, expected, tolerance=1e-5) and found[0].shape == (3, width)
    # In a vocabulary that does not know these words.
    loaded = build_frozen_tok2vec("gone", component).from_bytes(model.to_bytes())
    assert same(loaded.predict(docs_of(ROWS, spacy.blank("de").vocab)), found, tolerance=1e-6)
    loaded.finish_update(Adam(0.1))
    assert loaded.to_bytes() == model.to_bytes()
    # Only what is needed to run it is stored.
    assert b"[training]" not in model.to_bytes() and b"[paths]" not in model.to_bytes()


@pytest.mark.parametrize(
    "component, reason", [("tagger", "no 'tagger'"), ("sentencizer", "no encoder"), ("ner", "no encoder")]
)
def test_pipelines_without_an_encoder(tmp_path, component, reason):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("ner").add_label("PER")
    nlp.initialize()
    nlp.to_disk(tmp_path)
    with pytest.raises(WeaknerError, match=rf"WK353.*{reason}"):
        build_frozen_tok2vec(tmp_path, component).initialize(X=docs_of(ROWS))


def test_a_width_that_is_not_that_of_the_pipeline(pipeline):
    with pytest.raises(WeaknerError, match=r"WK005.*width.*24, the width of 'tok2vec'"):
        build_frozen_tok2vec(str(pipeline), "tok2vec", width=96).initialize(X=docs_of(ROWS))


def test_indicator_features_beside_a_shared_encoder_are_those_of_sentences(tmp_path, bert):
    """Words of other sentences are not read, and the case of a sentence is its own."""
    config = shared(bert, tmp_path)
    linear = {"@architectures": "spacy_weakner.IndicatorFeatures.v1"}
    config["components"]["first"]["model"] = {**config["components"]["first"]["model"], "linear": linear}
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    with nlp.select_pipes(disable=["tok2vec"]):
        nlp.initialize(lambda: examples(nlp))
    LBFGS(lambda nlp: examples(nlp), component="first")(nlp)
    rows = [["A", "BOB", "OB"], ["a", "annas", "ob"], ["a", "zxy"]]
    starts = [i == 0 for row in rows for i in range(len(row))]
    whole = Doc(nlp.vocab, words=[word for row in rows for word in row], sent_starts=starts)
    single = docs_of(rows, nlp.vocab)
    for doc in (whole, *single):
        nlp.get_pipe("tok2vec")(doc)
    head = nlp.get_pipe("first")
    ((_, found),) = head.score_tags([whole])
    expected = numpy.concatenate([rows for _, rows in head.score_tags(single)])
    numpy.testing.assert_allclose(found, expected, atol=1e-5)

"""The BiLSTM encoder against torch's own, and in a pipeline."""

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import set_dropout_rate

from spacy_weakner.errors import WeaknerError
from spacy_weakner.joint.bilstm import build_bilstm_encoder
from spacy_weakner.joint.torch_model import BiLSTM

from ..encoders.sequences import module_of, random_vectors
from ..util import SENTENCES, TEXTS, crf_pipeline, entities_of, gradients, make_examples, same, train, weights

pytestmark = pytest.mark.slow

NLP = spacy.blank("xx")
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 8,
    "attrs": ["NORM"],
    "rows": [100],
    "include_static_vectors": False,
}
CONFIG = {"@architectures": "spacy_weakner.BiLSTMEncoder.v1", "embed": EMBED, "width": 12, "depth": 1}


def make(lengths, width=6, depth=1):
    vectors = random_vectors(lengths)
    docs = vectors.docs
    model = build_bilstm_encoder(vectors.model, width=width, depth=depth)
    model.initialize(X=docs)
    return model, vectors, docs


@pytest.mark.parametrize("lengths", [[3], [1], [2, 5, 1], [4, 4], [1, 2, 3]])
@pytest.mark.parametrize("depth", [1, 2])
def test_each_sequence_is_what_torch_gives_alone(lengths, depth):
    model, vectors, docs = make(lengths, depth=depth)
    lstm = module_of(model).lstm
    with torch.no_grad():
        expected = [lstm(torch.from_numpy(array)[:, None])[0][:, 0].numpy() for array in vectors.arrays]
    assert same(model.predict(docs), expected, tolerance=1e-5)


@pytest.mark.parametrize("lengths", [[3], [2, 5, 1]])
def test_gradients_are_those_of_torch(lengths):
    model, vectors, docs = make(lengths)
    lstm = module_of(model).lstm
    inputs = [torch.from_numpy(array.copy()).requires_grad_() for array in vectors.arrays]
    sum((lstm(x[:, None])[0] ** 2).sum() for x in inputs).backward()
    expected = [parameter.grad.clone().numpy() for parameter in lstm.parameters()]
    lstm.zero_grad()
    outputs, backprop = model.begin_update(docs)
    backprop([2 * output for output in outputs])
    assert same(vectors.gradients, [x.grad.numpy() for x in inputs], tolerance=1e-5)
    assert same(gradients(model), expected, tolerance=1e-5)


@pytest.mark.parametrize("lengths, used", [([0, 3], [1]), ([3, 0, 1, 0], [0, 2])])
def test_empty_sequences_change_nothing(lengths, used):
    model, vectors, docs = make(lengths)
    outputs, backprop = model.begin_update(docs)
    backprop([2 * output for output in outputs])
    whole = gradients(model)
    assert [output.shape for output in outputs] == [(n, 6) for n in lengths]
    assert [gradient.shape for gradient in vectors.gradients] == [(n, 4) for n in lengths]
    module_of(model).zero_grad()
    vectors.arrays = [vectors.arrays[i] for i in used]
    alone, backprop = model.begin_update([docs[i] for i in used])
    backprop([2 * output for output in alone])
    assert same([outputs[i] for i in used], alone, tolerance=1e-6)
    assert same(whole, gradients(model), tolerance=1e-6)


@pytest.mark.parametrize("lengths", [[0], [0, 0]])
def test_nothing_but_empty_sequences(lengths):
    model, vectors, docs = make([2])
    vectors.arrays = [numpy.zeros((0, 4), dtype="float32") for _ in lengths]
    docs = [Doc(NLP.vocab) for _ in lengths]
    assert [output.shape for output in model.predict(docs)] == [(0, 6) for _ in lengths]
    outputs, backprop = model.begin_update(docs)
    backprop(outputs)
    assert [gradient.shape for gradient in vectors.gradients] == [(0, 4) for _ in lengths]


@pytest.mark.parametrize("rate, alike", [(0.0, True), (0.5, False)])
def test_dropout(rate, alike):
    model, _, docs = make([5, 4])
    set_dropout_rate(model, rate)
    assert same(*(model.begin_update(docs)[0] for _ in range(2))) is alike
    assert same(*(model.predict(docs) for _ in range(2)))


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("width", [2, 10])
def test_width_and_depth(width, depth):
    model, _, docs = make([3], width=width, depth=depth)
    assert model.predict(docs)[0].shape == (3, width)
    assert model.get_dim("nO") == width
    assert module_of(model).lstm.num_layers == depth


def test_the_module_alone():
    module = BiLSTM(input_width=3, width=4, depth=2)
    assert module.kwargs == {"input_width": 3, "width": 4, "depth": 2}
    assert module(torch.zeros(7, 3), [2, 5]).shape == (7, 4)


@pytest.mark.parametrize("lengths", [[1], [3, 0, 2]])
@pytest.mark.parametrize("empty_width", [4, 0])
def test_a_projection_comes_first(lengths, empty_width):
    vectors = random_vectors(lengths, empty_width=empty_width)
    model = build_bilstm_encoder(vectors.model, width=6, projection_width=3)
    model.initialize(X=vectors.docs)
    linear = next(node for node in model.walk() if node.name == "linear")
    W, b = linear.get_param("W"), linear.get_param("b")
    assert W.shape == (3, 4)
    lstm = module_of(model).lstm
    with torch.no_grad():
        expected = [
            lstm(torch.from_numpy(array @ W.T + b)[:, None])[0][:, 0].numpy() if len(array) else numpy.zeros((0, 6))
            for array in vectors.arrays
        ]
    assert same(model.predict(vectors.docs), expected, tolerance=1e-5)
    outputs, backprop = model.begin_update(vectors.docs)
    backprop(outputs)
    assert [own.shape for own in vectors.gradients] == [own.shape for own in vectors.arrays]
    assert linear.get_grad("W").any()


def test_locked_dropout_has_one_mask_per_sentence_before_and_after():
    vectors = random_vectors([7, 5], width=8)
    model = build_bilstm_encoder(vectors.model, width=10, dropout=0.5)
    model.initialize(X=vectors.docs)
    set_dropout_rate(model, 0.0)  # that of the training: not this one
    before, after = (node for node in model.walk() if node.name == "locked_dropout")
    masks = []
    for layer, width in ((before, 8), (after, 10)):
        ones = [numpy.ones((n, width), dtype="float32") for n in (7, 5)]
        outputs, backprop = layer.begin_update(ones)
        for own, back in zip(outputs, backprop(ones), strict=True):
            assert (own == own[0]).all()
            assert {*own.flatten().tolist()} <= {0.0, 2.0}
            assert same([own], [back])
            masks.append(own[0].tolist())
        assert same(layer.predict(ones), ones)
    assert masks[0] != masks[1] and masks[2] != masks[3]
    outputs = [model.begin_update(vectors.docs)[0] for _ in range(2)]
    assert not same(*outputs)
    dropped = [~own.any(axis=0) for own in outputs[0]]
    assert any(own.any() for own in dropped)


def test_locked_dropout_of_rate_zero_is_none():
    vectors = random_vectors([7, 5])
    model = build_bilstm_encoder(vectors.model, width=6, dropout=0.0)
    model.initialize(X=vectors.docs)
    set_dropout_rate(model, 0.9)
    assert same(model.begin_update(vectors.docs)[0], model.predict(vectors.docs), tolerance=1e-6)


@pytest.mark.parametrize("bound", [0.1, 0.001])
def test_initial_weights(bound):
    vectors = random_vectors([3])
    model = build_bilstm_encoder(vectors.model, width=6, projection_width=3, init_range=bound)
    model.initialize(X=vectors.docs)
    drawn = weights(model)
    assert len(drawn) == 10
    assert all(0 < numpy.abs(own).max() <= bound for own in drawn)
    assert max(numpy.abs(own).max() for own in drawn) > 0.8 * bound


@pytest.mark.parametrize(
    "settings",
    [
        *({"width": width} for width in (7, 0)),
        {"depth": 0},
        {"projection_width": 0},
        *({"dropout": rate} for rate in (-0.1, 1.1)),
        {"init_range": -0.1},
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{next(iter(settings))}'"):
        build_bilstm_encoder(random_vectors([1]).model, **settings)


# In a pipeline


def test_with_all_settings_it_learns_and_returns(tmp_path):
    config = {**CONFIG, "projection_width": 8, "dropout": 0.2, "init_range": 0.1}
    nlp = crf_pipeline(config)
    train(nlp, make_examples(nlp), steps=150)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert entities_of(loaded, ["", *TEXTS]) == [[], *(entities for _, entities in SENTENCES)]
    assert same(*(weights(own.get_pipe("crf_ner").model) for own in (nlp, loaded)))


def test_weights_of_another_depth_are_refused():
    shallow, deep = make([3])[0], make([3], depth=2)[0]
    with pytest.raises(ValueError, match=r"'depth': 1.*stored.*'depth': 2"):
        shallow.from_bytes(deep.to_bytes())

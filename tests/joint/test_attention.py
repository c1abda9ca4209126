"""Attention against numbers worked out by hand, a slow twin that looks at one token at a time, and in pipelines."""

import math

import numpy
import pytest
import spacy
import torch
from thinc.api import set_dropout_rate

from spacy_weakner.errors import WeaknerError
from spacy_weakner.joint.attention import build_attention_encoder
from spacy_weakner.joint.torch_model import SelfAttention, SoftAttention

from ..encoders.sequences import Vectors, module_of, random_vectors
from ..util import (
    ENTITY_HEADS,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    entities_of,
    gradients,
    head_pipeline,
    make_examples,
    numeric_gradient,
    same,
    shared_pipeline,
    train,
)

GOLD = [entities for _, entities in SENTENCES]
KINDS = ("soft", "scaled", "unscaled", "learned")
CONFIG = {"@architectures": "spacy_weakner.AttentionEncoder.v1", "tok2vec": TOK2VEC, "heads": 4, "dropout": 0.0}
# Three tokens of width two, one head with Q = K = V = H.
H = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
BY_QUERY = [[0.751637, 0.624182], [0.577681, 0.844638], [0.715358, 0.715358]]


def make(lengths=(3, 1, 5), kind="learned", empty_width=4, **settings):
    vectors = random_vectors(lengths, empty_width=empty_width)
    model = build_attention_encoder(vectors.model, kind, **{"heads": 2, "dropout": 0.0, **settings})
    model.initialize(X=vectors.docs)
    return model, vectors


def test_threads_predict_beside_each_other():
    """Who predicts in the meantime switches no dropout on."""
    model, vectors = make(weight_dropout=0.5)
    expected, calls = model.predict(vectors.docs), []

    def predict_once(*_):
        calls.append(1)
        if len(calls) == 1:
            model.predict(vectors.docs)

    module_of(model).register_forward_pre_hook(predict_once)
    assert same(expected, model.predict(vectors.docs)) and len(calls) == 2


def by_hand(kind="learned", residual=True, **values):
    """The encoder of the numbers above."""
    vectors = Vectors([H])
    model = build_attention_encoder(vectors.model, kind, heads=1, dropout=0.0, residual=residual)
    model.initialize(X=vectors.docs)
    module = module_of(model)
    with torch.no_grad():
        if kind == "soft":
            module.hidden.weight.copy_(torch.eye(2))
            module.hidden.bias.zero_()
            module.evidence.weight.copy_(torch.tensor([[1.0, -1.0]]))
            module.evidence.bias.fill_(0.2)
            return model, vectors, module
        for part in (module.query, module.key, module.value, module.output):
            part.weight.copy_(torch.eye(2))
        if kind == "learned":
            module.temperature.weight.copy_(torch.tensor([values.get("w4", [2.0, -1.0])]))
            module.temperature.bias.fill_(values.get("b4", 0.5))
    return model, vectors, module


def slow(module, sequence):
    """Attention of one sentence with loops over tokens, in numpy."""
    parameters = {name: value.detach().double().numpy() for name, value in module.named_parameters()}
    rows = numpy.asarray(sequence, dtype="float64")
    if isinstance(module, SoftAttention):
        weights = []
        for h in rows:
            g = numpy.tanh(parameters["hidden.weight"] @ h + parameters["hidden.bias"])
            score = parameters["evidence.weight"][0] @ g + parameters["evidence.bias"][0]
            weights.append(1 / (1 + math.exp(-score)))
        return numpy.asarray([h * a / sum(weights) for h, a in zip(rows, weights, strict=True)])
    size = rows.shape[1] // module.heads
    result = numpy.zeros_like(rows)
    for i, looking in enumerate(rows):
        delta = {"scaled": math.sqrt(size), "unscaled": 1.0}.get(module.scale)
        if delta is None:
            raw = parameters["temperature.weight"][0] @ looking + parameters["temperature.bias"][0]
            delta = min(max(raw, 0.0), math.sqrt(size)) + 1
        heads = []
        for j in range(module.heads):
            part = slice(j * size, (j + 1) * size)
            query = parameters["query.weight"][part] @ looking
            chances = [math.exp(query @ (parameters["key.weight"][part] @ other) / delta) for other in rows]
            values = [parameters["value.weight"][part] @ other for other in rows]
            heads.append(sum(c * v for c, v in zip(chances, values, strict=True)) / sum(chances))
        result[i] = parameters["output.weight"] @ numpy.concatenate(heads)
    return result


# By hand


def test_every_token_that_looks_has_its_own_temperature():
    model, vectors, module = by_hand()
    (found,) = by_hand(residual=False)[0].predict(vectors.docs)
    assert found.tolist() == pytest.approx(numpy.asarray(BY_QUERY), abs=1e-6)
    (found,) = model.predict(vectors.docs)
    assert found.tolist() == pytest.approx(numpy.asarray(H) + BY_QUERY, abs=1e-6)
    assert module._delta(torch.tensor([H])).flatten().tolist() == pytest.approx([2.414214, 1.0, 2.414214], abs=1e-6)


def test_soft_attention_weighs_tokens():
    model, vectors, _ = by_hand("soft")
    (found,) = model.predict(vectors.docs)
    expected = [[1.442078, 0.0], [0.0, 1.221930], [1.335991, 1.335991]]
    assert found.tolist() == pytest.approx(numpy.asarray(expected), abs=1e-6)


def test_soft_attention_where_no_token_matters():
    """Sigmoids of all tokens vanish, their shares do not."""
    model, vectors, module = by_hand("soft", residual=False)
    with torch.no_grad():
        module.evidence.bias.fill_(-500.0)
    (found,) = model.predict(vectors.docs)
    assert numpy.isfinite(found).all()
    assert found.sum() > 0.5


@pytest.mark.parametrize(
    "w4, b4, alpha", [([0.0, 0.0], 0.0, 1.0), ([0.0, 0.0], -3.0, 1.0), ([9.0, 9.0], 9.0, 2.414214)]
)
def test_at_its_bounds_the_learned_temperature_is_a_constant(w4, b4, alpha):
    """Below, the block is un-scaled attention, above that of temperature 1 + sqrt(d_h / n); it learns at neither."""
    model, vectors, module = by_hand(residual=False, w4=w4, b4=b4)
    outputs, backprop = model.begin_update(vectors.docs)
    scores = numpy.exp(numpy.asarray(H) @ numpy.asarray(H).T / alpha)
    assert outputs[0].tolist() == pytest.approx(scores / scores.sum(1, keepdims=True) @ numpy.asarray(H), abs=1e-5)
    backprop([numpy.asarray([[1.0, -1.0]] * 3, dtype="float32")])
    assert not module.temperature.weight.grad.any()
    assert not module.temperature.bias.grad.any()
    if alpha == 1.0:
        plain, docs, _ = by_hand("unscaled", residual=False)
        assert same(outputs, plain.predict(docs.docs), tolerance=1e-6)


def test_between_its_bounds_the_temperature_learns():
    model, vectors, module = by_hand(w4=[0.5, 0.25], b4=0.1)
    _, backprop = model.begin_update(vectors.docs)
    backprop([numpy.asarray([[1.0, -1.0], [0.5, 0.0], [0.0, 1.0]], dtype="float32")])
    assert module.temperature.weight.grad.all()
    assert module.temperature.bias.grad.all()


# Against the slow twin


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[1], [4], [3, 1, 5], [2, 0, 2], [0], [0, 0]])
@pytest.mark.parametrize("empty_width", [4, 0])
def test_a_batch_is_what_its_sentences_are_alone(kind, lengths, empty_width):
    """So no token sees the padding of its sentence, nor another sentence."""
    model, _ = make((2,), kind)
    vectors = random_vectors(lengths, empty_width=empty_width)
    model.layers[0]._func = vectors.forward
    module = module_of(model)
    found = model.predict(vectors.docs)
    for own, given in zip(found, vectors.arrays, strict=True):
        assert own.shape == (len(given), 4)
        if len(given):
            assert own.tolist() == pytest.approx(given + slow(module, given), abs=1e-5)
    outputs, backprop = model.begin_update(vectors.docs)
    backprop(outputs)
    assert [own.shape for own in vectors.gradients] == [own.shape for own in vectors.arrays]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("residual", [True, False])
def test_gradients_by_finite_differences(kind, residual):
    model, vectors = make((3, 0, 1, 4), kind, empty_width=0, residual=residual)
    module = module_of(model)
    rng = numpy.random.RandomState(1)
    outputs, backprop = model.begin_update(vectors.docs)
    directions = [rng.normal(size=own.shape) for own in outputs]
    backprop([own.astype("float32") for own in directions])
    for given, direction, gradient in zip(vectors.arrays, directions, vectors.gradients, strict=True):
        assert gradient.shape == given.shape
        if not len(given):
            continue

        def value(array, direction=direction):
            return float(((slow(module, array) + residual * array) * direction).sum())

        assert gradient.tolist() == pytest.approx(numeric_gradient(value, given.astype("float64")), abs=1e-4)


def test_initialization_with_empty_docs_only():
    model, _ = make([0, 0])
    assert model.get_dim("nO") == 4


# Settings


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_has_one_mask_per_sentence_and_leaves_the_residual_alone(kind):
    model, vectors = make((6, 5), kind, dropout=0.5, init_range=0.5)
    set_dropout_rate(model, 0.0)  # of the training: not this one
    plain = model.predict(vectors.docs)
    masks = set()
    for _ in range(20):
        outputs, backprop = model.begin_update(vectors.docs)
        backprop(outputs)
        for own, clean, given in zip(outputs, plain, vectors.arrays, strict=True):
            factors = (own - given) / (clean - given)
            assert numpy.allclose(factors, factors[0], atol=1e-2)
            assert all(numpy.isclose(factors[0], 0, atol=1e-2) | numpy.isclose(factors[0], 2, atol=1e-2))
            masks.add(tuple(factors[0] > 1))
    assert len(masks) > 5
    assert same(plain, model.predict(vectors.docs))


def test_gradients_pass_the_same_mask():
    model, vectors = make((4,), "scaled", dropout=0.5, residual=False)
    outputs, backprop = model.begin_update(vectors.docs)
    dropped = ~outputs[0].any(axis=0)
    backprop([numpy.where(dropped, 1.0, 0.0).astype("float32")[None].repeat(4, 0)])
    assert not vectors.gradients[0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_initial_weights(kind):
    module = module_of(make(kind=kind, init_range=0.01)[0])
    assert all(0 < parameter.abs().max() <= 0.01 for parameter in module.parameters())
    assert any(parameter.abs().max() > 0.01 for parameter in module_of(make(kind=kind)[0]).parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_behind_a_gate_it_begins_as_nothing(kind):
    model, vectors = make(kind=kind, gate=True, init_range=0.5)
    plain, _ = make(kind=kind, init_range=0.5)
    module_of(plain).load_state_dict(module_of(model).state_dict())
    (gate,) = (node for node in model.walk() if node.name == "learned_gate")
    for value in (0.0, 0.5, -2.0):
        gate.set_param("gate", numpy.asarray([value], dtype="float32"))
        parts = zip(vectors.arrays, plain.predict(vectors.docs), strict=True)
        assert same(model.predict(vectors.docs), [own + value * (full - own) for own, full in parts], tolerance=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_gradient_of_the_gate(value):
    model, vectors = make((3, 0, 1), gate=True, init_range=0.5, empty_width=0)
    (gate,) = (node for node in model.walk() if node.name == "learned_gate")
    rng = numpy.random.RandomState(1)
    directions = [rng.normal(size=own.shape).astype("float32") for own in model.predict(vectors.docs)]

    def total(number):
        gate.set_param("gate", number.astype("float32"))
        found = model.predict(vectors.docs)
        return float(sum((own.astype("float64") * to).sum() for own, to in zip(found, directions, strict=True)))

    expected = numeric_gradient(total, numpy.asarray([value]), 1e-2)
    gate.set_param("gate", numpy.asarray([value], dtype="float32"))
    _, backprop = model.begin_update(vectors.docs)
    backprop(directions)
    assert gate.get_grad("gate") == pytest.approx(expected, abs=1e-3)
    module = module_of(model)
    given = [own for own in vectors.arrays if len(own)]
    for array, direction, gradient in zip(
        given, [own for own in directions if len(own)], [own for own in vectors.gradients if len(own)], strict=True
    ):
        found = numeric_gradient(
            lambda moved, to=direction: float(((value * slow(module, moved) + moved) * to).sum()),
            array.astype("float64"),
        )
        assert gradient.tolist() == pytest.approx(found, abs=1e-3)


@pytest.mark.parametrize(
    "settings, name",
    [
        ({"kind": "hard"}, "kind"),
        ({"heads": 0}, "heads"),
        ({"dropout": 1.5}, "dropout"),
        ({"init_range": -1.0}, "init"),
        ({"gate": True, "residual": False}, "gate"),
    ],
)
def test_settings_that_cannot_be(settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}"):
        make(**settings)


def test_heads_divide_the_width():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'heads' = 3.*divides the width of the encoder, 4"):
        make(heads=3)


def test_the_module_alone():
    module = SelfAttention(input_width=4, heads=2, scale="scaled")
    assert module.kwargs == {"input_width": 4, "heads": 2, "scale": "scaled", "bias": False}
    assert module(torch.zeros(7, 4), [2, 5]).shape == (7, 4)


def test_maps_with_biases():
    names = {name for name, _ in SelfAttention(4, 2, "scaled", bias=True).named_parameters()}
    assert {f"{name}.bias" for name in ("query", "key", "value", "output")} <= names
    with pytest.raises(ValueError, match=r"'bias': True.*stored.*'bias': False"):
        make(bias=True)[0].from_bytes(make()[0].to_bytes())


def test_dropout_on_the_weights_is_on_in_training_alone():
    module = SelfAttention(4, 2, "scaled", dropout=0.5)
    vectors = torch.ones(6, 4)  # equal weights: all rows are alike without dropout
    rows = module(vectors, [6])
    assert not torch.allclose(rows[0], rows[1])
    rows = module.eval()(vectors, [6])
    assert torch.allclose(rows[0], rows[1])


# In pipelines


@pytest.mark.parametrize(
    "head, kind, gate",
    [*((head, "soft", False) for head in ENTITY_HEADS), ("crf_ner", "learned", False), ("span_ner", "learned", True)],
)
def test_under_every_head(head, kind, gate):
    nlp = head_pipeline(head, {**CONFIG, "kind": kind, "gate": gate})
    train(nlp, make_examples(nlp), steps=60)
    assert entities_of(nlp, ["", *TEXTS]) == [[], *GOLD]


def test_another_dropout_may_load_the_weights(tmp_path):
    head_pipeline("crf_ner", CONFIG).to_disk(tmp_path)
    model = {"tok2vec": {"dropout": 0.9, "weight_dropout": 0.5}}
    assert spacy.load(tmp_path, config={"components": {"crf_ner": {"model": model}}})


def test_on_a_listener():
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
    nlp = shared_pipeline(("crf_ner",), listener={**CONFIG, "tok2vec": listener})
    train(nlp, make_examples(nlp), steps=60)
    assert entities_of(nlp, ["", *TEXTS]) == [[], *GOLD]
    nlp.update(make_examples(nlp), sgd=False)
    assert any(g is not None and g.any() for g in gradients(nlp.get_pipe("tok2vec").model))


@pytest.mark.parametrize("settings", [{"kind": "soft"}, {"kind": "unscaled"}, {"heads": 1}])
def test_weights_are_not_loaded_into_other_settings(settings):
    """What the config says of an encoder is not overruled in silence by what is stored."""
    stored = make()[0].to_bytes()
    with pytest.raises(ValueError, match=r"sizes differ.*stored.*'scale': 'learned'"):
        make(**settings)[0].from_bytes(stored)
    with pytest.raises(WeaknerError, match="WK020"):
        build_attention_encoder(random_vectors([1]).model, **{"heads": 2, **settings}).from_bytes(stored)

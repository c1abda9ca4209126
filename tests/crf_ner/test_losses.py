import numpy
import pytest
import torch
from torchcrf import CRF

from spacy_weakner.corpus.tags import MISSING, TagScheme
from spacy_weakner.crf.kernel import CRFParameters, pad_emissions
from spacy_weakner.crf.scaled import partition
from spacy_weakner.crf_ner.likelihood import CRFTarget
from spacy_weakner.crf_ner.losses import (
    CRFNegativeLogLikelihood,
    PartialCRF,
    SoftLabelCRF,
    TokenwiseLoss,
    sample_hard_negatives,
)
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import MeanSquaredError
from spacy_weakner.needle.noise_aware import NoiseAwareCRF

from ..crf import brute_force
from ..crf.brute_force import random_case
from ..crf.test_kernel import ORACLE, ORACLE_CONSTRAINED, ORACLE_EMISSIONS

# Gradients of emissions are float32.
FLOAT32 = 1e-5


def on_tags(loss):
    """A loss as a function of tags alone, without weights."""

    def call(parameters, emissions, tags):
        return loss(parameters, emissions, [CRFTarget(t) for t in tags])

    return call


NLL = on_tags(CRFNegativeLogLikelihood())
MARGINAL = on_tags(PartialCRF(negative_rate=0.0))
SCHEME = TagScheme("BIO", ["A", "B"])
ENTITY_TAGS = [[0, 1, 2, 0], [3, 4, 0, 1, 2], [0]]


def make_case(constrain=False, scale=1.5, lengths=(4, 5, 1)):
    parameters, emissions = random_case((len(SCHEME), list(lengths), scale, 1.0, 0.0), seed=5)
    return (parameters.constrained(*SCHEME.allowed_transitions()) if constrain else parameters), emissions


def tag_arrays(tags):
    return [numpy.asarray(t, dtype="int64") for t in tags]


def with_holes(tags, seed=0, rate=0.5):
    random = numpy.random.RandomState(seed)
    return [numpy.where(random.uniform(size=len(t)) < rate, MISSING, t) for t in tag_arrays(tags)]


def agrees(tags):
    return lambda path: all(t in (MISSING, p) for t, p in zip(tags, path, strict=True))


def random_tags(n_tags, lengths, seed=0):
    random = numpy.random.RandomState(seed)
    return [random.randint(0, n_tags, n) for n in lengths]


def close(a, b, tolerance=FLOAT32):
    numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def same_gradient(a, b, tolerance=FLOAT32):
    for own, other in zip([*a.emissions, *a.parameters], [*b.emissions, *b.parameters], strict=True):
        close(own, other, tolerance)


def is_zero(result):
    return result.loss == 0.0 and not any(g.any() for g in [*result.emissions, *result.parameters])


def check_finite_differences(loss, parameters, emissions, tags, step=1e-5):
    n_sentences = sum(len(e) > 0 for e in emissions)
    emissions = [e.astype("float64") for e in emissions]
    result = loss(parameters, emissions, tags)
    inputs, gradients = [*emissions, *parameters], [*result.emissions, *result.parameters]
    for i, (values, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        expected = numpy.zeros_like(values)
        for index in zip(*numpy.nonzero(numpy.isfinite(values)), strict=True):
            sides = []
            for sign in (1, -1):
                moved = [v.copy() for v in inputs]
                moved[i][index] += sign * step
                sides.append(loss(CRFParameters(*moved[-3:]), moved[:-3], tags).loss)
            expected[index] = n_sentences * (sides[0] - sides[1]) / (2 * step)
        close(gradient, expected)


# Value


@pytest.mark.parametrize("lengths", [[5, 2, 4, 1, 5], [3], [1], [1, 1], [4, 4]], ids=str)
@pytest.mark.parametrize("n_tags", [1, 2, 4])
def test_equals_pytorch_crf(n_tags, lengths):
    torch.manual_seed(0)
    module = CRF(n_tags, batch_first=True).double()
    _, emissions = random_case((n_tags, lengths, 3.0, 1.0, 0.0))
    tags = random_tags(n_tags, lengths)
    tensors = [torch.from_numpy(e).double().requires_grad_() for e in emissions]
    padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
    labels = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(t) for t in tags], batch_first=True)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    total = -module(padded, labels, mask, reduction="sum")
    total.backward()
    scores = (module.start_transitions, module.transitions, module.end_transitions)
    result = NLL(CRFParameters(*(s.detach().numpy() for s in scores)), emissions, tags)
    assert result.loss * len(lengths) == pytest.approx(total.item(), abs=1e-9)
    for own, tensor in zip([*result.emissions, *result.parameters], [*tensors, *scores], strict=True):
        close(own, numpy.zeros(tensor.shape) if tensor.grad is None else tensor.grad)


@pytest.mark.parametrize("constrain", [True, False])
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("loss", [NLL, MARGINAL])
def test_value_is_the_mean_over_sentences(loss, rate, constrain):
    parameters, emissions = make_case(constrain)
    tags = with_holes(ENTITY_TAGS, rate=rate)
    expected = [
        brute_force.log_z(parameters, e) - brute_force.log_z(parameters, e, agrees(t))
        for e, t in zip(emissions, tags, strict=True)
    ]
    assert loss(parameters, emissions, tags).loss == pytest.approx(numpy.mean(expected), abs=1e-8)


@pytest.mark.parametrize("parameters, expected", [(ORACLE, 3.096879), (ORACLE_CONSTRAINED, 2.696653)])
def test_oracle_complete_annotation(parameters, expected):
    assert NLL(parameters, [ORACLE_EMISSIONS], tag_arrays([[1, 2, 0]])).loss == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("parameters, expected", [(ORACLE, 2.166054), (ORACLE_CONSTRAINED, 1.765828)])
def test_oracle_allowed_tags_per_token(parameters, expected):
    # Allowed are {1}, any, {0, 1}.
    allowed = numpy.array([[False, True, False], [True, True, True], [True, True, False]])
    batch = pad_emissions([ORACLE_EMISSIONS])
    inside, _ = partition(parameters, batch.restrict(allowed[:, None]))
    assert partition(parameters, batch)[0][0] - inside[0] == pytest.approx(expected, abs=1e-6)


# What all losses promise

PROBABILITIES = numpy.random.RandomState(0).dirichlet(numpy.ones(len(SCHEME)), size=5)
LOSSES = {
    "nll": CRFNegativeLogLikelihood(),
    "partial": PartialCRF(negative_rate=0.0),
    "soft": SoftLabelCRF(negative_rate=0.0),
    "noise-aware": NoiseAwareCRF(),
    "noise-aware by token": NoiseAwareCRF(level="token"),
    "tokenwise": TokenwiseLoss(MeanSquaredError()),
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def contract_targets(name, tags, rate=0.5):
    """Tags with holes and weights; for the soft loss the second sentence, of five tokens, has probabilities."""
    targets = [CRFTarget(t, w) for t, w in zip(with_holes(tags, rate=rate), (0.9, 0.3, 0.6), strict=False)]
    if name == "soft":
        targets = [
            targets[0]._replace(weight=1.0),
            CRFTarget(PROBABILITIES),
            *(to._replace(weight=1.0) for to in targets[2:]),
        ]
    return targets


def parts_of(result, order):
    return result._replace(emissions=[result.emissions[i] for i in order])


@every_loss
@pytest.mark.parametrize("constrain", [True, False])
@pytest.mark.parametrize("scale, rate", [(1.5, 0.0), (1.5, 0.5), (60.0, 0.5)])
def test_gradient_equals_finite_differences(name, scale, rate, constrain):
    """At the larger scale products of probabilities come near underflow."""
    parameters, emissions = make_case(constrain, scale)
    check_finite_differences(LOSSES[name], parameters, emissions, contract_targets(name, ENTITY_TAGS, rate))


@every_loss
def test_sentences_add_up_in_any_order_and_empty_ones_change_nothing(name):
    parameters, emissions = make_case()
    targets, loss = contract_targets(name, ENTITY_TAGS), LOSSES[name]
    whole = loss(parameters, emissions, targets)
    single = [loss(parameters, [e], [t]) for e, t in zip(emissions, targets, strict=True)]
    assert whole.loss == pytest.approx(numpy.mean([part.loss for part in single]))
    summed = CRFParameters(*(sum(parts) for parts in zip(*(part.parameters for part in single), strict=True)))
    same_gradient(whole, whole._replace(emissions=[part.emissions[0] for part in single], parameters=summed))
    empty, no_tags = numpy.zeros((0, len(SCHEME)), dtype="float32"), CRFTarget(numpy.zeros(0, dtype="int64"))
    mixed = loss(parameters, [empty, *emissions[::-1], empty], [no_tags, *targets[::-1], no_tags])
    assert mixed.loss == pytest.approx(whole.loss) and [len(g) for g in mixed.emissions] == [0, 1, 5, 4, 0]
    same_gradient(parts_of(mixed, [3, 2, 1]), whole)


@every_loss
def test_where_nothing_is_known_all_is_exactly_zero(name):
    parameters, emissions = make_case(constrain=True)
    targets = [CRFTarget(numpy.full(len(e), MISSING), 0.5 if name != "soft" else 1.0) for e in emissions]
    if name == "soft":
        targets[0] = CRFTarget(numpy.zeros(emissions[0].shape))
    result = LOSSES[name](parameters, emissions, targets)
    assert is_zero(result) and [g.shape for g in result.emissions] == [e.shape for e in emissions]
    for n in (0, 1, 3):
        empty = [numpy.zeros((0, len(SCHEME)), dtype="float32")] * n
        result = LOSSES[name](parameters, empty, [CRFTarget(numpy.zeros(0, dtype="int64"))] * n)
        assert is_zero(result) and len(result.emissions) == n


@every_loss
def test_inputs_are_not_written_to_and_gradients_are_float32(name):
    parameters, emissions = make_case()
    targets = contract_targets(name, ENTITY_TAGS)
    for array in [*parameters, *emissions, *(target.tags for target in targets)]:
        array.setflags(write=False)
    result = LOSSES[name](parameters, emissions, targets)
    assert {g.dtype.name for g in result.emissions} == {"float32"} and isinstance(result.loss, float)


@every_loss
@pytest.mark.parametrize("scale", [200.0, 1e4])
def test_wide_emissions_are_safe(name, scale):
    parameters, emissions = make_case(True, scale, lengths=[40, 5, 25])
    targets = contract_targets(name, [numpy.zeros(len(e), dtype="int64") for e in emissions])
    result = LOSSES[name](parameters, emissions, targets)
    assert numpy.isfinite(result.loss)
    assert all(numpy.isfinite(g).all() for g in [*result.emissions, *result.parameters])


@pytest.mark.parametrize("name", ["nll", "partial", "tokenwise"])
def test_weights_scale_what_is_learned(name):
    parameters, emissions = make_case(lengths=(4,))
    whole, half = (LOSSES[name](parameters, emissions, [CRFTarget(numpy.zeros(4, "int64"), w)]) for w in (1.0, 0.5))
    assert half.loss == pytest.approx(whole.loss / 2)
    close(half.emissions[0], whole.emissions[0] / 2)


# The gradient where tags are missing


@pytest.mark.parametrize("constrain", [True, False])
@pytest.mark.parametrize("scale", [1.5, 200.0])
def test_gradient_of_holes_is_the_average_over_completions(scale, constrain):
    parameters, emissions = make_case(constrain, scale)
    tags = with_holes(ENTITY_TAGS, seed=1)
    n_tags = len(SCHEME)
    result = MARGINAL(parameters, emissions, tags)
    transitions = numpy.zeros((n_tags, n_tags))
    for e, t, gradient in zip(emissions, tags, result.emissions, strict=True):
        expected = brute_force.expectation(parameters, e, brute_force.tokens(n_tags), e.shape)
        shape = (len(e) - 1, n_tags, n_tags)
        transitions += brute_force.expectation(parameters, e, brute_force.edges(n_tags), shape).sum(0)
        completions = [(s, path) for s, path in brute_force.all_paths(parameters, e) if agrees(t)(path)]
        total = brute_force.log_sum([s for s, _ in completions])
        for s, path in completions:
            expected = expected - numpy.exp(s - total) * brute_force.tokens(n_tags)(path)
            transitions -= numpy.exp(s - total) * brute_force.edges(n_tags)(path).sum(0)
        close(gradient, expected)
    close(result.parameters.transitions, transitions)


# Negative sampling


def test_negative_rate_0_is_the_marginal_likelihood():
    parameters, emissions = make_case()
    tags = with_holes(ENTITY_TAGS)
    result, expected = MARGINAL(parameters, emissions, tags), NLL(parameters, emissions, tags)
    assert result.loss == expected.loss
    same_gradient(result, expected, 0.0)


def test_negative_rate_1_reads_all_that_is_missing_as_outside():
    parameters, emissions = make_case()
    tags = with_holes(ENTITY_TAGS)
    result = on_tags(PartialCRF(negative_rate=1.0))(parameters, emissions, tags)
    expected = NLL(parameters, emissions, [numpy.where(t == MISSING, 0, t) for t in tags])
    assert result.loss == expected.loss
    same_gradient(result, expected, 0.0)


def test_negatives_are_drawn_anew_and_follow_the_seed():
    parameters, emissions = make_case(lengths=[30, 20])
    tags = [numpy.full(len(e), MISSING) for e in emissions]
    loss = on_tags(PartialCRF(negative_rate=0.5))
    numpy.random.seed(0)
    first, second = (loss(parameters, emissions, tags).loss for _ in range(2))
    numpy.random.seed(0)
    assert first != second
    assert loss(parameters, emissions, tags).loss == first


def test_sentences_keep_their_length_and_tags():
    tags = [numpy.asarray(sentence) for sentence in ([1, MISSING], [], [MISSING] * 3, [2])]
    assert [sentence.tolist() for sentence in sample_hard_negatives(tags, 1.0)] == [[1, 0], [], [0] * 3, [2]]
    assert [sentence.tolist() for sentence in sample_hard_negatives(tags, 0.0)] == [s.tolist() for s in tags]
    assert sample_hard_negatives([], 0.5) == []


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_share_of_negatives(rate):
    # Without transitions, and with even emissions, the loss counts the known tokens: log(n_tags) each.
    numpy.random.seed(0)
    n_tags, n_tokens = 5, 5000
    flat = CRFParameters(numpy.zeros(n_tags), numpy.zeros((n_tags, n_tags)), numpy.zeros(n_tags))
    tags = numpy.full(n_tokens, MISSING)
    tags[:100] = 1
    emissions = numpy.zeros((n_tokens, n_tags), dtype="float32")
    loss = on_tags(PartialCRF(negative_rate=rate))(flat, [emissions], [tags]).loss
    assert (loss / numpy.log(n_tags) - 100) / (n_tokens - 100) == pytest.approx(rate, abs=0.03)


# Contracts


@pytest.mark.parametrize(
    "make, setting, value",
    [
        *((PartialCRF, "negative_rate", value) for value in (-0.1, 1.1, float("nan"))),
        *((SoftLabelCRF, "negative_rate", value) for value in (-0.1, 1.1)),
        *((NoiseAwareCRF, "strong_weight", value) for value in (1.1, float("nan"))),
        (NoiseAwareCRF, "level", "word"),
        (PartialCRF, "weak_weight", -0.1),
        (lambda **given: TokenwiseLoss(MeanSquaredError(), **given), "weak_weight", -1.0),
    ],
)
def test_settings_out_of_range(make, setting, value):
    with pytest.raises(WeaknerError, match=rf"WK005.*'{setting}' = '?{value}"):
        make(**{setting: value})


@pytest.mark.parametrize("illegal", [[0, 2, 0], [MISSING, 1, 4], [0, 2, MISSING], [2, MISSING, MISSING]], ids=str)
@pytest.mark.parametrize("index", [0, 2, 3])
def test_infeasible_annotation_names_the_sentence(index, illegal):
    # Sentence 1 is empty, and the lengths are not sorted.
    parameters, emissions = make_case(constrain=True, lengths=[3] * 4)
    tags = tag_arrays([[1, 2, 0, 1], [], [0, 0], [1, 2, 2, 0, 0]])
    tags[index] = numpy.asarray(illegal)
    emissions = [numpy.zeros((len(t), len(SCHEME)), dtype="float32") for t in tags]
    with pytest.raises(WeaknerError, match=rf"WK007.*Sentence {index} "):
        NLL(parameters, emissions, tags)


def test_infeasible_constraints_name_the_first_sentence():
    parameters, emissions = make_case()
    forbidden = parameters._replace(start=numpy.full(len(SCHEME), -numpy.inf))
    with pytest.raises(WeaknerError, match=r"WK007.*Sentence 0 "):
        NLL(forbidden, emissions, tag_arrays(ENTITY_TAGS))


def test_nan_is_passed_on():
    parameters, emissions = make_case()
    emissions[0][1, 1] = numpy.nan
    assert numpy.isnan(NLL(parameters, emissions, tag_arrays(ENTITY_TAGS)).loss)


# `crf_ner` as a token classifier


TOKENWISE = TokenwiseLoss(MeanSquaredError())


def slow_tokenwise(emissions, tags):
    """Sum over tokens, one by one."""
    total = 0.0
    for scores, row_tags in zip(emissions, tags, strict=True):
        for row, tag in zip(scores, row_tags, strict=True):
            if tag != MISSING:
                exponentials = [numpy.exp(float(score)) for score in row]
                chances = [e / sum(exponentials) for e in exponentials]
                total += sum((chance - (k == tag)) ** 2 for k, chance in enumerate(chances))
    return total


@pytest.mark.parametrize("lengths", [(4, 5, 1), (1,), (3, 0, 2)], ids=str)
def test_tokenwise_equals_brute_force(lengths):
    parameters, emissions = make_case(lengths=lengths)
    tags = with_holes(random_tags(emissions[0].shape[1], lengths))
    result = on_tags(TOKENWISE)(parameters, emissions, tags)
    assert result.loss * sum(n > 0 for n in lengths) == pytest.approx(slow_tokenwise(emissions, tags))


def test_transitions_are_not_used():
    parameters, emissions = make_case()
    tags = random_tags(emissions[0].shape[1], (4, 5, 1))
    other = parameters._replace(transitions=parameters.transitions + 3.0)
    assert on_tags(TOKENWISE)(parameters, emissions, tags).loss == on_tags(TOKENWISE)(other, emissions, tags).loss
    assert not any(g.any() for g in on_tags(TOKENWISE)(parameters, emissions, tags).parameters)

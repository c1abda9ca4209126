"""Learning from distributions."""

import numpy
import pytest
import spacy

from spacy_weakner.annotations.tags import make_scheme
from spacy_weakner.annotations.weak import SoftLabels as Stored
from spacy_weakner.annotations.weak import set_soft_labels
from spacy_weakner.token_ner.objective import TokenBatch
from spacy_weakner.token_ner.soft_labels import SoftLabels, split

from ..util import make_example
from .util import chances, check_finite_differences, outputs

MEAN = numpy.asarray([[0.35, 0.4, 0.175, 0.075]])
OUTPUTS = numpy.asarray([[0.4, 2.0, 0.5, -0.5]])


def test_mean_of_an_ensemble_by_hand():
    assert SoftLabels()(TokenBatch(OUTPUTS, MEAN)).loss == pytest.approx(0.042911, abs=1e-6)
    assert SoftLabels(separate=True)(TokenBatch(OUTPUTS, MEAN)).loss == pytest.approx(0.710465, abs=1e-6)
    entity, types = split(MEAN)
    assert entity[0].tolist() == pytest.approx([0.35, 0.65])
    assert types[0].tolist() == pytest.approx([0.615385, 0.269231, 0.115385], abs=1e-6)


@pytest.mark.parametrize("separate", [False, True])
def test_finite_differences(separate):
    given = outputs(4, 3)
    wanted = numpy.random.RandomState(1).dirichlet(numpy.ones(3), 4)
    wanted[2] = 0.0  # nothing is known
    wanted[3] = [1.0, 0.0, 0.0]
    objective = SoftLabels(separate)
    gradient = objective(TokenBatch(given, wanted)).outputs
    check_finite_differences(lambda at: objective(TokenBatch(at, wanted)).loss, gradient, given)
    assert not gradient[2].any()


def test_nothing_is_left_to_learn_at_the_labels():
    given = outputs(4, 3)
    found = SoftLabels()(TokenBatch(given, numpy.asarray([chances(row) for row in given])))
    assert found.loss == pytest.approx(0.0, abs=1e-12)
    numpy.testing.assert_allclose(found.outputs, 0.0, atol=1e-12)


@pytest.mark.parametrize("n_tokens", [0, 2])
def test_nothing_known(n_tokens):
    found = SoftLabels()(TokenBatch(outputs(n_tokens, 3), numpy.zeros((n_tokens, 3))))
    assert found.loss == 0.0 and not found.outputs.any() and found.outputs.shape == (n_tokens, 3)


def test_sentences_with_and_without_soft_labels():
    nlp, scheme = spacy.blank("xx"), make_scheme("IO", ("LOC", "PER"))
    example = make_example(nlp, "Bob runs away", [(0, 1, "PER")], missing=[2])
    assert SoftLabels().encode(example, scheme).tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert SoftLabels().labels(example.reference) == {"PER"}
    rows = numpy.asarray([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]], dtype="float32")
    set_soft_labels(example.reference, Stored(("O", "I-LOC"), "IO", rows))
    assert SoftLabels().encode(example, scheme).tolist() == [[0.5, 0.5, 0], [1, 0, 0], [0, 0, 0]]
    assert SoftLabels().labels(example.reference) == {"LOC"}

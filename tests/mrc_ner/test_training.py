"""What the component learns from, and what it hands to its encoder."""

import numpy
import pytest

from spacy_weakner.mrc_ner.boundaries import boundary_loss, read_boundaries

from ..util import (
    SENTENCES,
    clear_gradients,
    gradients,
    loss_with,
    make_example,
    make_examples,
    same,
    train,
)
from .util import IDS, mrc_pipeline, recorded_ner, vectors_of


@pytest.fixture
def nlp():
    """Not trained, and with scores that are not all 0."""
    nlp = mrc_pipeline()
    linear = nlp.get_pipe("mrc_ner").model.get_ref("head").layers[1]
    linear.set_param("W", numpy.random.RandomState(0).normal(size=(2, 48)).astype("float32"))
    return nlp


@pytest.fixture
def ner(nlp):
    return nlp.get_pipe("mrc_ner")


def scores_of(ner, doc):
    """Log-odds, one token and question at a time."""
    (vectors,) = vectors_of(ner, [doc])
    linear = ner.model.get_ref("head").layers[1]
    w, b = linear.get_param("W"), linear.get_param("b")
    return numpy.asarray([[w @ vector + b for vector in row] for row in vectors], dtype="float64")


# Value and gradient of the loss


@pytest.mark.parametrize("positive_weight", [1.0, 3.0])
def test_the_loss_is_the_mean_over_sentences(nlp, ner, positive_weight):
    ner.positive_weight = positive_weight
    total = sum(
        boundary_loss(scores_of(ner, eg.predicted), read_boundaries(eg, IDS), positive_weight)[0]
        for eg in make_examples(nlp)
    )
    losses = nlp.update([*make_examples(nlp), make_example(nlp, "")], sgd=False)
    assert losses["mrc_ner"] == pytest.approx(total / 4, rel=1e-4)
    assert type(losses["mrc_ner"]) is float


def test_a_weight_on_boundaries_recalls_more():
    found = []
    for weight in (0.1, 1.0, 10.0):
        nlp = mrc_pipeline(positive_weight=weight)
        train(nlp, make_examples(nlp), steps=5)
        ner = nlp.get_pipe("mrc_ner")
        true = [scores_of(ner, eg.predicted)[read_boundaries(eg, IDS).wanted] for eg in make_examples(nlp)]
        found.append(numpy.concatenate(true).mean())
    assert found == sorted(found) and found[2] - found[0] > 1


# Missing annotation


@pytest.mark.parametrize("missing", [[1], [0, 1], [0, 1, 2, 3]])
def test_missing_tokens_have_exactly_no_gradient(nlp, ner, missing):
    text, entities = "a b c d New York", [(4, 6, "LOC")]
    example = make_example(nlp, text, entities, missing=missing)
    vectors = vectors_of(ner, [example.predicted])
    _, (gradient,) = loss_with(ner, [example], vectors)
    silent = [i for i in range(6) if not gradient[i].any()]
    assert silent == missing


# The encoder


def test_questions_that_are_asked_later_are_read(nlp):
    ner, recorder = recorded_ner(nlp)
    ner.ask("ORG", "which company")
    ner.ask("PER", "who")
    ner.update(make_examples(nlp))
    assert [doc.text.strip() for doc in recorder.docs[0][4:]] == ["who", "where to", "which company"]


# Batches


def test_the_order_of_the_questions_does_not_matter(nlp, ner):
    losses = nlp.update(make_examples(nlp), sgd=False)
    forwards = gradients(ner.model)
    clear_gradients(ner.model)
    ner.cfg["labels"] = ner.cfg["labels"][::-1]
    assert nlp.update(make_examples(nlp), sgd=False) == pytest.approx(losses)
    assert same(forwards, gradients(ner.model), tolerance=1e-5)


# Calibration


@pytest.mark.parametrize("relabel", [None, {"@misc": "spacy_weakner.SelfPicking.v1"}])
def test_held_out_loss_is_that_of_the_gold(relabel):
    """Also of a component that learned from a teacher, which there is none of when its probabilities are calibrated."""
    nlp = mrc_pipeline(relabel=relabel)
    ner = nlp.get_pipe("mrc_ner")
    linear = ner.model.get_ref("head").layers[1]
    linear.set_param("W", numpy.random.RandomState(0).normal(size=(2, 48)).astype("float32"))
    examples = [*make_examples(nlp), make_example(nlp, ""), make_example(nlp, "a b", annotated=False)]
    examples[0] = make_example(nlp, *SENTENCES[0], missing=[1])
    loss = ner.held_out_loss(examples)
    for temperature in (1.0, 0.5, 4.0):
        values = []
        for i, eg in enumerate(examples[:4]):
            wanted = read_boundaries(eg, IDS).wanted
            for index, score in numpy.ndenumerate(scores_of(ner, eg.predicted)):
                if (i, index[0]) != (0, 1):
                    # -log p of what is wanted, where 1 - p would be rounded.
                    values.append(numpy.logaddexp(0, (-score if wanted[index] else score) / temperature))
        assert loss(temperature) == pytest.approx(numpy.mean(values), rel=1e-5)

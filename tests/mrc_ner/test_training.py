"""What the component learns from, and what it hands to its encoder."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.errors import UnknownLabel
from spacy_weakner.mrc_ner.boundaries import boundary_loss, probabilities, read_boundaries

from ..span_ner.util import COARSER, FINER, NESTED, NESTED_TEXT, add_group, retokenized
from ..util import (
    SENTENCES,
    clear_gradients,
    gradients,
    loss_with,
    make_example,
    make_examples,
    numeric_gradient,
    same,
    train,
)
from .util import IDS, mrc_pipeline, recorded_ner, vectors_of, without_spans


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
    ner.set_question("ORG", "which company")
    ner.set_question("PER", "who")
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


# What is learned of a sentence, and how


NLP = spacy.blank("xx")
LABEL_IDS = {"LOC": 0, "PER": 1, "ORG": 2}


def spots(target):
    """Boundaries as sets: (token, label, "start" or "end")."""
    names = {number: label for label, number in LABEL_IDS.items()}
    return {(int(i), names[int(k)], "end" if side else "start") for i, k, side in numpy.argwhere(target.wanted)}


def spots_of(entities):
    starts = {(start, label, "start") for start, _, label in entities}
    return starts | {(end - 1, label, "end") for _, end, label in entities}


def unknown(target):
    """Tokens of which nothing is known; a token is known for all labels, or for none."""
    by_token = target.known.reshape(len(target.known), -1)
    assert (by_token.all(axis=1) == by_token.any(axis=1)).all()
    return numpy.flatnonzero(~by_token[:, 0]).tolist()


# Targets


@pytest.mark.parametrize("text, entities", SENTENCES)
def test_boundaries_of_entities(text, entities):
    target = read_boundaries(make_example(NLP, text, entities), LABEL_IDS)
    assert target.wanted.shape == target.known.shape == (len(text.split()), 3, 2)
    assert spots(target) == spots_of(entities)
    assert target.known.all()


@pytest.mark.parametrize(
    "entities",
    [
        NESTED,
        [(0, 1, "LOC"), (0, 1, "PER")],
        [(0, 3, "LOC"), (0, 2, "LOC"), (1, 3, "LOC")],
        [(0, 1, "PER"), (0, 1, "PER")],
        [],
    ],
)
def test_spans_of_a_group_may_overlap(entities):
    example = make_example(NLP, NESTED_TEXT, [(0, 1, "PER")])
    add_group(example.reference, "x", entities)
    target = read_boundaries(example, LABEL_IDS, spans_key="x")
    assert spots(target) == spots_of(entities)
    assert target.known.all()


def test_a_group_that_is_not_there_says_nothing():
    example = make_example(NLP, NESTED_TEXT, [(0, 1, "PER")])
    target = read_boundaries(example, LABEL_IDS, spans_key="x")
    assert not target.wanted.any() and not target.known.any()


@pytest.mark.parametrize("entities", [[], [(1, 3, "LOC")]])
@pytest.mark.parametrize("missing", [[], [0], [3, 4], [0, 3, 4]])
def test_missing_tokens_are_unknown(entities, missing):
    target = read_boundaries(make_example(NLP, "a b c d e", entities, missing=missing), LABEL_IDS)
    assert unknown(target) == missing
    assert spots(target) == spots_of(entities)


def test_missing_tokens_do_not_matter_to_a_group():
    example = make_example(NLP, "a b c", annotated=False)
    add_group(example.reference, "x", [(0, 2, "LOC")])
    target = read_boundaries(example, LABEL_IDS, spans_key="x")
    assert target.known.all() and spots(target) == spots_of([(0, 2, "LOC")])


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize(
    "entities, tokens, expected, unclear",
    [
        ([(0, 2, "LOC"), (4, 6, "LOC")], FINER, [(0, 3, "LOC"), (5, 9, "LOC")], []),
        ([(1, 2, "PER")], FINER, [(1, 3, "PER")], []),
        ([(0, 2, "LOC"), (4, 6, "LOC")], COARSER, [(0, 2, "LOC"), (4, 5, "LOC")], []),
        # Of an entity that begins or ends within a token nobody knows where its boundaries are.
        ([(0, 2, "LOC"), (4, 5, "LOC")], COARSER, [(0, 2, "LOC")], [4]),
        ([(3, 5, "LOC")], COARSER, [], [3, 4]),
        ([(2, 5, "LOC")], COARSER, [], [2, 3, 4]),
    ],
)
def test_other_tokens(key, entities, tokens, expected, unclear):
    target = read_boundaries(retokenized(entities, *tokens), LABEL_IDS, spans_key=key)
    assert len(target.known) == len(tokens[0])
    assert spots(target) == spots_of(expected)
    assert unknown(target) == unclear


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize("max_width, left", [(None, [0, 1]), (4, [0, 1]), (3, [1]), (2, [1]), (1, [])])
def test_what_is_too_wide_is_not_learned(key, max_width, left):
    entities = [(0, 4, "ORG"), (4, 6, "LOC")]
    example = make_example(NLP, "a b c d e f", entities)
    add_group(example.reference, "x", entities)
    target = read_boundaries(example, LABEL_IDS, spans_key=key, max_width=max_width)
    assert spots(target) == spots_of([entities[i] for i in left])


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize("max_width", [None, 1])
def test_an_unknown_label_is_named(key, max_width):
    example = make_example(NLP, "Anna went", [(0, 2, "DATE")])
    add_group(example.reference, "x", [(0, 2, "DATE")])
    with pytest.raises(UnknownLabel) as error:
        read_boundaries(example, LABEL_IDS, spans_key=key, max_width=max_width)
    assert error.value.args == ("DATE",)


# Loss


def random_case(n_tokens=4, n_labels=3, share_known=0.6, seed=0):
    random = numpy.random.RandomState(seed)
    shape = (n_tokens, n_labels, 2)
    return random.normal(size=shape) * 3, without_spans(random.rand(*shape) < 0.4, random.rand(*shape) < share_known)


def brute_force(scores, target, positive_weight):
    """The mean over tokens of which something is known, one boundary at a time."""
    total, tokens = 0.0, set()
    for index in numpy.ndindex(*scores.shape):
        if target.known[index]:
            p = 1 / (1 + math.exp(-scores[index]))
            total += -positive_weight * math.log(p) if target.wanted[index] else -math.log(1 - p)
            tokens.add(index[0])
    return total / len(tokens)


@pytest.mark.parametrize("positive_weight", [1.0, 0.0, 5.0])
@pytest.mark.parametrize("share_known", [1.0, 0.4])
@pytest.mark.parametrize("n_tokens, n_labels", [(1, 1), (4, 3), (7, 1)])
def test_loss_equals_formula(positive_weight, share_known, n_tokens, n_labels):
    scores, target = random_case(n_tokens, n_labels, share_known)
    if not target.known.any():
        target.known[0, 0, 0] = True
    loss, gradient = boundary_loss(scores, target, positive_weight)
    assert loss == pytest.approx(brute_force(scores, target, positive_weight), rel=1e-9, abs=1e-12)
    assert type(loss) is float and gradient.shape == scores.shape
    expected = numeric_gradient(lambda moved: boundary_loss(moved, target, positive_weight)[0], scores, 1e-5)
    numpy.testing.assert_allclose(gradient, expected, atol=1e-7)


def test_loss_by_hand():
    # One token, one question: a start with log-odds 0, no end with probability 1/4.
    scores = numpy.asarray([[[0.0, -math.log(3)]]])
    target = without_spans(numpy.asarray([[[True, False]]]), numpy.ones((1, 1, 2), dtype=bool))
    loss, gradient = boundary_loss(scores, target)
    assert loss == pytest.approx(math.log(2) - math.log(3 / 4))
    assert gradient.ravel().tolist() == pytest.approx([-0.5, 0.25])
    assert boundary_loss(scores, target, 3.0)[0] == pytest.approx(3 * math.log(2) - math.log(3 / 4))


def test_the_loss_is_a_sum_over_questions_and_a_mean_over_known_tokens():
    scores, target = random_case(5, 3, share_known=1.0)
    parts = [(scores[:, k : k + 1], without_spans(*(own[:, k : k + 1] for own in target[:2]))) for k in range(3)]
    each = [boundary_loss(*part)[0] for part in parts]
    assert boundary_loss(scores, target)[0] == pytest.approx(sum(each))
    # Tokens of which nothing is known are as if they were not there.
    target.known[3:] = False
    without = boundary_loss(scores[:3], without_spans(*(own[:3] for own in target[:2])))
    loss, gradient = boundary_loss(scores, target)
    assert loss == pytest.approx(without[0])
    numpy.testing.assert_allclose(gradient[:3], without[1])
    assert not gradient[3:].any()


@pytest.mark.parametrize("n_tokens, n_labels", [(0, 2), (3, 2), (3, 0)])
def test_nothing_is_known(n_tokens, n_labels):
    shape = (n_tokens, n_labels, 2)
    nothing = without_spans(numpy.ones(shape, dtype=bool), numpy.zeros(shape, dtype=bool))
    loss, gradient = boundary_loss(numpy.ones(shape, dtype="float32"), nothing)
    assert loss == 0.0 and gradient.shape == shape and not gradient.any()


@pytest.mark.parametrize("score", [1e4, -1e4])
@pytest.mark.parametrize("wanted", [True, False])
def test_huge_scores(score, wanted):
    shape = (2, 1, 2)
    target = without_spans(numpy.full(shape, wanted), numpy.ones(shape, dtype=bool))
    loss, gradient = boundary_loss(numpy.full(shape, score, dtype="float32"), target)
    right = (score > 0) == wanted
    assert loss == pytest.approx(0.0 if right else 2e4)
    assert gradient.ravel().tolist() == pytest.approx([0.0 if right else (-0.5 if wanted else 0.5)] * 4)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 4.0])
def test_chances(temperature):
    scores = numpy.asarray([-1e4, -3.0, 0.0, 0.1, 2.0, 1e4])
    found = probabilities(scores, temperature)
    expected = [1 / (1 + math.exp(min(-x / temperature, 700))) for x in scores]
    assert found.tolist() == pytest.approx(expected)
    assert found[0] == 0.0 and found[-1] == 1.0 and found.dtype == "float64"

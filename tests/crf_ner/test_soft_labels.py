"""Soft labels as the target of the CRF: the loss, and training with it."""

import itertools

import numpy
import pytest

from spacy_weakner.annotations.tags import TagScheme
from spacy_weakner.annotations.weak import SoftLabels, set_soft_labels
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood, SoftLabelCRF
from spacy_weakner.errors import WeaknerError

from ..linear_chain import brute_force
from ..util import crf_pipeline, entities_of, make_example, train
from .test_losses import (
    ENTITY_TAGS,
    SCHEME,
    check_finite_differences,
    close,
    is_zero,
    make_case,
    same_gradient,
    tag_arrays,
    with_holes,
)

LOSS = SoftLabelCRF()
NLL = CRFNegativeLogLikelihood()
LENGTHS = (3, 4, 1)


def soft_labels(lengths, seed=0):
    rng = numpy.random.RandomState(seed)
    return [rng.dirichlet(numpy.ones(len(SCHEME)), size=length) for length in lengths]


def one_hot(tags):
    return [numpy.eye(len(SCHEME))[t] for t in tags]


def divergence(parameters, emissions, beliefs):
    """KL(q || p) of one sentence, term by term over all legal tag sequences."""
    paths = list(itertools.product(range(beliefs.shape[1]), repeat=len(beliefs)))
    scores = numpy.array([brute_force.score(parameters, emissions, path) for path in paths])
    legal = numpy.isfinite(scores)
    weights = numpy.array([numpy.prod([row[tag] for row, tag in zip(beliefs, path, strict=True)]) for path in paths])
    q = numpy.where(legal, weights, 0.0)
    q = q / q.sum()
    log_p = scores - numpy.log(numpy.exp(scores[legal]).sum())
    return sum(a * (numpy.log(a) - b) for a, b in zip(q, log_p, strict=True) if a > 0)


@pytest.mark.parametrize("constrain", [False, True])
def test_equals_brute_force(constrain):
    parameters, emissions = make_case(constrain, lengths=LENGTHS)
    beliefs = soft_labels(LENGTHS)
    expected = numpy.mean([divergence(parameters, e, b) for e, b in zip(emissions, beliefs, strict=True)])
    close(LOSS(parameters, emissions, beliefs).loss, expected, 1e-9)


@pytest.mark.parametrize("constrain", [False, True])
def test_gradient(constrain):
    parameters, emissions = make_case(constrain, lengths=LENGTHS)
    check_finite_differences(LOSS, parameters, emissions, soft_labels(LENGTHS))


def test_certain_labels_are_gold():
    parameters, emissions = make_case(constrain=True)
    tags = tag_arrays(ENTITY_TAGS)
    soft, gold = (loss(parameters, emissions, t) for loss, t in ((LOSS, one_hot(tags)), (NLL, tags)))
    close(soft.loss, gold.loss)
    same_gradient(soft, gold)


def test_without_soft_labels_it_is_the_plain_loss():
    parameters, emissions = make_case(constrain=True)
    tags = with_holes(ENTITY_TAGS)
    soft, plain = LOSS(parameters, emissions, tags), NLL(parameters, emissions, tags)
    assert soft.loss == plain.loss
    same_gradient(soft, plain, 0.0)


def test_gold_and_soft_sentences_add_up():
    parameters, emissions = make_case(constrain=True, lengths=(4, 5, 1))
    beliefs, tags = soft_labels((4, 5, 1)), tag_arrays(ENTITY_TAGS)
    mixed = LOSS(parameters, emissions, [tags[0], beliefs[1], tags[2]])
    parts = [LOSS(parameters, [e], [t]) for e, t in zip(emissions, [tags[0], beliefs[1], tags[2]], strict=True)]
    close(mixed.loss, numpy.mean([part.loss for part in parts]))
    for own, part in zip(mixed.emissions, parts, strict=True):
        close(own, part.emissions[0])
    close(mixed.parameters.transitions, sum(part.parameters.transitions for part in parts))


def test_what_the_model_believes_already_teaches_nothing():
    parameters, emissions = make_case(lengths=(1,))
    scores = emissions[0] + parameters.start + parameters.end
    beliefs = numpy.exp(scores - scores.max())
    result = LOSS(parameters, emissions, [beliefs / beliefs.sum()])
    close(result.loss, 0.0)
    close(result.emissions[0], 0.0)


def test_empty_input():
    parameters, _ = make_case()
    assert LOSS(parameters, [], []).loss == 0.0
    nothing = numpy.zeros((0, len(SCHEME)), dtype="float32")
    assert is_zero(LOSS(parameters, [nothing], [numpy.zeros((0, len(SCHEME)))]))


def test_beliefs_without_a_legal_sequence():
    parameters, emissions = make_case(constrain=True, lengths=(2, 1))
    inside = numpy.eye(len(SCHEME))[[SCHEME.index["I-A"]] * 2]
    with pytest.raises(WeaknerError, match=r"WK007.*Sentence 0"):
        LOSS(parameters, emissions, [inside, numpy.asarray([0])])


# From corpora


def soft_example(nlp, text, probabilities, labels=("O", "B-LOC", "I-LOC"), scheme="BIO"):
    example = make_example(nlp, text)
    set_soft_labels(example.reference, SoftLabels(labels, scheme, numpy.asarray(probabilities, dtype="float32")))
    return example


def test_columns_follow_the_tags():
    nlp = crf_pipeline(loss={"@losses": "spacy_weakner.SoftLabelCRF.v1"})
    example = soft_example(nlp, "a b", [[0.7, 0.1, 0.2], [0.5, 0.5, 0.0]], ("I-PER", "O", "B-LOC"))
    target = nlp.get_pipe("crf_ner").encode_target(example)
    tags = nlp.get_pipe("crf_ner").scheme.tags
    close(target, [[{"O": 0.1, "I-PER": 0.7, "B-LOC": 0.2}.get(tag, 0.0) for tag in tags],
                   [{"O": 0.5, "I-PER": 0.5}.get(tag, 0.0) for tag in tags]])  # fmt: skip


def test_other_losses_read_the_entities():
    nlp = crf_pipeline()
    example = soft_example(nlp, "a b", [[0.0, 1.0, 0.0]] * 2)
    assert nlp.get_pipe("crf_ner").encode_target(example).tolist() == [0, 0]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"scheme": "IO", "labels": ("O", "I-LOC", "I-PER")}, "WK020.*scheme IO"),
        ({"probabilities": [[0.2, 0.2, 0.2]] * 2}, "WK022"),
        ({"probabilities": [[float("nan"), 0.5, 0.5]] * 2}, "WK022"),
        ({"probabilities": [[1.5, -0.5, 0.0]] * 2}, "WK022"),
        ({"labels": ("O", "B-ORG", "I-ORG")}, "WK003.*'ORG'"),
    ],
)
def test_soft_labels_that_do_not_fit(settings, said):
    nlp = crf_pipeline(loss={"@losses": "spacy_weakner.SoftLabelCRF.v1"})
    example = soft_example(nlp, "a b", **{"probabilities": [[0.5, 0.5, 0.0]] * 2, **settings})
    with pytest.raises(WeaknerError, match=said):
        nlp.update([example])


def test_soft_labels_of_other_tokens():
    scheme = TagScheme("BIO", ["LOC"])
    nlp = crf_pipeline()
    example = soft_example(nlp, "a b", [[1.0, 0.0, 0.0]] * 2)
    example.predicted = nlp.make_doc("a bc")
    with pytest.raises(WeaknerError, match=r"WK021.*'a b'"):
        scheme.soft_from_example(example)


def test_training_on_soft_labels_learns_them():
    nlp = crf_pipeline(loss={"@losses": "spacy_weakner.SoftLabelCRF.v1"}, scores=True)
    # doc.ents of these examples say "O" everywhere: what is learnt comes from the soft labels.
    examples = [
        soft_example(nlp, "in Paris", [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]),
        soft_example(nlp, "in London", [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]),
    ]
    train(nlp, examples, steps=60)
    assert entities_of(nlp, ["in Paris"]) == [[(1, 2, "LOC")]]
    assert nlp("in Paris").ents[0]._.weakner_score == pytest.approx(0.8, abs=0.05)

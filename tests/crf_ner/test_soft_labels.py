"""Soft labels as the target of the CRF: the loss, and training with it."""

import itertools

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.corpus.weak import TagDistributions, set_soft_labels
from spacy_weakner.crf.kernel import CRFParameters, pad_emissions
from spacy_weakner.crf.scaled import partition
from spacy_weakner.crf_ner.losses import SoftLabelCRF
from spacy_weakner.errors import WeaknerError

from ..crf import brute_force
from ..util import crf_config, crf_pipeline, entities_of, make_example, train
from .test_losses import (
    ENTITY_TAGS,
    SCHEME,
    close,
    make_case,
    on_tags,
    same_gradient,
    with_holes,
)

LOSS = on_tags(SoftLabelCRF(negative_rate=0.0))
LENGTHS = (3, 4, 1)


def soft_labels(lengths, seed=0):
    rng = numpy.random.RandomState(seed)
    return [rng.dirichlet(numpy.ones(len(SCHEME)), size=length) for length in lengths]


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


SILENT_ROWS = on_tags(SoftLabelCRF(negative_rate=0.0))


def test_where_nothing_is_known_the_model_is_taken_at_its_word():
    parameters, emissions = make_case(lengths=LENGTHS)
    beliefs = soft_labels(LENGTHS)
    holes = [b.copy() for b in beliefs]
    holes[1][2] = 0.0
    _, marginals = partition(parameters, pad_emissions([emissions[1]]))
    beliefs[1][2] = marginals(None).tokens[2, 0]
    result, expected = SILENT_ROWS(parameters, emissions, holes), LOSS(parameters, emissions, beliefs)
    close(result.loss, expected.loss)
    same_gradient(result, expected)


def test_a_token_of_which_nothing_is_known_teaches_nothing():
    parameters, emissions = make_case(lengths=(4,))
    flat = CRFParameters(*(numpy.zeros_like(scores) for scores in parameters))
    beliefs = soft_labels((4,))
    beliefs[0][1] = 0.0
    result = SILENT_ROWS(flat, emissions, beliefs)
    close(result.emissions[0][1], 0.0)
    assert abs(result.emissions[0][0]).max() > 0.01


def test_negatives_are_drawn_from_what_is_not_known():
    parameters, emissions = make_case(lengths=(4, 5, 1))
    beliefs, tags = soft_labels((4, 5, 1)), with_holes(ENTITY_TAGS)
    beliefs[0][1:3] = 0.0
    outside = [b.copy() for b in beliefs]
    outside[0][1:3] = numpy.eye(len(SCHEME))[0]
    every = on_tags(SoftLabelCRF(negative_rate=1.0))
    targets = [beliefs[0], tags[1], beliefs[2]]
    expected = LOSS(parameters, emissions, [outside[0], numpy.where(tags[1] < 0, 0, tags[1]), outside[2]])
    result = every(parameters, emissions, targets)
    close(result.loss, expected.loss)
    same_gradient(result, expected)


def test_beliefs_without_a_legal_sequence():
    parameters, emissions = make_case(constrain=True, lengths=(2, 1))
    inside = numpy.eye(len(SCHEME))[[SCHEME.index["I-A"]] * 2]
    with pytest.raises(WeaknerError, match=r"WK007.*Sentence 0"):
        LOSS(parameters, emissions, [inside, numpy.asarray([0])])


# From corpora


def soft_example(nlp, text, probabilities, labels=("O", "B-LOC", "I-LOC"), scheme="BIO"):
    example = make_example(nlp, text)
    set_soft_labels(example.reference, TagDistributions(labels, scheme, numpy.asarray(probabilities, dtype="float32")))
    return example


def test_columns_follow_the_tags():
    nlp = crf_pipeline(loss={"@losses": "spacy_weakner.SoftLabelCRF.v1"})
    example = soft_example(nlp, "a b", [[0.7, 0.1, 0.2], [0.5, 0.5, 0.0]], ("I-PER", "O", "B-LOC"))
    target = nlp.get_pipe("crf_ner").encode_target(example).tags
    tags = nlp.get_pipe("crf_ner").scheme.tags
    close(target, [[{"O": 0.1, "I-PER": 0.7, "B-LOC": 0.2}.get(tag, 0.0) for tag in tags],
                   [{"O": 0.5, "I-PER": 0.5}.get(tag, 0.0) for tag in tags]])  # fmt: skip


def test_other_losses_read_the_entities():
    nlp = crf_pipeline()
    example = soft_example(nlp, "a b", [[0.0, 1.0, 0.0]] * 2)
    assert nlp.get_pipe("crf_ner").encode_target(example).tags.tolist() == [0, 0]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"scheme": "IO", "labels": ("O", "I-LOC", "I-PER")}, "WK020.*scheme = IO"),
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


def test_labels_that_never_win_are_labels_too():
    nlp = spacy.blank("xx")
    loss = {"@losses": "spacy_weakner.SoftLabelCRF.v1"}
    ner = nlp.add_pipe("crf_ner", config=crf_config(loss=loss))
    example = soft_example(nlp, "a b", [[0.8, 0.2, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], ("O", "B-A", "I-A", "B-B"))
    nlp.initialize(lambda: [example, make_example(nlp, "c", [(0, 1, "C")])])
    assert ner.labels == ("A", "C")
    nlp.update([example])


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

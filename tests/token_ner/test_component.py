"""The component: schemes, training, settings. What all heads promise is tested in `tests/heads`."""

import math

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus.weak import TagDistributions, doc_entities, set_soft_labels
from spacy_weakner.errors import WeaknerError
from spacy_weakner.token_ner.distribution import token_scores

from ..util import (
    GOLD,
    LISTENER,
    TEXTS,
    all_zero,
    distributions,
    entities_of,
    head_config,
    loss_with,
    make_example,
    make_examples,
    paths,
    raw,
    train,
)
from .util import HARD, ROBUST, SELF, SOFT, joint, schemes, token_pipeline

# Schemes


@pytest.mark.parametrize(
    "scheme, expected",
    [
        ("IO", [(0, 2, "PER"), (2, 3, "LOC")]),
        ("BIO", [(0, 1, "PER"), (1, 2, "PER"), (2, 3, "LOC")]),
        ("IOBES", [(0, 1, "PER"), (1, 2, "PER"), (2, 3, "LOC")]),
    ],
)
def test_adjacent_entities_of_one_label_are_kept_apart_but_by_io(scheme, expected):
    nlp = token_pipeline(scheme=scheme)
    example = make_example(nlp, "Bob Anna Paris", [(0, 1, "PER"), (1, 2, "PER"), (2, 3, "LOC")])
    train(nlp, [example])
    assert entities_of(nlp, ["Bob Anna Paris"]) == [expected]


# Training


def test_missing_tokens_have_exactly_no_gradient(nlp):
    ner = nlp.get_pipe("token_ner")
    example = make_example(nlp, "Anna went to New York", [(0, 1, "PER")], missing=[1, 2, 3, 4])
    _, (gradient,) = loss_with(ner, [example], ner.token_outputs([example.predicted]))
    assert gradient[0].all()
    assert all_zero([gradient[1:]])


def test_soft_labels_are_learned_and_name_the_labels():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("token_ner", config=head_config("token_ner", objective=SOFT))
    example, hard = make_example(nlp, "Bob runs", [(0, 1, "OTHER")]), make_example(nlp, "Paris", [(0, 1, "LOC")])
    rows = numpy.asarray([[0.3, 0.7], [0.9, 0.1]], dtype="float32")
    set_soft_labels(example.reference, TagDistributions(("O", "I-PER"), "IO", rows))
    nlp.initialize(lambda: [example, hard])
    assert ner.labels == ("LOC", "PER")
    train(nlp, [example, hard], steps=100)
    found = distributions(ner, [raw(nlp, "Bob runs"), raw(nlp, "Paris")])
    numpy.testing.assert_allclose(found[0][:, [0, 2]], rows, atol=0.02)
    assert found[1][0, 1] > 0.9


def test_soft_labels_of_another_scheme_or_label(nlp):
    for labels, scheme, message in ((("O", "B-PER", "I-PER"), "BIO", "WK020"), (("O", "I-NEW"), "IO", "WK003.*'NEW'")):
        nlp = token_pipeline(SOFT)
        example = make_example(nlp, "Bob", [(0, 1, "PER")])
        rows = numpy.full((1, len(labels)), 1 / len(labels), dtype="float32")
        set_soft_labels(example.reference, TagDistributions(labels, scheme, rows))
        with pytest.raises(WeaknerError, match=message):
            nlp.update([example], sgd=False)


# Settings


@pytest.mark.parametrize("objective", [ROBUST, SELF])
def test_a_teacher_needs_an_encoder_of_the_components_own(objective):
    with pytest.raises(ValueError, match=r"'token_ner'"):
        spacy.blank("xx").add_pipe("token_ner", config=head_config("token_ner", LISTENER, objective=objective))


@pytest.mark.parametrize("objective", [HARD, SOFT, {**ROBUST, "threshold": None}])
def test_other_objectives_do_with_a_shared_one(objective):
    spacy.blank("xx").add_pipe("token_ner", config=head_config("token_ner", LISTENER, objective=objective))


# Probabilities of tags, and the entities that they make


def decode(nlp, words, tags, sure=1000.0):
    """What the component makes of a tag sequence that it is sure of."""
    ner = nlp.get_pipe("token_ner")
    doc = Doc(nlp.vocab, words=words)
    ids = ner.scheme.tag_ids(tags.split())
    outputs = numpy.eye(ner.n_outputs, dtype="float32")[ids] * sure
    outputs[:, 0] = numpy.where(ids > 0, sure, -sure)
    ner.set_annotations([doc], ner.decode([doc], [outputs]))
    return doc


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@schemes
def test_distributions_are_those_of_the_formula(scheme, temperature):
    nlp = token_pipeline(scheme=scheme)
    ner, docs = nlp.get_pipe("token_ner"), [raw(nlp, text) for text in ["", *TEXTS]]
    ner.set_temperature(temperature)
    for doc, found, outputs in zip(docs, distributions(ner, docs), ner.token_outputs(docs), strict=True):
        assert found.shape == (len(doc), len(ner.distribution_labels))
        assert found.dtype == "float32"
        expected = numpy.asarray([joint(row / temperature) for row in outputs]).reshape(found.shape)
        numpy.testing.assert_allclose(found, expected, atol=1e-6)
        numpy.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@schemes
def test_the_score_of_an_entity_is_the_product_over_its_tokens(scheme, temperature):
    nlp = token_pipeline(scheme=scheme)
    train(nlp, make_examples(nlp), steps=25)
    ner = nlp.get_pipe("token_ner")
    ner.set_temperature(temperature)
    doc = nlp(raw(nlp, TEXTS[0]))
    (distribution,) = distributions(ner, [doc])
    assert doc_entities(doc) == GOLD[0]
    for ent in doc.ents:
        tags = ner.scheme.span_tags(ent.label_, len(ent))
        expected = numpy.prod([distribution[i, tag] for i, tag in zip(range(ent.start, ent.end), tags, strict=True)])
        assert ent._.weakner_score == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_paths_are_the_best_tags_one_by_one(nlp, temperature):
    ner, docs = nlp.get_pipe("token_ner"), [raw(nlp, text) for text in TEXTS]
    ner.set_temperature(temperature)
    for path, outputs in zip(paths(ner, iter(docs)), ner.token_outputs(docs), strict=True):
        sharp = numpy.asarray([joint(row) for row in outputs])
        best = sharp.argmax(axis=1)
        assert path.tags == [ner.distribution_labels[i] for i in best]
        assert path.score == pytest.approx(numpy.log(sharp.max(axis=1)).sum(), abs=1e-5)
        cooled = [joint(row / temperature)[i] for row, i in zip(outputs, best, strict=True)]
        assert path.log_probability == pytest.approx(numpy.log(cooled).sum(), abs=1e-5)


def test_held_out_loss_is_that_of_the_known_tokens(nlp):
    examples = [make_example(nlp, "Bob runs home", [(0, 1, "PER")], missing=[1]), make_example(nlp, "Paris")]
    examples += [make_example(nlp, "nothing known", annotated=False), make_example(nlp, "")]
    ner = nlp.get_pipe("token_ner")
    first, second = ner.token_outputs([eg.predicted for eg in examples[:2]])
    loss = ner.held_out_loss(examples)
    for temperature in (1.0, 3.0):
        rows = [joint(row / temperature) for row in (*first[[0, 2]], *second)]
        expected = -numpy.log([row[tag] for row, tag in zip(rows, [2, 0, 0], strict=True)]).mean()
        assert loss(temperature) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "words, tags, expected",
    [
        (["a", "b", "c"], "I-PER I-PER O", [(0, 2, "PER")]),
        (["a", "b", "c"], "I-PER I-LOC O", [(0, 1, "PER"), (1, 2, "LOC")]),
    ],
)
def test_tags_become_entities(nlp, words, tags, expected):
    doc = decode(nlp, words, tags)
    assert doc_entities(doc) == expected
    assert [ent._.weakner_score for ent in doc.ents] == [1.0] * len(expected)


@pytest.mark.parametrize(
    "scheme, tags, expected",
    [
        ("BIO", "O I-PER B-PER", [(1, 2, "PER"), (2, 3, "PER")]),
        ("IOBES", "E-PER B-PER O", [(0, 1, "PER"), (1, 2, "PER")]),
    ],
)
def test_tags_that_break_the_scheme_are_read_leniently(scheme, tags, expected):
    assert doc_entities(decode(token_pipeline(scheme=scheme), ["a", "b", "c"], tags)) == expected


def test_a_case_by_hand():
    found = numpy.exp(token_scores(numpy.asarray([[0.4, 2.0, 0.5, -0.5]])).joint())
    numpy.testing.assert_allclose(found, [[0.401312, 0.458689, 0.102347, 0.037651]], atol=1e-6)


def test_the_best_tag_is_an_entity_only_where_it_beats_outside():
    # P(entity) is .6, but shared among three tags.
    outputs = numpy.asarray([[math.log(1.5), 0.0, 0.0, 0.0], [math.log(1.5), 5.0, 0.0, 0.0]])
    assert token_scores(outputs).joint().argmax(axis=1).tolist() == [0, 1]

"""What the component learns from, and what it hands to its encoder."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.weak import group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner.boundaries import boundary_loss, read_boundaries

from ..span_ner.util import NESTED, NESTED_TEXT, add_group
from ..util import (
    SENTENCES,
    all_zero,
    clear_gradients,
    gradients,
    loss_with,
    make_doc,
    make_example,
    make_examples,
    raw,
    same,
    train,
)
from .util import IDS, QUERIES, empty_pipe, mrc_config, mrc_pipeline, recorded_ner, vectors_of


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


def test_gradients_of_the_vectors_by_finite_differences(nlp, ner):
    examples = make_examples(nlp)
    vectors = vectors_of(ner, [eg.predicted for eg in examples])
    _, found = loss_with(ner, examples, vectors)
    assert [own.shape for own in found] == [own.shape for own in vectors]
    for i, own in enumerate(vectors):
        for index in [(0, 0, 0), (len(own) - 1, 1, 20), (len(own) // 2, 0, 47)]:
            sides = []
            for sign in (1, -1):
                moved = [v.copy() for v in vectors]
                moved[i][index] += sign * 1e-2
                sides.append(len(vectors) * loss_with(ner, examples, moved)[0])
            assert found[i][index] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=1e-2, abs=1e-4)


def test_gradients_of_the_head_by_finite_differences(nlp, ner):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    linear = ner.model.get_ref("head").layers[1]
    found, weights = linear.get_grad("W").copy(), linear.get_param("W").copy()
    for index in [(0, 3), (1, 20), (0, 47)]:
        sides = []
        for sign in (1, -1):
            moved = weights.copy()
            moved[index] += sign * 1e-2
            linear.set_param("W", moved)
            sides.append(len(examples) * nlp.update(examples, sgd=False)["mrc_ner"])
        assert found[index] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=1e-2, abs=1e-3)


def test_a_weight_on_boundaries_recalls_more():
    found = []
    for weight in (0.1, 1.0, 10.0):
        nlp = mrc_pipeline(positive_weight=weight)
        train(nlp, make_examples(nlp), steps=5)
        ner = nlp.get_pipe("mrc_ner")
        true = [scores_of(ner, eg.predicted)[read_boundaries(eg, IDS).wanted] for eg in make_examples(nlp)]
        found.append(numpy.concatenate(true).mean())
    assert found == sorted(found) and found[2] - found[0] > 1


# Losses and errors


# Missing annotation


@pytest.mark.parametrize("missing", [[1], [0, 1], [0, 1, 2, 3]])
def test_missing_tokens_have_exactly_no_gradient(nlp, ner, missing):
    text, entities = "a b c d New York", [(4, 6, "LOC")]
    example = make_example(nlp, text, entities, missing=missing)
    vectors = vectors_of(ner, [example.predicted])
    _, (gradient,) = loss_with(ner, [example], vectors)
    silent = [i for i in range(6) if not gradient[i].any()]
    assert silent == missing


def test_a_doc_without_the_group_has_exactly_no_gradient():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("mrc_ner", config=mrc_config(spans_key="x"))
    with_group = make_example(nlp, "Anna went")
    add_group(with_group.reference, "x", [(0, 1, "PER")])
    ner.initialize(lambda: [with_group], nlp=nlp, queries=QUERIES)
    assert nlp.update([make_example(nlp, "Anna went", [(0, 1, "PER")])], sgd=False) == {"mrc_ner": 0.0}
    assert all_zero(gradients(ner.model))
    assert nlp.update([with_group], sgd=False)["mrc_ner"] > 0


def test_an_entity_inside_a_token_has_exactly_no_gradient(nlp, ner):
    predicted = Doc(nlp.vocab, words=["Smith's"], spaces=[False])
    reference = Doc(nlp.vocab, words=["Smith", "'s"], spaces=[False, False])
    reference.set_ents([Span(reference, 0, 1, "PER")], default="outside")
    assert nlp.update([Example(predicted, reference)], sgd=False) == {"mrc_ner": 0.0}
    assert all_zero(gradients(ner.model))


# The encoder


def test_backpropagates_when_there_is_nothing_to_learn(nlp):
    ner, recorder = recorded_ner(nlp)
    ner.update([make_example(nlp, "Anna went", annotated=False)])
    assert len(recorder.gradients) == 1
    assert all_zero(recorder.gradients[0])
    # The text, and two questions of three and two words.
    assert [g.shape for g in recorder.gradients[0]] == [(2, 4), (3, 4), (2, 4)]


def test_one_forward_and_backward_pass_over_all_docs_in_order(nlp):
    ner, recorder = recorded_ner(nlp)
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    ner.update(examples)
    (docs,) = recorder.docs
    assert docs[:5] == [eg.predicted for eg in examples]
    assert [doc.text.strip() for doc in docs[5:]] == list(QUERIES.values())
    assert [[g.shape for g in call] for call in recorder.gradients] == [[(len(doc), 4) for doc in docs]]


@pytest.mark.parametrize("texts", [["", "a b"], ["a", "", "b c", ""]])
def test_encoders_with_another_width_for_empty_docs(nlp, texts):
    ner, recorder = recorded_ner(nlp, empty_width=0)
    ner.update([make_example(nlp, text) for text in texts])
    lengths = [len(text.split()) for text in texts]
    assert [g.shape for g in recorder.gradients[0]] == [*((n, 4 if n else 0) for n in lengths), (3, 4), (2, 4)]
    assert len(ner.predict([make_doc(nlp, text) for text in texts])) == len(texts)


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


def test_held_out_examples_must_say_something(nlp, ner):
    with pytest.raises(WeaknerError, match=r"\[WK025\].*'mrc_ner'"):
        ner.held_out_loss([make_example(nlp, "a b", annotated=False), make_example(nlp, "")])


def test_a_group_is_learned():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, spans_key="x", nested=True)
    example = make_example(nlp, NESTED_TEXT, [(0, 1, "DATE")])
    add_group(example.reference, "x", NESTED)
    ner.initialize(lambda: [example], nlp=nlp, queries={"ORG": "which company", "LOC": "where"})
    train(nlp, [example])
    doc = nlp(raw(nlp, NESTED_TEXT))
    assert group_entities(doc, "pred:mrc_ner") == NESTED
    assert len(doc.ents) == 1

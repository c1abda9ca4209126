"""What is learned of starts and ends that belong together, also from a teacher."""

import math

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.cofee.picking import SelfPicking
from spacy_weakner.mrc_ner.boundaries import Boundaries, boundary_loss, mark, read_boundaries
from spacy_weakner.mrc_ner.matching import candidate_pairs
from spacy_weakner.ty import Tick

from ..span_ner.util import add_group
from ..util import all_zero, clear_gradients, gradients, make_example, make_examples, same, weights
from .util import IDS, OVERLAPPING, found_in, loss_by_hand, matching_pipeline, odds_by_hand, overlapping, vectors_of


def test_the_loss_is_that_of_boundaries_and_matches():
    nlp = matching_pipeline(match_weight=0.7)
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    vectors = vectors_of(ner, [eg.predicted for eg in examples])
    odds = ner._scores(vectors)
    targets = [read_boundaries(eg, IDS, spans_key="x", max_width=10) for eg in examples]
    pairs = [candidate_pairs(to, own > 0, 10) for to, own in zip(targets, odds, strict=True)]
    expected = sum(boundary_loss(own, to)[0] for own, to in zip(odds, targets, strict=True))
    expected += loss_by_hand(ner.model.get_ref("match"), vectors, pairs, 0.7)
    assert nlp.update(examples, sgd=False)["mrc_ner"] == pytest.approx(expected / 3, rel=1e-4)


def test_gradients_of_the_vectors_by_finite_differences():
    nlp = matching_pipeline(match_weight=1.0)
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    vectors = vectors_of(ner, [eg.predicted for eg in examples])
    _, found = ner.get_loss(examples, vectors)
    for index in [(0, 0, 0), (2, 0, 20), (4, 0, 47), (1, 1, 5)]:
        sides = []
        for sign in (1, -1):
            moved = [own.copy() for own in vectors]
            moved[1][index] += sign * 1e-2
            sides.append(len(vectors) * ner.get_loss(examples, moved)[0])
        assert found[1][index] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("missing", [[1], [0, 1], [4, 5], [0, 1, 2, 3, 4, 5]])
def test_missing_tokens_have_exactly_no_gradient(missing):
    """Neither as starts or ends that are known from entities, nor as those that the model predicts."""
    nlp = matching_pipeline(make_examples, spans_key=None, threshold=0.0)
    ner = nlp.get_pipe("mrc_ner")
    example = make_example(nlp, "a b c d e f", [(2, 4, "LOC")] if 2 not in missing else [], missing=missing)
    vectors = vectors_of(ner, [example.predicted])
    _, (gradient,) = ner.get_loss([example], vectors)
    assert [i for i in range(6) if not gradient[i].any()] == missing


def test_a_doc_without_the_group_has_exactly_no_gradient():
    nlp = matching_pipeline(threshold=0.0)
    ner = nlp.get_pipe("mrc_ner")
    assert nlp.update([make_example(nlp, "a b c", [(0, 1, "PER")])], sgd=False) == {"mrc_ner": 0.0}
    assert all_zero(gradients(ner.model))
    nlp.update(overlapping(nlp), sgd=False)
    assert not all_zero(gradients(ner.model.get_ref("match")))


def test_a_split_batch_gives_the_same_gradients_and_empty_docs_none():
    nlp = matching_pipeline()
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    nlp.update([make_example(nlp, ""), *examples, make_example(nlp, "")], sgd=False)
    whole = gradients(ner.model)
    clear_gradients(ner.model)
    for example in examples[::-1]:
        nlp.update([example], sgd=False)
    assert not all_zero(gradients(ner.model.get_ref("match")))
    assert same(whole, gradients(ner.model), tolerance=1e-5)


@pytest.mark.parametrize("words", [["one"], [" "], ["\n", " "], []])
def test_small_docs_in_training(words):
    nlp = matching_pipeline(threshold=0.0)
    reference = add_group(Doc(nlp.vocab, words=words), "x", [(0, 1, "PER")] if words == ["one"] else [])
    example = spacy.training.Example(Doc(nlp.vocab, words=words), reference)
    assert (nlp.update([example], sgd=nlp.create_optimizer())["mrc_ner"] > 0) is (words == ["one"])


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_the_matcher_learns_at_the_rate_of_the_head(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = matching_pipeline(head_learn_rate=factor)
        part = nlp.get_pipe("mrc_ner").model.get_ref("match")
        before, optimizer = weights(part), nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(overlapping(nlp), sgd=optimizer)
        steps[factor] = [b - a for a, b in zip(before, weights(part), strict=True)]
    assert not all_zero(steps[1.0])
    assert same(steps[rate], [rate * step for step in steps[1.0]], tolerance=1e-5)


def test_the_weight_has_an_effect():
    found = {}
    for weight in (0.0, 0.1, 1.0):
        nlp = matching_pipeline(match_weight=weight)
        nlp.update(overlapping(nlp), sgd=False)
        found[weight] = gradients(nlp.get_pipe("mrc_ner").model.get_ref("match"))
    assert all_zero(found[0.0]) and not all_zero(found[1.0])
    assert same(found[0.1], [0.1 * own for own in found[1.0]], tolerance=1e-6)


# Calibration, relabelling, types


def test_held_out_loss_is_that_of_boundaries_and_matches():
    nlp = matching_pipeline()
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    loss = ner.held_out_loss([*examples, make_example(nlp, "")])
    vectors = vectors_of(ner, [eg.predicted for eg in examples])
    for temperature in (1.0, 3.0):
        values = []
        for eg, own, odds in zip(examples, vectors, ner._scores(vectors), strict=True):
            to = read_boundaries(eg, IDS, spans_key="x", max_width=10)
            pairs = candidate_pairs(to, odds > 0, 10)
            said = [odds_by_hand(ner.model.get_ref("match"), own, span) for span in pairs.spans.tolist()]
            wanted = [*to.wanted.ravel(), *pairs.wanted]
            for x, true in zip([*odds.ravel().tolist(), *said], wanted, strict=True):
                values.append(math.log1p(math.exp((-x if true else x) / temperature)))
        assert loss(temperature) == pytest.approx(numpy.mean(values), rel=1e-5)


@pytest.mark.parametrize("union", [False, True])
def test_relabelled_sentences_tell_which_entities_they_have(union):
    target = read_boundaries(overlapping(spacy.blank("xx"))[1], IDS, spans_key="x")
    said = numpy.zeros((5, 2, 2))
    said[0, 1, 0] = said[1, 1, 1] = said[0, 0, 0] = said[0, 0, 1] = 0.9
    found = SelfPicking(union=union)(target, said)
    given = {(start, end, IDS[label]) for start, end, label in OVERLAPPING[1][1]} if union else set()
    assert set(map(tuple, found.spans.tolist())) == {(0, 2, 1), (0, 1, 0)} | given
    pairs = candidate_pairs(found, numpy.zeros_like(found.wanted), None)
    assert set(map(tuple, pairs.spans[pairs.wanted].tolist())) == {(0, 2, 1), (0, 1, 0)} | given


def test_the_teacher_picks_what_it_says_belongs_together():
    target = Boundaries(mark([], 4, IDS), numpy.ones((4, 2, 2), dtype=bool))
    said = numpy.zeros((4, 2, 2))
    said[[0, 1], 0, 0] = said[[1, 3], 0, 1] = 0.2

    def matches(spans):
        assert spans.tolist() == [[0, 2, 0], [0, 4, 0], [1, 2, 0], [1, 4, 0]]
        return numpy.asarray([0.05, 0.2, 0.1, 0.11])

    found = SelfPicking(0.1)(target, said, matches)
    assert found.spans.tolist() == [[0, 4, 0], [1, 4, 0]]
    assert (found.wanted == mark([(0, 4, "PER"), (1, 4, "PER")], 4, IDS)).all()


def test_it_goes_together_with_relabelling_and_types():
    pytest.importorskip("sklearn")
    typing = {"@misc": "spacy_weakner.FineTyping.v1", "n_types": 2, "gamma": 0.5}
    picking = {"@misc": "spacy_weakner.SelfPicking.v1", "threshold": 0.8, "union": True}
    nlp = matching_pipeline(match_width=16, n_types=2, typing=typing, relabel=picking)
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.02
    for step in range(90):
        ner.tick(Tick(step, 0, step / 90, 30))
        if step % 30 == 0:
            ner.renew(examples)
        losses = nlp.update(examples, sgd=optimizer, losses={})
    assert losses["mrc_ner"] < 0.3
    assert found_in(nlp, OVERLAPPING[0][0]) == OVERLAPPING[0][1]

"""The teacher of an objective: when it is made, what it sees and removes."""

import numpy
import pytest

from spacy_weakner.corpus.weak import set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads import teacher
from spacy_weakner.training.clock import TrainingClock
from spacy_weakner.ty import TrainingProgress

from ..util import GOLD, TEXTS, distributions, entities_of, make_example, make_examples, raw, reload_bytes, train
from .util import HARD, ROBUST, SELF, SOFT, loss_of, spied, ticked, token_pipeline


def teacher_rows(ner, spy, examples):
    ner.update(examples)
    return spy.batches[-1].teacher


def test_the_objective_sees_tokens_targets_and_teacher_in_order(nlp):
    ner, spy = spied(nlp)
    ner.renew(make_examples(nlp))
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    expected = numpy.concatenate(ner.token_outputs([eg.predicted for eg in examples]))
    ner.update(examples)
    (batch,) = spy.batches
    numpy.testing.assert_allclose(batch.outputs, expected, rtol=1e-5)
    numpy.testing.assert_allclose(batch.teacher, expected, rtol=1e-5)
    assert batch.targets.tolist() == [5] * 5 + [4] * 8 + [1]
    assert batch.augmented is None


def test_a_renewal_shows_the_whole_corpus_batch_by_batch(nlp, monkeypatch):
    monkeypatch.setattr(teacher, "RENEWAL_BATCH", 2)
    ner, spy = spied(nlp)
    ner.renew(eg for eg in [*make_examples(nlp), make_example(nlp, "")])
    ((first, second, third),) = spy.renewals
    assert [targets.tolist() for targets, _ in (first, second, third)] == [[5] * 5 + [4] * 4, [4] * 4 + [1], []]
    expected = ner.token_outputs([eg.predicted for eg in make_examples(nlp)])
    numpy.testing.assert_allclose(first[1], numpy.concatenate(expected[:2]), rtol=1e-5)
    numpy.testing.assert_allclose(second[1], numpy.concatenate(expected[2:]), rtol=1e-5)
    assert third[1].shape == (0, 3)


def test_the_teacher_stays_as_it_is_until_the_next_renewal(nlp):
    ner, spy = spied(nlp)
    examples = make_examples(nlp)
    ner.renew(examples)
    before = teacher_rows(ner, spy, examples)
    optimizer = nlp.create_optimizer()
    for _ in range(3):
        ner.update(examples, sgd=optimizer, drop=0.5)
    assert (teacher_rows(ner, spy, examples) == before).all()
    # It would say the same again.
    said = ner.token_outputs([eg.predicted for eg in examples], ner._teacher.model)
    numpy.testing.assert_allclose(numpy.concatenate(said), before, rtol=1e-5)
    ner.renew(examples)
    assert (teacher_rows(ner, spy, examples) != before).any()
    numpy.testing.assert_allclose(spy.batches[-1].teacher, spy.batches[-1].outputs, rtol=1e-5)


@pytest.mark.parametrize("weak", [False, True])
def test_the_teacher_reads_no_sentence_twice(nlp, monkeypatch, weak):
    def examples():
        made = make_examples(nlp)
        for eg in made:
            set_weak(eg.reference, weak)
        return made

    ner, spy = spied(nlp)
    ner.renew(examples())
    expected = ner.token_outputs([eg.predicted for eg in examples()])
    monkeypatch.setattr(ner, "token_outputs", None)
    for order in (1, -1):
        found = teacher_rows(ner, spy, examples()[::order])
        numpy.testing.assert_allclose(found, numpy.concatenate(expected[::order]), rtol=1e-5)


def test_a_teacher_that_removes_labels_needs_the_clock_and_renewals():
    nlp = token_pipeline(ROBUST)
    with pytest.raises(WeaknerError, match=r"\[WK004\] 'token_ner'"):
        nlp.update(make_examples(nlp), sgd=False)
    ticked(nlp, interval=0)
    with pytest.raises(ValueError, match=r"'token_ner'.*interval"):
        nlp.update(make_examples(nlp), sgd=False)
    ticked(nlp, interval=10)
    assert loss_of(nlp, make_examples(nlp)) > 0.0
    assert entities_of(nlp, [""]) == [[]]


def test_a_teacher_that_all_is_learned_from_has_to_be_there_from_the_start():
    nlp = token_pipeline(SELF)
    ner = ticked(nlp)
    with pytest.raises(ValueError, match=r"'token_ner'.*interval"):
        nlp.update(make_examples(nlp), sgd=False)
    ner.renew(make_examples(nlp))
    assert loss_of(nlp, make_examples(nlp)) > 0.0


@pytest.mark.parametrize("objective", [HARD, SOFT, {**ROBUST, "threshold": None}])
def test_without_a_teacher_no_clock_is_needed_and_renewals_do_nothing(objective):
    nlp = token_pipeline(objective)
    examples = make_examples(nlp)
    before = loss_of(nlp, examples)
    ticked(nlp, step=10).renew(examples)
    assert loss_of(nlp, examples) == before > 0.0


def test_removal_begins_at_the_first_renewal_after_the_start():
    nlp = token_pipeline({**ROBUST, "threshold": 1.0, "minority": 1.0})
    examples = make_examples(nlp)
    ticked(nlp).renew(examples)
    assert loss_of(nlp, examples) > 0.0
    ner = ticked(nlp, step=10)
    assert loss_of(nlp, examples) > 0.0
    ner.renew(examples)
    assert loss_of(nlp, examples) == 0.0


def run(nlp, examples, steps=40, interval=20, learn_rate=0.02):
    """A training with the clock."""
    clock = TrainingClock(lambda nlp: examples, total_steps=steps, interval=interval)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = learn_rate
    for step in range(steps):
        clock(nlp, {"step": step, "epoch": 0})
        nlp.update(examples, sgd=optimizer)


def test_wrong_labels_are_removed():
    """One of many equal words is labeled wrongly; the teacher outvotes it."""
    nlp = token_pipeline({**ROBUST, "threshold": 0.5})
    examples = [make_example(nlp, "Bob runs", [(0, 1, "PER")]) for _ in range(9)]
    examples += [make_example(nlp, "Bob runs", [(0, 1, "LOC")]), make_example(nlp, "Paris", [(0, 1, "LOC")])]
    run(nlp, examples)
    assert entities_of(nlp, ["Bob runs", "Paris"]) == [[(0, 1, "PER")], [(0, 1, "LOC")]]


def test_self_training_makes_the_model_surer_of_the_tags_and_leaves_the_entity_head():
    nlp = token_pipeline()
    train(nlp, make_examples(nlp), steps=6)
    nlp = token_pipeline({**SELF, "threshold": 0.0}).from_bytes(nlp.to_bytes())
    ner, docs = nlp.get_pipe("token_ner"), [raw(nlp, text) for text in TEXTS]
    before = numpy.concatenate(distributions(ner, docs))
    run(nlp, [make_example(nlp, text, annotated=False) for text in TEXTS], learn_rate=0.005)
    after = numpy.concatenate(distributions(ner, docs))
    assert entities_of(nlp, TEXTS) == GOLD
    entities = before[:, 0] < 0.5
    sure = [own[entities, 1:].max(axis=1) / own[entities, 1:].sum(axis=1) for own in (before, after)]
    assert (sure[1] > sure[0]).all()
    numpy.testing.assert_allclose(after[:, 0], before[:, 0], atol=0.02)


def test_the_teacher_is_not_stored(tmp_path):
    nlp = token_pipeline(SELF)
    ticked(nlp).renew(make_examples(nlp))
    other = reload_bytes(nlp, tmp_path)
    ticked(other)
    with pytest.raises(ValueError, match=r"'token_ner'.*interval"):
        other.update(make_examples(other), sgd=False)


def test_a_new_training_has_no_teacher_yet():
    nlp = token_pipeline({**ROBUST, "threshold": 1.0, "minority": 1.0})
    ner = nlp.get_pipe("token_ner")
    ner.tick(TrainingProgress(10, 0, 0.5, 10))
    ner.renew(make_examples(nlp))
    assert nlp.update(make_examples(nlp), sgd=False, losses={})["token_ner"] == 0.0
    nlp.initialize(lambda: make_examples(nlp))
    ner.tick(TrainingProgress(0, 0, 0.0, 10))
    assert nlp.update(make_examples(nlp), sgd=False, losses={})["token_ner"] > 0.0


@pytest.mark.parametrize("texts", [[], [""]], ids=["no sentences", "no tokens"])
def test_a_teacher_that_sees_nothing(texts):
    nlp = token_pipeline(SELF)
    ner = nlp.get_pipe("token_ner")
    ner.tick(TrainingProgress(0, 0, 0.0, 10))
    with pytest.raises(ValueError, match=r"'token_ner'.*predict"):
        ner.renew([make_example(nlp, text) for text in texts])

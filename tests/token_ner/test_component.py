"""The component: what is its own. What all heads promise is tested in `test_heads`."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_weakner.annotations.tags import TagScheme
from spacy_weakner.annotations.weak import SoftLabels, doc_entities, set_augmented, set_soft_labels
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import MeanAbsoluteError
from spacy_weakner.token_ner import component
from spacy_weakner.token_ner.component import TokenNer, make_token_ner
from spacy_weakner.token_ner.hard_labels import HardLabels
from spacy_weakner.token_ner.model import build_token_classifier
from spacy_weakner.token_ner.objective import Plain, TokenGradient
from spacy_weakner.training.clock import TrainingClock
from spacy_weakner.ty import PathScorer, Renewable, Statistician, Tick, TokenDistributions

from ..util import (
    GOLD,
    LISTENER,
    TEXTS,
    TOK2VEC,
    Recorder,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    head_config,
    make_doc,
    make_example,
    make_examples,
    reload_bytes,
    same,
    train,
    weights,
)
from .util import GCE, HARD, ROBUST, SELF, SOFT, joint, token_pipeline

SCHEMES = ("IO", "BIO", "IOBES")
schemes = pytest.mark.parametrize("scheme", SCHEMES)


@pytest.fixture
def nlp():
    return token_pipeline()


@pytest.fixture(scope="module")
def trained_bytes():
    nlp = token_pipeline()
    train(nlp, make_examples(nlp))
    return nlp.to_bytes()


@pytest.fixture
def trained(trained_bytes):
    return token_pipeline().from_bytes(trained_bytes)


def raw(nlp, text):
    return make_doc(nlp, text, annotated=False)


def ticked(nlp, step=0, interval=10):
    ner = nlp.get_pipe("token_ner")
    ner.tick(Tick(step, 0, 0.0, interval))
    return ner


def loss_of(nlp, examples):
    return nlp.update(examples, sgd=False, losses={})["token_ner"]


# Schemes


@schemes
def test_every_scheme_learns_and_returns_from_bytes(tmp_path, scheme):
    nlp = token_pipeline(scheme=scheme)
    train(nlp, make_examples(nlp))
    other = reload_bytes(nlp, tmp_path)
    assert entities_of(nlp, TEXTS) == entities_of(other, TEXTS) == GOLD
    docs = [raw(nlp, text) for text in TEXTS]
    assert same(*(x.get_pipe("token_ner").distributions(docs) for x in (nlp, other)))


@schemes
@pytest.mark.parametrize("labels", [["PER", "LOC"], ["X"]])
def test_scheme_and_order_of_the_labels_decide_the_tags(scheme, labels):
    ner = token_pipeline(scheme=scheme, labels=labels).get_pipe("token_ner")
    assert ner.distribution_labels == TagScheme(scheme, labels).tags
    assert ner.tag_scheme == scheme
    assert ner.model.get_ref("head").get_dim("nO") == ner.n_outputs == len(ner.distribution_labels)


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


def test_unknown_scheme():
    with pytest.raises(WeaknerError, match=r"\[WK009\].*BILUO"):
        token_pipeline(scheme="BILUO")


# Probabilities


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
    for doc, found, outputs in zip(docs, ner.distributions(docs), ner.score_tokens(docs), strict=True):
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
    (distribution,) = ner.distributions([doc])
    assert doc_entities(doc) == GOLD[0]
    for ent in doc.ents:
        tags = ner.scheme.span_tags(ent.label_, len(ent))
        expected = numpy.prod([distribution[i, tag] for i, tag in zip(range(ent.start, ent.end), tags, strict=True)])
        assert ent._.weakner_score == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_paths_are_the_best_tags_one_by_one(nlp, temperature):
    ner, docs = nlp.get_pipe("token_ner"), [raw(nlp, text) for text in TEXTS]
    ner.set_temperature(temperature)
    for path, outputs in zip(ner.score_paths(iter(docs)), ner.score_tokens(docs), strict=True):
        sharp = numpy.asarray([joint(row) for row in outputs])
        best = sharp.argmax(axis=1)
        assert path.tags == [ner.distribution_labels[i] for i in best]
        assert path.score == pytest.approx(numpy.log(sharp.max(axis=1)).sum(), abs=1e-5)
        cooled = [joint(row / temperature)[i] for row, i in zip(outputs, best, strict=True)]
        assert path.log_probability == pytest.approx(numpy.log(cooled).sum(), abs=1e-5)


def test_paths_agree_with_entities(trained):
    ner, docs = trained.get_pipe("token_ner"), [raw(trained, text) for text in TEXTS]
    assert [ner.scheme.decode(ner.scheme.tag_ids(path.tags)) for path in ner.score_paths(docs)] == GOLD


@pytest.mark.parametrize("texts", [[], [""], ["", "Bob"]])
def test_small_docs_in_distributions_and_paths(trained, texts):
    ner, docs = trained.get_pipe("token_ner"), [trained.make_doc(text) for text in texts]
    assert [d.shape for d in ner.distributions(iter(docs))] == [(len(doc), 3) for doc in docs]
    paths = ner.score_paths(iter(docs))
    assert [len(path.tags) for path in paths] == [len(doc) for doc in docs]
    assert all(path.score == path.log_probability == 0.0 for path in paths if not path.tags)


def test_held_out_loss_is_that_of_the_known_tokens(nlp):
    examples = [make_example(nlp, "Bob runs home", [(0, 1, "PER")], missing=[1]), make_example(nlp, "Paris")]
    examples += [make_example(nlp, "nothing known", annotated=False), make_example(nlp, "")]
    ner = nlp.get_pipe("token_ner")
    first, second = ner.score_tokens([eg.predicted for eg in examples[:2]])
    loss = ner.held_out_loss(examples)
    for temperature in (1.0, 3.0):
        rows = [joint(row / temperature) for row in (*first[[0, 2]], *second)]
        expected = -numpy.log([row[tag] for row, tag in zip(rows, [2, 0, 0], strict=True)]).mean()
        assert loss(temperature) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("use", ["distributions", "score_paths"])
def test_not_initialised(use):
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("token_ner", config=head_config("token_ner"))
    ner.add_label("X")
    with pytest.raises(WeaknerError, match=r"\[WK008\] 'token_ner'"):
        getattr(ner, use)([make_doc(nlp, "a")])


@pytest.mark.parametrize(
    "words, tags, expected",
    [
        ([" ", "a", "b"], "I-PER I-PER O", [(1, 2, "PER")]),
        (["a", "\n", " "], "I-PER I-PER I-PER", [(0, 1, "PER")]),
        ([" ", "\n", "a"], "I-PER I-PER O", []),
        (["a", " ", "b"], "I-PER I-PER I-PER", [(0, 3, "PER")]),
        (["a", "b", "c"], "I-PER I-LOC O", [(0, 1, "PER"), (1, 2, "LOC")]),
    ],
)
def test_tags_become_entities_without_white_space_at_their_ends(nlp, words, tags, expected):
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


def test_protocols(nlp):
    for protocol in (TokenDistributions, PathScorer, Renewable, Statistician):
        assert isinstance(nlp.get_pipe("token_ner"), protocol)


# Training


def test_missing_tokens_have_exactly_no_gradient(nlp):
    ner = nlp.get_pipe("token_ner")
    example = make_example(nlp, "Anna went to New York", [(0, 1, "PER")], missing=[1, 2, 3, 4])
    _, (gradient,) = ner.get_loss([example], ner.score_tokens([example.predicted]))
    assert gradient[0].all()
    assert all_zero([gradient[1:]])


def test_gradients_of_the_outputs_by_finite_differences(nlp):
    ner, examples = nlp.get_pipe("token_ner"), make_examples(nlp)
    scores = [own.astype("float64") for own in ner.score_tokens([eg.predicted for eg in examples])]
    _, found = ner.get_loss(examples, scores)
    for i, own in enumerate(scores):
        for index in numpy.ndindex(*own.shape):
            sides = []
            for sign in (1, -1):
                moved = [s.copy() for s in scores]
                moved[i][index] += sign * 1e-5
                sides.append(len(scores) * ner.get_loss(examples, moved)[0])
            assert found[i][index] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-5)


def test_soft_labels_are_learned_and_name_the_labels():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("token_ner", config=head_config("token_ner", objective=SOFT))
    example, hard = make_example(nlp, "Bob runs", [(0, 1, "OTHER")]), make_example(nlp, "Paris", [(0, 1, "LOC")])
    rows = numpy.asarray([[0.3, 0.7], [0.9, 0.1]], dtype="float32")
    set_soft_labels(example.reference, SoftLabels(("O", "I-PER"), "IO", rows))
    nlp.initialize(lambda: [example, hard])
    assert ner.labels == ("LOC", "PER")
    train(nlp, [example, hard], steps=100)
    found = ner.distributions([raw(nlp, "Bob runs"), raw(nlp, "Paris")])
    numpy.testing.assert_allclose(found[0][:, [0, 2]], rows, atol=0.02)
    assert found[1][0, 1] > 0.9


def test_soft_labels_of_another_scheme_or_label(nlp):
    for labels, scheme, message in ((("O", "B-PER", "I-PER"), "BIO", "WK020"), (("O", "I-NEW"), "IO", "WK003.*'NEW'")):
        nlp = token_pipeline(SOFT)
        example = make_example(nlp, "Bob", [(0, 1, "PER")])
        rows = numpy.full((1, len(labels)), 1 / len(labels), dtype="float32")
        set_soft_labels(example.reference, SoftLabels(labels, scheme, rows))
        with pytest.raises(WeaknerError, match=message):
            nlp.update([example], sgd=False)


# Settings


def test_the_factory_passes_every_setting_on(nlp):
    settings = {
        "objective": HardLabels(MeanAbsoluteError()),
        "scheme": "BIO",
        "teacher_decay": 0.25,
        "head_learn_rate": 5.0,
        "overwrite": True,
        "scorer": print,
    }
    ner = make_token_ner(nlp, "mine", nlp.get_pipe("token_ner").model, **settings)
    assert ner._teacher.decay == settings.pop("teacher_decay")
    settings["tag_scheme"] = settings.pop("scheme")
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.name == "mine"


def test_the_objective_decides_what_is_learned():
    losses = {}
    for objective in (HARD, {**HARD, "loss": GCE}, SELF):
        nlp = token_pipeline(objective)
        ticked(nlp).renew(make_examples(nlp))
        losses[str(objective)] = loss_of(nlp, make_examples(nlp))
    assert len({*losses.values()}) == 3


def test_a_decay_that_is_none():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*teacher_decay"):
        token_pipeline(teacher_decay=2.0)


@pytest.mark.parametrize("objective", [ROBUST, SELF])
def test_a_teacher_needs_an_encoder_of_the_components_own(objective):
    with pytest.raises(WeaknerError, match=r"\[WK028\] 'token_ner'"):
        spacy.blank("xx").add_pipe("token_ner", config=head_config("token_ner", LISTENER, objective=objective))


@pytest.mark.parametrize("objective", [HARD, SOFT, {**ROBUST, "threshold": None}])
def test_other_objectives_do_with_a_shared_one(objective):
    spacy.blank("xx").add_pipe("token_ner", config=head_config("token_ner", LISTENER, objective=objective))


# The teacher


class Spy(Plain):
    """An objective that writes down what it is given, and whose gradient is one everywhere."""

    uses_teacher, teacher_at_start, uses_augmented = True, True, True

    def __init__(self, augmented_gradient=True):
        self.batches, self.renewals, self.augmented_gradient = [], [], augmented_gradient

    def labels(self, doc):
        return {ent.label_ for ent in doc.ents}

    def encode(self, example, scheme):
        """The sentence's length at every token."""
        return numpy.full(len(example.predicted), len(example.predicted))

    def renew(self, batches):
        self.renewals.append(list(batches))

    def __call__(self, batch):
        self.batches.append(batch)
        augmented = None
        if batch.augmented is not None and self.augmented_gradient:
            augmented = numpy.full(batch.augmented.outputs.shape, 2.0)
        return TokenGradient(1.0, numpy.ones(batch.outputs.shape), augmented)


def spied(nlp, encoder=None, **settings):
    """An initialised component with a Spy."""
    spy = Spy(**settings.pop("spy", {}))
    encoder = encoder or spacy.registry.resolve({"it": TOK2VEC})["it"]
    ner = TokenNer(nlp.vocab, build_token_classifier(encoder), objective=spy, **settings)
    ner.initialize(lambda: make_examples(nlp))
    ner.tick(Tick(0, 0, 0.0, 10))
    return ner, spy


def teacher_rows(ner, spy, examples):
    ner.update(examples)
    return spy.batches[-1].teacher


def test_the_objective_sees_tokens_targets_and_teacher_in_order(nlp):
    ner, spy = spied(nlp)
    ner.renew(make_examples(nlp))
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    expected = numpy.concatenate(ner.score_tokens([eg.predicted for eg in examples]))
    ner.update(examples)
    (batch,) = spy.batches
    numpy.testing.assert_allclose(batch.outputs, expected, rtol=1e-5)
    numpy.testing.assert_allclose(batch.teacher, expected, rtol=1e-5)
    assert batch.targets.tolist() == [5] * 5 + [4] * 8 + [1]
    assert batch.augmented is None


def test_a_renewal_shows_the_whole_corpus_batch_by_batch(nlp, monkeypatch):
    monkeypatch.setattr(component, "RENEWAL_BATCH", 2)
    ner, spy = spied(nlp)
    ner.renew(eg for eg in [*make_examples(nlp), make_example(nlp, "")])
    ((first, second, third),) = spy.renewals
    assert [targets.tolist() for targets, _ in (first, second, third)] == [[5] * 5 + [4] * 4, [4] * 4 + [1], []]
    expected = ner.score_tokens([eg.predicted for eg in make_examples(nlp)])
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
    ner.renew(examples)
    assert (teacher_rows(ner, spy, examples) != before).any()
    numpy.testing.assert_allclose(spy.batches[-1].teacher, spy.batches[-1].outputs, rtol=1e-5)


@pytest.mark.parametrize("decay, kept, replaced", [(0.0, False, True), (0.5, False, False), (1.0, True, False)])
def test_decay_is_how_much_of_the_old_teacher_stays(nlp, decay, kept, replaced):
    ner, spy = spied(nlp, teacher_decay=decay)
    examples = make_examples(nlp)
    ner.renew(examples)
    before = teacher_rows(ner, spy, examples)
    ner.update(examples, sgd=nlp.create_optimizer())
    ner.renew(examples)
    after = teacher_rows(ner, spy, examples)
    assert numpy.allclose(after, before, atol=1e-6) is kept
    assert numpy.allclose(after, spy.batches[-1].outputs, atol=1e-6) is replaced


def test_a_teacher_that_removes_labels_needs_the_clock_and_renewals():
    nlp = token_pipeline(ROBUST)
    with pytest.raises(WeaknerError, match=r"\[WK004\] 'token_ner'"):
        nlp.update(make_examples(nlp), sgd=False)
    ticked(nlp, interval=0)
    with pytest.raises(WeaknerError, match=r"\[WK029\] 'token_ner'.*interval"):
        nlp.update(make_examples(nlp), sgd=False)
    ticked(nlp, interval=10)
    assert loss_of(nlp, make_examples(nlp)) > 0.0
    assert entities_of(nlp, [""]) == [[]]


def test_a_teacher_that_all_is_learned_from_has_to_be_there_from_the_start():
    nlp = token_pipeline(SELF)
    ner = ticked(nlp)
    with pytest.raises(WeaknerError, match=r"\[WK029\]"):
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
    assert ner.training_statistics() == {}
    ner.renew(examples)
    assert loss_of(nlp, examples) == 0.0
    assert ner.training_statistics() == {"entity_removed": 1.0, "outside_removed": 1.0}


def run(nlp, examples, steps=40, interval=20, learn_rate=0.02):
    """A training with the clock."""
    clock = TrainingClock(lambda nlp: examples, total_steps=steps, interval=interval)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = learn_rate
    for step in range(steps):
        clock(nlp, {"step": step, "epoch": 0})
        nlp.update(examples, sgd=optimizer)


def test_wrong_labels_are_removed():
    """One of many equal words is labelled wrongly; the teacher outvotes it."""
    nlp = token_pipeline({**ROBUST, "threshold": 0.5})
    examples = [make_example(nlp, "Bob runs", [(0, 1, "PER")]) for _ in range(9)]
    examples += [make_example(nlp, "Bob runs", [(0, 1, "LOC")]), make_example(nlp, "Paris", [(0, 1, "LOC")])]
    run(nlp, examples)
    found = nlp.get_pipe("token_ner").training_statistics()
    assert found == {"entity_removed": pytest.approx(1 / 11), "outside_removed": 0.0}
    assert entities_of(nlp, ["Bob runs", "Paris"]) == [[(0, 1, "PER")], [(0, 1, "LOC")]]


def test_self_training_makes_the_model_surer_of_the_tags_and_leaves_the_entity_head():
    nlp = token_pipeline()
    train(nlp, make_examples(nlp), steps=6)
    nlp = token_pipeline({**SELF, "threshold": 0.0}).from_bytes(nlp.to_bytes())
    ner, docs = nlp.get_pipe("token_ner"), [raw(nlp, text) for text in TEXTS]
    before = numpy.concatenate(ner.distributions(docs))
    run(nlp, [make_example(nlp, text, annotated=False) for text in TEXTS], learn_rate=0.005)
    after = numpy.concatenate(ner.distributions(docs))
    assert entities_of(nlp, TEXTS) == GOLD
    entities = before[:, 0] < 0.5
    sure = [own[entities, 1:].max(axis=1) / own[entities, 1:].sum(axis=1) for own in (before, after)]
    assert (sure[1] > sure[0]).all()
    numpy.testing.assert_allclose(after[:, 0], before[:, 0], atol=0.02)
    assert ner.training_statistics() == {"used": 1.0}


def test_the_teacher_is_not_stored(tmp_path):
    nlp = token_pipeline(SELF)
    ticked(nlp).renew(make_examples(nlp))
    other = reload_bytes(nlp, tmp_path)
    ticked(other)
    with pytest.raises(WeaknerError, match=r"\[WK029\]"):
        other.update(make_examples(other), sgd=False)


# Augmented sentences


def augmented(nlp, text="Bob runs", words=("Anna", "walks")):
    example = make_example(nlp, text, [(0, 1, "PER")])
    set_augmented(example.reference, words)
    return example


def test_augmented_sentences_are_read_in_the_same_forward_pass(nlp):
    recorder = Recorder()
    ner, spy = spied(nlp, recorder.model)
    examples = [make_example(nlp, "Anna went"), augmented(nlp), make_example(nlp, ""), augmented(nlp, "Eve", ["Ada"])]
    ner.renew(examples)
    ner.update(examples)
    (read,) = recorder.docs
    assert read[:4] == [eg.predicted for eg in examples]
    assert [[token.text for token in doc] for doc in read[4:]] == [["Anna", "walks"], ["Ada"]]
    found = spy.batches[0].augmented
    assert found.tokens.tolist() == [2, 3, 4]
    assert found.outputs.shape == (3, 3)
    assert spy.batches[0].outputs.shape == (5, 3)
    assert spy.batches[0].teacher.shape == (5, 3)
    # The gradient reaches the encoder.
    (passed,) = recorder.gradients
    linear = weights(ner.model.get_ref("head"))[0]
    for own, rows, slope in zip(passed, [2, 2, 0, 1, 2, 1], [1, 1, 1, 1, 2, 2], strict=True):
        numpy.testing.assert_allclose(own, numpy.tile(slope * linear.sum(axis=0), (rows, 1)), rtol=1e-5)


def test_augmented_sentences_without_a_gradient_pass_zeros(nlp):
    recorder = Recorder()
    ner, _ = spied(nlp, recorder.model, spy={"augmented_gradient": False})
    ner.renew([augmented(nlp)])
    ner.update([augmented(nlp)])
    (passed,) = recorder.gradients
    assert [own.shape for own in passed] == [(2, 4), (2, 4)]
    assert passed[0].any() and not passed[1].any()


def test_spaces_and_vocabulary_of_augmented_sentences_are_those_of_the_doc(nlp):
    ner, _ = spied(nlp)
    _, doc = ner.training_docs([augmented(nlp)])
    assert doc.text == "Anna walks "
    assert doc.vocab is nlp.vocab


@pytest.mark.parametrize("objective", [SELF, {**SELF, "agreement": True, "threshold": 0.3}])
def test_a_split_batch_with_augmented_sentences_gives_the_same_gradients(objective):
    nlp = token_pipeline(objective)
    examples = [make_example(nlp, "Anna went"), augmented(nlp), make_example(nlp, ""), augmented(nlp, "Eve", ["Ada"])]
    ner = ticked(nlp)
    ner.renew(examples)
    found = []
    for batches in ([examples], [[example] for example in examples], [examples[::-1]]):
        clear_gradients(ner.model)
        for batch in batches:
            nlp.update(batch, sgd=False)
        found.append(gradients(ner.model))
    assert not all_zero(found[0])
    assert same(found[0], found[1], tolerance=1e-5)
    assert same(found[0], found[2], tolerance=1e-5)


def test_augmented_sentences_add_to_what_is_learned():
    nlp = token_pipeline(SELF)
    plain, more = make_example(nlp, "Bob runs", [(0, 1, "PER")]), augmented(nlp)
    ner = ticked(nlp)
    ner.renew([plain])
    found = []
    for example in (plain, more):
        clear_gradients(ner.model)
        found.append((loss_of(nlp, [example]), gradients(ner.model.get_ref("tok2vec"))))
    assert found[1][0] > found[0][0]
    assert not same(found[0][1], found[1][1], tolerance=1e-5)


@pytest.mark.parametrize("objective", [HARD, SOFT, ROBUST])
def test_only_objectives_that_want_them_read_augmented_sentences(objective):
    nlp = token_pipeline(objective)
    assert len(nlp.get_pipe("token_ner").training_docs([augmented(nlp)])) == 1


@pytest.mark.parametrize("words", [["Anna"], ["Anna", "walks", "far"], []])
def test_augmented_words_of_another_number(words):
    nlp = token_pipeline(SELF)
    ticked(nlp).renew(make_examples(nlp))
    with pytest.raises(WeaknerError, match=r"\[WK021\].*'Bob runs.*augmented words"):
        nlp.update([augmented(nlp, words=words)], sgd=False)


def test_augmented_words_of_other_tokens():
    nlp = token_pipeline(SELF)
    ticked(nlp).renew(make_examples(nlp))
    example = Example(Doc(nlp.vocab, words=["Bob", "ru", "ns"]), augmented(nlp).reference)
    with pytest.raises(WeaknerError, match=r"\[WK021\].*augmented words"):
        nlp.update([example], sgd=False)


def test_a_new_training_has_no_teacher_yet():
    nlp = token_pipeline({**ROBUST, "threshold": 1.0, "minority": 1.0})
    ner = nlp.get_pipe("token_ner")
    ner.tick(Tick(10, 0, 0.5, 10))
    ner.renew(make_examples(nlp))
    assert nlp.update(make_examples(nlp), sgd=False, losses={})["token_ner"] == 0.0
    nlp.initialize(lambda: make_examples(nlp))
    ner.tick(Tick(0, 0, 0.0, 10))
    assert nlp.update(make_examples(nlp), sgd=False, losses={})["token_ner"] > 0.0


@pytest.mark.parametrize("texts", [[], [""]], ids=["no sentences", "no tokens"])
def test_a_teacher_that_sees_nothing(texts):
    nlp = token_pipeline(SELF)
    ner = nlp.get_pipe("token_ner")
    ner.tick(Tick(0, 0, 0.0, 10))
    with pytest.raises(WeaknerError, match="WK037"):
        ner.renew([make_example(nlp, text) for text in texts])

"""What every head promises: labels, initialisation, the update protocol, entities that are there already, storage.

What only one of them does is tested in its own folder."""

import json
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Config

from spacy_weakner.annotations.weak import doc_entities, group_entities, group_scores
from spacy_weakner.errors import WeaknerError
from spacy_weakner.ty import Clocked, Tempered

from .util import (
    GOLD,
    HEADS,
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    gradients_with_and_without,
    head_config,
    head_pipeline,
    make_doc,
    make_example,
    make_examples,
    recorded_head,
    reload_bytes,
    reload_copy,
    reload_disk,
    same,
    shared_examples,
    shared_pipeline,
    train,
    weights,
)

# Everything that a head can write to a Doc.
TALKATIVE = {"crf_ner": {"scores": True, "n_best": 3}, "span_ner": {"nested": True}, "token_ner": {}}
# Settings that a trained head can be loaded with, none of them the default.
SETTINGS = {
    "crf_ner": {"scores": True, "n_best": 2, "constrain": False},
    "span_ner": {"max_width": 3, "nested": True, "spans_key": "x", "incorrect_spans_key": "y"},
    "token_ner": {},
}
# Settings that have to stay as they were.
FIXED = {"crf_ner": {"scheme": "IOBES"}, "span_ner": {}, "token_ner": {"scheme": "BIO"}}
COMMON = {"overwrite": True, "head_learn_rate": 7.0}
# The setting that decides what is learned, another value of it than the default, and a setting within.
OBJECTIVES = {
    "crf_ner": ("loss", {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.25}),
    "span_ner": ("sampler", {"@misc": "spacy_weakner.UniformNegativeSampler.v1", "ratio": 0.25}),
    "token_ner": (
        "objective",
        {"@misc": "spacy_weakner.HardLabels.v1", "loss": {"@losses": "spacy_weakner.MeanSquaredError.v1"}},
    ),
}
SMALL = pytest.mark.parametrize(
    "texts", [[], [""], ["", ""], ["", "Bob", ""], [" "], ["\n\n", "Bob"], ["Bob"], ["  \n "]]
)


@pytest.fixture(scope="module", params=HEADS)
def head(request):
    """Name of a head."""
    return request.param


@pytest.fixture
def nlp(head):
    """A pipeline with an untrained head."""
    return head_pipeline(head)


@pytest.fixture
def ner(nlp, head):
    """An untrained head."""
    return nlp.get_pipe(head)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Of every head a pipeline that knows its sentences by heart, on disk."""
    folder = tmp_path_factory.mktemp("heads")
    for name in HEADS:
        trained = head_pipeline(name)
        train(trained, make_examples(trained))
        trained.to_disk(folder / name)
    return folder


@pytest.fixture
def load(paths, head):
    """Loads a trained pipeline, perhaps with other settings."""
    return lambda **settings: spacy.load(paths / head, config={"components": {head: settings}})


@pytest.fixture
def trained(load):
    return load()


def empty_pipeline(head, **settings):
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe(head, config=head_config(head, **settings))


def raw(nlp, text):
    return make_doc(nlp, text, annotated=False)


def scored(doc):
    return [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents]


# Labels


def test_without_labels(head):
    nlp, _ = empty_pipeline(head)
    with pytest.raises(WeaknerError, match=rf"\[WK001\] '{head}'"):
        nlp.initialize(lambda: [make_example(nlp, "no entity")])


def test_labels_of_the_examples_are_sorted(ner):
    assert ner.labels == ("LOC", "PER")
    assert ner.label_data == ["LOC", "PER"]


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"], ("LOC",)])
def test_given_labels_keep_their_order(head, labels):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    assert ner.labels == tuple(labels)


def test_label_data_initialises_alike(head, ner):
    fix_random_seed(0)
    nlp, other = empty_pipeline(head)
    labels = json.loads(json.dumps(ner.label_data))
    nlp.config["initialize"]["components"][head] = {"labels": labels}
    nlp.initialize(lambda: make_examples(nlp))
    assert other.labels == ner.labels
    assert same(weights(other.model), weights(ner.model))


def test_labels_may_be_added_before_initialisation(head):
    nlp, ner = empty_pipeline(head)
    assert [ner.add_label("X"), ner.add_label("X")] == [1, 0]
    nlp.initialize()
    assert ner.labels == ("X",)


def test_labels_that_were_added_stand_before_those_of_the_corpus(head):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    nlp.initialize(lambda: make_examples(nlp))
    assert ner.labels == ("X", "LOC", "PER")


def test_labels_cannot_be_added_afterwards(ner):
    assert ner.add_label("PER") == 0
    with pytest.raises(WeaknerError, match=r"\[WK002\].*LOC, PER.*'ORG'"):
        ner.add_label("ORG")


def test_a_label_is_a_string(head, ner):
    for own in (ner, empty_pipeline(head)[1]):
        with pytest.raises(WeaknerError, match=r"\[WK005\].*label.*string"):
            own.add_label(1)


def test_an_unknown_label_in_training(head, nlp):
    with pytest.raises(WeaknerError, match=rf"\[WK003\] '{head}'.*'ORG'.*LOC, PER"):
        nlp.update([make_example(nlp, "a b", [(0, 1, "ORG")])], sgd=False)


# Initialisation


@pytest.mark.parametrize(
    "get_examples", [lambda: None, lambda: [], lambda: ["text"], lambda: [Doc(spacy.blank("xx").vocab)], []]
)
def test_get_examples_of_wrong_shapes(head, get_examples):
    nlp, ner = empty_pipeline(head)
    with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
        ner.initialize(get_examples, nlp=nlp, labels=["X"])


def test_get_examples_may_be_a_generator(head):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: (eg for eg in make_examples(nlp)), nlp=nlp)
    assert ner.is_initialized


@pytest.mark.parametrize("texts", [[""], ["", "a b"]])
def test_initialisation_with_empty_docs(head, texts):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: [make_example(nlp, text) for text in texts], nlp=nlp, labels=["X"])
    docs = [make_doc(nlp, "a b")]
    assert [len(scores) for scores in ner.score_tokens(docs)] == [2]
    assert len(ner.predict(docs)) == 1


def with_outputs(head, n_outputs):
    nlp = spacy.blank("xx")
    config = head_config(head)
    return nlp, nlp.add_pipe(head, config={**config, "model": {**config["model"], "nO": n_outputs}})


def test_the_number_of_outputs_may_be_given(head, ner):
    nlp, other = with_outputs(head, ner.n_outputs)
    assert not other.is_initialized
    nlp.initialize(lambda: make_examples(nlp))
    assert other.is_initialized and other.labels == ner.labels


def test_a_wrong_number_of_outputs(head, ner):
    nlp, _ = with_outputs(head, ner.n_outputs + 1)
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'nO' = {ner.n_outputs + 1} .*: expected {ner.n_outputs},"):
        nlp.initialize(lambda: make_examples(nlp))


def test_a_corpus_without_any_annotation_is_warned_about(head):
    nlp, ner = empty_pipeline(head)
    with pytest.warns(UserWarning, match=rf"\[WK900\].*'{head}'"):
        ner.initialize(lambda: [make_example(nlp, "a b", annotated=False)] * 2, nlp=nlp, labels=["X"])


@pytest.mark.parametrize("use", ["predict", "update", "score_tokens"])
def test_not_initialised(head, use):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    argument = [make_example(nlp, "a")] if use == "update" else [make_doc(nlp, "a")]
    with pytest.raises(WeaknerError, match=rf"\[WK008\] '{head}'"):
        getattr(ner, use)(argument)


def test_the_seed_decides_everything(head):
    runs = []
    for _ in range(2):
        nlp = head_pipeline(head, seed=3)
        fix_random_seed(1)
        train(nlp, make_examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe(head).model))
    assert same(*runs)


def test_another_seed_gives_other_weights(head):
    assert not same(*(weights(head_pipeline(head, seed=seed).get_pipe(head).model) for seed in (0, 1)))


def test_weights_are_float32(ner):
    assert {array.dtype for array in weights(ner.model)} == {numpy.dtype("float32")}


# Training


def test_it_learns(head, nlp):
    before = train(nlp, make_examples(nlp), steps=1)
    after = train(nlp, make_examples(nlp))
    assert after[head] < before[head] / 10
    assert entities_of(nlp, TEXTS) == GOLD


def test_the_loss_is_the_mean_over_sentences(head, nlp, ner):
    examples = make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    single = [ner.get_loss([eg], ner.model.predict([eg.predicted]))[0] for eg in examples]
    assert losses[head] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses[head]) is float


def test_losses_are_added_to(head, nlp, ner):
    losses = {head: 10.0, "other": 1.0}
    returned = ner.update(make_examples(nlp), losses=losses)
    assert returned is losses
    assert losses[head] > 10.0
    assert losses["other"] == 1.0


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(head, nlp, ner, texts):
    assert ner.update([make_example(nlp, text) for text in texts]) == {head: 0.0}


def test_the_loss_has_its_key_before_an_error(head, ner):
    losses = {}
    with pytest.raises(TypeError, match="E978"):
        ner.update(["no example"], losses=losses)
    assert losses == {head: 0.0}


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_loss_that_is_no_number(head, nlp, ner, value):
    examples = make_examples(nlp)[:1]
    scores = [numpy.full_like(own, value) for own in ner.model.predict([eg.predicted for eg in examples])]
    with pytest.raises(WeaknerError, match=rf"\[WK006\] .*'{head}'|\[WK007\]"):
        ner.get_loss(examples, scores)


def test_get_loss_leaves_the_scores_alone(nlp, ner):
    examples = make_examples(nlp)
    scores = ner.model.predict([eg.predicted for eg in examples])
    before = [own.copy() for own in scores]
    _, gradient = ner.get_loss(examples, scores)
    assert same(scores, before)
    assert [g.shape for g in gradient] == [own.shape for own in scores]
    assert {g.dtype.name for g in gradient} == {"float32"}


def test_update_leaves_the_examples_alone(nlp, ner):
    examples = make_examples(nlp)
    ner.update(examples)
    assert [doc_entities(eg.reference) for eg in examples] == GOLD
    assert not any(eg.predicted.has_annotation("ENT_IOB") or eg.predicted.spans for eg in examples)


def test_a_split_batch_gives_the_same_gradients(nlp, ner):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    whole = gradients(ner.model)
    clear_gradients(ner.model)
    nlp.update(examples[:1], sgd=False)
    nlp.update(examples[1:], sgd=False)
    assert not all_zero(whole)
    assert same(whole, gradients(ner.model), tolerance=1e-5)


def test_the_order_of_a_batch_does_not_matter(nlp, ner):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    forwards = gradients(ner.model)
    clear_gradients(ner.model)
    nlp.update(examples[::-1], sgd=False)
    assert same(forwards, gradients(ner.model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(nlp, ner):
    examples = make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    expected = gradients(ner.model)
    clear_gradients(ner.model)
    empty = make_example(nlp, "")
    assert nlp.update([empty, *examples, empty], sgd=False) == losses
    assert same(expected, gradients(ner.model))


@pytest.mark.parametrize("words", [["one"], [" "], ["\n", " "], ["a", "\n", "b"], []])
def test_small_docs_in_training(head, nlp, words):
    reference = Doc(nlp.vocab, words=words)
    reference.set_ents([], default="outside")
    losses = nlp.update([Example(Doc(nlp.vocab, words=words), reference)])
    assert (losses[head] > 0) is bool(words)


def test_two_tokenisations_in_training(head, nlp):
    predicted = Doc(nlp.vocab, words=["New", "Yor", "k", "ishere"], spaces=[True, False, True, False])
    reference = Doc(nlp.vocab, words=["New", "York", "is", "here"], spaces=[True, True, False, False])
    reference.set_ents([Span(reference, 0, 2, "LOC")], default="outside")
    train(nlp, [Example(predicted, reference)])
    assert doc_entities(nlp.get_pipe(head)(predicted.copy())) == [(0, 3, "LOC")]


def test_dropout_of_the_training_takes_effect(nlp, ner):
    examples = make_examples(nlp)
    found = {}
    for drop in (0.0, 0.5):
        runs = []
        for _ in range(2):
            clear_gradients(ner.model)
            ner.update(examples, drop=drop)
            runs.append(gradients(ner.model.get_ref("head")))
        found[drop] = same(*runs, tolerance=1e-6)
    assert found == {0.0: True, 0.5: False}


def test_dropout_is_off_in_prediction(head):
    nlp = head_pipeline(head, **TALKATIVE[head])
    ner, docs = nlp.get_pipe(head), [raw(nlp, text) for text in TEXTS]
    before = ner.score_tokens(docs), ner.predict(docs)
    ner.update(make_examples(nlp), drop=0.9)
    assert same(before[0], ner.score_tokens(docs))
    assert ner.predict(docs) == before[1]


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_head_learn_rate_scales_the_steps_of_the_head(head, rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = head_pipeline(head, head_learn_rate=factor)
        model = nlp.get_pipe(head).model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(make_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)
    assert not all_zero(steps[1.0][0])
    assert not all_zero(steps[1.0][1])


def test_a_learning_rate_below_zero(head):
    with pytest.raises(WeaknerError, match=r"\[WK005\].*head_learn_rate"):
        empty_pipeline(head, head_learn_rate=-1.0)


# Missing annotation


def test_a_doc_without_annotation_has_exactly_no_gradient(head, nlp, ner):
    assert nlp.update([make_example(nlp, "Anna went", annotated=False)], sgd=False) == {head: 0.0}
    assert all_zero(gradients(ner.model))


def test_a_doc_without_annotation_adds_no_gradient_to_a_batch(nlp, ner):
    examples = [make_example(nlp, "Anna went", annotated=False), *make_examples(nlp)]
    _, gradient = ner.get_loss(examples, ner.model.predict([eg.predicted for eg in examples]))
    assert all_zero(gradient[:1])
    assert not all_zero(gradient[1:2])


def test_backpropagates_when_there_is_nothing_to_learn(head, nlp):
    ner, recorder = recorded_head(nlp, head)
    ner.update([make_example(nlp, "Anna went", annotated=False)])
    assert len(recorder.gradients) == 1
    assert all_zero(recorder.gradients[0])
    assert [g.shape for g in recorder.gradients[0]] == [(2, 4)]


def test_one_forward_and_backward_pass_over_all_docs_in_order(head, nlp):
    ner, recorder = recorded_head(nlp, head)
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    ner.update(examples)
    assert recorder.docs == [[eg.predicted for eg in examples]]
    assert [[g.shape for g in call] for call in recorder.gradients] == [[(len(eg.predicted), 4) for eg in examples]]


@pytest.mark.parametrize("texts", [["", "a b"], ["a", "", "b c", ""]])
def test_encoders_with_another_width_for_empty_docs(head, nlp, texts):
    ner, recorder = recorded_head(nlp, head, empty_width=0)
    lengths = [len(text.split()) for text in texts]
    docs = [make_doc(nlp, text) for text in texts]
    assert [len(scores) for scores in ner.score_tokens(docs)] == lengths
    assert len(ner.predict(docs)) == len(texts)
    ner.update([make_example(nlp, text) for text in texts])
    assert [g.shape for g in recorder.gradients[0]] == [(n, 4 if n else 0) for n in lengths]


# A shared encoder


@pytest.mark.parametrize("last", [True, False])
def test_an_idle_listener_leaves_the_encoder_to_the_others(head, last):
    nlp = shared_pipeline(("tagger", head) if last else (head, "tagger"))
    encoder, examples = nlp.get_pipe("tok2vec").model, shared_examples(nlp, annotated=False)
    train(nlp, shared_examples(nlp, annotated=True), steps=2)  # the tagger begins with zeros
    together, alone = gradients_with_and_without(nlp, head, encoder, examples)
    assert not all_zero(together)
    assert same(together, alone, tolerance=1e-6)


@pytest.mark.parametrize("last", [True, False])
def test_a_listener_that_learns_adds_to_the_encoder(head, last):
    nlp = shared_pipeline(("tagger", head) if last else (head, "tagger"))
    encoder = nlp.get_pipe("tok2vec").model
    found = []
    for annotated in (False, True):
        clear_gradients(encoder)
        nlp.update(shared_examples(nlp, annotated), sgd=False)
        found.append(gradients(encoder))
    assert not same(*found, tolerance=1e-6)


def test_a_listener_trains_and_returns_from_disk(head, tmp_path):
    nlp = shared_pipeline(("tagger", head))
    train(nlp, shared_examples(nlp, annotated=True), steps=80)
    nlp.to_disk(tmp_path)
    assert entities_of(nlp, TEXTS) == GOLD
    assert entities_of(spacy.load(tmp_path), ["", *TEXTS]) == [[], *GOLD]


@pytest.mark.parametrize("texts", [[""], ["", ""], ["", "Bob", "", "Anna went to York", ""], ["\n", "Bob"]])
def test_empty_docs_with_a_listener(head, texts):
    nlp = shared_pipeline(("tagger", head))
    losses = nlp.update([make_example(nlp, text) for text in texts])
    assert numpy.isfinite(losses[head])
    assert len(list(nlp.pipe(texts))) == len(texts)


def test_listeners_can_be_replaced(head):
    nlp = shared_pipeline((head,))
    train(nlp, make_examples(nlp))
    nlp.replace_listeners("tok2vec", head, ["model.tok2vec"])
    nlp.remove_pipe("tok2vec")
    assert entities_of(nlp, TEXTS) == GOLD
    assert train(nlp, make_examples(nlp), steps=1)[head] < 1


# Settings


def test_unknown_settings_are_refused(head):
    with pytest.raises(ValueError, match="treshold"):
        spacy.blank("xx").add_pipe(head, config={"treshold": 1})


def test_only_what_training_creates_is_in_cfg(trained, head):
    assert trained.get_pipe(head).cfg == {"labels": ["LOC", "PER"], "temperature": 1.0}


def test_settings_of_the_loading_config_win(load, head):
    settings = {**SETTINGS[head], **COMMON}
    key, objective = OBJECTIVES[head]
    ner = load(**settings, **{key: objective}).get_pipe(head)
    assert {name: getattr(ner, name) for name in settings} == settings
    assert getattr(ner, key) == spacy.registry.resolve({"it": objective})["it"]


def test_config_round_trip(head):
    settings = {**SETTINGS[head], **COMMON}
    key, objective = OBJECTIVES[head]
    nlp, ner = empty_pipeline(head, **settings, **FIXED[head], **{key: objective})
    again = load_model_from_config(Config().from_str(nlp.config.to_str(), interpolate=False))
    assert again.config["components"] == nlp.config["components"]
    other = again.get_pipe(head)
    assert {name: getattr(other, name) for name in settings} == settings
    assert getattr(other, key) == getattr(ner, key) == spacy.registry.resolve({"it": objective})["it"]
    assert getattr(other, "tag_scheme", None) == FIXED[head].get("scheme")


def test_the_scorer_is_used(trained):
    scores = trained.evaluate(make_examples(trained))
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == (1.0, 1.0, 1.0)
    assert {*scores["ents_per_type"]} == {"LOC", "PER"}


def test_false_entities_of_sentences_without_any_count(trained):
    scores = trained.evaluate([make_example(trained, "Bob"), make_example(trained, TEXTS[1], GOLD[1])])
    assert (scores["ents_p"], scores["ents_r"]) == (pytest.approx(2 / 3), 1.0)


def test_without_a_scorer(head):
    assert empty_pipeline(head, scorer=None)[1].score([]) == {}


def test_what_it_assigns_and_which_scores_are_shown(nlp, head):
    assert nlp.analyze_pipes()["summary"][head]["assigns"] == ["doc.ents", "token.ent_iob", "token.ent_type"]
    expected = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
    assert nlp.get_pipe_meta(head).default_score_weights == expected


def test_protocols(ner):
    assert isinstance(ner, Clocked)
    assert isinstance(ner, Tempered)


# Entities that are there already


def test_preset_entities_stay_and_predictions_fill_the_rest(trained):
    doc = raw(trained, TEXTS[0])
    doc.ents = [Span(doc, 4, 5, "ORG", kb_id="Q1")]
    found = trained(doc)
    assert (4, 5, "ORG") in doc_entities(found)
    assert (0, 1, "PER") in doc_entities(found)
    assert found.ents[-1].kb_id_ == "Q1"


def test_overwrite_replaces_them(load):
    nlp = load(overwrite=True)
    assert doc_entities(nlp(make_doc(nlp, TEXTS[0], [(1, 5, "ORG")]))) == GOLD[0]


@pytest.mark.parametrize("overwrite", [False, True])
def test_blocked_tokens_stay_and_get_no_entity_unless_overwritten(load, overwrite):
    nlp = load(overwrite=overwrite)
    doc = make_doc(nlp, TEXTS[0])
    doc.set_ents([], blocked=[doc[:1]], default="missing")
    doc = nlp(doc)
    assert doc_entities(doc) == GOLD[0][0 if overwrite else 1 :]
    assert (doc[0].ent_iob_, doc[0].ent_type_) == ("B", "PER" if overwrite else "")


def test_preset_entities_everywhere_leave_nothing_to_predict(head):
    nlp = head_pipeline(head, **TALKATIVE[head])
    preset = [(0, 2, "X"), (2, 3, "Y")]
    doc = nlp(make_doc(nlp, "a b c", preset))
    assert doc_entities(doc) == preset
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


def test_annotating_twice_changes_nothing(load, head):
    nlp = load(**TALKATIVE[head])
    doc = nlp(raw(nlp, TEXTS[1]))
    before = scored(doc)
    nlp.get_pipe(head)(doc)
    assert before
    assert scored(doc) == before


def test_tokens_outside_entities_are_outside(trained):
    assert "".join(token.ent_iob_ for token in trained(raw(trained, TEXTS[0]))) == "BOOBI"


def test_predict_does_not_touch_the_docs(load, head):
    nlp = load(**TALKATIVE[head])
    docs = [raw(nlp, text) for text in TEXTS]
    predictions = nlp.get_pipe(head).predict(iter(docs))
    assert [prediction.entities for prediction in predictions] == GOLD
    assert not any(doc.has_annotation("ENT_IOB") or doc.spans for doc in docs)


# Prediction


def test_candidates_are_off_by_default(trained):
    assert dict(trained(raw(trained, TEXTS[0])).spans) == {}


@SMALL
@pytest.mark.parametrize("talkative", [False, True])
def test_small_docs(load, head, texts, talkative):
    nlp = load(**(TALKATIVE[head] if talkative else {}))
    docs = list(nlp.pipe(texts))
    assert [doc_entities(doc) for doc in docs] == [[(0, 1, "PER")] if text == "Bob" else [] for text in texts]


def test_pipe_is_one_by_one_in_any_order_and_batch_size(head):
    # Untrained heads find more.
    nlp, group = head_pipeline(head, **TALKATIVE[head]), f"pred:{head}"
    texts = [*TEXTS, "", "Anna likes Paris", "York", " ", "Bob " * 30]

    def run(texts, size):
        result = {}
        for doc in nlp.pipe(texts, batch_size=size):
            scores = [ent._.weakner_score for ent in doc.ents] + group_scores(doc, group)
            result[doc.text] = (doc_entities(doc), group_entities(doc, group), [round(score, 4) for score in scores])
        return result

    expected = {text: run([text], 1)[text] for text in texts}
    assert any(entities for entities, _, _ in expected.values())
    assert run(texts, 100) == run(texts, 2) == run(texts[::-1], 3) == expected


def test_scores_are_probabilities(load, head):
    nlp = load(**TALKATIVE[head])
    for text, gold in zip(TEXTS, GOLD, strict=True):
        scores = [ent._.weakner_score for ent in nlp(raw(nlp, text)).ents]
        assert len(scores) == len(gold)
        assert all(type(score) is float and 0.5 < score <= 1.0 for score in scores)


def test_temperature_changes_scores_but_not_entities(load, head):
    nlp = load(**TALKATIVE[head])
    before = [ent._.weakner_score for ent in nlp(raw(nlp, TEXTS[0])).ents]
    nlp.get_pipe(head).set_temperature(10.0)
    after = [ent._.weakner_score for ent in nlp(raw(nlp, TEXTS[0])).ents]
    assert max(after) < min(before)
    assert entities_of(nlp, TEXTS) == GOLD


@pytest.mark.parametrize("temperature", [0.05, 20.0])
def test_temperature_changes_no_entity_of_an_untrained_head(nlp, ner, temperature):
    texts = ["Anna went to New York and back again", "Bob Smith likes Paris more than Rome", "a b c d e f g"]
    before = entities_of(nlp, texts)
    ner.set_temperature(temperature)
    assert entities_of(nlp, texts) == before
    assert any(before)


# Storage


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(load, head, tmp_path, reload):
    nlp = load(**TALKATIVE[head])
    ours = nlp.get_pipe(head)
    ours.set_temperature(2.0)
    other = reload(nlp, tmp_path)
    theirs = other.get_pipe(head)
    docs = [raw(nlp, text) for text in TEXTS]
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    assert ours.predict(docs) == theirs.predict(docs)
    assert entities_of(other, TEXTS) == entities_of(nlp, TEXTS) == GOLD


def test_a_copy_is_independent(trained, tmp_path):
    other = reload_copy(trained, tmp_path)
    train(other, [make_example(other, text) for text in TEXTS])
    assert entities_of(other, TEXTS) == [[]] * 4
    assert entities_of(trained, TEXTS) == GOLD


def test_a_reloaded_pipeline_trains_on(trained, head):
    assert train(trained, make_examples(trained), steps=1)[head] < 0.5


def test_a_pipeline_that_is_not_initialised_is_stored(head, tmp_path):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    other = reload_disk(nlp, tmp_path).get_pipe(head)
    assert other.labels == ("X",)
    assert not other.is_initialized


SCRIPT = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
import spacy
found = {}
for path in Path(sys.argv[1]).iterdir():
    nlp = spacy.load(path)
    for n_process in (1, 2):
        docs = nlp.pipe(json.loads(sys.argv[2]), n_process=n_process, batch_size=2)
        found[f"{path.name} {n_process}"] = [[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs]
print(json.dumps(found))
"""


def test_in_a_new_process_and_in_two(paths):
    command = [sys.executable, "-c", SCRIPT, str(paths), json.dumps(["", *TEXTS])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = json.loads(result.stdout.splitlines()[-1])
    assert {*found} == {f"{name} {n}" for name in HEADS for n in (1, 2)}
    for entities in found.values():
        assert [[tuple(entity) for entity in own] for own in entities] == [[], *GOLD]

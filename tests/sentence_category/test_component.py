"""The component, alone: labels, targets, training, prediction, scores, storage."""

import json
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_weakner.errors import WeaknerError
from spacy_weakner.sentence_category.component import SentenceCategory
from spacy_weakner.sentence_category.model import build_sentence_category
from spacy_weakner.ty import Clocked, PathScorer, Tempered, TokenDistributions, Updated

from ..util import (
    Recorder,
    all_zero,
    clear_gradients,
    gradients,
    make_doc,
    reload_bytes,
    reload_copy,
    reload_disk,
    same,
    train,
    weights,
)
from .util import (
    NAME,
    TEXTS,
    TITLES,
    best,
    category_config,
    category_example,
    category_examples,
    category_pipeline,
)

LABELS = ("clothes", "garden", "kitchen")
NAN = float("nan")
MULTI = {"exclusive_classes": False}


@pytest.fixture
def nlp():
    return category_pipeline()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A pipeline that knows its titles by heart, on disk."""
    folder = tmp_path_factory.mktemp("categories") / "pipeline"
    nlp = category_pipeline()
    train(nlp, category_examples(nlp))
    nlp.to_disk(folder)
    return folder


def empty_pipeline(**settings):
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe(NAME, config=category_config(**settings))


# Labels and initialisation


def test_labels_of_the_examples_are_sorted(nlp):
    assert nlp.get_pipe(NAME).labels == LABELS
    assert nlp.get_pipe(NAME).label_data == [*LABELS]


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_the_number_of_categories_may_be_given(n_outputs):
    nlp = spacy.blank("xx")
    config = category_config()
    pipe = nlp.add_pipe(NAME, config={**config, "model": {**config["model"], "nO": n_outputs}})
    assert not pipe.is_initialized
    if n_outputs == len(LABELS):
        nlp.initialize(lambda: category_examples(nlp))
        assert pipe.is_initialized and pipe.labels == LABELS
    else:
        with pytest.raises(WeaknerError, match=r"\[WK005\].*'nO' = 2 .*: expected 3,"):
            nlp.initialize(lambda: category_examples(nlp))


def test_labels_that_an_example_says_not_to_have_count_too():
    nlp, pipe = empty_pipeline()
    pipe.initialize(lambda: [category_example(nlp, "pan", {"b": 1.0, "a": 0.0})] * 2, nlp=nlp)
    assert pipe.labels == ("a", "b")


def test_given_labels_keep_their_order():
    nlp, pipe = empty_pipeline()
    pipe.initialize(lambda: category_examples(nlp), nlp=nlp, labels=["kitchen", "garden", "clothes", "toys"])
    assert pipe.labels == ("kitchen", "garden", "clothes", "toys")


def test_without_labels():
    nlp, _ = empty_pipeline()
    with pytest.raises(WeaknerError, match=r"\[WK001\] 'sentence_category'.*category labels"):
        nlp.initialize(lambda: [category_example(nlp, "pan")])


def test_one_exclusive_category_is_none():
    nlp, pipe = empty_pipeline()
    with pytest.raises(WeaknerError, match=r"\[WK042\].*'a'.*exclusive_classes = false"):
        pipe.initialize(lambda: [category_example(nlp, "pan", {"a": 1.0})], nlp=nlp)
    nlp, pipe = empty_pipeline(**MULTI)
    pipe.initialize(lambda: [category_example(nlp, "pan", {"a": 1.0})], nlp=nlp)
    assert pipe.labels == ("a",)


def test_a_corpus_without_categories_is_warned_about():
    nlp, pipe = empty_pipeline()
    with pytest.warns(UserWarning, match=r"\[WK904\].*'sentence_category'"):
        pipe.initialize(lambda: [category_example(nlp, "pan")] * 2, nlp=nlp, labels=["a", "b"])


def test_not_initialised():
    nlp, pipe = empty_pipeline()
    with pytest.raises(WeaknerError, match=r"\[WK008\]"):
        pipe.predict([make_doc(nlp, "a")])
    with pytest.raises(WeaknerError, match=r"\[WK008\]"):
        pipe.update([category_example(nlp, "a", {"b": 1.0})])


# Targets


@pytest.mark.parametrize(
    "settings, cats, expected",
    [
        ({}, {"garden": 1.0}, [0, 1, 0]),
        ({}, {"garden": 1.0, "kitchen": 0.0, "unheard": 0.0}, [0, 1, 0]),
        ({}, {}, [NAN, NAN, NAN]),
        # That it is not one of them does not say which it is.
        ({}, {"garden": 0.0}, [NAN, NAN, NAN]),
        (MULTI, {}, [NAN, NAN, NAN]),
        (MULTI, {"garden": 1.0}, [NAN, 1, NAN]),
        (MULTI, {"garden": 0.0, "clothes": 1.0, "unheard": 0.0}, [1, 0, NAN]),
        (MULTI, {"garden": 1.0, "clothes": 1.0, "kitchen": 0.25}, [1, 1, 0.25]),
    ],
)
def test_targets(settings, cats, expected):
    nlp = category_pipeline(LABELS, **settings)
    row = nlp.get_pipe(NAME).encode_target(category_example(nlp, "a b", cats))
    assert row.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_a_doc_without_tokens_teaches_nothing(settings):
    nlp = category_pipeline(LABELS, **settings)
    row = nlp.get_pipe(NAME).encode_target(category_example(nlp, "", {"garden": 1.0}))
    assert numpy.isnan(row).all()


@pytest.mark.parametrize("cats", [{"garden": 1.0, "kitchen": 1.0}, {"garden": 0.5}, {"garden": 2.0}, {"garden": -1.0}])
def test_exclusive_categories_that_are_not(nlp, cats):
    with pytest.raises(WeaknerError, match=r"\[WK041\] 'steel pan'.*'garden'.*exclusive_classes = false"):
        nlp.update([category_example(nlp, "steel pan", cats)], sgd=False)


def test_values_that_are_no_probabilities():
    nlp = category_pipeline(LABELS, **MULTI)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*doc.cats\['garden'\].*between 0.0 and 1.0"):
        nlp.update([category_example(nlp, "pan", {"garden": 2.0})], sgd=False)


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_an_unknown_category(settings):
    nlp = category_pipeline(LABELS, **settings)
    with pytest.raises(WeaknerError, match=r"\[WK003\].*category label 'toys'.*clothes, garden, kitchen"):
        nlp.update([category_example(nlp, "doll", {"toys": 1.0})], sgd=False)


# Training


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_it_learns(settings):
    nlp = category_pipeline(**settings)
    examples = [category_example(nlp, text, {label: float(label == c) for label in LABELS}) for text, c in TITLES]
    before = train(nlp, examples, steps=1)
    after = train(nlp, examples)
    assert after[NAME] < before[NAME] / 10
    assert [best(nlp(make_doc(nlp, text))) for text in TEXTS] == [category for _, category in TITLES]


def test_the_loss_is_the_mean_over_docs_with_a_category(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    losses = nlp.update([*examples, category_example(nlp, "anything")], sgd=False)
    single = [pipe.get_loss([eg], pipe.model.predict([eg.predicted]))[0] for eg in examples]
    assert losses[NAME] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses[NAME]) is float


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_the_weight_scales_loss_and_gradient(weight):
    found = {}
    for own in (1.0, weight):
        nlp = category_pipeline(loss_weight=own)
        losses = nlp.update(category_examples(nlp), sgd=False)
        found[own] = losses[NAME], gradients(nlp.get_pipe(NAME).model)
    assert found[weight][0] == pytest.approx(weight * found[1.0][0])
    assert same(found[weight][1], [g if g is None else weight * g for g in found[1.0][1]], tolerance=1e-5)


def test_a_split_batch_gives_the_same_gradients(nlp):
    examples, model = category_examples(nlp), nlp.get_pipe(NAME).model
    nlp.update(examples, sgd=False)
    whole = gradients(model)
    clear_gradients(model)
    nlp.update(examples[:2], sgd=False)
    nlp.update(examples[:1:-1], sgd=False)
    assert not all_zero(whole)
    assert same(whole, gradients(model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(nlp):
    examples, model = category_examples(nlp), nlp.get_pipe(NAME).model
    losses = nlp.update(examples, sgd=False)
    expected = gradients(model)
    clear_gradients(model)
    empty = category_example(nlp, "", {"garden": 1.0})
    assert nlp.update([empty, *examples, empty], sgd=False) == pytest.approx(losses)
    assert same(expected, gradients(model), tolerance=1e-6)


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(nlp, texts):
    assert nlp.get_pipe(NAME).update([category_example(nlp, text) for text in texts]) == {NAME: 0.0}


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_a_doc_without_categories_has_exactly_no_gradient(settings):
    nlp = category_pipeline(LABELS, **settings)
    assert nlp.update([category_example(nlp, "steel pan")], sgd=False) == {NAME: 0.0}
    assert all_zero(gradients(nlp.get_pipe(NAME).model))


@pytest.mark.parametrize("empty_width", [4, 0])
def test_one_pass_over_all_docs_in_order_also_if_there_is_nothing_to_learn(empty_width):
    nlp = spacy.blank("xx")
    recorder = Recorder(empty_width=empty_width)
    pipe = SentenceCategory(nlp.vocab, build_sentence_category(recorder.model))
    pipe.initialize(lambda: category_examples(nlp))
    for cats in ({}, {"garden": 1.0}):
        recorder.docs, recorder.gradients = [], []
        examples = [category_example(nlp, text, cats) for text in ("", "a b", "c")]
        pipe.update(examples)
        assert recorder.docs == [[eg.predicted for eg in examples]]
        assert [[g.shape for g in call] for call in recorder.gradients] == [[(0, empty_width), (2, 4), (1, 4)]]
        assert all_zero(recorder.gradients[0]) is not bool(cats)


def test_a_loss_that_is_no_number(nlp):
    with pytest.raises(WeaknerError, match=r"\[WK006\] .*'sentence_category'"):
        nlp.get_pipe(NAME).get_loss(category_examples(nlp)[:1], numpy.full((1, 3), numpy.nan))


def test_get_loss_leaves_the_scores_alone(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    scores = pipe.model.predict([eg.predicted for eg in examples])
    before = scores.copy()
    _, gradient = pipe.get_loss(examples, scores)
    assert same([scores], [before])
    assert (gradient.shape, gradient.dtype.name) == ((6, 3), "float32")


def test_other_tokens_than_those_of_the_reference(nlp):
    reference = category_example(nlp, "steel pan", {"kitchen": 1.0}).reference
    predicted = Doc(nlp.vocab, words=["ste", "elpan"], spaces=[False, False])
    assert nlp.update([Example(predicted, reference)], sgd=False)[NAME] > 0


@pytest.mark.parametrize("rate", [0.0, 5.0])
def test_head_learn_rate(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = category_pipeline(head_learn_rate=factor)
        model = nlp.get_pipe(NAME).model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(category_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)


def test_dropout_of_the_training_takes_effect(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    runs = []
    for _ in range(2):
        clear_gradients(pipe.model)
        pipe.update(examples, drop=0.5)
        runs.append(gradients(pipe.model.get_ref("head")))
    assert not same(*runs, tolerance=1e-6)


def test_the_optimizer_is_told_of_once(nlp):
    pipe, met = nlp.get_pipe(NAME), []
    optimizer = nlp.create_optimizer()
    pipe.on_next_update(met.append)
    nlp.update(category_examples(nlp), sgd=optimizer)
    nlp.update(category_examples(nlp), sgd=optimizer)
    assert met == [optimizer]


# Prediction


def test_probabilities(path):
    nlp = spacy.load(path)
    for text, category in TITLES:
        doc = nlp(text)
        assert {*doc.cats} == {*LABELS}
        assert sum(doc.cats.values()) == pytest.approx(1.0)
        assert doc.cats[category] > 0.9
        assert all(type(value) is float for value in doc.cats.values())


def test_independent_probabilities():
    nlp = category_pipeline(**MULTI)
    examples = [category_example(nlp, text, {"short": 1.0, "old": 1.0}) for text in TEXTS]
    nlp = category_pipeline(["short", "old"], **MULTI)
    train(nlp, examples)
    assert min(nlp("pan").cats.values()) > 0.9


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["", "pan", ""], [" "], ["\n\n", "pan"], ["pan"]])
def test_small_docs(path, texts):
    nlp = spacy.load(path)
    docs = list(nlp.pipe(texts))
    assert len(docs) == len(texts)
    for doc in docs:
        assert sum(doc.cats.values()) == pytest.approx(1.0 if len(doc) else 0.0)
        assert {*doc.cats} == {*LABELS}


def test_pipe_is_one_by_one_in_any_order_and_batch_size(nlp):
    texts = [*TEXTS, "", "red steel bench", " ", "pan " * 30]

    def run(texts, size):
        docs = nlp.pipe(texts, batch_size=size)
        return {doc.text: [round(doc.cats[label], 5) for label in LABELS] for doc in docs}

    expected = {text: run([text], 1)[text] for text in texts}
    assert run(texts, 100) == run(texts, 2) == run(texts[::-1], 3) == expected


def test_predict_does_not_touch_the_docs_and_other_categories_stay(path):
    nlp = spacy.load(path)
    doc = make_doc(nlp, "pan", annotated=False)
    doc.cats = {"mine": 0.5}
    rows = nlp.get_pipe(NAME).predict(iter([doc]))
    assert doc.cats == {"mine": 0.5}
    nlp.get_pipe(NAME).set_annotations([doc], rows)
    assert doc.cats["mine"] == 0.5 and len(doc.cats) == 4
    assert not doc.has_annotation("ENT_IOB")


# Scores


def test_scores_are_those_of_textcat(path):
    nlp = spacy.load(path)
    examples = [*category_examples(nlp), category_example(nlp, "pan", {"garden": 1.0})]
    scores = nlp.evaluate(examples)
    predicted = [Example(nlp(eg.predicted), eg.reference) for eg in examples]
    expected = Scorer.score_cats(predicted, "cats", labels=LABELS, multi_label=False)
    assert {key: scores[key] for key in expected} == expected
    assert 0.5 < scores["cats_score"] < 1.0
    assert scores["cats_score_desc"] == "macro F"


def test_docs_without_a_category_do_not_count(path):
    nlp = spacy.load(path)
    examples = category_examples(nlp)
    expected = nlp.evaluate(examples)
    unknown = [category_example(nlp, "pan", {}), category_example(nlp, "bench", {"garden": 0.0})]
    found = nlp.evaluate([*examples, *unknown])
    assert {key: found[key] for key in expected if key != "speed"} == {
        key: value for key, value in expected.items() if key != "speed"
    }
    assert nlp.evaluate(unknown)["cats_micro_f"] == 0.0


def test_two_categories_and_a_positive_label():
    nlp, pipe = empty_pipeline()
    examples = [
        category_example(nlp, text, {"yes": float("pan" in text), "no": float("pan" not in text)}) for text in TEXTS
    ]
    pipe.initialize(lambda: examples, nlp=nlp, positive_label="yes")
    train(nlp, examples)
    wrong = category_example(nlp, "bench", {"yes": 1.0, "no": 0.0})
    scores = nlp.evaluate([*examples, wrong])
    assert scores["cats_score_desc"] == "F (yes)"
    assert scores["cats_score"] == pytest.approx(0.8)
    assert reload_bytes(nlp, None).evaluate([*examples, wrong])["cats_score"] == pytest.approx(0.8)


@pytest.mark.parametrize("labels, settings, positive", [("ab", {}, "c"), ("abc", {}, "a"), ("ab", MULTI, "a")])
def test_a_positive_label_that_cannot_be(labels, settings, positive):
    nlp, pipe = empty_pipeline(**settings)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'positive_label'.*two exclusive categories"):
        pipe.initialize(lambda: category_examples(nlp), nlp=nlp, labels=[*labels], positive_label=positive)


def test_scores_of_independent_categories():
    nlp = category_pipeline(**MULTI)
    examples = [category_example(nlp, text, {label: float(label == c) for label in LABELS}) for text, c in TITLES]
    train(nlp, examples)
    scores = nlp.evaluate(examples)
    assert scores["cats_score_desc"] == "macro AUC"
    assert scores["cats_score"] == scores["cats_micro_f"] == 1.0


def test_without_a_scorer():
    assert empty_pipeline(scorer=None)[1].score([]) == {}


def test_what_it_assigns_and_which_scores_are_shown(nlp):
    assert nlp.analyze_pipes()["summary"][NAME]["assigns"] == ["doc.cats"]
    textcat = spacy.blank("en").add_pipe("textcat")
    assert textcat is not None
    theirs = spacy.language.Language.get_factory_meta("textcat").default_score_weights
    assert nlp.get_pipe_meta(NAME).default_score_weights == theirs


# Settings and storage


@pytest.mark.parametrize(
    "settings, name", [({"loss_weight": -1.0}, "loss_weight"), ({"head_learn_rate": -1.0}, "head")]
)
def test_settings_that_cannot_be(settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}"):
        empty_pipeline(**settings)


def test_config_round_trip():
    settings = {"loss_weight": 0.3, "exclusive_classes": False, "head_learn_rate": 7.0}
    nlp, _ = empty_pipeline(**settings)
    again = load_model_from_config(Config().from_str(nlp.config.to_str(), interpolate=False))
    assert again.config["components"] == nlp.config["components"]
    assert {key: getattr(again.get_pipe(NAME), key) for key in settings} == settings


def test_settings_of_the_loading_config_win_and_cfg_holds_labels_only(path):
    pipe = spacy.load(path, config={"components": {NAME: {"loss_weight": 5.0}}}).get_pipe(NAME)
    assert pipe.loss_weight == 5.0
    assert pipe.cfg == {"labels": [*LABELS], "positive_label": None}


def test_protocols(nlp):
    """Stages that look for taggers do not find it."""
    pipe = nlp.get_pipe(NAME)
    assert isinstance(pipe, Clocked) and isinstance(pipe, Updated)
    assert not isinstance(pipe, (Tempered, TokenDistributions, PathScorer))


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(path, tmp_path, reload):
    nlp = spacy.load(path)
    other = reload(nlp, tmp_path)
    ours, theirs = nlp.get_pipe(NAME), other.get_pipe(NAME)
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    assert [doc.cats for doc in nlp.pipe(TEXTS)] == [doc.cats for doc in other.pipe(TEXTS)]
    assert train(other, category_examples(other), steps=1)[NAME] < 0.5


def test_a_pipeline_that_is_not_initialised_is_stored(tmp_path):
    nlp, pipe = empty_pipeline()
    pipe.add_label("X")
    other = reload_disk(nlp, tmp_path).get_pipe(NAME)
    assert other.labels == ("X",)
    assert not other.is_initialized


SCRIPT = """
import json, sys, torch
torch.set_num_threads(1)
import spacy
nlp = spacy.load(sys.argv[1])
found = [[doc.cats for doc in nlp.pipe(json.loads(sys.argv[2]), n_process=n, batch_size=2)] for n in (1, 2)]
print(json.dumps(found))
"""


def test_in_a_new_process_and_in_two(path):
    texts = ["", *TEXTS]
    command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(texts)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    expected = [doc.cats for doc in spacy.load(path).pipe(texts)]
    for found in json.loads(result.stdout.splitlines()[-1]):
        assert [list(own.values()) for own in found] == [
            pytest.approx(list(own.values()), abs=1e-5) for own in expected
        ]

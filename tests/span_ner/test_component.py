"""The component in a pipeline: labels, initialisation, settings, entities that are there already, storage."""

import json
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.tokens import Span
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Config

from spacy_weakner.annotations.weak import doc_entities, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.span_ner.component import make_span_ner
from spacy_weakner.span_ner.samplers import UniformNegativeSampler
from spacy_weakner.ty import Clocked, Statistician

from ..crf_ner.test_component import SCRIPT, reload_bytes, reload_copy, reload_disk
from ..util import (
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    make_doc,
    make_example,
    make_examples,
    same,
    train,
    weights,
)
from .util import GOLD, NESTED, NESTED_TEXT, UNIFORM, WEIGHTED, add_group, force_scores, span_config, span_pipeline


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A pipeline that knows its sentences by heart, on disk."""
    folder = tmp_path_factory.mktemp("span_ner")
    nlp = span_pipeline()
    train(nlp, make_examples(nlp))
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def trained(path):
    return spacy.load(path)


def load(path, **settings):
    return spacy.load(path, config={"components": {"span_ner": settings}})


def empty_pipe(nlp, **settings):
    return nlp.add_pipe("span_ner", config=span_config(**settings))


# Labels


def test_without_labels():
    nlp = spacy.blank("xx")
    empty_pipe(nlp)
    with pytest.raises(WeaknerError, match=r"\[WK001\] 'span_ner'"):
        nlp.initialize(lambda: [make_example(nlp, "no entity")])


def test_labels_of_the_examples_are_sorted():
    ner = span_pipeline().get_pipe("span_ner")
    assert ner.labels == ("LOC", "PER")
    assert ner.label_data == ["LOC", "PER"]
    assert ner.n_outputs == 3


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"]])
def test_given_labels_keep_their_order_in_the_outputs(labels):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    assert ner.labels == tuple(labels)
    for i, label in enumerate(labels, start=1):
        force_scores(ner.model, [9.0 * (i == j) for j in range(len(labels) + 1)])
        assert doc_entities(nlp(make_doc(nlp, "a", annotated=False))) == [(0, 1, label)]


def test_labels_of_the_group_that_is_learned_from():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, spans_key="x")
    example = make_example(nlp, NESTED_TEXT, [(0, 1, "PER")])
    add_group(example.reference, "x", NESTED)
    nlp.initialize(lambda: [example, make_example(nlp, "a")])
    assert ner.labels == ("LOC", "ORG")


def test_labels_may_be_added_before_initialisation_and_come_first():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    assert [ner.add_label("X"), ner.add_label("X")] == [1, 0]
    nlp.initialize(lambda: make_examples(nlp))
    assert ner.labels == ("X", "LOC", "PER")


def test_labels_cannot_be_added_afterwards():
    ner = span_pipeline().get_pipe("span_ner")
    assert ner.add_label("PER") == 0
    with pytest.raises(WeaknerError, match=r"\[WK002\].*LOC, PER.*'ORG'"):
        ner.add_label("ORG")
    with pytest.raises(WeaknerError, match=r"\[WK005\].*label.*string"):
        ner.add_label(1)


def test_label_data_initialises_alike():
    nlp, other = span_pipeline(), spacy.blank("xx")
    fix_random_seed(0)
    ner = empty_pipe(other)
    labels = json.loads(json.dumps(nlp.get_pipe("span_ner").label_data))
    other.config["initialize"]["components"]["span_ner"] = {"labels": labels}
    other.initialize(lambda: make_examples(other))
    assert same(weights(ner.model), weights(nlp.get_pipe("span_ner").model))


# Initialisation


@pytest.mark.parametrize("get_examples", [lambda: None, lambda: [], lambda: ["text"], []])
def test_get_examples_of_wrong_shapes(get_examples):
    nlp = spacy.blank("xx")
    with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
        empty_pipe(nlp).initialize(get_examples, nlp=nlp, labels=["X"])


@pytest.mark.parametrize("texts", [[""], ["", "a b"]])
def test_initialisation_with_empty_docs(texts):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.initialize(lambda: (make_example(nlp, text) for text in texts), nlp=nlp, labels=["X"])
    assert ner.model.get_ref("head").get_dim("nO") == 2
    assert ner.model.get_ref("head").get_dim("nI") == 16


def test_a_corpus_without_any_annotation_is_warned_about():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    with pytest.warns(UserWarning, match=r"\[WK900\].*'span_ner'"):
        ner.initialize(lambda: [make_example(nlp, "a b", annotated=False)] * 2, nlp=nlp, labels=["X"])


@pytest.mark.parametrize("key", [None, "x"])
def test_entities_that_are_too_wide_are_warned_about(key):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, max_width=2, spans_key=key)
    example = make_example(nlp, NESTED_TEXT, NESTED[:1])
    add_group(example.reference, "x", NESTED)
    total = 1 if key is None else 2
    message = rf"\[WK901\] 1 of the {total} entities that 'span_ner'.*max_width = 2.*widest has 4"
    with pytest.warns(UserWarning, match=message):
        ner.initialize(lambda: [example], nlp=nlp)
    assert "ORG" in ner.labels


@pytest.mark.parametrize("max_width", [None, 4, 10])
def test_entities_that_are_not_too_wide_are_not_warned_about(max_width):
    nlp = spacy.blank("xx")
    empty_pipe(nlp, max_width=max_width).initialize(lambda: [make_example(nlp, NESTED_TEXT, NESTED[:1])], nlp=nlp)


@pytest.mark.parametrize("use", ["predict", "update"])
def test_not_initialised(use):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.add_label("X")
    argument = [make_example(nlp, "a")] if use == "update" else [make_doc(nlp, "a")]
    with pytest.raises(WeaknerError, match=r"\[WK008\] 'span_ner'"):
        getattr(ner, use)(argument)


# Settings


def test_the_factory_passes_every_setting_on():
    nlp = span_pipeline()
    settings = {
        "sampler": UniformNegativeSampler(0.5),
        "max_width": 3,
        "nested": True,
        "spans_key": "x",
        "incorrect_spans_key": "y",
        "head_learn_rate": 5.0,
        "overwrite": True,
        "scorer": print,
    }
    ner = make_span_ner(nlp, "mine", nlp.get_pipe("span_ner").model, **settings)
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.name == "mine"


@pytest.mark.parametrize("settings", [{"max_width": 0}, {"max_width": -2}, {"head_learn_rate": -1.0}])
def test_settings_out_of_range(settings):
    (name,) = settings
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        empty_pipe(spacy.blank("xx"), **settings)


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="treshold"):
        spacy.blank("xx").add_pipe("span_ner", config={"treshold": 1})


def test_hidden_width_is_that_of_the_layer():
    assert span_pipeline().get_pipe("span_ner").model.get_ref("head").get_param("A").shape == (16, 16)


@pytest.mark.parametrize("sampler, weighted", [(UNIFORM, False), (WEIGHTED, True)])
def test_the_sampler_decides_whether_a_clock_is_needed(sampler, weighted):
    assert empty_pipe(spacy.blank("xx"), sampler=sampler).needs_clock is weighted


@pytest.mark.parametrize("max_width, expected", [(1, 4), (2, 7), (3, 9), (None, 10), (50, 10)])
def test_max_width_bounds_what_is_found(max_width, expected):
    nlp = span_pipeline(labels=["X"], max_width=max_width, nested=True)
    force_scores(nlp.get_pipe("span_ner").model, [0, 9])
    found = group_entities(nlp(make_doc(nlp, "a b c d", annotated=False)), "pred:span_ner")
    assert len(found) == expected
    assert max(end - start for start, end, _ in found) == min(4, max_width or 4)


def test_settings_of_the_loading_config_win(path):
    settings = {"max_width": 1, "nested": True, "overwrite": True, "head_learn_rate": 7.0, "spans_key": "x"}
    nlp = load(path, **settings, sampler=UNIFORM)
    ner = nlp.get_pipe("span_ner")
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.sampler == UniformNegativeSampler()
    assert doc_entities(nlp(make_doc(nlp, TEXTS[0], annotated=False)))[:1] == GOLD[0][:1]


def test_only_what_training_creates_is_in_cfg(trained):
    ner = trained.get_pipe("span_ner")
    assert ner.cfg == {"labels": ["LOC", "PER"], "temperature": 1.0}
    assert not any(node.attrs for node in ner.model.get_ref("head").walk() if node.name == "span_scorer")


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_head_learn_rate_scales_the_steps_of_the_head(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = span_pipeline(head_learn_rate=factor)
        model = nlp.get_pipe("span_ner").model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(make_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)
    assert not all_zero(steps[1.0][1])


def test_dropout_of_the_training_reaches_the_head():
    nlp = span_pipeline()
    ner, examples = nlp.get_pipe("span_ner"), make_examples(nlp)
    alike = {}
    for drop in (0.0, 0.5):
        runs = []
        for _ in range(2):
            clear_gradients(ner.model)
            ner.update(examples, drop=drop)
            runs.append(gradients(ner.model.get_ref("head")))
        alike[drop] = same(*runs, tolerance=1e-6)
    assert alike == {0.0: True, 0.5: False}


def test_the_scorer_is_used(trained):
    scores = trained.evaluate(make_examples(trained))
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == (1.0, 1.0, 1.0)
    assert {*scores["ents_per_type"]} == {"LOC", "PER"}
    assert span_pipeline(scorer=None).get_pipe("span_ner").score([]) == {}


def test_false_entities_of_sentences_without_any_count(trained):
    scores = trained.evaluate([make_example(trained, "Bob"), make_example(trained, TEXTS[1], GOLD[1])])
    assert (scores["ents_p"], scores["ents_r"]) == (pytest.approx(2 / 3), 1.0)


def test_what_it_assigns_and_which_scores_are_shown(trained):
    assert trained.analyze_pipes()["summary"]["span_ner"]["assigns"] == ["doc.ents", "token.ent_iob", "token.ent_type"]
    expected = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
    assert trained.get_pipe_meta("span_ner").default_score_weights == expected


def test_protocols(trained):
    assert isinstance(trained.get_pipe("span_ner"), Clocked)
    assert isinstance(trained.get_pipe("span_ner"), Statistician)


# Entities that are there already


def test_preset_entities_stay_and_predictions_fill_the_rest(trained):
    doc = make_doc(trained, TEXTS[0], annotated=False)
    doc.ents = [Span(doc, 4, 5, "ORG", kb_id="Q1")]
    found = trained(doc)
    assert doc_entities(found) == [(0, 1, "PER"), (4, 5, "ORG")]
    assert found.ents[-1].kb_id_ == "Q1"


def test_overwrite_replaces_them(path):
    nlp = load(path, overwrite=True)
    assert doc_entities(nlp(make_doc(nlp, TEXTS[0], [(1, 5, "ORG")]))) == GOLD[0]


@pytest.mark.parametrize("overwrite, expected", [(False, [(0, 1, "PER")]), (True, GOLD[0])])
def test_blocked_tokens_stay_unless_overwritten(path, overwrite, expected):
    nlp = load(path, overwrite=overwrite)
    doc = make_doc(nlp, TEXTS[0])
    doc.set_ents([], blocked=[doc[4:5]], default="missing")
    doc = nlp(doc)
    assert doc_entities(doc) == expected
    assert (doc[4].ent_iob_, doc[4].ent_type_) == (("I", "LOC") if overwrite else ("B", ""))


def test_candidates_do_not_touch_what_has_to_stay():
    nlp = span_pipeline(labels=["X"], nested=True)
    force_scores(nlp.get_pipe("span_ner").model, [0, 9])
    doc = make_doc(nlp, "a b c d e", annotated=False)
    doc.set_ents([Span(doc, 1, 2, "Y")], blocked=[doc[3:4]], default="missing")
    assert group_entities(nlp(doc), "pred:span_ner") == [(0, 1, "X"), (2, 3, "X"), (4, 5, "X")]


def test_annotating_twice_changes_nothing(trained):
    doc = trained(make_doc(trained, TEXTS[1], annotated=False))
    before = [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents]
    trained.get_pipe("span_ner")(doc)
    assert [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents] == before


# Storage


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(tmp_path, trained, reload):
    trained.get_pipe("span_ner").cfg["temperature"] = 2.0
    other = reload(trained, tmp_path)
    ours, theirs = trained.get_pipe("span_ner"), other.get_pipe("span_ner")
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    docs = [make_doc(trained, text, annotated=False) for text in TEXTS]
    assert [p.scores for p in ours.predict(docs)] == [p.scores for p in theirs.predict(docs)]
    assert entities_of(other, TEXTS) == entities_of(trained, TEXTS) == GOLD


def test_a_copy_is_independent(trained, tmp_path):
    other = reload_copy(trained, tmp_path)
    train(other, [make_example(other, text) for text in TEXTS])
    assert entities_of(other, TEXTS) == [[]] * 4
    assert entities_of(trained, TEXTS) == GOLD


def test_a_reloaded_pipeline_trains_on(trained):
    assert train(trained, make_examples(trained), steps=1)["span_ner"] < 0.5


def test_a_pipeline_that_is_not_initialised_is_stored(tmp_path):
    nlp = spacy.blank("xx")
    empty_pipe(nlp).add_label("X")
    ner = reload_disk(nlp, tmp_path).get_pipe("span_ner")
    assert ner.labels == ("X",)
    assert not ner.is_initialized


def test_config_round_trip():
    settings = {"max_width": None, "nested": True, "spans_key": "x", "incorrect_spans_key": "y", "overwrite": True}
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, **settings, sampler={**WEIGHTED, "exponent": 3.0})
    again = load_model_from_config(Config().from_str(nlp.config.to_str(), interpolate=False))
    assert again.config["components"] == nlp.config["components"]
    other = again.get_pipe("span_ner")
    assert {key: getattr(other, key) for key in settings} == settings
    assert other.sampler == ner.sampler


def test_in_a_new_process_and_in_two(path):
    command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(["", *TEXTS])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    for line in result.stdout.splitlines()[-2:]:
        assert [[tuple(entity) for entity in entities] for entities in json.loads(line)] == [[], *GOLD]


def test_weights_are_float32(trained):
    assert {array.dtype for array in weights(trained.get_pipe("span_ner").model.get_ref("head"))} == {
        numpy.dtype("float32")
    }

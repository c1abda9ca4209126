"""The component in a pipeline: questions, initialisation, settings, storage."""

import copy
import inspect
import json
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec

import numpy
import pytest
import spacy
from spacy.tokens import Span
from spacy.training.initialize import init_nlp
from spacy.util import fix_random_seed, load_config_from_str, load_model_from_config
from thinc.api import Config

from spacy_weakner.annotations.corpus import write_docs
from spacy_weakner.annotations.weak import doc_entities, group_entities
from spacy_weakner.cofee.fine_typing import FineTyping
from spacy_weakner.cofee.picking import SelfPicking
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner.component import make_mrc_ner
from spacy_weakner.training.weights import LoadWeights
from spacy_weakner.ty import PAIRINGS, Clocked, Renewable, Tempered

from ..span_ner.util import NESTED, NESTED_TEXT, add_group
from ..util import (
    GOLD,
    LISTENER,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    make_doc,
    make_example,
    make_examples,
    reload_bytes,
    reload_copy,
    reload_disk,
    same,
    train,
    weights,
)
from .util import QUERIES, conditioned, give_scores, log_odds, mrc_config, mrc_pipeline, table, together

needs_transformers = pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra 'transformers'")
PICKING = {"@misc": "spacy_weakner.SelfPicking.v1"}
SCRIPT = """
import json, sys
import torch
torch.set_num_threads(1)
import spacy
for path in sys.argv[2:]:
    nlp = spacy.load(path)
    for n_process in (1, 2):
        docs = nlp.pipe(json.loads(sys.argv[1]), n_process=n_process, batch_size=2)
        print(json.dumps([[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs]))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A pipeline that knows its sentences by heart, on disk."""
    folder = tmp_path_factory.mktemp("mrc_ner")
    nlp = mrc_pipeline()
    train(nlp, make_examples(nlp))
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def trained(path):
    return spacy.load(path)


def load(path, **settings):
    return spacy.load(path, config={"components": {"mrc_ner": settings}})


def empty_pipe(nlp, **settings):
    return nlp.add_pipe("mrc_ner", config=mrc_config(**settings))


def raw(nlp, text):
    return make_doc(nlp, text, annotated=False)


# Labels and questions


def test_labels_are_those_of_the_questions():
    ner = mrc_pipeline().get_pipe("mrc_ner")
    assert ner.labels == ("PER", "LOC") and ner.label_data == ["PER", "LOC"]
    assert ner.queries == QUERIES and ner.n_outputs == 2


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_the_number_of_scores_is_two(n_outputs):
    nlp = spacy.blank("xx")
    config = mrc_config()
    ner = nlp.add_pipe("mrc_ner", config={**config, "model": {**config["model"], "nO": n_outputs}})
    assert not ner.is_initialized
    if n_outputs == 2:
        ner.initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES)
        assert ner.is_initialized
    else:
        with pytest.raises(WeaknerError, match=r"\[WK005\].*'nO' = 3 .*: expected 2,"):
            ner.initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES)


@pytest.mark.parametrize("labels", [["LOC", "PER"], ["LOC"]])
def test_given_labels_choose_among_the_questions(labels):
    ner = mrc_pipeline(labels=labels).get_pipe("mrc_ner")
    assert ner.labels == tuple(labels) and list(ner.queries) == labels
    assert ner.model.attrs["queries"] == [QUERIES[label] for label in labels]


@pytest.mark.parametrize("queries", [None, {}])
def test_without_questions(queries):
    nlp = spacy.blank("xx")
    with pytest.raises(WeaknerError, match=r"\[WK036\] 'mrc_ner'.*\?"):
        empty_pipe(nlp).initialize(lambda: make_examples(nlp), nlp=nlp, queries=queries)


def test_a_label_of_the_examples_without_a_question():
    nlp = spacy.blank("xx")
    queries = {"LOC": QUERIES["LOC"]}
    with pytest.raises(WeaknerError, match=r"\[WK036\].*labels PER\."):
        empty_pipe(nlp).initialize(lambda: make_examples(nlp), nlp=nlp, queries=queries)
    other = spacy.blank("xx")
    empty_pipe(other).initialize(lambda: make_examples(other), nlp=other, queries=queries, labels=["LOC"])


def test_a_label_without_a_question():
    nlp = spacy.blank("xx")
    with pytest.raises(WeaknerError, match=r"\[WK036\].*labels ORG, DATE\."):
        empty_pipe(nlp).initialize(
            lambda: make_examples(nlp), nlp=nlp, queries=QUERIES, labels=["ORG", "PER", "LOC", "DATE"]
        )
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.add_label("X")
    for labels in (None, ["PER"]):
        with pytest.raises(WeaknerError, match=r"\[WK036\].*labels X\."):
            ner.initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES, labels=labels)


@pytest.mark.parametrize("label, query", [("X", ""), ("X", "  "), ("X", None)])
def test_an_empty_question(trained, label, query):
    with pytest.raises(WeaknerError, match=r"\[WK034\] mrc_ner: the label 'X'"):
        trained.get_pipe("mrc_ner").ask(label, query)
    assert trained.get_pipe("mrc_ner").labels == ("PER", "LOC")


def test_questions_asked_before_initialisation_come_first():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.ask("ORG", "which company")
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES)
    assert ner.labels == ("ORG", "PER", "LOC")
    assert ner.model.attrs["queries"] == ["which company", *QUERIES.values()]


def test_a_label_of_the_corpus_that_nobody_asks_for(trained):
    example = make_example(trained, "Anna went", [(0, 1, "DATE")])
    with pytest.raises(WeaknerError, match=r"\[WK003\] 'mrc_ner'.*'DATE'.*PER, LOC"):
        trained.update([example])


def test_a_new_label_with_a_known_question_is_found_where_the_known_one_is(trained):
    ner = trained.get_pipe("mrc_ner")
    ner.nested = True
    ner.ask("PLACE", QUERIES["LOC"])
    assert ner.labels == ("PER", "LOC", "PLACE") and "PLACE" in trained.vocab.strings
    for text, gold in SENTENCES:
        expected = sorted([*gold, *((start, end, "PLACE") for start, end, label in gold if label == "LOC")])
        assert group_entities(trained(raw(trained, text)), "pred:mrc_ner") == expected


def test_another_question_changes_the_answers(trained):
    ner = trained.get_pipe("mrc_ner")
    ner.ask("LOC", QUERIES["PER"])
    ner.ask("PER", QUERIES["LOC"])
    other = {"PER": "LOC", "LOC": "PER"}
    assert ner.labels == ("PER", "LOC")
    expected = [[(start, end, other[label]) for start, end, label in entities] for entities in GOLD]
    assert entities_of(trained, TEXTS) == expected


def test_questions_do_not_disturb_each_other(trained):
    trained.get_pipe("mrc_ner").ask("X", "some thing else")
    found = [[own for own in entities if own[2] != "X"] for entities in entities_of(trained, TEXTS)]
    trained.get_pipe("mrc_ner").nested = True
    for text, gold in SENTENCES:
        candidates = group_entities(trained(raw(trained, text)), "pred:mrc_ner")
        assert [own for own in candidates if own[2] != "X"] == gold
    assert len(found) == 4


def test_a_new_label_is_learned_and_stored(trained, tmp_path):
    trained.get_pipe("mrc_ner").ask("VERB", "who does what")
    examples = [make_example(trained, text, gold) for text, gold in SENTENCES]
    examples[0] = make_example(trained, TEXTS[0], [*GOLD[0][:1], (1, 2, "VERB"), *GOLD[0][1:]])
    train(trained, examples)
    trained.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    assert other.get_pipe("mrc_ner").queries == {**QUERIES, "VERB": "who does what"}
    for nlp in (trained, other):
        assert entities_of(nlp, TEXTS) == [doc_entities(example.reference) for example in examples]


# Initialisation


def test_the_default_model_needs_no_download():
    nlp = spacy.blank("xx")
    nlp.add_pipe("mrc_ner").initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES)
    assert nlp.get_pipe("mrc_ner").model.get_ref("head").layers[1].get_dim("nI") == 3 * 96
    assert len(list(nlp.pipe(TEXTS))) == 4


CONFIG = """
[paths]
train = null

[nlp]
lang = "xx"
pipeline = ["mrc_ner"]

[components]

[components.mrc_ner]
factory = "mrc_ner"

[initialize]

[initialize.components]

[initialize.components.mrc_ner]

[initialize.components.mrc_ner.queries]
@readers = "spacy_weakner.Queries.v1"

[corpora]

[corpora.train]
@readers = "spacy_weakner.Corpus.v1"
path = ${paths.train}

[corpora.dev]
@readers = "spacy_weakner.Corpus.v1"
path = ${paths.train}

[training]
seed = 0
gpu_allocator = null
"""


@pytest.mark.parametrize("how", ["json", "toml", "inline", "plain"])
def test_questions_in_the_config(tmp_path, how):
    nlp = spacy.blank("xx")
    write_docs(tmp_path / "train.spacy", [example.reference for example in make_examples(nlp)])
    (tmp_path / "q.json").write_text(json.dumps(QUERIES))
    (tmp_path / "q.toml").write_text("\n".join(f'{label} = "{query}"' for label, query in QUERIES.items()))
    config = load_config_from_str(CONFIG)
    config["paths"]["train"] = str(tmp_path / "train.spacy")
    section = config["initialize"]["components"]["mrc_ner"]
    if how == "plain":
        section["queries"] = QUERIES
    else:
        section["queries"].update({"queries": QUERIES} if how == "inline" else {"path": str(tmp_path / f"q.{how}")})
    ner = init_nlp(config).get_pipe("mrc_ner")
    assert ner.queries == QUERIES and ner.is_initialized


def test_labels_of_init_labels_initialise_alike():
    nlp, other = mrc_pipeline(), spacy.blank("xx")
    fix_random_seed(0)
    ner = empty_pipe(other)
    labels = json.loads(json.dumps(nlp.get_pipe("mrc_ner").label_data))
    other.config["initialize"]["components"]["mrc_ner"] = {"labels": labels, "queries": QUERIES}
    other.initialize(lambda: make_examples(other))
    assert same(weights(ner.model), weights(nlp.get_pipe("mrc_ner").model))


@pytest.mark.parametrize("get_examples", [lambda: None, lambda: [], lambda: ["text"], []])
def test_get_examples_of_wrong_shapes(get_examples):
    nlp = spacy.blank("xx")
    with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
        empty_pipe(nlp).initialize(get_examples, nlp=nlp, queries=QUERIES)


@pytest.mark.parametrize("texts", [[""], ["", "a b"]])
def test_initialisation_with_empty_docs(texts):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.initialize(lambda: (make_example(nlp, text) for text in texts), nlp=nlp, queries=QUERIES)
    assert ner.model.get_ref("head").get_dim("nO") == 2
    assert ner.model.get_ref("head").layers[1].get_dim("nI") == 48


def test_initialisation_without_examples():
    nlp = spacy.blank("xx")
    empty_pipe(nlp)
    nlp.config["initialize"]["components"]["mrc_ner"] = {"queries": QUERIES}
    nlp.initialize()
    assert nlp.get_pipe("mrc_ner").is_initialized


def test_a_corpus_without_any_annotation_is_warned_about():
    nlp = spacy.blank("xx")
    with pytest.warns(UserWarning, match=r"\[WK900\].*'mrc_ner'"):
        examples = [make_example(nlp, "a b", annotated=False)] * 2
        empty_pipe(nlp).initialize(lambda: examples, nlp=nlp, queries=QUERIES)


@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize("max_width", [None, 4, 3])
def test_entities_that_are_too_wide_are_warned_about(key, max_width):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, max_width=max_width, spans_key=key)
    example = make_example(nlp, NESTED_TEXT, NESTED[:1])
    add_group(example.reference, "x", NESTED)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ner.initialize(lambda: [example], nlp=nlp, queries={**QUERIES, "ORG": "which company"})
    messages = [str(own.message) for own in found]
    assert len(messages) == (max_width == 3)
    assert all(f"[WK901] 1 of the {2 if key else 1} entities that 'mrc_ner'" in message for message in messages)


def test_a_group_that_no_example_has_is_warned_about():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, spans_key="x")
    with pytest.warns(UserWarning, match=r"\[WK902\].*'mrc_ner'.*'x'"):
        ner.initialize(lambda: make_examples(nlp)[:1], nlp=nlp, queries=QUERIES)


@pytest.mark.parametrize("use", ["predict", "update"])
def test_not_initialised(use):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.ask("X", "who")
    argument = [make_example(nlp, "a")] if use == "update" else [make_doc(nlp, "a")]
    with pytest.raises(WeaknerError, match=r"\[WK008\] 'mrc_ner'"):
        getattr(ner, use)(argument)


def test_an_encoder_of_another_component_is_refused():
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    with pytest.raises(WeaknerError, match=r"\[WK028\] 'mrc_ner'"):
        empty_pipe(nlp, encoder=conditioned(LISTENER))


# Settings

SETTINGS = {
    "threshold": 0.2,
    "max_width": 3,
    "pairing": "probable",
    "positive_weight": 4.0,
    "match_weight": 0.5,
    "relabel": SelfPicking(0.3),
    "typing": FineTyping(4),
    "nested": True,
    "spans_key": "x",
    "head_learn_rate": 5.0,
    "overwrite": True,
    "scorer": print,
}


def test_the_factory_passes_every_setting_on():
    model = mrc_pipeline(n_types=4).get_pipe("mrc_ner").model
    ner = make_mrc_ner(mrc_pipeline(), "mine", model, **SETTINGS, teacher_decay=0.5)
    assert {key: getattr(ner, key) for key in SETTINGS} == SETTINGS
    assert ner.name == "mine" and ner._teacher.decay == 0.5
    assert {*SETTINGS, "teacher_decay"} == {*inspect.signature(make_mrc_ner).parameters} - {"nlp", "name", "model"}


@pytest.mark.parametrize(
    "settings",
    [
        {"threshold": -0.1},
        {"threshold": 1.1},
        {"positive_weight": -1.0},
        {"match_weight": -0.1},
        {"max_width": 0},
        {"pairing": "any"},
        {"teacher_decay": 1.5},
        {"head_learn_rate": -1.0},
    ],
)
def test_settings_out_of_range(settings):
    (name,) = settings
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        empty_pipe(spacy.blank("xx"), **settings)


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="treshold"):
        spacy.blank("xx").add_pipe("mrc_ner", config={"treshold": 1})


@pytest.mark.parametrize("relabel, needed", [(None, False), (PICKING, True)])
def test_relabelling_decides_whether_a_clock_is_needed(relabel, needed):
    nlp = mrc_pipeline(relabel=relabel)
    assert nlp.get_pipe("mrc_ner").needs_clock is needed
    if needed:
        with pytest.raises(WeaknerError, match=r"\[WK004\] 'mrc_ner'"):
            nlp.update(make_examples(nlp))


def test_settings_of_the_loading_config_win(path):
    other = ("scorer", "relabel", "typing", "max_width")
    settings = {key: value for key, value in SETTINGS.items() if key not in other}
    nlp = load(path, **settings, max_width=1, relabel={**PICKING, "union": True}, scorer=None)
    ner = nlp.get_pipe("mrc_ner")
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.relabel == SelfPicking(union=True) and ner.scorer is None
    assert doc_entities(nlp(raw(nlp, TEXTS[0]))) == GOLD[0][:1]


def test_only_what_training_creates_is_in_cfg(trained):
    ner = trained.get_pipe("mrc_ner")
    assert ner.cfg == {"labels": ["PER", "LOC"], "queries": QUERIES, "temperature": 1.0}


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_head_learn_rate_scales_the_steps_of_the_head(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = mrc_pipeline(head_learn_rate=factor)
        model = nlp.get_pipe("mrc_ner").model
        # The scores begin as zeros, and so would the gradient of the encoder.
        model.get_ref("head").layers[1].set_param("W", numpy.random.RandomState(0).normal(size=(2, 48)).astype("f"))
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(make_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)
    assert not all_zero(steps[1.0][0]) and not all_zero(steps[1.0][1])


def test_dropout_of_the_training_reaches_the_head():
    nlp = mrc_pipeline()
    ner, examples = nlp.get_pipe("mrc_ner"), make_examples(nlp)
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
    assert mrc_pipeline(scorer=None).get_pipe("mrc_ner").score([]) == {}


def test_false_entities_of_sentences_without_any_count(trained):
    scores = trained.evaluate([make_example(trained, "Bob"), make_example(trained, TEXTS[1], GOLD[1])])
    assert (scores["ents_p"], scores["ents_r"]) == (pytest.approx(2 / 3), 1.0)


def test_what_it_assigns_and_which_scores_are_shown(trained):
    assert trained.analyze_pipes()["summary"]["mrc_ner"]["assigns"] == ["doc.ents", "token.ent_iob", "token.ent_type"]
    expected = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
    assert trained.get_pipe_meta("mrc_ner").default_score_weights == expected


def test_protocols(trained):
    for protocol in (Clocked, Renewable, Tempered):
        assert isinstance(trained.get_pipe("mrc_ner"), protocol)


# Entities that are there already


def test_preset_entities_stay_and_predictions_fill_the_rest(trained):
    doc = raw(trained, TEXTS[0])
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
    assert doc_entities(nlp(doc)) == expected


def test_candidates_do_not_touch_what_has_to_stay():
    nlp = mrc_pipeline(nested=True)
    give_scores(nlp, table(5, PER=[(0, 2), (2, 3), (4, 5)]))
    doc = raw(nlp, "a b c d e")
    doc.set_ents([Span(doc, 1, 2, "Y")], blocked=[doc[3:4]], default="missing")
    assert group_entities(nlp(doc), "pred:mrc_ner") == [(2, 3, "PER"), (4, 5, "PER")]


@pytest.mark.parametrize(
    "pairing, threshold, expected",
    [
        ("nearest", 0.5, [(0, 3, "PER")]),
        ("nearest", 0.1, [(0, 1, "PER"), (2, 3, "PER")]),
        ("probable", 0.5, [(0, 3, "PER")]),
        ("probable", 0.1, [(0, 3, "PER")]),
    ],
)
def test_at_a_low_threshold_the_nearest_end_cuts_an_entity_short(pairing, threshold, expected):
    said = numpy.full((3, 2, 2), 0.01)
    said[:, 0, 0], said[:, 0, 1] = [0.9, 0.01, 0.2], [0.2, 0.01, 0.9]
    nlp = mrc_pipeline(pairing=pairing, threshold=threshold)
    give_scores(nlp, log_odds(said))
    assert doc_entities(nlp(raw(nlp, "a b c"))) == expected


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("nested", [False, True])
def test_neighbours_of_one_label_are_not_merged(pairing, nested):
    said = numpy.full((3, 2, 2), 0.01)
    said[:, 0, 0], said[:, 0, 1] = [0.99, 0.01, 0.97], [0.98, 0.01, 0.99]
    # Of the other label, over both.
    said[0, 1, 0] = said[2, 1, 1] = 0.9
    nlp = mrc_pipeline(pairing=pairing, nested=nested)
    give_scores(nlp, log_odds(said))
    doc = nlp(raw(nlp, "a b c"))
    assert doc_entities(doc) == [(0, 1, "PER"), (2, 3, "PER")]
    if nested:
        assert group_entities(doc, "pred:mrc_ner") == [(0, 1, "PER"), (0, 3, "LOC"), (2, 3, "PER")]


def test_annotating_twice_changes_nothing(trained):
    doc = trained(raw(trained, TEXTS[1]))
    before = [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents]
    trained.get_pipe("mrc_ner")(doc)
    assert [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents] == before


# Storage


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(tmp_path, trained, reload):
    trained.get_pipe("mrc_ner").set_temperature(2.0)
    other = reload(trained, tmp_path)
    ours, theirs = trained.get_pipe("mrc_ner"), other.get_pipe("mrc_ner")
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    docs = [raw(trained, text) for text in TEXTS]
    assert [p.scores for p in ours.predict(docs)] == [p.scores for p in theirs.predict(docs)]
    assert entities_of(other, TEXTS) == entities_of(trained, TEXTS) == GOLD


def test_a_copy_is_independent(trained, tmp_path):
    other = reload_copy(trained, tmp_path)
    train(other, [make_example(other, text) for text in TEXTS])
    other.get_pipe("mrc_ner").ask("X", "what")
    assert entities_of(other, TEXTS) == [[]] * 4
    assert entities_of(trained, TEXTS) == GOLD
    assert trained.get_pipe("mrc_ner").queries == QUERIES


def test_a_reloaded_pipeline_trains_on(trained):
    assert train(trained, make_examples(trained), steps=1)["mrc_ner"] < 0.5


def test_a_pipeline_that_is_not_initialised_is_stored(tmp_path):
    nlp = spacy.blank("xx")
    empty_pipe(nlp).ask("X", "who")
    ner = reload_disk(nlp, tmp_path).get_pipe("mrc_ner")
    assert ner.labels == ("X",) and ner.queries == {"X": "who"}
    assert not ner.is_initialized


def test_config_round_trip():
    settings = {key: value for key, value in SETTINGS.items() if key not in ("scorer", "relabel", "typing")}
    nlp = spacy.blank("xx")
    empty_pipe(nlp, **settings, relabel={**PICKING, "threshold": 0.3}, teacher_decay=0.5)
    again = load_model_from_config(Config().from_str(nlp.config.to_str(), interpolate=False))
    assert again.config["components"] == nlp.config["components"]
    other = again.get_pipe("mrc_ner")
    assert {key: getattr(other, key) for key in settings} == settings
    assert other.relabel == SelfPicking(0.3) and other._teacher.decay == 0.5


def test_weights_are_float32(trained):
    assert {array.dtype for array in weights(trained.get_pipe("mrc_ner").model)} == {numpy.dtype("float32")}


# Weights of an earlier stage


@pytest.mark.parametrize("parts", [None, {"mrc_ner": ["all"]}, {"mrc_ner": ["encoder", "head"]}])
def test_weights_are_loaded_whatever_the_questions(path, parts):
    nlp = LoadWeights(path, parts)(mrc_pipeline(seed=7, queries={"PLACE": QUERIES["LOC"], "X": "some thing"}))
    ner = nlp.get_pipe("mrc_ner")
    assert same(weights(ner.model), weights(spacy.load(path).get_pipe("mrc_ner").model))
    assert ner.labels == ("PLACE", "X") and ner.queries == {"PLACE": QUERIES["LOC"], "X": "some thing"}
    ner.nested = True
    for text, gold in SENTENCES:
        found = [own for own in group_entities(nlp(raw(nlp, text)), "pred:mrc_ner") if own[2] == "PLACE"]
        assert found == [(start, end, "PLACE") for start, end, label in gold if label == "LOC"]


def test_loaded_weights_learn_the_new_questions(path, tmp_path):
    nlp = LoadWeights(path)(mrc_pipeline(seed=7, queries={"ORG": "which company"}))
    train(nlp, [make_example(nlp, "Bob likes Google", [(2, 3, "ORG")])])
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    assert other.get_pipe("mrc_ner").queries == {"ORG": "which company"}
    assert entities_of(other, ["Bob likes Google"]) == [[(2, 3, "ORG")]]


# Question and text read together


@pytest.fixture(scope="module")
def bert_path(tiny_bert, tmp_path_factory):
    """A trained pipeline with its own Transformer, whose folder is gone."""
    folder = tmp_path_factory.mktemp("mrc_bert")
    shutil.copytree(tiny_bert, folder / "encoder")
    nlp = mrc_pipeline(together(folder / "encoder"))
    train(nlp, make_examples(nlp), steps=60, learn_rate=0.01)
    nlp.to_disk(folder / "pipeline")
    shutil.rmtree(folder / "encoder")
    return folder / "pipeline"


@needs_transformers
class TestTransformer:
    def test_it_learns_and_returns_from_disk_bytes_and_copies(self, bert_path, tmp_path):
        nlp = spacy.load(bert_path)
        assert entities_of(nlp, ["", *TEXTS, "\n"]) == [[], *GOLD, []]
        for reload in (reload_bytes, reload_copy):
            other = reload(nlp, tmp_path)
            assert same(*(weights(x.get_pipe("mrc_ner").model) for x in (nlp, other)))
            assert entities_of(other, TEXTS) == GOLD

    def test_in_a_new_process_and_in_two(self, path, bert_path):
        command = [sys.executable, "-c", SCRIPT, json.dumps(["", *TEXTS]), str(path), str(bert_path)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
        for line in result.stdout.splitlines()[-4:]:
            assert [[tuple(entity) for entity in entities] for entities in json.loads(line)] == [[], *GOLD]

    def test_another_question_changes_the_answers(self, bert_path):
        nlp = spacy.load(bert_path)
        nlp.get_pipe("mrc_ner").ask("LOC", QUERIES["PER"])
        assert entities_of(nlp, TEXTS) != GOLD

    def test_batches_give_what_single_docs_give(self, bert_path):
        nlp = spacy.load(bert_path)
        ner = nlp.get_pipe("mrc_ner")
        ner.nested, ner.threshold = True, 0.01
        docs = [raw(nlp, text) for text in ["", *TEXTS, "\n", "Anna went to New York " * 9]]
        alone = [ner.predict([doc])[0] for doc in docs]
        batch = ner.predict(docs[::-1])[::-1]
        assert [p.candidates for p in batch] == [p.candidates for p in alone]
        assert sum(len(p.candidates) for p in alone) > 5
        for one, other in zip(alone, batch, strict=True):
            assert one.candidate_scores == pytest.approx(other.candidate_scores, rel=1e-4)

    def test_it_trains_on(self, bert_path):
        nlp = spacy.load(bert_path)
        before = weights(nlp.get_pipe("mrc_ner").model.get_ref("tok2vec"))
        assert train(nlp, make_examples(nlp), steps=1)["mrc_ner"] < 1
        assert not same(before, weights(nlp.get_pipe("mrc_ner").model.get_ref("tok2vec")))

    def test_it_reads_long_texts_in_windows(self, bert_path):
        nlp = spacy.load(bert_path)
        example = make_example(nlp, "Anna went to New York " * 30, [(0, 1, "PER"), (148, 150, "LOC")])
        assert numpy.isfinite(nlp.update([example], sgd=nlp.create_optimizer())["mrc_ner"])

    def test_a_split_batch_gives_the_same_gradients(self, bert_path):
        nlp = spacy.load(bert_path)
        ner, examples = nlp.get_pipe("mrc_ner"), make_examples(nlp)
        for shim in (shim for node in ner.model.walk() for shim in node.shims):
            for module in shim._model.modules():
                for name in ("p", "dropout_prob"):
                    if hasattr(module, name):
                        setattr(module, name, 0.0)
        nlp.update([make_example(nlp, ""), *examples, make_example(nlp, "", annotated=False)], sgd=False)
        whole = gradients(ner.model)
        clear_gradients(ner.model)
        for example in examples[::-1]:
            nlp.update([example], sgd=False)
        assert not all_zero(whole)
        assert same(whole, gradients(ner.model), tolerance=1e-5)

    def test_weights_of_an_earlier_stage(self, bert_path, tiny_bert):
        nlp = LoadWeights(bert_path)(mrc_pipeline(together(tiny_bert), seed=3, queries={"X": QUERIES["PER"]}))
        expected = [[(start, end, "X") for start, end, label in gold if label == "PER"] for gold in GOLD]
        assert entities_of(nlp, TEXTS) == expected

    def test_teachers_are_independent(self, bert_path):
        nlp = spacy.load(bert_path)
        model = nlp.get_pipe("mrc_ner").model
        teacher, before = copy.deepcopy(model), weights(model)
        train(nlp, make_examples(nlp), steps=2)
        assert same(weights(teacher), before) and not same(weights(model), before)


def test_a_group_is_learned(tmp_path):
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp, spans_key="x", nested=True)
    example = make_example(nlp, NESTED_TEXT, [(0, 1, "DATE")])
    add_group(example.reference, "x", NESTED)
    ner.initialize(lambda: [example], nlp=nlp, queries={"ORG": "which company", "LOC": "where"})
    train(nlp, [example])
    doc = nlp(raw(nlp, NESTED_TEXT))
    assert group_entities(doc, "pred:mrc_ner") == NESTED
    assert len(doc.ents) == 1

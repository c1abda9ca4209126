"""Settings of the component, and the config."""

import inspect

import pytest
import spacy
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads.entities import EntityHead
from spacy_weakner.ty import CandidateScorer, TagScorer

from ..util import HEADS, QUERIES
from .util import CATEGORY, empty_pipeline

# Settings that a trained head can be loaded with, none of them the default.
SETTINGS = {
    "crf_ner": {"scores": True, "nested": True, "constrain": False},
    "span_ner": {"max_width": 3, "nested": True, "spans_key": "x", "incorrect_spans_key": "y"},
    "mrc_ner": {
        "threshold": 0.2,
        "max_width": 3,
        "positive_weight": 4.0,
        "nested": True,
        "spans_key": "x",
    },
    CATEGORY: {"loss_weight": 0.3},
}
# Settings that have to stay as they were.
FIXED = {
    "crf_ner": {"scheme": "IOBES"},
    "token_ner": {"scheme": "BIO"},
    CATEGORY: {"exclusive_classes": False},
}
# The setting that decides what is learned, another value of it than the default, and a setting within.
OBJECTIVES = {
    **{name: ("scorer", {"@scorers": "spacy.ner_scorer.v1"}) for name in HEADS},
    "crf_ner": ("loss", {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.25}),
    "span_ner": ("sampler", {"@misc": "spacy_weakner.UniformNegativeSampler.v1", "ratio": 0.25}),
    "token_ner": (
        "objective",
        {"@misc": "spacy_weakner.HardLabels.v1", "loss": {"@losses": "spacy_weakner.MeanSquaredError.v1"}},
    ),
    "mrc_ner": ("relabel", {"@misc": "spacy_weakner.SelfPicking.v1", "threshold": 0.3}),
    CATEGORY: ("scorer", {"@scorers": "spacy.textcat_scorer.v2"}),
}
# Settings that cannot be.
REFUSED = [
    *((name, {"head_learn_rate": -1.0}) for name in HEADS),
    *(("crf_ner", setting) for setting in ({"scheme": "BILOU"}, {"constrain": "training"}, {"threshold": 1.1})),
    *(("span_ner", setting) for setting in ({"max_width": 0}, {"max_width": -2})),
    ("token_ner", {"scheme": "BILUO"}),
    *(("mrc_ner", setting) for setting in ({"threshold": -0.1}, {"threshold": 1.1}, {"positive_weight": -1.0})),
    ("mrc_ner", {"max_width": 0}),
    (CATEGORY, {"loss_weight": -1.0}),
]


@pytest.mark.parametrize("head, setting", REFUSED, ids=str)
def test_settings_out_of_range(head, setting):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{next(iter(setting))}"):
        empty_pipeline(head, **setting)


def settings_of(head):
    return {**SETTINGS.get(head, {}), **({} if head == CATEGORY else {"overwrite": True}), "head_learn_rate": 7.0}


def test_unknown_settings_are_refused(head):
    with pytest.raises(ValueError, match="treshold"):
        spacy.blank("xx").add_pipe(head, config={"treshold": 1})


def test_a_setting_of_another_type_is_refused_by_name(head):
    with pytest.raises(ValueError, match=rf"{head} -> head_learn_rate"):
        spacy.blank("xx").add_pipe(head, config={"head_learn_rate": "fast"})


def test_the_factory_takes_what_its_class_takes(head, ner):
    factory = spacy.registry.get("factories", head)
    own = {name: p for name, p in inspect.signature(type(ner)).parameters.items() if name not in ("vocab", "name")}
    taken = inspect.signature(factory).parameters
    assert [*taken] == ["nlp", "name", *own]
    assert {name: taken[name].annotation for name in own} == {name: p.annotation for name, p in own.items()}
    filled = spacy.Language.get_factory_meta(head).default_config
    assert [*filled] == [*own]
    blocks = {"model", "loss", "sampler", "objective", "scorer"}
    assert {name: p.default for name, p in own.items() if name not in blocks} == {
        name: value for name, value in filled.items() if name not in blocks
    }


def test_only_what_training_creates_is_in_cfg(trained, head):
    calibration = {"temperature": 1.0, "bias": 0.0, "thresholds": {}}
    more = {"mrc_ner": {**calibration, "queries": QUERIES}, CATEGORY: {"positive_label": None}}
    assert trained.get_pipe(head).cfg == {"labels": ["LOC", "PER"], **more.get(head, calibration)}


def test_settings_of_the_loading_config_win(load, head):
    settings = settings_of(head)
    key, objective = OBJECTIVES[head]
    ner = load(**settings, **{key: objective}).get_pipe(head)
    assert {name: getattr(ner, name) for name in settings} == settings
    assert getattr(ner, key) == spacy.registry.resolve({"it": objective})["it"]


def test_config_round_trip(head):
    settings = settings_of(head)
    key, objective = OBJECTIVES[head]
    nlp, ner = empty_pipeline(head, **settings, **FIXED.get(head, {}), **{key: objective})
    again = load_model_from_config(Config().from_str(nlp.config.to_str(), interpolate=False))
    assert again.config["components"] == nlp.config["components"]
    other = again.get_pipe(head)
    assert {name: getattr(other, name) for name in settings} == settings
    assert getattr(other, key) == getattr(ner, key) == spacy.registry.resolve({"it": objective})["it"]
    fixed = FIXED.get(head, {})
    assert other.tag_scheme == fixed["scheme"] if "scheme" in fixed else True
    assert other.exclusive_classes == fixed["exclusive_classes"] if "exclusive_classes" in fixed else True


def test_what_it_assigns_and_which_scores_are_shown(nlp, head):
    assigned = ["doc.ents", "token.ent_iob", "token.ent_type", "span._.weakner_score", "doc.spans"]
    expected = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0}
    expected["ents_per_type"] = None
    if head == CATEGORY:
        spacy.blank("xx").add_pipe("textcat")
        assigned, expected = ["doc.cats"], spacy.Language.get_factory_meta("textcat").default_score_weights
    assert nlp.analyze_pipes()["summary"][head]["assigns"] == assigned
    assert nlp.get_pipe_meta(head).default_score_weights == expected


def test_no_component_lacks_what_an_earlier_one_writes():
    nlp = spacy.blank("xx")
    for name in ("gazetteer_ruler", "term_linker", "ent_combiner", "binding_terms"):
        nlp.add_pipe(name)
    assert not any(nlp.analyze_pipes()["problems"].values())
    assert spacy.blank("xx").get_factory_meta("ent_combiner").requires == ["doc.spans"]


def test_without_a_scorer(head):
    assert empty_pipeline(head, scorer=None)[1].score([]) == {}


def test_what_stages_look_for(head, ner):
    assert isinstance(ner, EntityHead) is (head != CATEGORY)
    assert isinstance(ner, TagScorer) is (head in ("crf_ner", "token_ner"))
    assert isinstance(ner, CandidateScorer) is (head in ("span_ner", "mrc_ner"))

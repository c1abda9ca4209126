"""The component in a pipeline: what each setting does. What all heads promise is tested in `tests/heads`."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus.tags import TagScheme
from spacy_weakner.corpus.weak import doc_entities, group_entities, group_scores
from spacy_weakner.crf_ner.component import make_crf_ner
from spacy_weakner.crf_ner.losses import PartialCRF
from spacy_weakner.crf_ner.model import crf_module
from spacy_weakner.errors import WeaknerError
from spacy_weakner.ty import TagScorer

from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    crf_config,
    crf_pipeline,
    distributions,
    entities_of,
    loss_with,
    make_doc,
    make_example,
    make_examples,
    reload_bytes,
    same,
    train,
)


@pytest.fixture
def nlp():
    return crf_pipeline()


@pytest.fixture
def trained(trained_path):
    return spacy.load(trained_path)


def load(path, **settings):
    return spacy.load(path, config={"components": {"crf_ner": settings}})


def emissions(nlp):
    """The emission layer of a crf_ner."""
    head = nlp.get_pipe("crf_ner").model.get_ref("head")
    return next(node for node in head.get_ref("emissions").walk() if node.name == "linear")


# Labels


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"], ("LOC",)])
def test_the_order_of_the_labels_is_that_of_the_tags(labels):
    ner = crf_pipeline(labels=labels).get_pipe("crf_ner")
    assert ner.distribution_labels == TagScheme("BIO", labels).tags


# Initialization


def test_not_initialized():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    ner.add_label("X")
    with pytest.raises(WeaknerError, match=r"\[WK008\] 'crf_ner'"):
        ner.score_tags([make_doc(nlp, "a")])


# Training


@pytest.mark.parametrize("scheme", ["IO", "BIO", "IOBES"])
def test_every_scheme_learns_and_returns_from_bytes(tmp_path, scheme):
    nlp = crf_pipeline(scheme=scheme)
    before = train(nlp, make_examples(nlp), steps=1)
    after = train(nlp, make_examples(nlp))
    assert after["crf_ner"] < before["crf_ner"] / 10
    other = reload_bytes(nlp, tmp_path)
    assert entities_of(nlp, TEXTS) == entities_of(other, TEXTS) == GOLD
    docs = [make_doc(nlp, text) for text in TEXTS]
    assert same(*(distributions(x.get_pipe("crf_ner"), docs) for x in (nlp, other)))


def test_the_optimizer_steps_the_transitions(nlp):
    ner = nlp.get_pipe("crf_ner")
    before = crf_module(ner.model).transitions.detach().numpy().copy()
    train(nlp, make_examples(nlp), steps=1)
    assert (crf_module(ner.model).transitions.detach().numpy() != before).all()
    assert crf_module(ner.model).transitions.grad is None or all_zero([crf_module(ner.model).transitions.grad.numpy()])


# Missing annotation


def test_missing_tokens_have_exactly_no_gradient(nlp):
    ner = nlp.get_pipe("crf_ner")
    eg = make_example(nlp, "Anna went to New York", [(0, 1, "PER")], missing=[1, 2, 3, 4])
    # Without transitions, tokens do not depend on each other.
    module = crf_module(ner.model)
    for tensor in (module.start_transitions, module.transitions, module.end_transitions):
        tensor.data.zero_()
    ner.constrain = False
    _, (gradient,) = loss_with(ner, [eg], ner.token_outputs([eg.predicted]))
    assert numpy.abs(gradient[0]).max() > 0.1
    assert numpy.abs(gradient[1:]).max() < 1e-7


# Settings


def test_the_factory_passes_every_setting_on(nlp):
    settings = {
        "loss": PartialCRF(0.5),
        "scheme": "IO",
        "constrain": False,
        "scores": True,
        "nested": True,
        "threshold": 0.5,
        "head_learn_rate": 5.0,
        "overwrite": True,
        "scorer": print,
    }
    ner = make_crf_ner(nlp, "mine", model=nlp.get_pipe("crf_ner").model, **settings)
    settings["tag_scheme"] = settings.pop("scheme")
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.name == "mine"


def test_scheme_decides_the_tags():
    counts = {s: len(crf_pipeline(scheme=s).get_pipe("crf_ner").distribution_labels) for s in ("IO", "BIO", "IOBES")}
    assert counts == {"IO": 3, "BIO": 5, "IOBES": 9}


def test_unknown_scheme():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*scheme"):
        spacy.blank("xx").add_pipe("crf_ner", config={"scheme": "BILOU"})


def test_constrain_forbids_transitions_in_training_and_decoding():
    found = {}
    for constrain in (True, False):
        nlp = crf_pipeline(constrain=constrain)
        emissions(nlp).set_param("b", numpy.asarray([-9, -9, 9, -9, -9], dtype="float32"))  # I-LOC everywhere
        ner, examples = nlp.get_pipe("crf_ner"), make_examples(nlp)
        ((path, distribution),) = ner.score_tags([make_doc(nlp, "a b")])
        loss = ner.update(examples)["crf_ner"]
        found[constrain] = (path.tags[0], distribution[0, 2] > 0.5, loss)
    assert found[True][0] != "I-LOC"
    assert found[False][0] == "I-LOC"
    assert (found[True][1], found[False][1]) == (False, True)
    assert found[True][2] < found[False][2]


def test_scores_are_off_by_default(trained):
    doc = trained(make_doc(trained, TEXTS[0], annotated=False))
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


def test_a_score_is_the_sum_over_all_sequences_with_the_entity(trained_path):
    nlp = load(trained_path, scores=True)
    ner = nlp.get_pipe("crf_ner")
    ner.cfg["temperature"] = 4.0
    doc = nlp(make_doc(nlp, "Bob", annotated=False))
    (distribution,) = distributions(ner, [doc])
    (score,) = (ent._.weakner_score for ent in doc.ents)
    assert score == pytest.approx(distribution[0, ner.distribution_labels.index("B-PER")], rel=1e-5)


def test_a_score_of_an_earlier_run_does_not_stay(trained):
    ner = trained.get_pipe("crf_ner")
    ner.overwrite, ner.scores = True, True
    doc = trained(make_doc(trained, TEXTS[0], annotated=False))
    ner.scores = False
    assert [ent._.weakner_score for ent in ner(doc).ents] == [None, None]


def test_what_is_less_probable_than_the_threshold_is_not_written(trained_path):
    nlp = load(trained_path, scores=True)
    found = [(ent._.weakner_score, ent.text) for ent in nlp(make_doc(nlp, TEXTS[0], annotated=False)).ents]
    (low, _), (high, name) = sorted(found)
    nlp = load(trained_path, threshold=(low + high) / 2)
    (ent,) = nlp(make_doc(nlp, TEXTS[0], annotated=False)).ents
    assert low < high and ent.text == name and ent._.weakner_score is None
    with pytest.raises(WeaknerError, match=r"\[WK005\].*threshold"):
        load(trained_path, threshold=1.1)


def test_nested_writes_the_candidates(trained_path):
    nlp = load(trained_path, nested=True)
    nlp.get_pipe("crf_ner").cfg["temperature"] = 3.0
    doc = nlp(make_doc(nlp, TEXTS[0], annotated=False))
    candidates = group_entities(doc, "pred:crf_ner")
    scores = dict(zip(candidates, group_scores(doc, "pred:crf_ner"), strict=True))
    assert len(candidates) > 2
    assert {*GOLD[0]} < {*candidates}
    assert all(0.05 <= score <= 1.0 for score in scores.values())
    assert max(scores, key=scores.get) in GOLD[0]
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]
    assert "pred:crf_ner" in nlp("").spans


def test_the_loss_decides_what_missing_means():
    found = []
    for setting in (None, {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 1.0}):
        nlp = crf_pipeline(**({"loss": setting} if setting else {}))
        emissions(nlp).set_param("b", numpy.asarray([-9, 0, 0, 0, 0], dtype="float32"))  # entities everywhere
        found.append(nlp.update([make_example(nlp, "Anna went", annotated=False)], sgd=False)["crf_ner"])
    assert found[0] == 0.0
    assert found[1] > 1.0


# Entities that are there already


@pytest.mark.parametrize("scheme", ["IO", "BIO", "IOBES"])
def test_preset_entities_everywhere_leave_nothing_to_predict(scheme):
    nlp = crf_pipeline(scheme=scheme, scores=True, nested=True)
    preset = [(0, 2, "X"), (2, 3, "Y")]
    doc = nlp(make_doc(nlp, "a b c", preset))
    assert doc_entities(doc) == preset
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


# Prediction


@pytest.mark.parametrize("texts", [[], [""], ["", "Bob"]])
def test_small_docs_in_distributions_and_paths(trained, texts):
    ner, docs = trained.get_pipe("crf_ner"), [trained.make_doc(text) for text in texts]
    found = ner.score_tags(iter(docs))
    assert [rows.shape for _, rows in found] == [(len(doc), 5) for doc in docs]
    assert [len(path.tags) for path, _ in found] == [len(doc) for doc in docs]


def test_protocols(nlp):
    ner = nlp.get_pipe("crf_ner")
    assert isinstance(ner, TagScorer)


def test_distributions_are_distributions(nlp):
    ner, docs = nlp.get_pipe("crf_ner"), [make_doc(nlp, text) for text in TEXTS]
    for doc, distribution in zip(docs, distributions(ner, docs), strict=True):
        assert distribution.shape == (len(doc), len(ner.distribution_labels))
        assert distribution.dtype == "float32"
        assert (distribution >= 0).all()
        assert numpy.allclose(distribution.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_paths_agree_with_entities_and_distributions(trained, temperature):
    ner = trained.get_pipe("crf_ner")
    ner.cfg["temperature"] = temperature
    docs = [make_doc(trained, text, annotated=False) for text in TEXTS]
    for doc, (path, distribution) in zip(docs, ner.score_tags(docs), strict=True):
        ids = ner.scheme.tag_ids(path.tags)
        probability = numpy.exp(path.log_probability)
        assert path.log_probability <= 0
        # A sequence is no more probable than any of its tags, and no less than what the union bound leaves.
        own = distribution[numpy.arange(len(doc)), ids]
        assert max(0.0, 1 - (1 - own).sum()) - 1e-5 <= probability <= own.min() + 1e-5
        assert ner.scheme.decode(ids) == doc_entities(ner(doc))


def test_the_path_of_one_token_has_the_probability_of_its_tag(nlp):
    ner, docs = nlp.get_pipe("crf_ner"), [make_doc(nlp, "Bob")]
    ((path, distribution),) = ner.score_tags(docs)
    expected = distribution[0, ner.distribution_labels.index(path.tags[0])]
    assert numpy.exp(path.log_probability) == pytest.approx(expected, rel=1e-5)


def test_temperature_changes_distributions_but_not_entities(trained):
    ner, docs = trained.get_pipe("crf_ner"), [make_doc(trained, text, annotated=False) for text in TEXTS]
    before = distributions(ner, docs)
    ner.cfg["temperature"] = 10.0
    after = distributions(ner, docs)
    assert after[0].max() < before[0].max()
    assert entities_of(trained, TEXTS) == GOLD

"""The component in a pipeline: what each setting does. What all heads promise is tested in `tests/heads`."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus.weak import group_entities, group_scores
from spacy_weakner.crf_ner.model import crf_module

from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    crf_pipeline,
    distributions,
    loss_with,
    make_doc,
    make_example,
    make_examples,
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


# Training


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

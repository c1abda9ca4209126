"""Snapshots of models."""

import numpy
import pytest
from thinc.api import Linear, chain

from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.teacher import Teacher, require_own_encoder

from ..util import LISTENER, SENTENCES, crf_pipeline, entities_of, make_examples, train, weights

TEXTS = [text for text, _ in SENTENCES]


def linear(seed):
    model = chain(Linear(2, 3), Linear(1, 2))
    model.initialize()
    for node in model.walk():
        for name in node.param_names:
            node.set_param(name, numpy.random.RandomState(seed).normal(size=node.get_param(name).shape).astype("f"))
    return model


def test_a_teacher_does_not_change_with_the_model():
    nlp = crf_pipeline()
    ner = nlp.get_pipe("crf_ner")
    teacher = Teacher()
    assert teacher.model is None
    teacher.renew(ner.model)
    before = [own.copy() for own in weights(teacher.model)]
    train(nlp, make_examples(nlp), steps=3)
    assert all((a == b).all() for a, b in zip(weights(teacher.model), before, strict=True))
    assert any((a != b).any() for a, b in zip(weights(ner.model), before, strict=True))
    teacher.renew(ner.model)
    assert all((a == b).all() for a, b in zip(weights(teacher.model), weights(ner.model), strict=True))
    assert entities_of(nlp, TEXTS)


def test_the_model_does_not_change_with_the_teacher():
    nlp = crf_pipeline()
    model = nlp.get_pipe("crf_ner").model
    before = [own.copy() for own in weights(model)]
    teacher = Teacher(decay=0.5)
    teacher.renew(model)
    teacher.renew(crf_pipeline(seed=1).get_pipe("crf_ner").model)
    assert all((a == b).all() for a, b in zip(weights(model), before, strict=True))


@pytest.mark.parametrize("decay", [0.25, 1.0])
def test_moving_average(decay):
    # crf_ner has weights of Thinc and of torch
    old, new = (crf_pipeline(seed=seed).get_pipe("crf_ner").model for seed in (0, 1))
    teacher = Teacher(decay)
    teacher.renew(old)
    teacher.renew(new)
    for found, a, b in zip(weights(teacher.model), weights(old), weights(new), strict=True):
        numpy.testing.assert_allclose(found, decay * a + (1 - decay) * b, atol=1e-6)


def test_moving_average_over_several_renewals():
    teacher, models = Teacher(0.5), [linear(seed) for seed in range(3)]
    for model in models:
        teacher.renew(model)
    for found, a, b, c in zip(weights(teacher.model), *map(weights, models), strict=True):
        numpy.testing.assert_allclose(found, a / 4 + b / 4 + c / 2, atol=1e-6)


@pytest.mark.parametrize("decay", [-0.1, 1.1])
def test_unusable_decay(decay):
    with pytest.raises(WeaknerError, match="teacher_decay"):
        Teacher(decay)


def test_listeners_are_refused():
    from spacy import registry

    require_own_encoder("x", linear(0))
    model = registry.resolve({"made": {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": LISTENER}})["made"]
    with pytest.raises(WeaknerError, match="WK028"):
        require_own_encoder("x", model)

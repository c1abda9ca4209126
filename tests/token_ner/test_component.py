"""The component: schemes, training, settings. What all heads promise is tested in `tests/heads`."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus.weak import SoftLabels, set_soft_labels
from spacy_weakner.errors import WeaknerError

from ..util import (
    LISTENER,
    all_zero,
    distributions,
    entities_of,
    head_config,
    loss_with,
    make_example,
    raw,
    train,
)
from .util import HARD, ROBUST, SELF, SOFT, token_pipeline

# Schemes


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


# Training


def test_missing_tokens_have_exactly_no_gradient(nlp):
    ner = nlp.get_pipe("token_ner")
    example = make_example(nlp, "Anna went to New York", [(0, 1, "PER")], missing=[1, 2, 3, 4])
    _, (gradient,) = loss_with(ner, [example], ner.token_outputs([example.predicted]))
    assert gradient[0].all()
    assert all_zero([gradient[1:]])


def test_soft_labels_are_learned_and_name_the_labels():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("token_ner", config=head_config("token_ner", objective=SOFT))
    example, hard = make_example(nlp, "Bob runs", [(0, 1, "OTHER")]), make_example(nlp, "Paris", [(0, 1, "LOC")])
    rows = numpy.asarray([[0.3, 0.7], [0.9, 0.1]], dtype="float32")
    set_soft_labels(example.reference, SoftLabels(("O", "I-PER"), "IO", rows))
    nlp.initialize(lambda: [example, hard])
    assert ner.labels == ("LOC", "PER")
    train(nlp, [example, hard], steps=100)
    found = distributions(ner, [raw(nlp, "Bob runs"), raw(nlp, "Paris")])
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


@pytest.mark.parametrize("objective", [ROBUST, SELF])
def test_a_teacher_needs_an_encoder_of_the_components_own(objective):
    with pytest.raises(ValueError, match=r"'token_ner'"):
        spacy.blank("xx").add_pipe("token_ner", config=head_config("token_ner", LISTENER, objective=objective))


@pytest.mark.parametrize("objective", [HARD, SOFT, {**ROBUST, "threshold": None}])
def test_other_objectives_do_with_a_shared_one(objective):
    spacy.blank("xx").add_pipe("token_ner", config=head_config("token_ner", LISTENER, objective=objective))


@pytest.mark.parametrize("objective", ["noise_robust", "self_training"])
def test_another_training_forgets_what_was_seen(objective):
    from spacy_weakner.losses import GeneralizedCrossEntropy
    from spacy_weakner.roster.noise_robust import NoiseRobustLearning
    from spacy_weakner.roster.self_training import SelfTraining

    made = NoiseRobustLearning(GeneralizedCrossEntropy()) if objective == "noise_robust" else SelfTraining()
    fresh = dict(vars(made))
    kept = "_minorities" if objective == "noise_robust" else "_frequencies"
    setattr(made, kept, numpy.ones(3))
    made._counts["x"] = 1.0
    made.reset()
    assert len(getattr(made, kept)) == len(fresh[kept]) == 0 and made._counts == {}

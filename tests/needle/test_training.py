"""crf_ner on completed, weighted and broken labels."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus import weak
from spacy_weakner.errors import WeaknerError

from ..util import (
    crf_config,
    crf_pipeline,
    distributions,
    entities_of,
    loss_with,
    make_example,
    make_examples,
    paths,
    reload_bytes,
    train,
)

pytestmark = pytest.mark.slow

NOISE_AWARE = {"@losses": "spacy_weakner.NoiseAwareCRF.v1"}
BROKEN = ["B-LOC", "I-PER", "O", "O"]


def broken_example(nlp):
    example = make_example(nlp, "Paris likes Bob Smith")
    weak.set_weak(example.reference)
    weak.set_confidence(example.reference, 0.9)
    weak.set_tags(example.reference, BROKEN)
    return example


@pytest.mark.parametrize("loss", [NOISE_AWARE, {"@losses": "spacy_weakner.CRFNegativeLogLikelihood.v1"}])
def test_broken_sequences_are_learned_from_but_never_predicted(loss):
    nlp = crf_pipeline(loss=loss, constrain="decoding")
    ner = nlp.get_pipe("crf_ner")
    assert ner.encode_target(broken_example(nlp)).tags.tolist() == ner.scheme.tag_ids(BROKEN).tolist()
    train(nlp, [broken_example(nlp)], steps=30)
    nlp = reload_bytes(nlp, None)
    ner = nlp.get_pipe("crf_ner")
    opens, follows, _ = ner.scheme.allowed_transitions()
    for path in paths(ner, [nlp.make_doc("Paris likes Bob Smith")]):
        tags = ner.scheme.tag_ids(path.tags)
        assert opens[tags[0]] and follows[tags[:-1], tags[1:]].all()
    (rows,) = distributions(ner, [nlp.make_doc("Paris likes Bob Smith")])
    assert rows[0][~opens].sum() == 0.0


def test_constraints_in_training_refuse_broken_sequences():
    nlp = crf_pipeline(loss=NOISE_AWARE, constrain=True)
    with pytest.raises(WeaknerError, match=r"WK007.*decoding"):
        nlp.update([broken_example(nlp)])


def test_labels_of_completed_tags_are_labels():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config(loss=NOISE_AWARE, constrain="decoding"))
    example = broken_example(nlp)
    weak.set_tags(example.reference, ["B-LOC", "I-NEW", "O", "O"])
    nlp.initialize(lambda: [example, *make_examples(nlp)])
    assert ner.labels == ("LOC", "NEW", "PER")


def test_completed_tags_of_other_tokens_or_schemes():
    nlp = crf_pipeline(loss=NOISE_AWARE, scheme="IOBES", constrain="decoding")
    with pytest.raises(ValueError, match=r"I-PER|IOBES"):
        example = broken_example(nlp)
        weak.set_tags(example.reference, ["X-PER", "O", "O", "O"])
        nlp.update([example])
    example = broken_example(nlp)
    example.predicted = nlp.make_doc("Paris likes BobSmith")
    with pytest.raises(WeaknerError, match=r"WK021.*completed tags"):
        nlp.update([example])


def emission_gradient(nlp, example):
    ner = nlp.get_pipe("crf_ner")
    scores = ner.model.predict([example.predicted])
    return loss_with(ner, [example], scores)[1][0]


@pytest.mark.parametrize("loss", ["CRFNegativeLogLikelihood", "PartialCRF"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_weak_sentences_count_as_they_are_weighted(loss, weight):
    gradients = {}
    for is_weak in (False, True):
        nlp = crf_pipeline(loss={"@losses": f"spacy_weakner.{loss}.v1", "weak_weight": weight})
        example = make_example(nlp, "Anna went to New York", [(0, 1, "PER")])
        weak.set_weak(example.reference, is_weak)
        gradients[is_weak] = emission_gradient(nlp, example)
    assert abs(gradients[False]).max() > 0.01
    numpy.testing.assert_allclose(gradients[True], weight * gradients[False], atol=1e-6)


def test_gold_is_learned_beside_doubtful_labels():
    nlp = crf_pipeline(loss=NOISE_AWARE, constrain="decoding")
    train(nlp, [*make_examples(nlp), broken_example(nlp)], steps=60)
    assert entities_of(nlp, ["Anna went to New York"]) == [[(0, 1, "PER"), (3, 5, "LOC")]]

"""Categories and entities on one shared encoder."""

import pytest

from ..sentence_category.util import (
    NAME,
    TITLES,
    best,
    joint_examples,
    joint_pipeline,
)
from ..util import entities_of, gradients_with_and_without, reload_disk, same, train

BILSTM = {
    "@architectures": "spacy_weakner.BiLSTMEncoder.v1",
    "embed": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 16,
        "attrs": ["NORM"],
        "rows": [100],
        "include_static_vectors": False,
    },
    "width": 16,
    "projection_width": 16,
    "dropout": 0.0,
}
ATTENTION = {"@architectures": "spacy_weakner.AttentionEncoder.v1", "tok2vec": BILSTM, "heads": 4, "dropout": 0.0}
ORDERS = pytest.mark.parametrize("order", [("crf_ner", NAME), (NAME, "crf_ner")])
ENCODERS = pytest.mark.parametrize("encoder", [None, ATTENTION], ids=["cnn", "attention"])


@ORDERS
def test_the_gradient_of_the_encoder_is_the_sum(order):
    """Equation 3."""
    nlp = joint_pipeline(order, loss_weight=0.5)
    tok2vec, examples = nlp.get_pipe("tok2vec").model, joint_examples(nlp)
    whole, tagger = gradients_with_and_without(nlp, NAME, tok2vec, examples)
    nlp = joint_pipeline(order, loss_weight=0.5)
    tok2vec = nlp.get_pipe("tok2vec").model
    _, categories = gradients_with_and_without(nlp, "crf_ner", tok2vec, joint_examples(nlp))
    assert same(whole, [a + b for a, b in zip(tagger, categories, strict=True)], tolerance=1e-5)


@ORDERS
@ENCODERS
def test_both_are_learned_and_return_from_disk(order, encoder, tmp_path):
    nlp = joint_pipeline(order, encoder)
    train(nlp, joint_examples(nlp), steps=80)
    for own in (nlp, reload_disk(nlp, tmp_path)):
        assert entities_of(own, ["Anna went to Paris", "Bob sells socks", ""]) == [
            [(0, 1, "PER"), (3, 4, "LOC")],
            [(0, 1, "PER")],
            [],
        ]
        assert [best(doc) for doc in own.pipe(text for text, _ in TITLES)] == [category for _, category in TITLES]

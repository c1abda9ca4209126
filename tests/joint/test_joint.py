"""Categories and entities on one shared encoder."""

import pytest
import spacy

from ..sentence_category.util import (
    NAME,
    TITLES,
    best,
    category_example,
    category_examples,
    joint_examples,
    joint_pipeline,
)
from ..util import all_zero, entities_of, gradients, gradients_with_and_without, reload_disk, same, train

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
@ENCODERS
def test_sentences_with_a_category_alone_teach_entities_nothing(order, encoder):
    """The tagger is idle, and the gradient of the encoder is exactly that of the categories."""
    nlp = joint_pipeline(order, encoder)
    tok2vec = nlp.get_pipe("tok2vec").model
    together, alone = gradients_with_and_without(nlp, "crf_ner", tok2vec, category_examples(nlp))
    assert not all_zero(together)
    assert same(together, alone)


@ORDERS
@ENCODERS
def test_sentences_without_a_category_teach_categories_nothing(order, encoder):
    nlp = joint_pipeline(order, encoder)
    tok2vec = nlp.get_pipe("tok2vec").model
    examples = joint_examples(nlp)[-1:]
    together, alone = gradients_with_and_without(nlp, NAME, tok2vec, examples)
    assert not all_zero(together)
    assert same(together, alone)


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
def test_a_head_that_has_nothing_to_learn_reports_no_loss(order):
    nlp = joint_pipeline(order)
    losses = nlp.update(category_examples(nlp), sgd=False)
    assert losses["crf_ner"] == 0.0 < losses[NAME]
    assert all_zero(gradients(nlp.get_pipe("crf_ner").model))


@pytest.mark.parametrize("texts", [[""], ["", ""], ["", "red pan", ""]])
def test_empty_docs(texts):
    nlp = joint_pipeline(("crf_ner", NAME), ATTENTION)
    nlp.update([category_example(nlp, text, {"garden": 1.0}) for text in texts])
    docs = list(nlp.pipe(texts))
    assert [bool(sum(doc.cats.values())) for doc in docs] == [bool(text) for text in texts]


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


def test_listeners_can_be_replaced(tmp_path):
    nlp = joint_pipeline(("crf_ner", NAME))
    train(nlp, joint_examples(nlp))
    nlp.replace_listeners("tok2vec", NAME, ["model.tok2vec"])
    nlp.to_disk(tmp_path)
    assert [best(doc) for doc in spacy.load(tmp_path).pipe(t for t, _ in TITLES)] == [
        category for _, category in TITLES
    ]

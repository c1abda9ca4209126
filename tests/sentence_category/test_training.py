"""What is learned: losses, gradients, steps."""

import pytest
from spacy.tokens import Doc
from spacy.training import Example

from ..util import all_zero, gradients, same
from .util import LABELS, MULTI, NAME, category_example, category_examples, category_pipeline


def test_the_loss_is_the_mean_over_docs_with_a_category(nlp):
    pipe, examples = nlp.get_pipe(NAME), category_examples(nlp)
    losses = nlp.update([*examples, category_example(nlp, "anything")], sgd=False)
    single = [pipe.get_loss([eg])[0] for eg in examples]
    assert losses[NAME] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses[NAME]) is float


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_the_weight_scales_loss_and_gradient(weight):
    found = {}
    for own in (1.0, weight):
        nlp = category_pipeline(loss_weight=own)
        losses = nlp.update(category_examples(nlp), sgd=False)
        found[own] = losses[NAME], gradients(nlp.get_pipe(NAME).model)
    assert found[weight][0] == pytest.approx(weight * found[1.0][0])
    assert same(found[weight][1], [g if g is None else weight * g for g in found[1.0][1]], tolerance=1e-5)


@pytest.mark.parametrize("settings", [{}, MULTI])
def test_a_doc_without_categories_has_exactly_no_gradient(settings):
    nlp = category_pipeline(LABELS, **settings)
    assert nlp.update([category_example(nlp, "steel pan")], sgd=False) == {NAME: 0.0}
    assert all_zero(gradients(nlp.get_pipe(NAME).model))


def test_other_tokens_than_those_of_the_reference(nlp):
    reference = category_example(nlp, "steel pan", {"kitchen": 1.0}).reference
    predicted = Doc(nlp.vocab, words=["ste", "elpan"], spaces=[False, False])
    assert nlp.update([Example(predicted, reference)], sgd=False)[NAME] > 0


def test_the_optimizer_is_told_of_once(nlp):
    pipe, met = nlp.get_pipe(NAME), []
    optimizer = nlp.create_optimizer()
    pipe.on_next_update(met.append)
    nlp.update(category_examples(nlp), sgd=optimizer)
    nlp.update(category_examples(nlp), sgd=optimizer)
    assert met == [optimizer]

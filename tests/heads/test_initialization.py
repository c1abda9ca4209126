"""Initialization: examples, outputs, seeds."""

import json
import re
import warnings

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads import head as head_module

from ..span_ner.util import NESTED, NESTED_TEXT, add_group
from ..util import fix_seed, head_config, make_doc, same, train, weights
from .util import CATEGORY, ONE_LABEL, begin, empty_pipeline, example, examples, needs, pipeline


def test_get_examples_of_wrong_shapes(head):
    nlp, ner = empty_pipeline(head)
    for get_examples in (lambda: None, lambda: [], lambda: ["text"], lambda: [Doc(nlp.vocab)], []):
        with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
            ner.initialize(get_examples, nlp=nlp, labels=["X"], **needs(head, "X"))


def test_get_examples_may_be_a_generator(head):
    nlp, ner = empty_pipeline(head)
    ner.initialize(lambda: (eg for eg in examples(nlp)), nlp=nlp, **needs(head))
    assert ner.is_initialized


@pytest.mark.parametrize("texts", [[""], ["", "a b"]])
def test_initialization_with_empty_docs(head, texts):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    ner.initialize(lambda: [example(nlp, text) for text in texts], nlp=nlp, labels=["X"], **needs(head, "X"))
    docs = [make_doc(nlp, "a b")]
    if head != CATEGORY:
        assert [len(own) for own in ner.token_outputs(docs)] == [2]
    assert len(ner.predict(docs)) == 1


def with_outputs(head, n_outputs):
    nlp = spacy.blank("xx")
    config = head_config(head)
    begin(head, nlp)
    return nlp, nlp.add_pipe(head, config={**config, "model": {**config["model"], "nO": n_outputs}})


def test_the_number_of_outputs_may_be_given(head, ner):
    nlp, other = with_outputs(head, ner.n_outputs)
    assert not other.is_initialized
    nlp.initialize(lambda: examples(nlp))
    assert other.is_initialized and other.labels == ner.labels


def test_a_wrong_number_of_outputs(head, ner):
    nlp, _ = with_outputs(head, ner.n_outputs + 1)
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'nO' = {ner.n_outputs + 1} .*: expected {ner.n_outputs},"):
        nlp.initialize(lambda: examples(nlp))


def test_a_corpus_without_any_annotation_is_warned_about(head):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    number = "WK904" if head == CATEGORY else "WK900"
    with pytest.warns(UserWarning, match=rf"\[{number}\].*'{head}'"):
        silent = [example(nlp, "a b", annotated=False)] * 2
        ner.initialize(lambda: silent, nlp=nlp, labels=["X"], **needs(head, "X"))


def test_initialization_without_examples(head):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    assert [ner.add_label("X"), ner.add_label("X")] == [1, 0]
    begin(head, nlp, "X")
    nlp.initialize()
    assert ner.is_initialized and ner.labels == ("X",)


def test_not_initialized(head):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    methods = ("predict", "update", "token_outputs", "score_tags", "score_candidates")
    used = [getattr(ner, name) for name in methods if hasattr(ner, name)]
    for use in [*used, lambda docs: ner.map_outputs(docs, list, None)]:
        argument = [example(nlp, "a")] if use == ner.update else [make_doc(nlp, "a")]
        with pytest.raises(WeaknerError, match=rf"\[WK008\] '{head}'"):
            use(argument)


def test_the_seed_decides_everything(head):
    runs = []
    for _ in range(2):
        nlp = pipeline(head, seed=3)
        fix_seed(1)
        train(nlp, examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe(head).model))
    assert same(*runs)


def test_another_seed_gives_other_weights(head):
    assert not same(*(weights(pipeline(head, seed=seed).get_pipe(head).model) for seed in (0, 1)))


def test_weights_are_float32(ner):
    assert {array.dtype for array in weights(ner.model)} == {numpy.dtype("float32")}


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
@pytest.mark.parametrize("key", [None, "x"])
@pytest.mark.parametrize("max_width", [None, 10, 4, 3])
def test_entities_that_are_too_wide_are_warned_about(head, key, max_width):
    nlp, ner = empty_pipeline(head, max_width=max_width, spans_key=key)
    wide = example(nlp, NESTED_TEXT, NESTED[:1])
    add_group(wide.reference, "x", NESTED)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ner.initialize(lambda: [wide], nlp=nlp, **needs(head, "ORG", "LOC"))
    expected = rf"\[WK901\] 1 of the {2 if key else 1} entities that '{head}'.*max_width = 3.*longest has 4"
    assert [bool(re.search(expected, str(own.message))) for own in found] == [True] * (max_width == 3)
    assert "ORG" in ner.labels


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
def test_a_group_that_no_example_has_is_warned_about(head):
    nlp, ner = empty_pipeline(head, spans_key="x")
    with pytest.warns(UserWarning, match=rf"\[WK902\].*'{head}'.*'x'"):
        ner.initialize(lambda: examples(nlp)[:1], nlp=nlp, labels=["PER"], **needs(head, "PER"))


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
@pytest.mark.parametrize(
    "counted, weight",
    [({"ents_f": 1.0}, 0.5), ({"spans_x_f": 0.0}, 0.0), ({"spans_x_p": 1.0}, None), ({"spans_y_f": 1.0}, 0.5)],
)
def test_the_score_of_the_group_counts_unless_the_config_says_how(head, counted, weight):
    nlp, ner = empty_pipeline(head, spans_key="x")
    # As `spacy train` reads it; other scores keep the weights of the components.
    nlp.config["training"]["score_weights"] = counted
    given = examples(nlp)[:1]
    given[0].reference.spans["x"] = []
    ner.initialize(lambda: given, nlp=nlp, labels=["PER"], **needs(head, "PER"))
    assert nlp.config["training"]["score_weights"].get("spans_x_f") == weight


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
def test_with_given_labels_a_long_corpus_is_not_read_to_its_end(head, monkeypatch):
    monkeypatch.setattr(head_module, "SEARCHED", 20)
    nlp, ner = empty_pipeline(head)

    def stream():
        yield from examples(nlp) * 20
        pytest.fail("was read to its end")

    ner.initialize(stream, nlp=nlp, labels=["PER"], **needs(head, "PER"))
    assert ner.labels == ("PER",)


@pytest.mark.parametrize("head", ["crf_ner", "span_ner", "mrc_ner"])
@pytest.mark.parametrize("labels", [None, ["ORG"]])
def test_names_with_the_end_of_a_sentence_are_noted(head, labels):
    nlp, ner = empty_pipeline(head)
    given = [example(nlp, "At Yahoo ! Inc now", [(1, 4, "ORG")]), example(nlp, "We", [])]
    ner.initialize(lambda: given, nlp=nlp, labels=labels, **needs(head, "ORG"))
    assert ner.divided_names == ["Yahoo ! Inc"]


# Labels: given, added, or those of the examples


def test_without_labels(head):
    nlp, _ = empty_pipeline(head)
    silent = example(nlp, "no entity")
    silent.reference.cats = {}
    number = "WK036" if head == "mrc_ner" else "WK001"
    with pytest.raises(WeaknerError, match=rf"\[{number}\].*{head}"):
        nlp.initialize(lambda: [silent])


def test_labels_of_the_examples_are_sorted(ner):
    assert ner.labels == ("LOC", "PER")
    assert ner.label_data == ["LOC", "PER"]


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"], ("LOC",)])
def test_given_labels_keep_their_order(head, labels):
    nlp, ner = empty_pipeline(head, **ONE_LABEL.get(head, {}))
    ner.initialize(lambda: examples(nlp), nlp=nlp, labels=labels, **needs(head, *labels))
    assert ner.labels == tuple(labels)


def test_label_data_initializes_alike(head, ner):
    fix_seed(0)
    nlp, other = empty_pipeline(head)
    labels = json.loads(json.dumps(ner.label_data))
    nlp.config["initialize"]["components"][head] = {"labels": labels, **needs(head)}
    nlp.initialize(lambda: examples(nlp))
    assert other.labels == ner.labels
    assert same(weights(other.model), weights(ner.model))


def test_labels_that_were_added_stand_before_those_of_the_corpus(head):
    nlp, ner = empty_pipeline(head)
    ner.add_label("X")
    begin(head, nlp, "X", "LOC", "PER")
    nlp.initialize(lambda: examples(nlp))
    assert ner.labels == ("X", "LOC", "PER")


def test_labels_cannot_be_added_afterwards(ner):
    assert ner.add_label("PER") == 0
    with pytest.raises(ValueError, match=r"LOC, PER.*'ORG'"):
        ner.add_label("ORG")


def test_a_label_is_a_string(head, ner):
    for own in (ner, empty_pipeline(head)[1]):
        with pytest.raises(WeaknerError, match=r"\[WK005\].*label.*string"):
            own.add_label(1)


def test_an_unknown_label_in_training(head, nlp):
    with pytest.raises(WeaknerError, match=rf"\[WK003\] '{head}'.*'ORG'.*LOC, PER"):
        nlp.update([example(nlp, "a b", [(0, 1, "ORG")])], sgd=False)


def test_another_error_in_a_target_is_not_an_unknown_label(nlp, ner, monkeypatch):
    monkeypatch.setattr(type(ner), "encode_target", lambda self, example: {}["a bug"])
    with pytest.raises(KeyError, match="a bug"):
        nlp.update([example(nlp, "a b")], sgd=False)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_head_that_decodes_too_few_or_too_many_is_named(head, nlp, ner, monkeypatch, n):
    monkeypatch.setattr(type(ner), "decode", lambda self, docs, outputs: [self.empty_prediction] * n)
    with pytest.raises(ValueError, match=rf"'{head}'.* {n} results for 2 Docs.*'decode'"):
        ner.predict([make_doc(nlp, "a b"), make_doc(nlp, "c d")])

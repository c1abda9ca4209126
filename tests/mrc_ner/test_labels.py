"""Labels with their questions, and initialization."""

import json

import pytest
import spacy
from spacy.training.initialize import init_nlp

from spacy_weakner.corpus.weak import doc_entities, group_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.weights import LoadWeights

from ..util import (
    GOLD,
    LISTENER,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    entities_of,
    loop_config,
    make_example,
    make_examples,
    raw,
    same,
    train,
    weights,
)
from .util import QUERIES, conditioned, empty_pipe, mrc_pipeline

# Labels and questions


def test_labels_are_those_of_the_questions():
    ner = mrc_pipeline().get_pipe("mrc_ner")
    assert ner.labels == ("PER", "LOC") and ner.label_data == ["PER", "LOC"]
    assert ner.queries == QUERIES and ner.n_outputs == 2


@pytest.mark.parametrize("labels", [["LOC", "PER"], ["LOC"]])
def test_given_labels_choose_among_the_questions(labels):
    ner = mrc_pipeline(labels=labels).get_pipe("mrc_ner")
    assert ner.labels == tuple(labels) and list(ner.queries) == labels
    assert ner.model_inputs([]).queries == [QUERIES[label] for label in labels]


def test_a_label_of_the_examples_without_a_question():
    nlp = spacy.blank("xx")
    queries = {"LOC": QUERIES["LOC"]}
    with pytest.raises(WeaknerError, match=r"\[WK036\].*labels PER\."):
        empty_pipe(nlp).initialize(lambda: make_examples(nlp), nlp=nlp, queries=queries)
    other = spacy.blank("xx")
    empty_pipe(other).initialize(lambda: make_examples(other), nlp=other, queries=queries, labels=["LOC"])


def test_a_label_without_a_question():
    nlp = spacy.blank("xx")
    with pytest.raises(WeaknerError, match=r"\[WK036\].*labels ORG, DATE\."):
        empty_pipe(nlp).initialize(
            lambda: make_examples(nlp), nlp=nlp, queries=QUERIES, labels=["ORG", "PER", "LOC", "DATE"]
        )
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.add_label("X")
    for labels in (None, ["PER"]):
        with pytest.raises(WeaknerError, match=r"\[WK036\].*labels X\."):
            ner.initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES, labels=labels)


def test_no_questions_at_all():
    nlp = spacy.blank("xx")
    with pytest.raises(WeaknerError, match=r"\[WK036\].*no questions are given\."):
        empty_pipe(nlp).initialize(lambda: make_examples(nlp), nlp=nlp)


@pytest.mark.parametrize("label, query", [("X", ""), ("X", "  "), ("X", None)])
def test_an_empty_question(trained, label, query):
    with pytest.raises(WeaknerError, match=r"\[WK036\] mrc_ner: .* X\."):
        trained.get_pipe("mrc_ner").set_question(label, query)
    assert trained.get_pipe("mrc_ner").labels == ("PER", "LOC")


def test_questions_asked_before_initialization_come_first():
    nlp = spacy.blank("xx")
    ner = empty_pipe(nlp)
    ner.set_question("ORG", "which company")
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES)
    assert ner.labels == ("ORG", "PER", "LOC")
    assert ner.model_inputs([]).queries == ["which company", *QUERIES.values()]


@pytest.mark.parametrize("labels", [None, ["LOC"]])
def test_a_new_training_forgets_the_questions_of_the_last(labels):
    nlp = mrc_pipeline()
    ner = nlp.get_pipe("mrc_ner")
    assert ner.labels == ("PER", "LOC")
    examples = [make_example(nlp, "to York", [(1, 2, "LOC")])]
    ner.initialize(lambda: examples, nlp=nlp, queries={"LOC": "where from"}, labels=labels)
    assert ner.queries == {"LOC": "where from"} and ner.labels == ("LOC",)
    nlp("Anna went to York")
    ner.initialize(lambda: examples, nlp=nlp)  # without new questions, the old ones stay
    assert ner.labels == ("LOC",)


def test_a_new_label_with_a_known_question_is_found_where_the_known_one_is(trained):
    ner = trained.get_pipe("mrc_ner")
    ner.nested = True
    ner.set_question("PLACE", QUERIES["LOC"])
    assert ner.labels == ("PER", "LOC", "PLACE") and "PLACE" in trained.vocab.strings
    for text, gold in SENTENCES:
        expected = sorted([*gold, *((start, end, "PLACE") for start, end, label in gold if label == "LOC")])
        assert group_entities(trained(raw(trained, text)), "pred:mrc_ner") == expected


def test_another_question_changes_the_answers(trained):
    ner = trained.get_pipe("mrc_ner")
    ner.set_question("LOC", QUERIES["PER"])
    ner.set_question("PER", QUERIES["LOC"])
    other = {"PER": "LOC", "LOC": "PER"}
    assert ner.labels == ("PER", "LOC")
    expected = [[(start, end, other[label]) for start, end, label in entities] for entities in GOLD]
    assert entities_of(trained, TEXTS) == expected


def test_questions_do_not_disturb_each_other(trained):
    trained.get_pipe("mrc_ner").set_question("X", "some thing else")
    trained.get_pipe("mrc_ner").nested = True
    for text, gold in SENTENCES:
        candidates = group_entities(trained(raw(trained, text)), "pred:mrc_ner")
        assert [own for own in candidates if own[2] != "X"] == gold


def test_a_new_label_is_learned_and_stored(trained, tmp_path):
    trained.get_pipe("mrc_ner").set_question("VERB", "who does what")
    examples = [make_example(trained, text, gold) for text, gold in SENTENCES]
    examples[0] = make_example(trained, TEXTS[0], [*GOLD[0][:1], (1, 2, "VERB"), *GOLD[0][1:]])
    train(trained, examples)
    trained.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    assert other.get_pipe("mrc_ner").queries == {**QUERIES, "VERB": "who does what"}
    for nlp in (trained, other):
        assert entities_of(nlp, TEXTS) == [doc_entities(example.reference) for example in examples]


# Initialization


def test_the_default_model_needs_no_download():
    nlp = spacy.blank("xx")
    nlp.add_pipe("mrc_ner").initialize(lambda: make_examples(nlp), nlp=nlp, queries=QUERIES)
    assert nlp.get_pipe("mrc_ner").model.get_ref("head").layers[1].get_dim("nI") == 3 * 96
    assert len(list(nlp.pipe(TEXTS))) == 4


@pytest.mark.parametrize("how", ["json", "toml", "inline", "plain"])
def test_questions_in_the_config(tmp_path, how):
    (tmp_path / "q.json").write_text(json.dumps(QUERIES))
    (tmp_path / "q.toml").write_text("\n".join(f'{label} = "{query}"' for label, query in QUERIES.items()))
    given = {"queries": QUERIES} if how == "inline" else {"path": str(tmp_path / f"q.{how}")}
    queries = QUERIES if how == "plain" else {"@readers": "spacy_weakner.Queries.v1", **given}
    config = loop_config(tmp_path, {"mrc_ner": {}}, initialize={"components": {"mrc_ner": {"queries": queries}}})
    ner = init_nlp(config).get_pipe("mrc_ner")
    assert ner.queries == QUERIES and ner.is_initialized


def test_an_encoder_of_another_component_is_refused():
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    with pytest.raises(ValueError, match=r"'mrc_ner'"):
        empty_pipe(nlp, encoder=conditioned(LISTENER))


# Weights of an earlier stage


@pytest.mark.parametrize("parts", [None, {"mrc_ner": ["all"]}, {"mrc_ner": ["encoder", "head"]}])
def test_weights_are_loaded_whatever_the_questions(mrc_path, parts):
    nlp = LoadWeights(mrc_path, parts)(mrc_pipeline(seed=7, queries={"PLACE": QUERIES["LOC"], "X": "some thing"}))
    ner = nlp.get_pipe("mrc_ner")
    assert same(weights(ner.model), weights(spacy.load(mrc_path).get_pipe("mrc_ner").model))
    assert ner.labels == ("PLACE", "X") and ner.queries == {"PLACE": QUERIES["LOC"], "X": "some thing"}
    ner.nested = True
    for text, gold in SENTENCES:
        found = [own for own in group_entities(nlp(raw(nlp, text)), "pred:mrc_ner") if own[2] == "PLACE"]
        assert found == [(start, end, "PLACE") for start, end, label in gold if label == "LOC"]


def test_questions_that_earlier_versions_stored_in_the_model_are_not_asked(trained, tmp_path):
    trained.get_pipe("mrc_ner").model.attrs["queries"] = ["something else"]
    trained.to_disk(tmp_path)
    assert entities_of(spacy.load(tmp_path), TEXTS) == GOLD
    assert entities_of(LoadWeights(tmp_path)(mrc_pipeline(seed=7)), TEXTS) == GOLD


def test_loaded_weights_learn_the_new_questions(mrc_path, tmp_path):
    nlp = LoadWeights(mrc_path)(mrc_pipeline(seed=7, queries={"ORG": "which company"}))
    train(nlp, [make_example(nlp, "Bob likes Google", [(2, 3, "ORG")])])
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    assert other.get_pipe("mrc_ner").queries == {"ORG": "which company"}
    assert entities_of(other, ["Bob likes Google"]) == [[(2, 3, "ORG")]]

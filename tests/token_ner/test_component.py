"""The component: what is its own. (What all heads have in common: tests of crf_ner and span_ner.)"""

import copy
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.annotations.weak import set_augmented, set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.ty import PathScorer, Renewable, Statistician, Tempered, Tick, TokenDistributions

from ..util import (
    LISTENER,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    clear_gradients,
    entities_of,
    gradients,
    make_doc,
    make_example,
    make_examples,
    train,
)
from .util import GCE, HARD, ROBUST, SELF, chances, token_pipeline

EXPECTED = [entities for _, entities in SENTENCES]


def same_gradients(a, b):
    return all(
        (x is None or not x.any()) if y is None else numpy.allclose(0.0 if x is None else x, y, atol=1e-5)
        for x, y in zip(a, b, strict=True)
    )


@pytest.fixture(scope="module")
def trained():
    nlp = token_pipeline()
    train(nlp, make_examples(nlp))
    return nlp


@pytest.fixture(scope="module")
def ner(trained):
    return trained.get_pipe("token_ner")


def test_overfits_and_reloads(trained, tmp_path):
    assert entities_of(trained, TEXTS) == EXPECTED
    trained.to_disk(tmp_path / "nlp")
    same = spacy.blank("xx").from_config(trained.config).from_bytes(trained.to_bytes())
    for nlp in (same, spacy.load(tmp_path / "nlp"), copy.deepcopy(trained)):
        assert entities_of(nlp, TEXTS) == EXPECTED
        assert nlp.get_pipe("token_ner").labels == ("LOC", "PER")
    script = (
        "import spacy, sys; nlp = spacy.load(sys.argv[1]); "
        "print([(e.start, e.end, e.label_) for e in nlp('Anna went to New York').ents])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "nlp"], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == str(EXPECTED[0])


def test_protocols(ner):
    for protocol in (TokenDistributions, PathScorer, Tempered, Renewable, Statistician):
        assert isinstance(ner, protocol)


def test_empty_and_one_token_docs(trained):
    docs = [Doc(trained.vocab), Doc(trained.vocab, words=["Bob"]), Doc(trained.vocab, words=[" ", "Bob", "\n"])]
    found = [[(ent.start, ent.end) for ent in doc.ents] for doc in trained.pipe(docs)]
    assert found == [[], [(0, 1)], [(1, 2)]]
    assert next(iter(trained.pipe([Doc(trained.vocab)]))).ents == ()
    before = gradients(trained.get_pipe("token_ner").model)
    trained.update([make_example(trained, "")], sgd=False)
    assert same_gradients(gradients(trained.get_pipe("token_ner").model), before)
    trained.update([make_example(trained, ""), make_example(trained, "Bob")], sgd=False)


def test_pipe_equals_one_by_one(trained):
    one = [trained(make_doc(trained, text, annotated=False)) for text in TEXTS * 3]
    several = list(trained.pipe([make_doc(trained, text, annotated=False) for text in TEXTS * 3], batch_size=5))
    for a, b in zip(one, several, strict=True):
        assert [(e.start, e.end, e.label_) for e in a.ents] == [(e.start, e.end, e.label_) for e in b.ents]
        scores = [[e._.weakner_score for e in doc.ents] for doc in (a, b)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_scores_and_distributions_by_brute_force(trained, ner):
    ner.set_temperature(2.0)
    try:
        doc = make_doc(trained, TEXTS[0], annotated=False)
        (rows,) = ner.score_tokens([doc])
        expected = numpy.asarray([chances(row / 2.0) for row in rows.astype("float64")])
        (found,) = ner.distributions([doc])
        numpy.testing.assert_allclose(found, expected, atol=1e-6)
        assert ner.distribution_labels == ("O", "I-LOC", "I-PER") and ner.tag_scheme == "IO"
        for ent in trained(doc).ents:
            column = ner.distribution_labels.index(f"I-{ent.label_}")
            assert ent._.weakner_score == pytest.approx(expected[ent.start : ent.end, column].prod(), abs=1e-6)
        (path,) = ner.score_paths([doc])
        best = numpy.asarray([chances(row) for row in rows.astype("float64")])
        assert path.tags == [ner.distribution_labels[i] for i in best.argmax(axis=1)]
        assert path.score == pytest.approx(numpy.log(best.max(axis=1)).sum(), abs=1e-5)
        picked = numpy.log(expected[numpy.arange(len(doc)), best.argmax(axis=1)]).sum()
        assert path.log_probability == pytest.approx(picked, abs=1e-5)
    finally:
        ner.set_temperature(1.0)


def test_held_out_loss(trained, ner):
    examples = [make_example(trained, "Bob runs", [(0, 1, "PER")], missing=[1])]
    (rows,) = ner.score_tokens([examples[0].predicted])
    loss = ner.held_out_loss(examples)
    for temperature in (1.0, 3.0):
        expected = -numpy.log(chances(rows[0].astype("float64") / temperature)[2])
        assert loss(temperature) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("scheme, expected", [("IO", [(0, 2, "PER")]), ("BIO", [(0, 1, "PER"), (1, 2, "PER")])])
def test_adjacent_entities(scheme, expected):
    nlp = token_pipeline(scheme=scheme)
    examples = [make_example(nlp, "Bob Anna runs", [(0, 1, "PER"), (1, 2, "PER")])] + make_examples(nlp)
    train(nlp, examples, steps=60)
    assert entities_of(nlp, ["Bob Anna runs"]) == [expected]


def test_preset_entities_stay(trained, ner):
    doc = make_doc(trained, "Anna went to New York", annotated=False)
    doc.set_ents([Span(doc, 3, 4, label="X")], default="missing")
    assert [(e.start, e.end, e.label_) for e in trained(doc).ents] == [(0, 1, "PER"), (3, 4, "X"), (4, 5, "LOC")]


def test_batches_and_order_do_not_matter():
    nlp = token_pipeline()
    model = nlp.get_pipe("token_ner").model
    nlp.update(make_examples(nlp), sgd=False)
    whole = gradients(model)
    for order in ([[0, 1, 2, 3]], [[0], [1, 2], [3]], [[3, 2, 1, 0]]):
        clear_gradients(model)
        for batch in order:
            nlp.update([make_examples(nlp)[i] for i in batch], sgd=False)
        assert same_gradients(gradients(model), whole)


def test_unknown_label(trained):
    with pytest.raises(WeaknerError, match="'NEW'"):
        trained.update([make_example(trained, "Bob", [(0, 1, "NEW")])], sgd=False)


@pytest.mark.parametrize("settings", [{"scheme": "BILUO"}, {"teacher_decay": 2.0}, {"head_learn_rate": -1.0}], ids=str)
def test_unusable_settings(settings):
    with pytest.raises(WeaknerError):
        token_pipeline(**settings)


@pytest.mark.parametrize("objective", [ROBUST, SELF], ids=["teacher", "augmented"])
def test_objectives_that_need_an_own_encoder(objective):
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    model = {"@architectures": "spacy_weakner.TokenClassifier.v1", "tok2vec": LISTENER}
    with pytest.raises(WeaknerError, match="WK028"):
        nlp.add_pipe("token_ner", config={"model": model, "objective": objective})
    nlp.add_pipe("token_ner", config={"model": model, "objective": HARD})


# The teacher


def test_a_teacher_needs_the_clock():
    nlp = token_pipeline(ROBUST)
    ner = nlp.get_pipe("token_ner")
    with pytest.raises(WeaknerError, match="WK004"):
        nlp.update(make_examples(nlp), sgd=False)
    ner.tick(Tick(0, 0, 0.0))
    with pytest.raises(WeaknerError, match="WK029"):
        nlp.update(make_examples(nlp), sgd=False)
    ner.tick(Tick(0, 0, 0.0, 10))
    nlp.update(make_examples(nlp), sgd=False)


def test_without_removal_no_clock_is_needed():
    nlp = token_pipeline({**ROBUST, "threshold": None})
    nlp.update(make_examples(nlp), sgd=False)


def test_removal_begins_at_the_first_renewal_after_the_start():
    nlp = token_pipeline({**ROBUST, "threshold": 1.0, "minority": 1.0})
    ner = nlp.get_pipe("token_ner")

    def loss():
        return nlp.update(make_examples(nlp), sgd=False, losses={})["token_ner"]

    ner.tick(Tick(0, 0, 0.0, 10))
    ner.renew(make_examples(nlp))
    assert loss() > 0.0
    ner.tick(Tick(10, 0, 0.1, 10))
    assert loss() > 0.0
    ner.renew(make_examples(nlp))
    assert loss() == 0.0
    assert ner.training_statistics() == {"entity_removed": 1.0, "outside_removed": 1.0}


def test_wrong_labels_are_removed():
    """One of many equal words is labelled wrongly; the teacher outvotes it."""
    nlp = token_pipeline({**ROBUST, "threshold": 0.5, "loss": {**GCE, "q": 0.7}})
    ner = nlp.get_pipe("token_ner")
    examples = [make_example(nlp, "Bob runs", [(0, 1, "PER")]) for _ in range(9)]
    examples += [make_example(nlp, "Bob runs", [(0, 1, "LOC")]), make_example(nlp, "Paris", [(0, 1, "LOC")])]
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.02
    for step in range(40):
        ner.tick(Tick(step, 0, step / 40, 20))
        if step % 20 == 0:
            ner.renew(examples)
        nlp.update(examples, sgd=optimizer)
    # 1 of 12 entity tokens, in 20 updates
    assert ner.training_statistics()["entity_removed"] == pytest.approx(1 / 11, abs=0.01)
    assert entities_of(nlp, ["Bob runs"]) == [[(0, 1, "PER")]]


def test_a_teacher_must_be_there_from_the_start_where_all_is_learned_from_it():
    nlp = token_pipeline(SELF)
    ner = nlp.get_pipe("token_ner")
    ner.tick(Tick(0, 0, 0.0, 10))
    with pytest.raises(WeaknerError, match="WK029"):
        nlp.update(make_examples(nlp), sgd=False)
    ner.renew(make_examples(nlp))
    assert nlp.update(make_examples(nlp), sgd=False, losses={})["token_ner"] > 0.0


# Augmented sentences


def augmented(nlp, words):
    example = make_example(nlp, "Bob runs", [(0, 1, "PER")])
    set_weak(example.reference)
    set_augmented(example.reference, words)
    return example


def renewed(nlp, examples):
    ner = nlp.get_pipe("token_ner")
    ner.tick(Tick(0, 0, 0.0, 10))
    ner.renew(examples)
    return ner


def test_augmented_sentences_are_read_in_the_same_forward_pass():
    nlp = token_pipeline(SELF)
    examples = [make_example(nlp, "Anna went"), augmented(nlp, ["Anna", "walks"]), make_example(nlp, "")]
    ner = renewed(nlp, examples)
    docs = ner.training_docs(examples)
    assert [doc.text for doc in docs] == ["Anna went ", "Bob runs ", "", "Anna walks "]
    found = nlp.update(examples, sgd=False, losses={})["token_ner"]
    with_augmented = gradients(ner.model)
    clear_gradients(ner.model)
    set_augmented(examples[1].reference, None)
    alone = nlp.update(examples, sgd=False, losses={})["token_ner"]
    assert found > alone
    assert not same_gradients(gradients(ner.model), with_augmented)


def test_only_objectives_that_want_them_read_augmented_sentences():
    nlp = token_pipeline()
    assert len(nlp.get_pipe("token_ner").training_docs([augmented(nlp, ["Anna", "walks"])])) == 1


@pytest.mark.parametrize("words", [["Anna"], ["Anna", "walks", "far"]])
def test_augmented_words_of_another_number(words):
    nlp = token_pipeline(SELF)
    examples = [augmented(nlp, words)]
    renewed(nlp, make_examples(nlp))
    with pytest.raises(WeaknerError, match="augmented words"):
        nlp.update(examples, sgd=False)


def test_augmented_words_of_other_tokens():
    nlp = token_pipeline(SELF)
    renewed(nlp, make_examples(nlp))
    reference = augmented(nlp, ["Anna", "walks"]).reference
    with pytest.raises(WeaknerError, match="augmented words"):
        nlp.update([Example(Doc(nlp.vocab, words=["Bo", "b", "runs"]), reference)], sgd=False)

"""Completion, and the calibration of its confidences, with a small trained pipeline."""

import numpy
import pytest
import spacy
from spacy.vocab import Vocab

from spacy_weakner.calibration import confidence
from spacy_weakner.calibration.confidence import calibrate_confidence
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.relabel.clean import make_missing
from spacy_weakner.relabel.complete import complete
from spacy_weakner.relabel.confident_learning import SuspectTokens

from ..ent_combiner.util import borders
from ..util import LISTENER, SENTENCES, TOK2VEC, crf_config, crf_pipeline, distributions, make_doc, make_examples, train
from .util import nested_is_refused

NLP = spacy.blank("xx")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A pipeline that knows the sentences by heart."""
    nlp = crf_pipeline()
    train(nlp, make_examples(nlp), steps=60)
    path = tmp_path_factory.mktemp("model")
    nlp.to_disk(path)
    return path


def gold_docs(weak_entities=None):
    docs = [make_doc(NLP, text, entities) for text, entities in SENTENCES]
    for doc, entities in zip(docs, weak_entities or [], strict=False):
        weak.set_source(doc, "terms", entities)
    return docs


def weak_doc(text, entities, missing=(), sources=None):
    doc = make_doc(NLP, text, entities, missing=missing)
    weak.set_weak(doc)
    for source, proposed in (sources or {"terms": entities}).items():
        weak.set_source(doc, source, proposed)
    return doc


def run(tmp_path, docs, model, **settings):
    write_docs(tmp_path / "in.spacy", docs)
    report = complete(tmp_path / "in.spacy", tmp_path / "out.spacy", model, **settings)
    return report, list(read_docs(tmp_path / "out.spacy", NLP.vocab))


def learn(tmp_path, model, **settings):
    return calibrate_confidence([(model, tmp_path / "gold.spacy")], **settings).calibration


def with_values(calibration, values, **changed):
    return calibration._replace(steps=calibration.steps._replace(values=numpy.array(values)), **changed)


# Calibration


def test_the_arithmetic_stays_the_same(tmp_path, monkeypatch):
    """Numbers of a model that knows a part; as they were when calibrations were files."""
    nlp = crf_pipeline()
    train(nlp, make_examples(nlp), steps=15)
    nlp.to_disk(tmp_path / "model")
    docs = gold_docs([[(0, 1, "PER")]] * 4)
    docs.append(make_doc(NLP, "Anna went to New York", [(0, 1, "LOC"), (3, 5, "PER")]))
    weak.set_source(docs[4], "terms", [(0, 1, "PER")])
    write_docs(tmp_path / "gold.spacy", docs)
    found = learn(tmp_path, tmp_path / "model")
    assert (found.steps.values.tolist(), found.given) == ([0.8], 0.2)
    assert found.rules == pytest.approx({"unmatched": 160 / 3, "all": 500 / 7, "none": 100 / 3})
    monkeypatch.setattr(confidence, "_PER_BIN", 1)
    monkeypatch.setattr(confidence, "_BINS", 2)
    found = learn(tmp_path, tmp_path / "model", unit="token")
    assert found.steps.values.tolist() == pytest.approx([0.7, 1.0]) and found.given == pytest.approx(0.6)
    assert found.steps.edges.tolist() == pytest.approx([6.85451009], rel=1e-4)


@pytest.mark.parametrize("unit, accuracy", [("sentence", 0.75), ("token", 1 - (1 / 5) / 4)])
def test_calibrate(tmp_path, model, unit, accuracy):
    docs = gold_docs()
    docs[0] = make_doc(NLP, SENTENCES[0][0], [(0, 1, "PER"), (3, 4, "LOC")])  # the model says otherwise
    write_docs(tmp_path / "gold.spacy", docs)
    report = calibrate_confidence([(model, tmp_path / "gold.spacy")], unit=unit)
    assert report.sentences == 4 and report.left_out == 0
    assert report.accuracy == pytest.approx(accuracy)
    found = report.calibration
    assert found.steps.values.tolist() == pytest.approx([accuracy])  # too few sentences for more than one bin
    assert found.unit == unit and found.rules == {}


@pytest.mark.parametrize("score", ["viterbi", "log_probability"])
@pytest.mark.parametrize("method", ["histogram", "isotonic"])
def test_every_score_and_method(tmp_path, monkeypatch, model, score, method):
    write_docs(tmp_path / "gold.spacy", gold_docs())
    monkeypatch.setattr(confidence, "_PER_BIN", 1)
    report = calibrate_confidence([(model, tmp_path / "gold.spacy")], score=score, method=method)
    steps = report.calibration.steps
    assert len(steps.values) == (4 if method == "histogram" else 1)
    assert set(steps.values) == {1.0}
    if method == "histogram":
        assert (steps.edges < 0).all() == (score == "log_probability")


def test_folds_are_taken_together(tmp_path, model):
    docs = gold_docs()
    write_docs(tmp_path / "a.spacy", docs[:1])
    write_docs(tmp_path / "b.spacy", docs[1:])
    folds = [(model, tmp_path / "a.spacy"), (model, tmp_path / "b.spacy")]
    assert calibrate_confidence(folds).sentences == 4


def test_sentences_without_complete_gold_are_left_out(tmp_path, model):
    docs = [*gold_docs(), make_doc(NLP, "a b", missing=[1]), make_doc(NLP, "a b", annotated=False), make_doc(NLP, "")]
    aggregated = weak_doc("Bob", [(0, 1, "LOC")])
    weak.set_group(aggregated, weak.GOLD_GROUP, [(0, 1, "PER")])
    docs += [aggregated, weak_doc("Bob", [(0, 1, "LOC")])]
    write_docs(tmp_path / "gold.spacy", docs)
    report = calibrate_confidence([(model, tmp_path / "gold.spacy")])
    assert (report.sentences, report.left_out) == (5, 4)
    assert report.accuracy == 1.0
    write_docs(tmp_path / "none.spacy", docs[4:7])
    with pytest.raises(WeaknerError, match=r"WK407.*none\.spacy"):
        calibrate_confidence([(model, tmp_path / "none.spacy")])


@pytest.mark.parametrize("settings", [{"score": "x"}, {"unit": "x"}, {"method": "x"}], ids=str)
def test_unusable_settings_of_the_calibration(tmp_path, settings):
    with pytest.raises(WeaknerError, match=rf"WK005.*{next(iter(settings))}"):
        calibrate_confidence([("none", tmp_path)], **settings)
    with pytest.raises(WeaknerError, match=r"WK005.*folds"):
        calibrate_confidence([])


# Completion


def test_equation_2(tmp_path, model):
    # "New York" is found by the model, "Anna" keeps the label of the term list.
    report, (doc, other) = run(
        tmp_path, [weak_doc("Anna went to New York", [(0, 1, "LOC")], missing=[1, 2]), weak_doc("Bob", [])], model
    )
    assert weak.doc_entities(doc) == [(0, 1, "LOC"), (3, 5, "LOC")]
    assert weak.doc_entities(other) == [(0, 1, "PER")]
    assert all(token.ent_iob != 0 for token in doc)
    assert weak.is_weak(doc) and weak.get_tags(doc) is None and weak.get_confidence(doc) is None
    assert weak.group_entities(doc, "weak:terms") == weak.group_entities(doc, "matched") == [(0, 1, "LOC")]
    assert weak.group_entities(doc, "pred:crf_ner") == [(0, 1, "PER"), (3, 5, "LOC")]
    assert (report.docs, report.tokens, report.matched, report.completed, report.broken) == (2, 6, 1, 3, 0)
    assert report.entities == {"LOC": 2, "PER": 1} and report.confidence is None


def test_labels_that_the_model_does_not_know(tmp_path, model):
    _, (doc,) = run(tmp_path, [weak_doc("Paris likes Bob Smith", [(1, 2, "VERB")])], model)
    assert weak.doc_entities(doc) == [(0, 1, "LOC"), (1, 2, "VERB"), (2, 4, "PER")]


def test_soft_labels_mix_the_model_with_the_weak_labels(tmp_path, model):
    docs = [weak_doc("Ann lives in Paris", [(3, 4, "GPE")])]
    _, (doc,) = run(tmp_path, docs, model, soft=True)
    soft = weak.get_soft_labels(doc)
    rows = [dict(zip(soft.labels, row, strict=True)) for row in soft.probabilities]
    nlp = spacy.load(model)
    (predicted,) = distributions(nlp.get_pipe("crf_ner"), [nlp.make_doc("Ann lives in Paris")])
    for row, expected in zip(rows[:3], predicted[:3], strict=True):
        assert list(row.values())[: len(expected)] == pytest.approx(expected.tolist())
    assert rows[3]["B-GPE"] == 1.0
    assert [sum(row.values()) for row in rows] == pytest.approx([1.0] * 4)


def test_self_training_takes_the_model_everywhere(tmp_path, model):
    report, (doc,) = run(tmp_path, [weak_doc("Anna went to New York", [(0, 1, "LOC")])], model, rule="all")
    assert weak.doc_entities(doc) == [(0, 1, "PER"), (3, 5, "LOC")]
    assert weak.group_entities(doc, "matched") == [(0, 1, "LOC")]
    assert report.matched == 0


@pytest.mark.parametrize(
    "broken, entities, tags",
    [
        ("keep", [(2, 3, "LOC"), (3, 4, "PER")], ["B-LOC", "O", "B-LOC", "I-PER"]),
        ("repair", [(2, 3, "LOC"), (3, 4, "PER")], None),
    ],
)
def test_broken_sequences(tmp_path, model, broken, entities, tags):
    docs = [weak_doc("Paris likes Bob Smith", [(2, 3, "LOC")]), weak_doc("Bob", [])]
    report, found = run(tmp_path, docs, model, broken=broken)
    assert report.broken == 1
    assert weak.doc_entities(found[0])[-2:] == entities
    assert weak.get_tags(found[0]) == tags
    assert weak.get_tags(found[1]) is None


def test_confidence(tmp_path, model):
    write_docs(tmp_path / "gold.spacy", gold_docs([[(0, 1, "LOC")], [(0, 1, "LOC")]]))
    calibration = with_values(learn(tmp_path, model), [0.4])
    docs = [weak_doc("Anna went to New York", [(3, 5, "LOC")]), make_doc(NLP, "", annotated=False)]

    def first(**settings):
        report, found = run(tmp_path, docs, model, calibration=calibration, **settings)
        assert weak.get_confidence(found[1]) == 0.95
        assert report.confidence == pytest.approx(numpy.mean([weak.get_confidence(doc) for doc in found]))
        return weak.get_confidence(found[0])

    assert first() == pytest.approx(2 / 5 + 3 / 5 * 0.4)
    assert first(rule="all") == pytest.approx(0.4)
    assert first(weak_accuracy=0.5) == pytest.approx(1 / 5 + 3 / 5 * 0.4)


def test_a_completed_corpus_starts_from_its_weak_entities(tmp_path, model):
    _, docs = run(tmp_path, [weak_doc("Anna went to New York", [(0, 1, "LOC")])], model)
    (tmp_path / "out.spacy.json").unlink()
    (tmp_path / "out.spacy").unlink()
    report, (doc,) = run(tmp_path, docs, model)
    assert weak.group_entities(doc, "matched") == [(0, 1, "LOC")]
    assert report.matched == 1


def test_suspect_labels_do_not_come_back(tmp_path, model):
    _, (doc,) = run(tmp_path, [weak_doc("Anna went to New York", [(0, 1, "LOC"), (3, 5, "LOC")])], model)
    make_missing(doc, [SuspectTokens(0, 1, "LOC", 0.1, "PER", 0.9)])
    assert weak.group_entities(doc, "matched") == [(3, 5, "LOC")]
    (tmp_path / "out.spacy.json").unlink()
    (tmp_path / "out.spacy").unlink()
    _, (doc,) = run(tmp_path, [doc], model)
    assert weak.doc_entities(doc) == [(0, 1, "PER"), (3, 5, "LOC")] and "suspect" not in doc.spans


def test_ids_of_kept_entities_are_kept(tmp_path, model):
    entity = (3, 5, "LOC")
    doc = weak_doc("Anna went to New York", [entity])
    for source in "ab":
        weak.set_source(doc, source, [entity], ids={entity: [source]})
    weak.give_ids(doc, {entity: ["b"]})
    for name in ("out.spacy", "again.spacy"):
        write_docs(tmp_path / "in.spacy", [doc])
        complete(tmp_path / "in.spacy", tmp_path / name, model)
        (doc,) = read_docs(tmp_path / name, NLP.vocab)
        assert [ent.kb_id_ for ent in doc.ents] == ["", "b"]
        doc.set_ents([])  # also if only the weak entities have it


def test_a_combiner_reads_the_sources_of_the_corpus(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("ent_combiner").fit(borders(60))
    nlp.to_disk(tmp_path / "model")
    docs = borders(10, seed=1)
    for doc in docs:
        weak.set_weak(doc)
    _, found = run(tmp_path, docs, tmp_path / "model", rule="all")
    assert list(map(weak.doc_entities, found)) == list(map(weak.doc_entities, docs))


def test_labels_that_would_stay_are_refused(tmp_path, model):
    doc = weak_doc(*SENTENCES[0])
    nested_is_refused(doc, lambda: run(tmp_path, [doc], model), tmp_path / "out.spacy")


def test_gold_is_never_overwritten(tmp_path, model):
    with pytest.raises(WeaknerError, match=r"WK344.*in\.spacy.*Anna"):
        run(tmp_path, gold_docs(), model)
    assert not (tmp_path / "out.spacy").exists()


def test_unlabeled_sentences_get_the_predictions(tmp_path, model):
    _, (doc,) = run(tmp_path, [make_doc(NLP, "Bob", annotated=False)], model)
    assert weak.doc_entities(doc) == [(0, 1, "PER")] and weak.is_weak(doc)


def test_shards_and_receipts(tmp_path, model):
    for i in range(2):
        write_docs(tmp_path / "in" / f"{i}.spacy", [weak_doc("Bob", [])])
    assert complete(tmp_path / "in", tmp_path / "out", model).skipped == 0
    again = complete(tmp_path / "in", tmp_path / "out", model)
    assert again.skipped == 2 and again.entities == {"PER": 2}
    assert complete(tmp_path / "in", tmp_path / "out", model, broken="repair").skipped == 0


def test_a_shared_encoder_runs_first(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    nlp.add_pipe("crf_ner", config=crf_config(LISTENER))
    nlp.initialize(lambda: make_examples(nlp))
    train(nlp, make_examples(nlp), steps=60)
    nlp.to_disk(tmp_path / "model")
    _, (doc,) = run(tmp_path, [weak_doc("Anna went to New York", [])], tmp_path / "model")
    assert weak.doc_entities(doc) == [(0, 1, "PER"), (3, 5, "LOC")]


@pytest.mark.parametrize("settings", [{"rule": "x"}, {"broken": "x"}, {"cap": 1.5}, {"weak_accuracy": -0.1}], ids=str)
def test_unusable_settings_of_complete(tmp_path, settings):
    with pytest.raises(WeaknerError, match=rf"WK005.*{next(iter(settings))}"):
        complete(tmp_path, tmp_path / "out", "none", **settings)


def test_the_unit_of_a_confidence_is_kept(tmp_path, model):
    write_docs(tmp_path / "gold.spacy", gold_docs())
    _, (doc,) = run(tmp_path, [weak_doc("Bob", [])], model, calibration=learn(tmp_path, model, unit="token"))
    assert weak.get_confidence_unit(doc) == "token"


def test_aggregating_again_replaces_what_was_matched(tmp_path, model):
    doc = weak_doc("Anna went to New York", [(0, 1, "LOC")], sources={"a": [(0, 1, "LOC")], "b": [(1, 2, "LOC")]})
    run(tmp_path, [doc], model)
    aggregate(tmp_path / "out.spacy", tmp_path / "b.spacy", sources=["b"])
    complete(tmp_path / "b.spacy", tmp_path / "again.spacy", model)
    (found,) = read_docs(tmp_path / "again.spacy", NLP.vocab)
    assert weak.group_entities(found, "matched") == [(1, 2, "LOC")]


def test_white_space_is_no_entity(tmp_path, model):
    _, docs = run(tmp_path, [weak_doc("Anna   went", []), weak_doc("  ", [])], model)
    assert not any(ent.text.isspace() or ent.text != ent.text.strip() for doc in docs for ent in doc.ents)


def test_pipelines_that_score_nothing(tmp_path):
    NLP.to_disk(tmp_path / "blank")
    with pytest.raises(WeaknerError, match=r"WK341.*blank"):
        run(tmp_path, [weak_doc("Bob", [])], tmp_path / "blank")


def test_another_component(tmp_path, model):
    with pytest.raises(WeaknerError, match=r"WK341.*'other'.*crf_ner"):
        run(tmp_path, [weak_doc("Bob", [])], model, component="other")
    run(tmp_path, [weak_doc("Bob", [])], model, component="crf_ner")


def test_scores_that_are_no_numbers(tmp_path, model):
    nlp = spacy.load(model)
    linear = next(n for n in nlp.get_pipe("crf_ner").model.walk() if n.name == "linear")
    linear.set_param("b", linear.get_param("b") * numpy.nan)
    nlp.to_disk(tmp_path / "broken")
    write_docs(tmp_path / "gold.spacy", gold_docs())
    with pytest.raises(WeaknerError, match=r"WK343.*Anna.*broken"):
        calibrate_confidence([(tmp_path / "broken", tmp_path / "gold.spacy")])
    with pytest.raises(WeaknerError, match=r"WK343.*Bob.*broken"):
        run(tmp_path, [weak_doc("Bob", [])], tmp_path / "broken")


def test_vocab_of_stored_docs(tmp_path, model):
    run(tmp_path, [weak_doc("Anna went to New York", [])], model)
    (doc,) = read_docs(tmp_path / "out.spacy", Vocab())
    assert [ent.label_ for ent in doc.ents] == ["PER", "LOC"]


# Which rule


def labeled_gold(tmp_path, weak_entities, name="gold.spacy"):
    write_docs(tmp_path / name, gold_docs(weak_entities))
    return tmp_path / name


def rules_of(tmp_path, model, weak_entities):
    labeled_gold(tmp_path, weak_entities)
    calibration = learn(tmp_path, model)
    return calibration, calibration.rules


def test_calibrate_tells_which_labels_are_best(tmp_path, model):
    """The model knows everything, the list one entity in two."""
    half = [entities[:1] for _, entities in SENTENCES]
    calibration, rules = rules_of(tmp_path, model, half)
    right = [labels == entities for labels, (_, entities) in zip(half, SENTENCES, strict=True)]
    assert calibration.given == pytest.approx(sum(right) / len(right))
    n, found = sum(len(entities) for _, entities in SENTENCES), sum(map(len, half))
    assert rules == pytest.approx({"none": 200 * found / (n + found), "unmatched": 100.0, "all": 100.0})
    report, _ = run(
        tmp_path, [weak_doc(text, []) for text, _ in SENTENCES], model, rule="auto", calibration=calibration
    )
    assert report.rule == "unmatched"


def test_weak_labels_are_never_given_up_for_those_of_the_model(tmp_path, model):
    """They are what the model does not know yet, however wrong they are."""
    wrong = [[(0, 1, "ORG")] for _ in SENTENCES]
    calibration, rules = rules_of(tmp_path, model, wrong)
    assert rules["all"] == 100.0 > rules["unmatched"] > rules["none"]
    report, _ = run(tmp_path, [weak_doc(*SENTENCES[0])], model, rule="auto", calibration=calibration)
    assert report.rule == "unmatched"


def test_labels_that_are_right_stay_as_they_are(tmp_path):
    """An untrained model finds what is not there."""
    nlp = crf_pipeline()
    nlp.get_pipe("crf_ner").set_bias(-100.0)
    nlp.to_disk(tmp_path / "bad")
    calibration, rules = rules_of(tmp_path, tmp_path / "bad", [entities for _, entities in SENTENCES])
    assert rules["none"] == 100.0 > max(rules["unmatched"], rules["all"])
    text, entities = SENTENCES[0]
    doc = weak_doc(text, entities[:1], missing=[1])
    report, (completed,) = run(tmp_path, [doc], tmp_path / "bad", rule="auto", calibration=calibration)
    assert report.rule == "none" and report.completed == 0
    assert weak.doc_entities(completed) == entities[:1]
    assert all(token.ent_iob != 0 for token in completed)
    assert weak.get_confidence(completed) == pytest.approx(0.95)
    again = complete(tmp_path / "out.spacy", tmp_path / "again.spacy", tmp_path / "bad", rule="none")
    assert again.rule == "none"
    (doc,) = read_docs(tmp_path / "again.spacy", NLP.vocab)
    assert weak.doc_entities(doc) == entities[:1]


def test_of_several_sources_the_entities_that_most_name(tmp_path, model):
    docs = gold_docs()
    for doc, (_, entities) in zip(docs, SENTENCES, strict=True):
        weak.set_source(doc, "one", entities)
        weak.set_source(doc, "two", entities)
        weak.set_source(doc, "three", [(0, len(doc), "ORG")] if entities else [])
    write_docs(tmp_path / "gold.spacy", docs)
    assert learn(tmp_path, model).rules["none"] == 100.0


def test_sources_that_found_nothing_have_looked(tmp_path, model):
    calibration, rules = rules_of(tmp_path, model, [[] for _ in SENTENCES])
    assert rules == {"none": 0.0, "unmatched": 100.0, "all": 100.0}
    report, _ = run(tmp_path, [weak_doc(*SENTENCES[0])], model, rule="auto", calibration=calibration)
    assert report.rule == "unmatched"


def test_sentences_that_no_source_has_looked_at_say_nothing(tmp_path, model):
    docs = gold_docs()
    weak.set_source(docs[0], "terms", SENTENCES[0][1])
    write_docs(tmp_path / "gold.spacy", docs)
    found = learn(tmp_path, model)
    assert found.rules["none"] == 100.0 and found.given == 1.0


def test_what_is_not_known_is_no_confidence_of_zero(tmp_path, model):
    calibration, _ = rules_of(tmp_path, model, [entities for _, entities in SENTENCES])
    calibration = calibration._replace(given=None, rules={})
    with pytest.raises(WeaknerError, match=r"WK701.*'none'"):
        run(tmp_path, [weak_doc(*SENTENCES[0])], model, rule="none", calibration=calibration)
    _, (doc,) = run(tmp_path, [weak_doc(*SENTENCES[0])], model, rule="none")
    assert weak.get_confidence(doc) is None


def test_auto_needs_to_know(tmp_path, model):
    write_docs(tmp_path / "gold.spacy", gold_docs())
    unlabeled = learn(tmp_path, model)
    assert unlabeled.rules == {}
    for calibration in (None, unlabeled):
        with pytest.raises(WeaknerError, match=r"WK701.*auto"):
            run(tmp_path, [weak_doc(*SENTENCES[0])], model, rule="auto", calibration=calibration)
    with pytest.raises(WeaknerError, match=r"WK331.*'soft'"):
        run(tmp_path, [weak_doc(*SENTENCES[0])], model, rule="none", soft=True)

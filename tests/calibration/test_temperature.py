"""Calibrating probabilities by a temperature."""

import math
from functools import partial

import numpy
import pytest
import spacy

from spacy_weakner.calibration.calibrate import calibrate
from spacy_weakner.calibration.fitting import HIGHEST, LOWEST, find_temperature
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import log_softmax

from ..util import SENTENCES, head_pipeline, make_example, make_examples

NLP = spacy.blank("xx")
# What no model trained on the others can know.
WRONG = [("Anna went to New York", [(0, 1, "LOC"), (3, 5, "PER")])]


@pytest.fixture
def gold(write_gold):
    return partial(write_gold, NLP)


def test_the_gold_becomes_as_likely_as_it_can_and_predictions_stay(tmp_path, trained, gold):
    report = calibrate(trained, gold([*SENTENCES, *WRONG]), tmp_path / "out", fit=["temperature"])
    assert report.component == trained.name and report.docs == len(SENTENCES) + 1
    assert report.temperature.after < report.temperature.before and report.temperature.value > 1.0
    before, after = spacy.load(trained), spacy.load(tmp_path / "out")
    assert after.get_pipe(trained.name).temperature == pytest.approx(report.temperature.value)
    for text, _ in SENTENCES:
        assert doc_entities(before(text)) == doc_entities(after(text))
    examples = [make_example(before, text, entities) for text, entities in [*SENTENCES, *WRONG]]
    loss = before.get_pipe(trained.name).held_out_loss(examples)
    assert report.temperature.after == pytest.approx(loss(report.temperature.value), rel=1e-4)
    assert all(
        loss(report.temperature.value) <= loss(report.temperature.value * factor) + 1e-9
        for factor in (0.8, 0.95, 1.05, 1.2)
    )


def test_loss_of_spans_is_that_of_all_spans_one_by_one():
    nlp = head_pipeline("span_ner")
    ner = nlp.get_pipe("span_ner")
    examples = make_examples(nlp)[:2]
    total, n = 0.0, 0
    for example in examples:
        (vectors,) = ner.model.predict([example.predicted])
        entities = {(e.start, e.end): ner.labels.index(e.label_) + 1 for e in example.reference.ents}
        for start in range(len(vectors)):
            for end in range(start + 1, min(len(vectors), start + ner.max_width) + 1):
                score = ner.model.get_ref("head").predict((vectors, numpy.asarray([[start, end]])))
                total -= log_softmax(score, 2.0)[0, entities.get((start, end), 0)]
                n += 1
    assert ner.held_out_loss(examples)(2.0) == pytest.approx(total / n, rel=1e-4)


@pytest.mark.parametrize("best", [0.1, 1.0, 1.3, 15.0])
def test_the_temperature_with_the_lowest_loss(best):
    assert find_temperature(lambda t: math.log(t / best) ** 2) == pytest.approx(best, rel=1e-3)
    assert find_temperature(lambda t: t) == pytest.approx(LOWEST, rel=1e-3)
    assert find_temperature(lambda t: -t) == pytest.approx(HIGHEST, rel=1e-3)


def test_a_head_whose_loss_is_not_a_number_is_refused(tmp_path, trained, gold):
    nlp = spacy.load(trained)
    for node in nlp.get_pipe(trained.name).model.walk():
        for name in node.param_names:
            node.set_param(name, numpy.full_like(node.get_param(name), numpy.nan))
    nlp.to_disk(tmp_path / "broken")
    with numpy.errstate(invalid="ignore"), pytest.raises(WeaknerError, match=r"WK006.*nan"):
        calibrate(tmp_path / "broken", gold(SENTENCES), tmp_path / "out", fit=["temperature"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fit", ["temperature", "bias"])
def test_unusable_input(tmp_path, trained, gold, fit):
    with pytest.raises(WeaknerError, match=r"WK341.*nobody"):
        calibrate(trained, gold(SENTENCES), tmp_path / "out", fit=[fit], component="nobody")
    with pytest.raises(WeaknerError, match=r"WK003.*THING"):
        calibrate(trained, gold([("Anna", [(0, 1, "THING")])]), tmp_path / "out", fit=[fit])
    write_docs(tmp_path / "none.spacy", [NLP.make_doc("Anna")])
    with pytest.raises(WeaknerError, match="WK407"):
        calibrate(trained, tmp_path / "none.spacy", tmp_path / "out", fit=[fit])
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").touch()
    with pytest.raises(WeaknerError, match="WK300"):
        calibrate(trained, gold(SENTENCES), tmp_path / "out", fit=[fit])

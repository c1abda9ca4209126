"""Choosing the bias on held-out gold."""

from functools import partial

import pytest
import spacy

from spacy_weakner.calibration.calibrate import calibrate
from spacy_weakner.calibration.fitting import best_bias, f1_under
from spacy_weakner.errors import WeaknerError

from ..cli.util import invoke
from ..util import SENTENCES, head_pipeline, make_example, make_examples, train

NLP = spacy.blank("xx")


@pytest.fixture(scope="module")
def model(trained, tmp_path_factory):
    """A head that gives nothing, though it knows everything."""
    nlp = spacy.load(trained)
    nlp.get_pipe(trained.name).set_bias(1000.0)
    path = tmp_path_factory.mktemp("model") / trained.name
    nlp.to_disk(path)
    return path


@pytest.fixture
def gold(write_gold):
    return partial(write_gold, NLP)


def test_what_it_says_is_what_the_new_pipeline_does(tmp_path, model, gold):
    corpus = gold(SENTENCES)
    report = calibrate(model, corpus, tmp_path / "out", fit=["bias"])
    assert (report.component, report.docs, report.bias.before) == (model.name, len(SENTENCES), 0.0)
    assert report.bias.after > report.bias.before and not report.bias.at_bound
    nlp = spacy.load(tmp_path / "out")
    assert nlp.get_pipe(model.name).bias == report.bias.value
    found = nlp.evaluate(make_examples(nlp))
    assert 100.0 * found["ents_f"] == pytest.approx(report.bias.after)
    assert spacy.load(model).get_pipe(model.name).bias == 1000.0


def test_without_a_gain_there_is_none(tmp_path, model, gold):
    """Gold without entities, and a head that gives none."""
    nothing = gold([("the cat sat", []), ("on a mat", [])])
    report = calibrate(model, nothing, tmp_path / "out", fit=["bias"])
    assert report.bias[:3] == (0.0, 0.0, 0.0)


def test_f1_is_that_of_all_docs_together():
    wanted = [[(0, 1, "PER"), (2, 3, "LOC")], []]
    found = [
        [[(0, 1, "PER")], [(0, 1, "PER"), (2, 3, "PER")], []],
        [[], [(0, 1, "LOC")], []],
    ]
    assert f1_under(wanted, found) == pytest.approx([200.0 / 3.0, 200.0 / 5.0, 0.0])
    assert f1_under([[]], [[[]]]) == [0.0]


def test_of_equally_good_ones_the_nearest_to_zero():
    assert best_bias([-2.0, -1.0, 0.0, 1.0, 2.0], [3.0, 5.0, 4.0, 5.0, 5.0]) == (-1.0, 5.0)
    assert best_bias([-2.0, 1.0], [1.0, 1.0]) == (1.0, 1.0)


def test_the_command(tmp_path, model, gold):
    result = invoke("calibrate", model, gold(SENTENCES), tmp_path / "out", "--fit", "bias")
    assert result.exit_code == 0, result.output
    assert f"'{model.name}'" in result.output and "0.0 before" in result.output
    assert (tmp_path / "out" / "meta.json").exists()


def test_entities_that_stay_count_as_found(tmp_path, gold):
    """A ruler knows the persons; the head, which must not overwrite them, the places."""
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PER", "pattern": name} for name in ("Anna", "Bob")])
    trained = head_pipeline("token_ner")
    train(trained, make_examples(trained), steps=40)
    nlp.add_pipe("token_ner", source=trained)
    nlp.to_disk(tmp_path / "model")
    sentences = [("Anna went to Paris", [(0, 1, "PER")]), ("Bob sat", [(0, 1, "PER")])]
    report = calibrate(tmp_path / "model", gold(sentences), tmp_path / "out", fit=["bias"], component="token_ner")
    for path, f1 in (("model", report.bias.before), ("out", report.bias.after)):
        loaded = spacy.load(tmp_path / path)
        scores = loaded.evaluate([make_example(loaded, text, entities) for text, entities in sentences])
        assert 100.0 * scores["ents_f"] == pytest.approx(f1)
    assert report.bias.after >= report.bias.before > 0.0


def test_a_present_bias_that_is_better_stays(tmp_path, model, gold):
    nlp = spacy.load(model)
    ner = nlp.get_pipe(model.name)
    ner.set_bias(0.123)
    nlp.to_disk(tmp_path / "model")
    report = calibrate(tmp_path / "model", gold(SENTENCES), tmp_path / "out", fit=["bias"])
    assert report.bias.after >= report.bias.before


def test_heads_whose_entities_others_decide_on_are_refused(tmp_path, model, gold):
    nlp = spacy.load(model, config={"components": {model.name: {"annotate_ents": False}}})
    nlp.to_disk(tmp_path / "model")
    with pytest.raises(WeaknerError, match=rf"WK703.*{model.name}"):
        calibrate(tmp_path / "model", gold(SENTENCES), tmp_path / "out", fit=["bias"])

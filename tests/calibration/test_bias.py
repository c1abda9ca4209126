"""Choosing the bias on held-out gold."""

import pytest
import spacy
from typer.testing import CliRunner

from spacy_weakner.calibration.calibrate import calibrate
from spacy_weakner.calibration.fitting import best_bias, f1_under
from spacy_weakner.cli.app import app
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.errors import WeaknerError

from ..util import ENTITY_HEADS, SENTENCES, head_pipeline, make_doc, make_example, make_examples, train

NLP = spacy.blank("xx")


@pytest.fixture(scope="module", params=ENTITY_HEADS)
def model(request, tmp_path_factory):
    """A head that gives nothing, though it knows everything."""
    nlp = head_pipeline(request.param)
    train(nlp, make_examples(nlp), steps=40)
    nlp.get_pipe(request.param).set_bias(1000.0)
    path = tmp_path_factory.mktemp("model") / request.param
    nlp.to_disk(path)
    return path


def gold(tmp_path, sentences):
    path = tmp_path / "gold.spacy"
    write_docs(path, [make_doc(NLP, text, entities) for text, entities in sentences])
    return path


def test_what_it_says_is_what_the_new_pipeline_does(tmp_path, model):
    corpus = gold(tmp_path, SENTENCES)
    report = calibrate(model, corpus, tmp_path / "out", fit=["bias"])
    assert (report.component, report.docs, report.bias.before) == (model.name, len(SENTENCES), 0.0)
    assert report.bias.after > report.bias.before and not report.bias.at_bound
    nlp = spacy.load(tmp_path / "out")
    assert nlp.get_pipe(model.name).bias == report.bias.value
    found = nlp.evaluate(make_examples(nlp))
    assert 100.0 * found["ents_f"] == pytest.approx(report.bias.after)
    assert spacy.load(model).get_pipe(model.name).bias == 1000.0


def test_without_a_gain_there_is_none(tmp_path, model):
    """Gold without entities, and a head that gives none."""
    nothing = gold(tmp_path, [("the cat sat", []), ("on a mat", [])])
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


def test_unusable_input(tmp_path, model):
    corpus = gold(tmp_path, SENTENCES)
    with pytest.raises(WeaknerError, match=r"WK341.*nobody"):
        calibrate(model, corpus, tmp_path / "out", fit=["bias"], component="nobody")
    with pytest.raises(WeaknerError, match=r"WK003.*THING"):
        calibrate(model, gold(tmp_path, [("Anna", [(0, 1, "THING")])]), tmp_path / "out", fit=["bias"])
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    with pytest.raises(WeaknerError, match="WK314"):
        calibrate(model, corpus, tmp_path / "out", fit=["bias"])


def test_the_command(tmp_path, model):
    corpus = gold(tmp_path, SENTENCES)
    result = CliRunner().invoke(app, ["calibrate", str(model), str(corpus), str(tmp_path / "out"), "--fit", "bias"])
    assert result.exit_code == 0, result.output
    assert f"'{model.name}'" in result.output and "0.0 before" in result.output
    assert (tmp_path / "out" / "meta.json").exists()


def test_entities_that_stay_count_as_found(tmp_path):
    """A ruler knows the persons; the head, which must not overwrite them, the places."""
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PER", "pattern": name} for name in ("Anna", "Bob")])
    trained = head_pipeline("token_ner")
    train(trained, make_examples(trained), steps=40)
    nlp.add_pipe("token_ner", source=trained)
    nlp.to_disk(tmp_path / "model")
    sentences = [("Anna went to Paris", [(0, 1, "PER")]), ("Bob sat", [(0, 1, "PER")])]
    report = calibrate(
        tmp_path / "model", gold(tmp_path, sentences), tmp_path / "out", fit=["bias"], component="token_ner"
    )
    for path, f1 in (("model", report.bias.before), ("out", report.bias.after)):
        loaded = spacy.load(tmp_path / path)
        scores = loaded.evaluate([make_example(loaded, text, entities) for text, entities in sentences])
        assert 100.0 * scores["ents_f"] == pytest.approx(f1)
    assert report.bias.after >= report.bias.before > 0.0


def test_a_present_bias_that_is_better_stays(tmp_path, model):
    nlp = spacy.load(model)
    ner = nlp.get_pipe(model.name)
    ner.set_bias(0.123)
    nlp.to_disk(tmp_path / "model")
    report = calibrate(tmp_path / "model", gold(tmp_path, SENTENCES), tmp_path / "out", fit=["bias"])
    assert report.bias.after >= report.bias.before


def test_heads_whose_entities_others_decide_on_are_refused(tmp_path, model):
    nlp = spacy.load(model, config={"components": {model.name: {"annotate_ents": False}}})
    nlp.to_disk(tmp_path / "model")
    with pytest.raises(WeaknerError, match=rf"WK703.*{model.name}"):
        calibrate(tmp_path / "model", gold(tmp_path, SENTENCES), tmp_path / "out", fit=["bias"])

"""The package of the last run: it is kept, and compared only on sentences that it was not trained on."""

import shutil

import pytest

from spacy_weakner.calibration.seen import remember
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.project.previous import has_seen, keep_previous, predict_held_out
from spacy_weakner.project.selection import PREVIOUS, SELECTION, Selection
from spacy_weakner.project.selection_report import evaluate_selection

from ..util import contents, make_doc
from .util import ALL_TERMS, NLP, PEOPLE, SCORES, make_selection, make_trained, sentences, write_gold, write_ruler

CHANGED = "other inputs"


@pytest.fixture
def output(tmp_path):
    """A finished run: a pipeline that finds people, was trained on ten sentences, and found nothing in those when they
    were held out."""
    output = tmp_path / "training"
    output.mkdir()
    selection = make_selection(write_ruler(output / "combined", {"PER": [*PEOPLE]}), "combined")
    remember(output / "combined", [make_doc(NLP, text, []) for text, _ in sentences(10)])
    write_docs(output / "predicted.spacy", [make_doc(NLP, text, []) for text, _ in sentences(10)])
    predicted = {"predicted": str(output / "predicted.spacy")}
    candidates = [selection.candidates[0].model_copy(update=predicted), make_trained("other", output / "other")]
    selection.model_copy(update={"candidates": candidates}).save(output / SELECTION)
    return output


def test_it_stays_as_it_was(output):
    before = contents(output / "combined")
    previous = keep_previous(output, CHANGED)
    assert previous.best == "combined" and [other.name for other in previous.candidates] == ["combined"]
    assert previous.selected.scores.f1 == SCORES["f1"] and contents(output / "previous" / "pipeline") == before
    # A run that is interrupted leaves no selection; the next one still has the package from before.
    (output / SELECTION).unlink()
    shutil.rmtree(output / "combined")
    assert keep_previous(output, CHANGED) == previous
    # Moved with its folder.
    output.rename(output.with_name("moved"))
    assert keep_previous(output.with_name("moved"), CHANGED).selected.path.endswith("moved/previous/pipeline")


def test_a_repeated_run_keeps_nothing(output):
    repeated = Selection.load(output / SELECTION).inputs
    assert keep_previous(output, repeated) is None and not (output / "previous").exists()
    previous = keep_previous(output, CHANGED)
    # The changed run was interrupted: what it kept is the result of the run that is repeated now.
    before = contents(output)
    assert keep_previous(output, repeated) is None and contents(output) == before
    # It ended, and is repeated itself.
    changed = Selection.load(output / SELECTION).model_copy(update={"inputs": CHANGED})
    changed.save(output / SELECTION)
    before = contents(output)
    assert keep_previous(output, CHANGED) == previous and contents(output) == before


@pytest.mark.parametrize("text", [None, "{}", "[", "3"])
def test_nothing_to_keep(output, text):
    (output / SELECTION).unlink()
    if text is not None:
        (output / SELECTION).write_text(text)
    assert keep_previous(output, CHANGED) is None and not (output / "previous").exists()


def test_a_pipeline_that_is_gone(output):
    shutil.rmtree(output / "combined")
    assert keep_previous(output, CHANGED) is None


def test_sentences_that_it_was_trained_on_are_those_of_its_cross_validation(tmp_path, output):
    previous = keep_previous(output, CHANGED)
    # In another order, with new ones.
    docs = [make_doc(NLP, text, entities) for text, entities in [*sentences(3, 200), *sentences(10)[::-1]]]
    write_docs(tmp_path / "gold.spacy", docs)
    found = predict_held_out(previous, tmp_path / "gold.spacy")
    assert [doc.text for doc in found] == [doc.text for doc in docs]
    assert [len(doc_entities(doc)) for doc in found] == [1] * 3 + [0] * 10
    assert all(label == "PER" for doc in found for _, _, label in doc_entities(doc))


def test_sentences_that_it_knows_are_left_out(tmp_path, output):
    # Scored on dev: there are no held-out predictions of the gold.
    write_docs(output / "predicted.spacy", [make_doc(NLP, text, []) for text, _ in sentences(4, 100)])
    previous = keep_previous(output, CHANGED)
    for start, known in ((8, [True, True, False, False, False]), (50, [False] * 5)):
        write_gold(tmp_path / "dev.spacy", 5, start)
        assert [doc is None for doc in predict_held_out(previous, tmp_path / "dev.spacy")] == known
        assert has_seen(output / "previous" / "pipeline", tmp_path / "dev.spacy") == any(known)
    # Short sentences are equal by chance.
    remember(output / "previous" / "pipeline", [make_doc(NLP, "Anna went .", [])])
    write_docs(tmp_path / "dev.spacy", [make_doc(NLP, "Anna went .", [])])
    assert not has_seen(output / "previous" / "pipeline", tmp_path / "dev.spacy")
    # Other tokens cannot be compared.
    write_docs(output / "previous" / "predicted.spacy", [make_doc(NLP, "Annawent .", [])])
    assert predict_held_out(previous, tmp_path / "dev.spacy") == [None]


@pytest.mark.parametrize("start, by_both", [(9, False), (9, True), (50, False)])
def test_on_test_too(tmp_path, output, start, by_both):
    pytest.importorskip("matplotlib")
    previous = keep_previous(output, CHANGED)
    new = make_selection(write_ruler(output / "new", ALL_TERMS), "combined")
    remember(tmp_path / "training" / "new", [make_doc(NLP, text, []) for text, _ in sentences(10 * by_both)])
    difference = {"baseline": "combined", "f1": -2.0, "low": -5.0, "high": 1.0, "p": 0.2}
    old = make_trained(PREVIOUS, previous.selected.path, {**SCORES, "difference": difference})
    new = new.model_copy(update={"candidates": [*new.candidates, old]})
    write_gold(tmp_path / "test.spacy", 12, start)
    rows = evaluate_selection(new, tmp_path / "test.spacy", tmp_path / "report.html", bootstrap=20)
    answer = dict(new.answer({row.name: row for row in rows}))["Compared with the last run"]
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Compared with the last run" in html
    if start == 9 and not by_both:  # one of these sentences was in the gold
        assert [row.name for row in rows] == ["combined"]
        assert "2.0 F1 points more (95 % CI -1.0 to 5.0), not significant" in answer and "on test" not in answer
    else:
        assert [row.name for row in rows] == ["combined", PREVIOUS]
        assert f"{rows[0].f1 - rows[1].f1:.1f} F1 points more" in answer and "on test; the new one" in answer
